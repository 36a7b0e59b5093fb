"""The first five calls that everybody makes, with the client that openapi-python-client makes of the document."""

import io
import os
import time

from okt_client import AuthenticatedClient, Client
from okt_client.api.accounts import register_user
from okt_client.api.facts import list_facts
from okt_client.api.repositories import create_repository
from okt_client.api.sources import list_sources, upload_source
from okt_client.models import NewRepository, Problem, Registration, SourceAccepted, SourceSort, SourceUpload
from okt_client.types import File

url = os.environ["OKT_URL"]


def got(answer):
    if answer is None or isinstance(answer, Problem):
        raise SystemExit(f"refused: {answer}")
    return answer


account = Registration(email="python@example.org", password="a password for Python")
me = got(register_user.sync(client=Client(base_url=url), body=account))
client = AuthenticatedClient(base_url=url, token=me.token)
repository = got(create_repository.sync(client=client, body=NewRepository(name="Python")))
text = b"Honey bees dance on the comb to tell each other where food is."
file = File(payload=io.BytesIO(text), file_name="bees.txt", mime_type="text/plain")
uploaded = got(upload_source.sync(str(repository.id), client=client, body=SourceUpload(file=file, title="On bees")))
assert isinstance(uploaded, SourceAccepted), uploaded
sources = got(list_sources.sync(str(repository.id), client=client, sort=SourceSort.NEWEST))
assert sources.data[0].id == uploaded.source_id, sources
for _ in range(120):
    facts = got(list_facts.sync(str(repository.id), client=client))
    if facts.data:
        print(f"python: {sources.data[0].status}, then: {facts.data[0].text}")
        break
    time.sleep(0.5)
else:
    raise SystemExit("there are no facts after a minute")
