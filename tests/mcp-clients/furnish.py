"""Makes an account, a repository with the sample and a text, and a key for agents, which it prints."""

import json
import os
import subprocess
import time
import urllib.request

API = os.environ["OKT_URL"] + "/api/v1"
TEXT = (
    "Honey bees find the way back to their hive by the position of the sun. "
    "Varroa mites killed 40 percent of all honey bee colonies in Norway in 2006."
)
PERMISSIONS = [
    "repository:read", "fact:read", "concept:read", "source:read", "source:write", "job:read", "report:read",
    "report:write", "report:update", "investigation:read", "investigation:write", "investigation:update",
    "webhook:read", "webhook:write", "webhook:update", "webhook:execute",
]


def ask(path, body=None, token=None, kind="application/json"):
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    headers = {"content-type": kind, **({"authorization": f"Bearer {token}"} if token else {})}
    with urllib.request.urlopen(urllib.request.Request(API + path, data, headers), timeout=20) as answer:
        return json.load(answer)


me = ask("/auth/register", {"email": os.environ["OKT_EMAIL"], "password": os.environ["OKT_PASSWORD"], "name": "Ada"})["token"]
repositories = ask("/repositories", token=me)["data"]
repository = repositories[0]["id"] if repositories else ask("/repositories", {"name": "Bees"}, me)["id"]
form = (
    '--x\r\nContent-Disposition: form-data; name="file"; filename="bees.txt"\r\nContent-Type: text/plain\r\n\r\n'
    f"{TEXT}\r\n--x--\r\n"
)
path = f"/repositories/{repository}/sources"
source = ask(f"{path}/upload", form.encode(), me, "multipart/form-data; boundary=x")["source_id"]
for _ in range(240):
    status = ask(f"{path}/{source}?include=", token=me)["status"]
    if status in ("processed", "failed"):
        break
    time.sleep(0.25)
assert status == "processed", status
# As people take in the sample: by the program.
importing = {"name": "import", "permissions": ["repository:read", "graph:write", "job:read"]}
environment = os.environ | {"OKT_API_KEY": ask("/users/me/api-keys", importing, me)["token"]}
command = [os.environ["OKT_PROGRAM"], "bundle", "import", "--sample", "--repository", repository]
subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=120)
print(ask("/users/me/api-keys", {"name": "agent", "permissions": PERMISSIONS}, me)["token"])
