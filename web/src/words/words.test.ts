import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { de } from "./de";

const TEXT = String.raw`"((?:[^"\\]|\\.)*)"`;

/** The texts of all calls of `t` and `tn`. */
function used(): Set<string> {
  const found = new Set<string>();
  const root = join(import.meta.dirname, "..");
  for (const name of readdirSync(root, { recursive: true, encoding: "utf8" })) {
    if (!/\.tsx?$/.test(name) || /(words\/de|gallery|\.test|schema\.d)/.test(name)) continue;
    const source = readFileSync(join(root, name), "utf8");
    for (const [, text] of source.matchAll(new RegExp(String.raw`\bt\(\s*${TEXT}`, "g"))) found.add(text as string);
    for (const [, one, many] of source.matchAll(new RegExp(String.raw`\btn\(\s*(?:[^,()]|\([^()]*\))+,\s*${TEXT}\s*,\s*${TEXT}`, "g"))) found.add(one as string).add(many as string);
  }
  return found;
}

test("German has every text, and none that nobody uses", () => {
  const texts = used();
  expect(texts.size).toBeGreaterThan(400);
  expect([...texts].filter((text) => !(text in de))).toEqual([]);
  expect(Object.keys(de).filter((text) => !texts.has(text))).toEqual([]);
});

test("a translation has the same places for values", () => {
  const places = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).sort();
  for (const [english, german] of Object.entries(de)) expect(places(german), english).toEqual(places(english));
});
