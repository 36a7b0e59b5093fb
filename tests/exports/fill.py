"""Fills a repository through the API with sources whose titles, authors and texts are hostile, and fetches all exports of it.

Usage: fill.py FOLDER    with $OKT_URL; writes what the API says to known.json, and each export to a file
"""

import json
import os
import pathlib
import sys
import time

import requests

url = os.environ["OKT_URL"] + "/api/v1"
folder = pathlib.Path(sys.argv[1])
http = requests.Session()
http.trust_env = False

HOSTILE = [
    "On {bees} and \\textbf{honey}",
    "}, author = {Mallory}, x = {",
    "@article{evil, title = {x}}",
    "50 % of $5 & #1 _under_ ~tilde^ \"quoted\" <b>bold</b> a|b",
    "unbalanced } brace",
    "unbalanced { brace",
    "backslash at the end \\",
    "日本語 — Ünïcödé 🐝 عربى",
    "=HYPERLINK(\"http://evil.example\",\"x\")",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1+1)",
    "ER  - ",
    "TY  - JOUR",
    "</data></node><node id=\"evil\"/>",
    "]]> & &amp; <!-- --> ' \"",
    "Simon and Schuster and others",
    "a, b, c; d",
    "line\nbreak and\ttab\r\nER  - \r\nTI  - evil",
    "control \x01\x08\x1b characters",
]
TEXTS = [
    "Honey bees dance on the comb to tell each other where food is. The waggle dance was decoded by Karl von Frisch in 1946. "
    "Honey bees fly up to 5 km & back. {Honey bees} sleep at night.",
    "Karl von Frisch received the Nobel Prize in 1973. Honey bees see ultraviolet light. "
    "=SUM(A1) is no dance of honey bees. Honey bees visit 5 < 7 flowers \"a day\" in the city of Graz.",
    "Karl von Frisch was born in Vienna in 1886. Honey bees dance on the comb to tell each other where food is. "
    "Die Bienen fliegen täglich 🐝 bis zu drei Kilometer weit. The city of Graz has many honey bees.",
]


def call(method, path, **more):
    answer = http.request(method, url + path, timeout=60, **more)
    if answer.status_code >= 300:
        raise SystemExit(f"{method} {path}: {answer.status_code} {answer.text}")
    return answer


def rows(path):
    """All rows of a list."""
    separator = "&" if "?" in path else "?"
    cursor, found = "", []
    while cursor is not None:
        page = call("GET", f"{path}{separator}limit=200" + (f"&cursor={cursor}" if cursor else "")).json()
        found += page["data"]
        cursor = page["next_cursor"]
    return found


account = {"email": "exports@example.org", "password": "a password for exports"}
http.headers["Authorization"] = "Bearer " + call("POST", "/auth/register", json=account).json()["token"]
made = call("POST", "/repositories", json={"name": "Exports <&> {x}", "slug": "exports"}).json()
other = call("POST", "/repositories", json={"name": "Another one"}).json()
base = f"/repositories/{made['id']}"
investigation = call("POST", base + "/investigations", json={"title": "Bees"}).json()["id"]

# A list of references: nothing of it is fetched, and titles, authors, dates and DOIs stay as they are given.
references = [
    {
        "id": f"r{n}",
        "type": "article-journal",
        "title": title,
        "author": [{"family": "Moss", "given": "Ada"}, {"literal": title}],
        "issued": {"date-parts": [[2020, 3, 14][: 1 + n % 3]]},
        **({"DOI": f"10.5555/a_b({n})<{n}>"} if n % 2 else {"URL": f"http://127.0.0.1:9/{n}?a={{b}}&c=%25_~#d"}),
    }
    for n, title in enumerate(HOSTILE)
]
file = {"file": ("list.csl.json", json.dumps(references).encode(), "application/vnd.citationstyles.csl+json")}
imported = call("POST", base + "/sources/upload", files=file, data={"investigation_id": investigation}).json()
assert imported["added"] == len(HOSTILE), imported

uploaded = []
for n, text in enumerate(TEXTS):
    form = {"title": HOSTILE[n * 4].replace("\n", " "), "investigation_id": investigation}
    file = {"file": (f"{n}.txt", text.encode(), "text/plain")}
    uploaded.append(call("POST", base + "/sources/upload", files=file, data=form).json()["source_id"])
# What another repository has is in no export of this one.
file = {"file": ("x.txt", b"Wasps build nests of paper in the city of Linz.", "text/plain")}
stranger = call("POST", f"/repositories/{other['id']}/sources/upload", files=file).json()["source_id"]

deadline = time.monotonic() + 120
while True:
    open_jobs = call("GET", base + "/jobs/stats").json()
    states = [call("GET", f"{base}/sources/{source}").json()["status"] for source in uploaded]
    # Concepts come after a source is processed, and are counted by yet another job.
    busy = [job for job in rows(base + "/jobs") if job["finished_at"] is None and job["kind"] != "cleanup_facts"]
    if set(states) == {"processed"} and not busy and rows(base + "/concepts?show_small=true"):
        break
    if time.monotonic() > deadline:
        raise SystemExit(f"not ready after two minutes: {states} {busy} {open_jobs}")
    time.sleep(0.5)

mark = {"kind": "retracted", "reason": "50 % of {it} was made up & sold"}
call("PUT", f"{base}/sources/{uploaded[1]}/mark", json=mark)
call("PUT", f"{base}/sources/{uploaded[0]}/mark", json={"kind": "superseded", "by": uploaded[2]})
listed = rows(base + "/facts?grouped=false")
rejected = listed[0]["id"]
call("PUT", f"{base}/facts/{rejected}", json={"status": "rejected"})

facts = []
for row in rows(base + "/facts?grouped=false"):
    if row["status"] in ("new", "stable"):
        facts.append(call("GET", f"{base}/facts/{row['id']}").json())
# A report that rests on some of them, with hostile Markdown between its claims.
body = "\n\n".join(
    [
        "# A report <b>with</b> \\textbf{a} title",
        "Honey bees dance on the comb to tell each other where food is. Karl von Frisch was born in Vienna in 1887. Karl von Frisch received the Nobel Prize in 1974.",
        "Nothing is known here of the price of copper on the markets of Zurich, which ended at `0.7`. It stood at <https://example.org/copper>.",
        "| a | b |\n|---|---|\n| <script>alert(1)</script> | [^okt-1] |",
        "<img src=x onerror=alert(1)> [a link](javascript:alert(1)) ![picture](http://127.0.0.1:9/x.png)",
        "The waggle dance was decoded by Karl von Frisch in 1946.[^mine]",
        "[^mine]: A note of the author's own.",
        "```\ncode that does not end",
    ]
)
report = call("POST", base + "/reports", json={"title": "A <report> & {more}", "body_markdown": body}).json()["id"]
deadline = time.monotonic() + 60
while True:
    seen = call("GET", f"{base}/reports/{report}").json()
    if seen["status"] == "annotated" and not seen["counts"]["waiting"]:
        break
    if time.monotonic() > deadline:
        raise SystemExit(f"the report was not checked after a minute: {seen}")
    time.sleep(0.2)
annotations = rows(f"{base}/reports/{report}/annotations")
postures = {row["posture"] for row in annotations}
assert {"supports", "contradicts"} <= postures, f"the report has no sentence of each kind: {annotations}"

concepts = rows(base + "/concepts?show_small=true")
relations = 0
for concept in concepts:
    near = rows(f"{base}/concepts/{concept['id']}/relations?show_insignificant=true&show_small=true")
    relations += len(near)
known = {
    "repository": made,
    "stranger": stranger,
    "rejected": rejected,
    "retracted": uploaded[1],
    "superseded": [uploaded[0], uploaded[2]],
    "sources": [call("GET", f"{base}/sources/{row['id']}").json() for row in rows(base + "/sources")],
    "facts": facts,
    "concepts": concepts,
    "report": {"id": report, "title": seen["title"], "counts": seen["counts"], "annotations": annotations},
    # Each from both sides.
    "relations": relations // 2,
}
assert len(known["sources"]) == len(HOSTILE) + len(TEXTS), len(known["sources"])
assert known["facts"] and known["concepts"] and known["relations"], "there is nothing to export"
(folder / "known.json").write_text(json.dumps(known))

for name, path in [
    ("list.bib", f"{base}/investigations/{investigation}/export?format=bibtex"),
    ("list.ris", f"{base}/investigations/{investigation}/export?format=ris"),
    ("list.csl.json", f"{base}/investigations/{investigation}/export?format=csl"),
    ("graph.jsonld", f"{base}/export?format=jsonld"),
    ("graph.graphml", f"{base}/export?format=graphml"),
    ("graph.csv", f"{base}/export?format=csv"),
    ("report.md", f"{base}/reports/{report}/export?format=md"),
    ("report.html", f"{base}/reports/{report}/export?format=html"),
    ("report.bib", f"{base}/reports/{report}/export?format=bibtex"),
    ("report.ris", f"{base}/reports/{report}/export?format=ris"),
    ("report.csl.json", f"{base}/reports/{report}/export?format=csl"),
]:
    answer = call("GET", path)
    assert answer.headers["content-disposition"].startswith("attachment"), answer.headers
    (folder / name).write_bytes(answer.content)
print(f"exports: {len(known['sources'])} sources, {len(facts)} facts, {len(concepts)} concepts, {relations // 2} relations")
