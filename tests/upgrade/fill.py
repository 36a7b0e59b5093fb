"""Uses a running okt as people would: accounts, a key, repositories, members, settings, sources, facts, a budget."""

import json
import sys
import time
import urllib.error
import urllib.request

base = sys.argv[1]
PASSWORD = "a password for upgrades"


def call(method, path, body=None, token=None, headers=None):
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    heads = {"content-type": "application/json"} if data is not None else {}
    heads.update(headers or {})
    if token:
        heads["authorization"] = f"Bearer {token}"
    request = urllib.request.Request(base + path, data, heads, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as refused:
        sys.exit(f"{method} {path}: {refused.code} {refused.read().decode()}")


def wait(what, so):
    for _ in range(1200):
        found = so()
        if found:
            return found
        time.sleep(0.1)
    sys.exit(f"{what} did not happen")


def listening():
    try:
        with urllib.request.urlopen(base + "/readyz", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


wait("the start", listening)
people = {}
for name in ["ada", "ben", "eve"]:
    account = {"email": f"{name}@example.org", "password": PASSWORD, "name": name.capitalize()}
    people[name] = call("POST", "/api/v1/auth/register", account)
ada = people["ada"]["token"]

repository = call("POST", "/api/v1/repositories", {"name": "Bees", "slug": "bees", "description": "What is known of them"}, ada)
inside = f"/api/v1/repositories/{repository['id']}"
call("PUT", inside + "/members", {"user_id": people["ben"]["user"]["id"], "role": "editor"}, ada)
call("PUT", inside + "/settings/budget", {"monthly_usd": 12.5}, ada)
call("POST", inside + "/settings/contexts", {"label": "Apiary", "description": "A place where hives stand"}, ada)
key = call("POST", "/api/v1/users/me/api-keys", {"name": "reader", "permissions": ["fact:read", "source:read"]}, ada)
client = {"client_name": "A client", "redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": "none"}
call("POST", "/api/v1/oauth/register", client)


def upload(name, kind, content):
    line = "a-line-between"
    form = (
        f'--{line}\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\ncontent-type: {kind}\r\n\r\n'
    ).encode() + content + f"\r\n--{line}--\r\n".encode()
    sent = call("POST", inside + "/sources/upload", form, ada, {"content-type": f"multipart/form-data; boundary={line}"})
    return sent["source_id"]


first = b"""A hive of honey bees holds 40,000 workers in summer. Honey bees visit two million flowers for a pound of honey.
The waggle dance was decoded by Karl von Frisch in 1927. A queen lays 1,500 eggs on a day in May."""
second = b"""A hive of honey bees holds 40,000 workers in summer. Bumble bees live in nests of 200 workers at the most.
A queen lays 1,600 eggs on a day in May. Karl von Frisch decoded the waggle dance in 1927.
Honey bees visit 2 million flowers for one pound of honey."""
sources = [upload("first.txt", "text/plain", first), upload("second.txt", "text/plain", second)]
with open("crates/okt-parse/fixtures/pdf/article.pdf", "rb") as file:
    sources.append(upload("article.pdf", "application/pdf", file.read()))
failing = call("POST", inside + "/sources", {"url": "http://127.0.0.1:9/nothing"}, ada)["source_id"]


def over(source):
    return call("GET", f"{inside}/sources/{source}", None, ada)["status"] in ("processed", "failed")


for source in [*sources, failing]:
    wait(f"the end of source {source}", lambda: over(source))
wait("comparing all facts", lambda: not call("GET", inside + "/facts?status=new", None, ada)["data"])
facts = call("GET", inside + "/facts?limit=200", None, ada)["data"]
call("PUT", f"{inside}/facts/{facts[-1]['id']}", {"status": "rejected"}, ada)
wait("the last job", lambda: all(job["state"] in ("completed", "discarded", "cancelled", "scheduled") for job in call("GET", inside + "/jobs", None, ada)["data"]))


def texts(path):
    return sorted(row["text"] for row in call("GET", inside + path, None, ada)["data"])


# What every later version has to answer too.
expected = {
    "password": PASSWORD,
    "key": key["token"],
    "repository": repository["id"],
    "statuses": {status: texts(f"/facts?limit=200&status={status}") for status in ("stable", "duplicate", "rejected")},
    "sources": sorted(row["status"] for row in call("GET", inside + "/sources", None, ada)["data"]),
    "members": sorted(json.dumps([row.get("roles"), row.get("name")]) for row in call("GET", inside + "/members", None, ada)["data"]),
    "budget": call("GET", inside + "/settings", None, ada)["budget"]["monthly_usd"],
    "usage": call("GET", inside + "/ai/usage?from=2026-01-01", None, ada)["total"],
}
print(json.dumps(expected, indent=1))
