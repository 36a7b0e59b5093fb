//! The Markdown of a report as it is shown: lines with their sentences, not rendered, because every sentence must be
//! found again at its place.

import type { Schemas } from "../api/client";

type Sentence = Schemas["ReportSentence"];

/** A stretch of the Markdown: a line that is a heading or an item, or a paragraph, with its sentences. */
export type Block = { kind: "h1" | "h2" | "h3" | "li" | "p" | "pre"; parts: { text: string; sentence: Sentence | null }[] };

export function blocksOf(markdown: string, sentences: readonly Sentence[]): Block[] {
  const points = Array.from(markdown);
  const blocks: Block[] = [];
  const starts = new Map(sentences.map((one) => [one.start, one]));
  let block: Block | null = null;
  let fenced = false;
  let at = 0;
  let text = "";
  const flush = () => {
    if (text !== "") block?.parts.push({ text, sentence: null });
    text = "";
  };
  const lineKind = (line: string): Block["kind"] => {
    if (/^#\s/.test(line)) return "h1";
    if (/^##\s/.test(line)) return "h2";
    if (/^#{3,6}\s/.test(line)) return "h3";
    if (/^\s*([-*+]|\d+[.)])\s/.test(line)) return "li";
    return "p";
  };
  while (at < points.length) {
    const atLine = at === 0 || points[at - 1] === "\n";
    if (atLine) {
      let end = at;
      while (end < points.length && points[end] !== "\n") end += 1;
      const line = points.slice(at, end).join("");
      if (/^\s*(```|~~~)/.test(line)) {
        flush();
        fenced = !fenced;
        block = fenced ? { kind: "pre", parts: [] } : null;
        if (block) blocks.push(block);
        at = end + 1;
        continue;
      }
      const kind = lineKind(line);
      if (!fenced && (line.trim() === "" || kind !== "p" || block?.kind.startsWith("h"))) {
        flush();
        block = null;
      }
      if (!fenced && line.trim() === "") {
        at = end + 1;
        continue;
      }
      if (!block) {
        block = { kind: fenced ? "pre" : kind, parts: [] };
        blocks.push(block);
        // The signs that make a line a heading or an item are not shown, unless the sentence begins with them.
        if (kind !== "p" && !starts.has(at)) {
          const signs = /^(\s*([-*+]|\d+[.)])\s+|#{1,6}\s+)/.exec(line)?.[0].length ?? 0;
          for (let n = 0; n < signs && !starts.has(at); n += 1) at += 1;
          if (at >= points.length) break;
        }
      }
    }
    const sentence = starts.get(at);
    if (sentence && block) {
      flush();
      block.parts.push({ text: points.slice(sentence.start, sentence.end).join(""), sentence });
      at = Math.max(at + 1, sentence.end);
      continue;
    }
    text += points[at];
    at += 1;
  }
  flush();
  for (const { kind, parts } of blocks) {
    const last = parts.at(-1);
    if (!last || last.sentence || kind === "pre") continue;
    last.text = last.text.trimEnd();
    if (last.text === "") parts.pop();
  }
  return blocks.filter((one) => one.parts.some((part) => part.text.trim() !== ""));
}

/** Emphasis and links of Markdown without their signs; all else stays as it is written. */
export const bare = (text: string) =>
  text
    .replace(/^(#{1,6}|[-*+]|\d+[.)]|>)\s+/, "")
    .replace(/(\*\*|__)(.+?)\1/g, "$2")
    .replace(/(?<!\w)([*_])([^*_]+)\1(?!\w)/g, "$2")
    .replace(/!?\[([^\]]+)\]\([^)]*\)/g, "$1")
    .replace(/`([^`]+)`/g, "$1");
