//! Marks on what is found in a document. They are painted by the browser and change nothing of the page.

import { folded, matches } from "./find-matches";

const FOUND = "okt-found";
const NOW = "okt-found-now";
const marked = new Map<Element, Range[]>();
let current: Range | null = null;

/** The text of an element as it is searched: lines end where the page says so. */
export function textOf(container: Element): { text: string; nodes: { node: Text; start: number }[] } {
  const nodes: { node: Text; start: number }[] = [];
  let text = "";
  const walker = document.createTreeWalker(container, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node instanceof Text) {
      nodes.push({ node, start: text.length });
      text += node.data;
    } else if (["BR", "P"].includes((node as Element).tagName)) text += "\n";
  }
  return { text, nodes };
}

function rangeOf(nodes: { node: Text; start: number }[], from: number, to: number): Range | null {
  const holds = (at: number) => nodes.findLast((one) => one.start <= at);
  const first = holds(from);
  const last = holds(to - 1);
  if (!first || !last) return null;
  const range = document.createRange();
  range.setStart(first.node, Math.min(from - first.start, first.node.length));
  range.setEnd(last.node, Math.min(to - last.start, last.node.length));
  return range;
}

function paint() {
  // Without it the place is scrolled to and not marked.
  if (!("highlights" in CSS)) return;
  CSS.highlights.set(FOUND, new Highlight(...[...marked.values()].flat()));
  if (current) CSS.highlights.set(NOW, new Highlight(current));
  else CSS.highlights.delete(NOW);
}

/** Marks what is found in an element. `nth`: the one that is looked at, if it is in there; its place is the answer. */
export function mark(container: Element, asked: string, nth: number | null): Range | null {
  unmark(container);
  if (asked === "") return null;
  const { text, nodes } = textOf(container);
  const ranges = matches(folded(text), asked).map(([from, to]) => rangeOf(nodes, from, to));
  marked.set(container, ranges.filter((one) => one !== null));
  const now = nth === null ? null : (ranges[nth] ?? null);
  if (now) current = now;
  paint();
  return now;
}

export function unmark(container: Element) {
  const had = marked.get(container);
  if (!had) return;
  marked.delete(container);
  if (current && had.includes(current)) current = null;
  paint();
}
