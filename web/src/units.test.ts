import { expect, test } from "vitest";
import { readable } from "./docs/document";
import { highlightSpans } from "./parts/highlight";
import { addressesOf } from "./pages/addresses";
import { type Answer, after, merged } from "./pages/ask-events";
import { folded, matches, question } from "./pages/find-matches";
import { likeness } from "./pages/job-words";
import { paragraphs } from "./pages/paragraphs";
import { bare, blocksOf } from "./pages/report-blocks";

test("addresses are found in any text, each once", () => {
  const text = "See https://example.org/a(b), doi:10.1000/182 and 10.1000/182.\narXiv:1706.03762; <https://example.org/a>, not javascript:alert(1) nor example.org";
  expect(addressesOf(text)).toEqual(["https://example.org/a(b", "doi:10.1000/182", "10.1000/182", "arXiv:1706.03762", "https://example.org/a"]);
  expect(addressesOf("nothing")).toEqual([]);
});

test("a text is cut by code points, and lines inside of a sentence are joined", () => {
  const text = "🐝 Eins.\n\nZwei ist\nlang. Drei.";
  const offsets = [
    [0, 7],
    [9, 23],
    [24, 29],
  ];
  expect(paragraphs(text, offsets).map((one) => one.map((piece) => [piece.index, piece.text]))).toEqual([
    [[0, "🐝 Eins."]],
    [
      [1, "Zwei ist lang."],
      [null, " "],
      [2, "Drei."],
    ],
  ]);
});

test("a report keeps its headings, items and sentences, and hostile text stays text", () => {
  const markdown = "# Title\n\nOne is **so**. Two <b>is</b>.\n\n- Item one.\n- Item two.\n\n```\ncode. x\n```\n";
  const at = (text: string, index: number) => ({ sentence_index: index, start: markdown.indexOf(text), end: markdown.indexOf(text) + text.length, text, state: "supported" as const, waiting: false });
  const blocks = blocksOf(markdown, [at("One is **so**.", 0), at("Two <b>is</b>.", 1), at("Item one.", 2), at("Item two.", 3)]);
  expect(blocks.map((block) => [block.kind, block.parts.map((part) => [part.sentence?.sentence_index ?? null, bare(part.text)])])).toEqual([
    ["h1", [[null, "Title"]]],
    [
      "p",
      [
        [0, "One is so."],
        [null, " "],
        [1, "Two <b>is</b>."],
      ],
    ],
    ["li", [[2, "Item one."]]],
    ["li", [[3, "Item two."]]],
    ["pre", [[null, "code. x\n"]]],
  ]);
  expect(bare("A [link](javascript:alert(1)) and `code`")).toBe("A link) and code");
});

test("what is like the question is marked by code points", () => {
  expect(highlightSpans("🐝 bees", [[2, 6]])).toEqual([
    { text: "🐝 ", marked: false },
    { text: "bees", marked: true },
  ]);
  expect(highlightSpans("ab", [])).toEqual([{ text: "ab", marked: false }]);
});

test("words are found without case, accents, ligatures and hyphens at the ends of lines", () => {
  const text = "The Café  was\nfirst of\ufb01ce. A co-\noperation, well-\nKnown “quoted” 🐝 bee";
  const found = (asked: string) => matches(folded(text), question(asked)).map(([from, to]) => text.slice(from, to));
  expect(found("cafe was")).toEqual(["Café  was"]);
  expect(found("OFFICE")).toEqual(["of\ufb01ce"]);
  expect(found("cooperation")).toEqual(["co-\noperation"]);
  expect(found("well- known")).toEqual(["well-\nKnown"]);
  expect(found('"quoted"')).toEqual(["“quoted”"]);
  expect(found("🐝 bee")).toEqual(["🐝 bee"]);
  expect(found("e").length).toBe(8);
  expect(found("  ")).toEqual([]);
});

test("failures of one cause are alike", () => {
  const [one, other] = ["HTTP 503 from https://example.org/a?b=1 after 30 s", "HTTP 503 from https://example.com/c after 31 s"].map(likeness);
  expect(one).toBe("HTTP 0 from … after 0 s");
  expect(other).toBe(one);
  expect(likeness("0195509d-4a40-7c2a-8f3a-3c1d2b4e5f60 is gone")).toBe("… is gone");
});

test("events make an answer, in any order of their coming again", () => {
  const sentence = (index: number) => ({ index, text: `Sentence ${index}.`, fact_ids: [], keys: ["kqzb"], verdict: "supported", confidence: 1, method: "rule", group: null });
  const empty = { status: "running", facts: [], sentences: [], dropped: [], disagreeing: [] } as unknown as Answer;
  const events: [string, unknown][] = [
    ["evidence", { facts: [{ key: "kqzb" }], near_only: false, degraded_reason: null }],
    ["sentence", sentence(0)],
    ["sentence", sentence(1)],
    ["dropped", { text: "No.", reason: "It is in no fact.", code: "unsupported" }],
    ["disagreeing", { index: 1, facts: [] }],
  ];
  const told = (list: [string, unknown][], from = empty) => list.reduce((answer, [event, data]) => after(answer, event, data), from);
  const once = told(events);
  expect(once.sentences.map((one) => one.index)).toEqual([0, 1]);
  expect(once.dropped).toHaveLength(1);
  // A stream that begins anew, and sentences that come late.
  expect(told(events, once)).toEqual(once);
  expect(told(events.toReversed())).toEqual(once);
  // Of some only the reason is told.
  const untold = (reason: string): [string, unknown] => ["dropped", { text: null, reason, code: "unsupported" }];
  expect(told([untold("One."), untold("Another."), untold("One.")]).dropped).toHaveLength(2);
  expect(after(once, "done", { status: "answered" }).status).toBe("answered");
  expect(after(once, "error", { title: "Away", code: "unavailable" }).sentences).toHaveLength(2);
});

test("an older answer of the service takes nothing from what a stream has told", () => {
  const row = (status: string, sentences: number) => ({ status, facts: [], dropped: [], disagreeing: [], sentences: Array.from({ length: sentences }, (_, index) => ({ index })) }) as unknown as Answer;
  expect(merged(row("running", 3), row("running", 1)).sentences).toHaveLength(3);
  expect(merged(row("running", 1), row("running", 3)).sentences).toHaveLength(3);
  expect(merged(row("running", 3), row("answered", 2)).sentences).toHaveLength(2);
  expect(merged(undefined, row("running", 1)).sentences).toHaveLength(1);
});

test("the documentation lists the codes of errors without marks, and tells common refusals once", () => {
  const operation = () => ({ responses: { "200": { description: "It" }, "404": { description: "Problem: not_found" } }, "x-guard": "needs fact:read" });
  const one = operation();
  const { info } = readable({ info: { description: "# okt" }, paths: { "/a": { get: one }, "/b": { get: operation() } }, "x-problems": [{ code: "not_found", status: 404, title: "Not found", advice: "Look at the id." }] }, "https://okt.example/");
  expect(info.description).toContain("### not found\n\n`not_found` · 404 · Not found. Look at the id.");
  expect(Object.keys(one.responses)).toEqual(["200"]);
});
