"""What passes through a proxy before okt: an event while its stream stays open, a file of 40 MB, a call of /mcp, and not the metrics.

Usage: proxies.py OKT_URL TOKEN CA NAME=URL...
"""

import http.client
import json
import ssl
import sys
import threading
import time
import uuid
from urllib.parse import urlsplit

SIZE = 40 * 1024 * 1024
# Far less than the fifteen seconds after which a stream says something by itself, and so pushes out what was held back.
PROMPT = 5


class Service:
    def __init__(self, url, token, context=None):
        self.url, self.token, self.context = urlsplit(url), token, context

    def connect(self, timeout):
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=timeout, context=self.context)
        return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=timeout)

    def open(self, method, path, body=None, headers=None, timeout=30):
        connection = self.connect(timeout)
        connection.request(method, path, body, {"Authorization": f"Bearer {self.token}", **(headers or {})})
        return connection.getresponse()

    def json(self, method, path, body=None, headers=None):
        headers = {"Content-Type": "application/json", **(headers or {})}
        answer = self.open(method, path, json.dumps(body) if body is not None else None, headers)
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"proxies: {method} {path}: {answer.status} {text[:500]}")
        return json.loads(text)


def upload(service, repository):
    """A text that no other run has sent."""
    mark = uuid.uuid4().hex
    line = f"Tides of {mark} rise twice a day.\n".encode()
    content = (line * (SIZE // len(line) + 1))[:SIZE]
    head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{mark}.txt"\r\nContent-Type: text/plain\r\n\r\n'
    body = head.encode() + content + f"\r\n--{mark}--\r\n".encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={mark}"}
    answer = service.open("POST", f"/api/v1/repositories/{repository}/sources/upload", body, kind, timeout=60)
    text = answer.read()
    if answer.status != 202:
        raise SystemExit(f"proxies: an upload of 40 MB was answered {answer.status}: {text[:500]}")
    return json.loads(text)["job_id"]


def events_name(service, repository, job):
    """Seconds until the event of `job`, which must come while the stream is open."""
    seen, opened, lines = threading.Event(), threading.Event(), []

    def listen():
        try:
            answer = service.open("GET", f"/api/v1/repositories/{repository}/events", timeout=PROMPT * 4)
            if not answer.headers.get("Content-Type", "").startswith("text/event-stream"):
                lines.append(f"{answer.status} {answer.headers}")
                return
            opened.set()
            while not seen.is_set():
                line = answer.readline().decode()
                lines.append(line)
                if not line:
                    return
                for wanted in job:
                    if wanted in line:
                        seen.set()
        except OSError as error:
            lines.append(str(error))

    threading.Thread(target=listen, daemon=True).start()
    if not opened.wait(PROMPT):
        raise SystemExit(f"proxies: the stream of events did not begin within {PROMPT} s: {lines}")
    began = time.monotonic()
    job.append(upload(service, repository))
    sent = time.monotonic()
    if not seen.wait(PROMPT):
        raise SystemExit(f"proxies: no event of a job within {PROMPT} s; the stream said {lines}")
    return sent - began, time.monotonic() - sent


def mcp(service, key):
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "proxies", "version": "1"}},
    }
    caller = Service(service.url.geturl(), key, service.context)
    answer = caller.json("POST", "/mcp", hello, {"Accept": "application/json, text/event-stream"})
    if "serverInfo" not in answer.get("result", {}):
        raise SystemExit(f"proxies: /mcp answered {answer}")


def main():
    url, token, authority, *proxies = sys.argv[1:]
    okt = Service(url, token)
    context = ssl.create_default_context(cafile=authority)
    permissions = {"name": "proxies", "permissions": ["source:read"]}
    key = okt.json("POST", "/api/v1/users/me/api-keys", permissions)["token"]
    for proxy in proxies:
        name, _, address = proxy.partition("=")
        service = Service(address, token, context)
        metrics = service.open("GET", "/metrics")
        if metrics.status != 404 or b"okt_" in metrics.read():
            raise SystemExit(f"proxies: {name} answers /metrics with {metrics.status}")
        took, delay = events_name(service, "starter", [])
        mcp(service, key)
        print(f"proxies: {name}: 40 MB in {took:.1f} s, the event of its job {delay:.2f} s later, /mcp answers, /metrics does not")


main()
