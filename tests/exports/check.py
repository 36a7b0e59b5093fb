"""Reads each export with a tool of its own format and compares it with what the API says of the repository.

Usage: check.py FOLDER    as fill.py has filled it

Every check is then run on a file that is wrong, and has to say so.
"""

import csv
import io
import json
import logging
import pathlib
import re
import sys

import bibtexparser
import html5lib
import networkx
import pybtex.database
import rdflib
import rispy
from citeproc import Citation, CitationItem, CitationStylesBibliography, CitationStylesStyle, formatter
from citeproc.source.json import CiteProcJSON
from markdown_it import MarkdownIt
from mdit_py_plugins.footnote import footnote_plugin
from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db
from rdflib.namespace import DCTERMS, PROV, RDF, SKOS

folder = pathlib.Path(sys.argv[1])
known = json.loads((folder / "known.json").read_text())
sources = {source["id"]: source for source in known["sources"]}
facts = {fact["id"]: fact for fact in known["facts"]}
concepts = {concept["id"]: concept for concept in known["concepts"]}
OA = rdflib.Namespace("http://www.w3.org/ns/oa#")
OKT = rdflib.Namespace("urn:okt:vocabulary:")


class Wrong(Exception):
    pass


def same(what, found, expected):
    if found != expected:
        raise Wrong(f"{what}: {found!r} instead of {expected!r}")


def line(text):
    """As a text is written on one line."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def key(source):
    return "okt-" + source.replace("-", "")


titles = {key(id): line(source["parsed_title"] or "") for id, source in sources.items()}
# What a report's claims rest on.
report = known["report"]
judging = {row["fact_id"] for row in report["annotations"] if row["posture"] != "related"}
cited = {key(source["source_id"]) for id in judging for source in facts[id]["sources"]}
authors = {key(id): line(source.get("author") or "") for id, source in sources.items()}
dois = {key(id): source["doi"] for id, source in sources.items() if source["doi"]}
quotes = {
    (fact["id"], source["source_id"]): [sentence["text"] for sentence in source["sentences"]]
    for fact in facts.values()
    for source in fact["sources"]
}
links = {(fact["id"], source["source_id"]) for fact in facts.values() for source in fact["sources"]}


# Commands of LaTeX that pylatexenc does not know, or takes for accents.
SIGNS = {"braceleft": "{", "braceright": "}", "less": "<", "greater": ">", "bar": "|", "asciicircum": "^", "asciitilde": "~"}
commands = get_default_latex_context_db()
signs = [MacroTextSpec("text" + name, sign) for name, sign in SIGNS.items()]
commands.add_context_category("signs", prepend=True, macros=signs)


def plain(latex):
    return line(LatexNodes2Text(latex_context=commands, keep_comments=True).latex_to_text(latex))


def bibtex(data, entries=titles):
    text = data.decode()
    # Strictly: it stops at the first thing that is not in order.
    read = pybtex.database.parse_string(text, "bibtex")
    same("entries", sorted(read.entries), sorted(entries))
    for name, entry in read.entries.items():
        same("title", plain(entry.fields["title"]), titles[name])
        same("doi", entry.fields.get("doi", "").replace("%3C", "<").replace("%3E", ">"), dois.get(name, ""))
        # The names are told apart as they were given: none of them is read as two.
        names = [str(person) for person in entry.persons.get("author", [])]
        same("names", len(names), len([name for name in authors[name].split(";") if name.strip()]) or 0)
    if retracted := read.entries.get(key(known["retracted"])):
        same("note", plain(retracted.fields["note"]), "Retracted: 50 % of {it} was made up & sold")
    library = bibtexparser.parse_string(text)
    same("blocks that bibtexparser can't read", [block.error for block in library.failed_blocks], [])
    same("entries of bibtexparser", sorted(entry.key for entry in library.entries), sorted(entries))
    for entry in library.entries:
        same("title", plain(entry["title"]), titles[entry.key])


def ris(data, entries=titles):
    read = rispy.loads(data.decode())
    same("entries", sorted(entry["id"] for entry in read), sorted(entries))
    for entry in read:
        name = entry["id"]
        same("title", line(entry["title"]), titles[name])
        same("doi", entry.get("doi", ""), dois.get(name, ""))
        same("unknown tags", entry.get("unknown_tag"), None)
        same("names", "; ".join(entry.get("authors", [])), authors[name])


def csl(data, entries=titles):
    items = json.loads(data)
    same("entries", sorted(item["id"] for item in items), sorted(entries))
    for item in items:
        same("title", item["title"], titles[item["id"]])
        same("doi", item.get("DOI", ""), dois.get(item["id"], ""))
    # What it is for: a bibliography.
    style = CitationStylesStyle("harvard-cite-them-right", validate=False)
    bibliography = CitationStylesBibliography(style, CiteProcJSON(items), formatter.plain)
    for item in items:
        bibliography.register(Citation([CitationItem(item["id"])]))
    same("lines of the bibliography", len(bibliography.bibliography()), len(entries))


def cited_by(check):
    """The same for what a report rests on."""

    def checked(data):
        check(data, cited)

    checked.__name__ = check.__name__
    return checked


def footnotes(data):
    text = data.decode()
    tokens = MarkdownIt("commonmark").enable("table").use(footnote_plugin).parse(text)
    inline = [child for token in tokens for child in token.children or []]
    named = [child.meta["label"] for child in inline if child.type == "footnote_ref"]
    defined = [token.meta["label"] for token in tokens if token.type == "footnote_open"]
    same("footnotes that nobody defines", set(named) - set(defined), set())
    counts = report["counts"]
    claims = sum(counts[state] for state in ("supported", "contradicted", "unsupported"))
    # One of the author's own, and one that the author made look like one of ours.
    same("footnotes", len([name for name in named if name.startswith("okt-")]), claims + 1)
    links = [child.attrGet("href") for child in inline if child.type == "link_open"]
    same("facts", {link.removeprefix("fact:") for link in links if link.startswith("fact:")}, set(judging))
    code = [child.content for child in inline if child.type == "code_inline"]
    same("code", "0.7" in code, True)
    same("a link", "https://example.org/copper" in links, True)
    same("a title", any(token.type == "inline" and token.content == "Sources" for token in tokens), True)


def page(data):
    document = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(data, transport_encoding="utf-8")
    same("title", "".join(document.find(".//title").itertext()), report["title"])
    tags = {element.tag for element in document.iter() if isinstance(element.tag, str)}
    same("what runs or loads", tags & {"script", "img", "iframe", "object", "embed", "form"}, set())
    for element in document.iter():
        for name, value in element.attrib.items():
            same("an event", name.startswith("on"), False)
            if name in ("href", "src"):
                same(f"an address: {value}", bool(re.match(r"https?://|#", value)), True)
    words = "".join(document.find("body").itertext())
    for fact in judging:
        same("text of a fact", facts[fact]["text"] in words, True)


def urn(id):
    return rdflib.URIRef(f"urn:uuid:{id}")


def jsonld(data):
    graph = rdflib.Graph().parse(data=data, format="json-ld")
    subjects = lambda kind: {str(one).removeprefix("urn:uuid:") for one in graph.subjects(RDF.type, kind)}
    same("sources", subjects(OKT.Source), set(sources))
    same("facts", subjects(OKT.Fact), set(facts))
    same("concepts", subjects(SKOS.Concept), set(concepts))
    value = lambda id, what: str(graph.value(urn(id), what) or "")
    for id, source in sources.items():
        same("title of a source", line(value(id, DCTERMS.title)), titles[key(id)])
    pairs = {(str(a)[9:], str(b)[9:]) for a, b in graph.subject_objects(PROV.hadPrimarySource)}
    same("primary sources", pairs, links)
    same("derivations", {(str(a)[9:], str(b)[9:]) for a, b in graph.subject_objects(PROV.wasDerivedFrom)}, links)
    for id, fact in facts.items():
        same("text of a fact", value(id, PROV.value), fact["text"])
        activity = graph.value(urn(id), PROV.wasGeneratedBy)
        agent = graph.value(activity, PROV.wasAssociatedWith)
        same("agent", (agent, RDF.type, PROV.SoftwareAgent) in graph, True)
        quoted = {}
        for primary in graph.objects(urn(id), PROV.qualifiedPrimarySource):
            of = str(graph.value(primary, PROV.entity))[9:]
            for at in graph.objects(primary, OA.hasSelector):
                start, end = (int(graph.value(at, what)) for what in (OA.start, OA.end))
                exact = str(graph.value(at, OA.exact))
                # The sentence is there where it is said to be.
                same("sentence", sources[of]["parsed_text"][start:end], exact)
                quoted.setdefault(of, set()).add(exact)
        expected = {of: set(texts) for (one, of), texts in quotes.items() if one == id and texts}
        same("sentences of a fact", quoted, expected)
    for id, concept in concepts.items():
        same("labels", value(id, SKOS.prefLabel), concept["canonical_name"])
        one, others = graph.value(urn(id), SKOS.prefLabel), set(graph.objects(urn(id), SKOS.altLabel))
        same("other labels that are the label", one in others, False)
        scheme = graph.value(urn(id), SKOS.inScheme)
        same("title of a scheme", str(graph.value(scheme, DCTERMS.title)), concept["context"])
    same("broader", list(graph.subject_objects(SKOS.broader)), [])
    same("mark", value(known["retracted"], OKT.mark), "retracted")
    event = graph.value(urn(known["retracted"]), PROV.qualifiedInvalidation)
    same("invalidation", (event, RDF.type, PROV.Invalidation) in graph, True)
    old, new = known["superseded"]
    same("revision", (urn(new), PROV.wasRevisionOf, urn(old)) in graph, True)
    retracted = {id for id, fact in facts.items() if fact["retracted"]}
    same("retracted facts", {str(one)[9:] for one in graph.subjects(OKT.retracted)}, retracted)
    # Every name is one that RDF can write.
    graph.serialize(format="turtle")
    graph.serialize(format="xml")


def graphml(data):
    graph = networkx.parse_graphml(data.decode(), force_multigraph=True)
    of = lambda kind: {id: node for id, node in graph.nodes(data=True) if node.get("type") == kind}
    same("nodes without a type", [id for id, node in graph.nodes(data=True) if "type" not in node], [])
    same("sources", set(of("source")), set(sources))
    same("facts", set(of("fact")), set(facts))
    same("concepts", set(of("concept")), set(concepts))
    for id, node in of("source").items():
        same("title of a source", line(node["label"]), titles[key(id)] or sources[id]["url"])
    for id, node in of("fact").items():
        same("text of a fact", node["label"], facts[id]["text"])
        same("retracted", node["retracted"], facts[id]["retracted"])
    for id, node in of("concept").items():
        same("name", node["label"], concepts[id]["canonical_name"])
        same("facts of a concept", node["fact_count"], concepts[id]["fact_count"])
    edges = lambda kind: [(a, b) for a, b, edge in graph.edges(data=True) if edge["relation"] == kind]
    same("sources of facts", sorted(edges("from")), sorted(links))
    same("relations", len(edges("shares_facts")), known["relations"])
    about = {}
    for _, concept in edges("about"):
        about[concept] = about.get(concept, 0) + 1
    same("facts about concepts", about, {id: one["fact_count"] for id, one in concepts.items() if one["fact_count"]})


def table(data):
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    same("rows", sorted((row["fact_id"], row["source_id"]) for row in rows), sorted(links))
    for row in rows:
        for cell in row.values():
            same("a formula", re.match(r"[=+\-@\t\r\n]", cell), None)
        text = lambda name: row[name].removeprefix("'")
        same("text of a fact", text("fact"), facts[row["fact_id"]]["text"])
        same("title of a source", line(text("source_title")), titles[key(row["source_id"])])
        fact = facts[row["fact_id"]]
        same("retracted", row["fact_retracted"], "yes" if fact["retracted"] else "no")
        same("quote", text("quote"), " ".join(quotes[row["fact_id"], row["source_id"]]))


# Of each file: how it is read, and how it is spoiled.
FILES = {
    "list.bib": (bibtex, [(b"@misc{okt-", b"@misc{okt-0"), (b"\\&", b"\\%")]),
    "list.ris": (ris, [(b"TI  - ", b"TI  - x"), (b"ER  - ", b""), (b"AU  - Ada", b"AU  - Ida")]),
    "list.csl.json": (csl, [(b"},\n", b"}\n"), (b'"title":"', b'"title":"x'), (b'"id":"okt-', b'"id":"okt-0')]),
    "graph.jsonld": (
        jsonld,
        [
            (b"]}\n", b""),
            (b'"prov:value":"', b'"prov:value":"x'),
            (b'"oa:start":"', b'"oa:start":"1'),
            (b'"skos:prefLabel":"', b'"skos:altLabel":"x","skos:prefLabel":"x'),
            (b"okt:Fact", b"okt:Source"),
        ],
    ),
    "graph.graphml": (
        graphml,
        [(b"</graphml>", b""), (b"&lt;", b"<"), (b"&amp;", b"&"), (b">from<", b">about<"), (b'target="', b'target="0')],
    ),
    "report.bib": (cited_by(bibtex), [(b"@misc{okt-", b"@misc{okt-0")]),
    "report.ris": (cited_by(ris), [(b"ER  - ", b"")]),
    "report.csl.json": (cited_by(csl), [(b'"id":"okt-', b'"id":"okt-0')]),
    "report.md": (footnotes, [(b"[^okt-2]: ", b"[^okt-9]: "), (b"`0.7`.[", b"`0.7["), (b"<fact:", b"<fact:0")]),
    "report.html": (page, [(b"</main>", b"</section>"), (b"<body>", b"<body><script></script>")]),
    "graph.csv": (table, [(b'"\'', b'"'), (b'""', b'"'), (b"\r\n", b"")]),
}

# What another parser thinks of our spoiled files is of no interest.
logging.disable(logging.CRITICAL)
for name, (check, wrongs) in FILES.items():
    data = (folder / name).read_bytes()
    if known["stranger"].encode() in data or known["rejected"].encode() in data:
        raise SystemExit(f"exports: {name} has what it must not have")
    try:
        check(data)
    except Exception as error:
        raise SystemExit(f"exports: {name} in {folder} is wrong: {type(error).__name__}: {error}") from error
    for right, wrong in wrongs:
        # The first one, or the second where a file begins so.
        if right not in data:
            raise SystemExit(f"exports: {name} has no {right!r} to spoil")
        try:
            check(data.replace(right, wrong, 1))
        except Exception:
            continue
        raise SystemExit(f"exports: nobody sees that {name} has {wrong!r} for {right!r}")
    print(f"exports: {name}: {len(data)} bytes, read by {check.__name__}, and {len(wrongs)} faults are seen")
