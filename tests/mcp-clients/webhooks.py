"""A webhook of a running okt, verified by the library of Standard Webhooks: a source, a test, and a rotation."""

import json
import os
import queue
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

API, KEY = os.environ["OKT_URL"] + "/api/v1", os.environ["OKT_API_KEY"]
PORT = int(os.environ["OKT_HOOKS_PORT"])
told = queue.Queue()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        told.put((self.rfile.read(int(self.headers["content-length"])), dict(self.headers)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def ask(path, body=None, kind="application/json"):
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    headers = {"content-type": kind, "authorization": f"Bearer {KEY}"}
    with urllib.request.urlopen(urllib.request.Request(API + path, data, headers), timeout=20) as answer:
        return json.load(answer)


def is_from(secret, body, headers):
    try:
        return Webhook(secret).verify(body, headers)
    except WebhookVerificationError:
        return None


threading.Thread(target=HTTPServer(("127.0.0.1", PORT), Receiver).serve_forever, daemon=True).start()
repository = f"/repositories/{ask('/repositories')['data'][0]['id']}"
made = ask(f"{repository}/webhooks", {"url": f"http://127.0.0.1:{PORT}/hook", "events": ["source.processed"]})
hook, secret = f"{repository}/webhooks/{made['id']}", made["secret"]

form = (
    '--x\r\nContent-Disposition: form-data; name="file"; filename="told.txt"\r\nContent-Type: text/plain\r\n\r\n'
    "Bees of Uland are told of by other services as well.\r\n--x--\r\n"
)
source = ask(f"{repository}/sources/upload", form.encode(), "multipart/form-data; boundary=x")["source_id"]
body, headers = told.get(timeout=90)
event = is_from(secret, body, headers)
assert event and event["type"] == "source.processed" and event["data"]["source_id"] == source, (event, headers)
assert not is_from(secret, body.replace(b"processed", b"falsified"), headers), "a body that was altered"
assert not is_from("whsec_" + "A" * 44, body, headers), "somebody else's secret"

ask(f"{hook}/test", {})
body, headers = told.get(timeout=60)
assert is_from(secret, body, headers)["type"] == "webhook.test", headers
rotated = ask(f"{hook}/rotate", {})["secret"]
ask(f"{hook}/test", {})
body, headers = told.get(timeout=60)
assert is_from(secret, body, headers) and is_from(rotated, body, headers), headers

deadline = time.monotonic() + 60
while True:
    states = [row["state"] for row in ask(f"{hook}/deliveries")["data"]]
    if states == ["delivered"] * 3:
        break
    assert time.monotonic() < deadline, states
    time.sleep(0.25)
