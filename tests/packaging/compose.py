"""Has okt look at the settings that each service of the compose files would start with: alone, and with what the other files add.

Usage: compose.py FOLDER PROGRAM   (the Python that runs it has PyYAML)
"""

import itertools
import os
import re
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

# What somebody would write into .env; the first set is all that has to be there.
NEEDED = {"POSTGRES_PASSWORD": "a1b2c3", "AUTH_JWTSECRET": secrets.token_hex(32), "VECTOR_STORE_API_KEY": "a1b2c3"}
ALL = NEEDED | {
    "SVC_OAUTH_ISSUER": "https://okt.example.org",
    "SVC_BOOTSTRAP_DEFAULT_ADMIN_EMAIL": "you@example.org",
    "SVC_BOOTSTRAP_DEFAULT_ADMIN_PASSWORD": "a long sentence",
    "SVC_BOOTSTRAP_DEFAULT_ADMIN_DISPLAY_NAME": "You",
    "REGISTRY_API_KEY": "okg_a.b",
}
VARIABLE = re.compile(r"\$\{(\w+)(?::([-+?])([^}]*))?\}")


def filled_in(text, known):
    def value(found):
        name, how, word = found.groups()
        if how == "+":
            return word if known.get(name) else ""
        if not known.get(name) and how != "-":
            sys.exit(f"compose: {name} has no value")
        return known.get(name) or word

    return VARIABLE.sub(value, text)


def main():
    folder, okt = Path(sys.argv[1]), sys.argv[2]
    more = sorted(set(folder.glob("compose.*.yaml")))
    checked = 0
    for known, count in itertools.product((NEEDED, ALL), range(len(more) + 1)):
        for chosen in itertools.combinations(more, count):
            services = {}
            for file in (folder / "compose.yaml", *chosen):
                for name, service in yaml.safe_load(file.read_text(encoding="utf-8"))["services"].items():
                    merged = services.setdefault(name, {"environment": {}})
                    merged["environment"] |= service.get("environment", {})
                    merged["image"] = service.get("image", merged.get("image"))
            for name, service in services.items():
                if service["image"] != "okt":
                    continue
                settings = {key: filled_in(str(text), known) for key, text in service["environment"].items()}
                with tempfile.TemporaryDirectory() as empty:
                    done = subprocess.run(
                        [okt, "--config", empty, "config", "check"],
                        env={"PATH": os.environ["PATH"], "HOME": empty, "SVC__SERVER__HOST": "0.0.0.0"} | settings,
                        cwd=empty,
                        text=True,
                        capture_output=True,
                    )
                files = ", ".join(file.name for file in chosen) or "compose.yaml alone"
                if done.returncode:
                    sys.exit(f"compose: {name} with {files}: {done.stdout}{done.stderr}")
                checked += 1
    print(f"compose: okt takes the settings of {checked} services")


main()
