"""Holds a bill of materials against what cargo says that the program is made of, and against Cargo.lock.

Usage: sbom.py FILE
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main():
    bill = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    parts = [bill["metadata"]["component"], *bill["components"]]
    listed = {(one["name"], one["version"]): one for one in parts if one["purl"].startswith("pkg:cargo/")}
    command = "cargo tree --locked --package okt-cli --edges normal --prefix none".split()
    tree = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True).stdout
    linked = set(re.findall(r"^(\S+) v(\S+)", tree, re.M))
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    checksums = {(one["name"], one["version"]): one.get("checksum") for one in lock}

    wrong = [f"{name} {version} is missing" for name, version in linked - listed.keys()]
    for package, one in listed.items():
        name = " ".join(package)
        expected = checksums.get(package)
        found = next((each["content"] for each in one.get("hashes", [])), None)
        if package not in checksums or found != expected:
            wrong.append(f"{name} has the checksum {found}; Cargo.lock has {expected}")
        if not one.get("licenses", [{}])[0].get("expression"):
            wrong.append(f"{name} has no licence")
    references = {one["bom-ref"] for one in parts}
    if len(references) != len(parts):
        wrong.append("two parts have the same reference")
    for edge in bill["dependencies"]:
        wrong += [f"{edge['ref']} uses {one}, which is not listed" for one in edge["dependsOn"] if one not in references]
    if len(linked) < 100 or wrong:
        sys.exit("sbom: " + "\n".join(sorted(wrong) or [f"cargo tree has only {len(linked)} packages"]))
    print(f"sbom: {len(listed)} crates, {len(parts) - len(listed)} other parts; all {len(linked)} that cargo links are there")


main()
