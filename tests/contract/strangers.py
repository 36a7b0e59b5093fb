"""A second account, which has no role in any repository of the first, asks for everything that the first one has: by every GET of
the OpenAPI document that names a repository or a job, with ids that the first account sees. It has to be told 403 or 404.

Usage: strangers.py ADDRESS PROGRAM   (PASSWORD and TOKEN of the first account, contract@example.org, in the environment)
"""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
import uuid

BASE, PROGRAM = sys.argv[1:]
API = BASE + "/api/v1"
# Parameter of a path, and the list below a repository whose rows have its values.
LISTS = {
    "answerID": "answers",
    "conceptID": "concepts",
    "otherID": "concepts",
    "conversationID": "conversations",
    "factID": "facts",
    "investigationID": "investigations",
    "jobID": "jobs",
    "reportID": "reports",
    "sourceID": "sources",
    "webhookID": "webhooks",
}
QUERIES = {"/search": "?q=ferry", "/graph/path": "?from={conceptID}&to={otherID}"}
# Of each list, and of the repositories that made-up requests have left behind.
MOST = 3
# Paths that have something to hide. Fewer would mean that this looks at nothing.
LEAST = 35


def call(token, path, body=None):
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(path, body and json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def must(token, path, body=None):
    status, answer = call(token, API + path, body)
    if status >= 300:
        sys.exit(f"strangers: {path} was answered with {status}: {answer[:300]}")
    return json.loads(answer)


def sign_in():
    """Requests that were made up may have ended the session of the first account."""
    if call(os.environ["TOKEN"], API + "/users/me")[0] == 200:
        return os.environ["TOKEN"]
    account = {"email": "contract@example.org", "password": os.environ["PASSWORD"]}
    return must("", "/auth/login", account)["token"]


def furnish(first):
    """A repository with something of everything. What is refused is missing from the count at the end."""
    repository = must(first, "/repositories", {"name": "Furnished"})["id"]
    command = [PROGRAM, "bundle", "import", "--sample", "--url", BASE, "--key", first, "--repository", repository]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
    for path, body in [
        ("ask", {"question": "How much shore power do electric ferries need?", "mode": "extractive"}),
        ("conversations", {"title": "Ferries"}),
        ("investigations", {"title": "Ferries"}),
        ("webhooks", {"url": "https://hooks.example.org/okt", "events": ["source.processed"]}),
    ]:
        call(first, f"{API}/repositories/{repository}/{path}", body)
    return repository


def main():
    first = sign_in()
    stranger = {"email": f"stranger-{uuid.uuid4()}@example.org", "password": "a password for a stranger"}
    second = must("", "/auth/register", stranger)["token"]
    furnished = furnish(first)
    others = [row["id"] for row in must(first, "/repositories")["data"] if row["id"] != furnished]
    if must(second, "/repositories")["data"]:
        sys.exit("strangers: the second account sees repositories")
    paths = [path for path, item in must("", "/openapi.json")["paths"].items() if "get" in item]
    paths = [path for path in paths if "{repoID}" in path or "{jobID}" in path]

    asked, seen, leaks = 0, set(), []
    for repository in [furnished, *others[:MOST]]:
        found = {}
        for name, where in LISTS.items():
            status, answer = call(first, f"{API}/repositories/{repository}/{where}?limit={MOST + 1}")
            rows = [row["id"] for row in json.loads(answer)["data"]] if status == 200 else []
            found[name] = rows[1:] + rows[:1] if name == "otherID" else rows[:MOST]
        for path in paths:
            for number in range(MOST if len(re.findall("{", path)) > 1 else 1):
                values = {name: ids[number % len(ids)] if ids else str(uuid.uuid4()) for name, ids in found.items()}
                values |= {"repoID": repository, "imageID": str(uuid.uuid4()), "n": "1"}
                end = next((query for end, query in QUERIES.items() if path.endswith(end)), "")
                address = BASE + (path + end).format(**values)
                status, answer = call(second, address)
                asked += 1
                if path.endswith("/repositories/{repoID}/permissions"):
                    # Everybody may ask what they may do; of what they may not see it says what it says of nothing.
                    nothing = str(uuid.uuid4())
                    said = call(second, address.replace(repository, nothing))[1]
                    if status == 200 and answer.replace(repository.encode(), nothing.encode()) == said:
                        continue
                if status not in (403, 404):
                    leaks.append(f"GET {address}: {status}: {answer[:200]}")
                # A stream would not end.
                if number == 0 and not path.endswith("/events") and call(first, address)[0] == 200:
                    seen.add(path)
    if leaks or len(seen) < LEAST:
        sys.exit("strangers: " + "\n".join(leaks or [f"the first account itself sees only {len(seen)} paths: {sorted(seen)}"]))
    print(f"strangers: {asked} requests for what is another's, all refused; its owner sees {len(seen)} of {len(paths)} paths")


main()
