"""A research task from its beginning to its end by the Python client: over HTTP, and through `okt mcp`."""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

URL, KEY, PROGRAM = os.environ["OKT_URL"], os.environ["OKT_API_KEY"], os.environ["OKT_PROGRAM"]
PAGE = os.environ["OKT_PAGE"]


async def call(client, tool, **arguments):
    print(f"> {tool} {json.dumps(arguments)}")
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise SystemExit(f"{tool} failed: {result.content[0].text}")
    said = result.structured_content
    text = json.dumps(said, ensure_ascii=False)
    print(f"  {text[:300]}{'…' if len(text) > 300 else ''}")
    return said


async def research(client):
    print(f"revision {client.protocol_version}")
    # What is known, and what it rests on.
    found = await call(client, "search", query="how far does the Marholm ferry go on one charge")
    facts = [row for row in found["results"] if row["id"].startswith("fact:")]
    assert facts and all(row["url"] for row in found["results"]), found
    fetched = await call(client, "fetch", id=facts[0]["id"])
    assert "“" in fetched["text"] and fetched["url"] == facts[0]["url"], fetched
    found = await call(client, "search_facts", query="range of the Marholm ferry on one charge", limit=5)
    fact = await call(client, "get_fact", fact_id=found["facts"][0]["id"])
    assert fact["sources"][0]["quotes"][0]["quote"], fact
    # What speaks against a claim.
    claim = "The two electric boats of the Marholm ferry cost 5.9 million euros."
    evidence = await call(client, "find_evidence", claim=claim)
    assert evidence["state"] == "contradicted" and evidence["contradicts"], evidence
    pairs = await call(client, "find_contradictions")
    assert pairs["contradictions"], pairs
    # Something new is read, and then it is known.
    news = "Two diesel boats of Uland were sold to a museum in the autumn of 2025."
    before = await call(client, "find_evidence", claim=news)
    assert before["state"] == "unsupported", before
    added = await call(client, "add_source", url=PAGE, wait_s=50)
    assert added["progress"]["state"] == "done", added
    source = await call(client, "get_source", source_id=added["source_id"], include=["facts"])
    assert news in [fact["text"] for fact in source["facts"]], source
    # A text is checked against all of it.
    checked = await call(client, "check_text", text=f"{news} {claim}")
    states = [row["state"] for row in checked["sentences"]]
    assert states == ["supported", "contradicted"], checked
    report = await call(client, "create_report", title="Two ferries", markdown=f"# Two ferries\n\n{news} {claim}\n")
    done = await call(client, "get_progress", report_id=report["id"], wait_s=50)
    assert done["state"] == "done", done
    stands = await call(client, "get_report", report_id=report["id"], only="contradicted")
    assert stands["counts"]["contradicted"] == 1 and stands["sentences"][0]["text"] == claim, stands


async def main():
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=90)
    async with Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as client:
        await research(client)
    program = StdioServerParameters(command=PROGRAM, args=["mcp", "--url", URL], env={"OKT_API_KEY": KEY})
    async with Client(program) as client:
        print(f"okt mcp: revision {client.protocol_version}")
        assert len((await client.list_tools()).tools) >= 24
        found = await call(client, "search", query="bees")
        assert found["results"], found


asyncio.run(asyncio.wait_for(main(), 180))
print("the research is done", file=sys.stderr)
