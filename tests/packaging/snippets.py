"""Runs what stands in `bash` blocks of docs/operations, page by page, from the root of the checkout, against a running okt. A block
after `<!-- not run: REASON -->` is only read for its syntax.

Usage: snippets.py PORT   (of okt, which serves its metrics there too)
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```bash\n(?P<text>.*?)^```$", re.S | re.M)


def main():
    (okt,) = sys.argv[1:]
    ran = read = 0
    for page in sorted((ROOT / "docs/operations").glob("*.md")):
        script = ["set -euo pipefail"]
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            if block["reason"] is None:
                script.append(block["text"])
                ran += 1
                continue
            read += 1
            checked = subprocess.run(["bash", "-n"], input=block["text"], text=True, capture_output=True)
            if checked.returncode:
                sys.exit(f"snippets: {page.relative_to(ROOT)}: {checked.stderr}")
        text = re.sub("localhost:(8080|9464)", f"127.0.0.1:{okt}", "\n".join(script))
        done = subprocess.run(["bash"], input=text, text=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        if done.returncode:
            sys.exit(f"snippets: {page.relative_to(ROOT)}: {done.stdout}\nsnippets: ended with {done.returncode}:\n{text}")
    print(f"snippets: {ran} blocks of docs/operations ran, {read} are marked as not run")


main()
