"""Holds the dashboard and the alert rules against a running okt: every metric that they name must be served by /metrics, or, as some
come only with what they count, stand in docs/LOGGING.md; and that list must be all that is served, and no more.

Usage: metrics.py METRICS_URL QUERIES   (QUERIES: a rule file that is written with the queries of the dashboard, for promtool)
"""

import json
import re
import sys
import urllib.request
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"\b((?:okt|process)_[a-z_]+)\b")
# Of a histogram, the series that it consists of.
PARTS = ("_bucket", "_count", "_sum")
LABELS = re.compile(r"(?:okt|process)_[a-z_]+\{([^}]*)\}|by \(([^)]*)\)")
# Brought by Prometheus itself, or by the histogram.
OTHERS = {"job", "instance", "le"}


def served(url):
    text = urllib.request.urlopen(url, timeout=10).read().decode()
    return set(re.findall(r"^# TYPE ([a-z_]+) ", text, re.M))


def documented():
    """Names with their labels, of the table under Metrics."""
    section = (ROOT / "docs/LOGGING.md").read_text(encoding="utf-8").split("## Metrics")[1].split("\n## ")[0]
    found = {}
    for line in section.splitlines():
        cells = line.split("|")
        if len(cells) > 3:
            for name in re.findall(r"`([a-z_]+)`", cells[1]):
                found[name] = set(re.findall(r"`([a-z_]+)`", cells[2]))
    return found


def expressions():
    rules = yaml.safe_load((ROOT / "packaging/prometheus/okt.rules.yml").read_text(encoding="utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield f"alert {rule['alert']}", rule["expr"]
    board = json.loads((ROOT / "packaging/grafana/okt.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']}", target["expr"]
    for annotation in board["annotations"]["list"]:
        yield f"annotation {annotation['name']}", annotation["expr"]


def family(name, known):
    for part in PARTS:
        if name.endswith(part) and name.removesuffix(part) in known:
            return name.removesuffix(part)
    return name


def main():
    url, queries = sys.argv[1:]
    known, live = documented(), served(url)
    wrong = [f"/metrics serves {name}, which docs/LOGGING.md does not list" for name in sorted(live - set(known))]
    # Most come with the first that they count, so the program's text has to say whether they can.
    sources = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("crates/*/src/**/*.rs"))
    wrong += [f"docs/LOGGING.md lists {name}, which nothing serves" for name in known if name not in live and f'"{name}"' not in sources]
    asked = []
    for place, expression in expressions():
        for name in NAME.findall(expression):
            if family(name, known) not in live | set(known):
                wrong.append(f"{place} asks for {name}, which nothing serves")
        for inside, by in LABELS.findall(expression):
            labels = set(re.findall(r"([a-z_]+)\s*[=!]", inside)) | set(re.findall(r"[a-z_]+", by))
            allowed = OTHERS.union(*(known.get(family(name, known), set()) for name in NAME.findall(expression)))
            wrong += [f"{place} asks for the label {label}, which its metrics don't have" for label in sorted(labels - allowed)]
        asked.append((place, expression))
    if wrong:
        sys.exit("metrics: " + "\nmetrics: ".join(wrong))
    # With values for Grafana's variables, so that promtool can say whether each is a query.
    rules = [
        {"record": f"panel:number_{number}", "expr": re.sub(r"\$__rate_interval", "1m", re.sub(r"\$(job|instance)\b", "x", expression))}
        for number, (place, expression) in enumerate(asked)
        if not place.startswith("alert")
    ]
    Path(queries).write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    print(f"metrics: {len(asked)} queries ask for nothing but what is served ({len(live)} families now, {len(known)} documented)")


main()
