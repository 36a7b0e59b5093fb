// The marks of a PDF lie on the words of their sentences, as the browser draws them: on turned pages and in columns, too.
import { strict as assert } from "node:assert";
import { readFile } from "node:fs/promises";
import { ask, base, done, newTab, pictures, problems, until, visit } from "./browser.mjs";

/** How much of the words of a sentence its marks cover at least, and how much of the marks the words. */
const COVERED = 0.6;
/** A sentence that runs over two pages is on neither as a whole: so many of the others are found in the text layers of a file. */
const FOUND = 0.6;

const FILES = { tides: "docs/sample/tides.pdf", article: "crates/okt-parse/fixtures/pdf/article.pdf", paper: "crates/okt-parse/fixtures/pdf/paper.pdf", scan: "crates/okt-parse/fixtures/pdf/scan.pdf" };
const LINES = ["The Annapolis Royal power station opened in 1984.", "The Bay of Fundy has the highest tides in the world.", "The Rance power station in Brittany has 24 turbines."];

/** A page of 600 by 800 points that is turned by so many degrees, and whose lines stand upright then. */
function turned(by) {
  // Where a line goes that is shown at these points from the lower left.
  const place = { 90: (x, y) => `0 1 -1 0 ${600 - y} ${x}`, 270: (x, y) => `0 -1 1 0 ${y} ${800 - x}` }[by];
  const content = LINES.map((line, n) => `BT /F 14 Tf ${place(80, 480 - 40 * n)} Tm (${line}) Tj ET\n`).join("");
  const objects = [
    "<</Type/Catalog/Pages 2 0 R>>",
    "<</Type/Pages/Kids[3 0 R]/Count 1>>",
    `<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>/MediaBox[0 0 600 800]/Rotate ${by}>>`,
    `<</Length ${content.length}>>stream\n${content}endstream`,
    "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
  ];
  let file = "%PDF-1.4\n";
  let table = "0000000000 65535 f \n";
  for (const [n, object] of objects.entries()) {
    table += `${String(file.length).padStart(10, "0")} 00000 n \n`;
    file += `${n + 1} 0 obj${object}endobj\n`;
  }
  const size = objects.length + 1;
  return Buffer.from(`${file}xref\n0 ${size}\n${table}trailer <</Size ${size}/Root 1 0 R>>\nstartxref\n${file.length}\n%%EOF`);
}

/** In the page: for each marked sentence what its marks and its words share, or null where the words are not found. */
function compare({ number, sentences }) {
  const page = document.querySelector(`[data-page="${number}"]`);
  const letters = [];
  const walker = document.createTreeWalker(page.querySelector(".textLayer"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (let at = 0; at < node.data.length; at += 1) for (const letter of node.data[at].normalize("NFKC").replaceAll(/[\s\u00ad-]/g, "")) letters.push({ letter, node, at });
  }
  const all = letters.map((one) => one.letter).join("");
  // Letters reach differently far up and down in the page and in its text layer: the middle of the line counts.
  const middle = ({ left, right, top, bottom }) => ({ left, right, top: top + (bottom - top) / 4, bottom: bottom - (bottom - top) / 4 });
  const area = (one) => Math.max(0, one.right - one.left) * Math.max(0, one.bottom - one.top);
  const common = (a, b) => area({ left: Math.max(a.left, b.left), right: Math.min(a.right, b.right), top: Math.max(a.top, b.top), bottom: Math.min(a.bottom, b.bottom) });
  const share = (these, those) => {
    const middles = these.map(middle);
    const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);
    return sum(middles.map((one) => Math.min(area(one), sum(those.map((other) => common(one, other)))))) / sum(middles.map(area));
  };
  return sentences.map(({ index, text }) => {
    const wanted = text.normalize("NFKC").replaceAll(/[\s\u00ad-]/g, "");
    const marks = [...page.querySelectorAll(`.pdf-mark[data-sentence="${index}"]`)].map((one) => one.getBoundingClientRect());
    const tries = [];
    for (let at = all.indexOf(wanted); at >= 0; at = all.indexOf(wanted, at + 1)) {
      const words = Map.groupBy(letters.slice(at, at + wanted.length), (one) => one.node);
      const rects = [...words].flatMap(([node, run]) => {
        const range = document.createRange();
        range.setStart(node, run[0].at);
        range.setEnd(node, run.at(-1).at + 1);
        return [...range.getClientRects()];
      });
      tries.push({ text, marks: marks.length, words: share(rects, marks), covered: share(marks, rects) });
    }
    // What is said twice on a page is marked once.
    return tries.toSorted((one, other) => other.words - one.words)[0] ?? null;
  });
}

async function upload(token, slug, name, bytes) {
  const body = new FormData();
  body.append("file", new Blob([bytes], { type: "application/pdf" }), `${name}.pdf`);
  const answer = await fetch(`${base}/api/v1/repositories/${slug}/sources/upload`, { method: "POST", headers: { authorization: `Bearer ${token}` }, body });
  assert.ok(answer.ok, await answer.clone().text());
  return (await answer.json()).source_id;
}

export async function boxes(desktop, token) {
  const { slug } = await ask(token, "POST", "/repositories", { name: "Boxes" });
  const files = Object.entries(FILES).map(([name, path]) => [name, readFile(new URL(`../../${path}`, import.meta.url))]);
  const tab = await newTab(desktop, "boxes");
  for (const [name, bytes] of [...files, ["turned-90", turned(90)], ["turned-270", turned(270)]]) {
    const id = await upload(token, slug, name, await bytes);
    const path = `/repositories/${slug}/sources/${id}`;
    const source = await until(`the facts of ${name}`, async () => {
      const source = await ask(token, "GET", `${path}?include=`);
      return ["processed", "failed"].includes(source.status) && source;
    });
    // A scan can't be read where nothing recognises letters.
    if (source.status === "failed") {
      assert.equal(name, "scan", `${name} could not be read`);
      continue;
    }
    let [there, found] = [0, 0];
    let least = 1;
    for (const { number, ocr } of source.pages) {
      const { sentences } = await ask(token, "GET", `${path}/pages/${number}`);
      const marked = sentences.filter((one) => one.fact_ids.length > 0);
      await visit(tab, `/r/${slug}/sources/${id}?page=${number}`, `boxes, ${name}, page ${number}`, true);
      const page = tab.locator(`[data-page="${number}"]`);
      if (!ocr) await page.locator(".textLayer span").first().waitFor({ state: "attached" });
      if (marked.length > 0) await page.locator(".pdf-mark").first().waitFor();
      if (pictures) await page.screenshot({ path: `${pictures}/boxes-${name}-${number}.png` });
      // The letters of a scan are in the picture alone.
      if (ocr || marked.length === 0) continue;
      there += marked.length;
      for (const one of await tab.evaluate(compare, { number, sentences: marked })) {
        if (!one) continue;
        found += 1;
        least = Math.min(least, one.words);
        if (!(one.words >= COVERED && one.covered >= COVERED)) problems.push(`${tab.now}: ${one.marks} marks cover ${one.words.toFixed(2)} of “${one.text.slice(0, 60)}”, and its words ${one.covered.toFixed(2)} of them`);
      }
    }
    assert.ok(there > 0 || name === "scan", `${name} has no marks`);
    console.log(`${name}: ${found} of ${there} marked sentences compared, ${least.toFixed(2)} of one is covered at least`);
    if (found < there * FOUND) problems.push(`${name}: only ${found} of ${there} marked sentences are in the text layer`);
  }
  await tab.close();
  done("marks lie on their words");
}
