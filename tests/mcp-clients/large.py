"""Calls every tool that reads, in a large repository, and fails if a result does not fit its schema or has more than 60,000
characters. `okt-test bench search` runs it on a million facts:

    okt-test bench search 1000000 300 - "python3 tests/mcp-clients/large.py"

Usage: large.py URL EMAIL PASSWORD SLUG; `jsonschema`, if it is installed, checks the schemas.
"""

import json
import sys
import time
import urllib.error
import urllib.request

try:
    import jsonschema
except ImportError:
    jsonschema = None

MOST = 60_000
READ = ["concept:read", "fact:read", "investigation:read", "job:read", "report:read", "repository:read", "source:read"]
BASE, EMAIL, PASSWORD, SLUG = sys.argv[1:5]


def post(path, body, token=None):
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(BASE + path, json.dumps(body).encode(), headers)
    try:
        return json.load(urllib.request.urlopen(request, timeout=90))
    except urllib.error.HTTPError as refused:
        sys.exit(f"{path}: {refused.code} {refused.read()[:500]}")


def rpc(method, params):
    answer = post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, KEY)
    if "error" in answer:
        sys.exit(f"{method} {params}: {answer['error']}")
    return answer["result"]


def told(tool, **arguments):
    began = time.monotonic()
    where = {"repository": SLUG} if "repository" in TOOLS[tool]["inputSchema"]["properties"] else {}
    result = rpc("tools/call", {"name": tool, "arguments": where | arguments})
    took, text = (time.monotonic() - began) * 1e3, result["content"][0]["text"]
    if result["isError"]:
        sys.exit(f"{tool} {arguments}: {text}")
    said, length = result["structuredContent"], len(text)
    print(f"{tool:20} {length:6} characters {took:7.0f} ms")
    if length > MOST:
        wrong.append(f"{tool} {arguments}: {length} characters")
    elif jsonschema:
        wrong.extend(f"{tool}: {found.message[:300]}" for found in jsonschema.Draft202012Validator(TOOLS[tool]["outputSchema"]).iter_errors(said))
    return said


session = post("/api/v1/auth/login", {"email": EMAIL, "password": PASSWORD})["token"]
KEY = post("/api/v1/users/me/api-keys", {"name": "large", "permissions": READ}, session)["token"]
TOOLS = {tool["name"]: tool for tool in rpc("tools/list", {})["tools"]}
wrong = []

request = urllib.request.Request(f"{BASE}/api/v1/repositories/{SLUG}/facts?limit=50", headers={"Authorization": f"Bearer {KEY}"})
facts = json.load(urllib.request.urlopen(request, timeout=60))["data"]
text = facts[0]["text"]
words = " ".join(text.split()[:4])

told("search", query=words)
found = told("search_facts", query=words, limit=50)
for fact in facts[:3]:
    told("get_fact", fact_id=fact["id"])
    told("fetch", id=f"fact:{fact['id']}")
sources = told("list_sources", limit=50)
first = next(iter(next(value for value in sources.values() if isinstance(value, list))))
source = first.get("source_id") or first["id"]
told("get_source", source_id=source, include=["text", "facts"])
told("find_evidence", claim=text)
told("check_text", text=" ".join(fact["text"] for fact in facts[:20]))
told("find_contradictions", limit=50)
concepts = told("search_concepts", limit=50)
rows = next((value for value in concepts.values() if isinstance(value, list)), [])
if rows:
    concept = rows[0].get("concept_id") or rows[0]["id"]
    told("get_concept", concept_id=concept)
    told("related_concepts", concept_id=concept, limit=50)
told("list_reports", limit=50)
told("ask", question=f"What is known of {words}?", mode="extractive")

print("every result is short enough" + (" and fits its schema" if jsonschema else "; schemas were not checked: jsonschema is missing"))
if wrong:
    sys.exit("\n".join(wrong))
