// How quick the UI is in a large repository.
//
// Usage: node speed.mjs ADDRESS EMAIL PASSWORD SLUG      (as the last argument of `okt-test bench search` has it)
import { strict as assert } from "node:assert";
import { DESKTOP, ask, base, enter, finish, newContext, newTab, problems, signIn } from "./browser.mjs";

const [email, password, slug] = process.argv.slice(3);
const ROUNDS = 9;
const median = (times) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];

function told(what, times, limit) {
  const middle = median(times);
  console.log(`${what}: ${middle.toFixed(0)} ms in the middle, ${Math.max(...times).toFixed(0)} ms at most (limit ${limit})`);
  if (middle > limit) problems.push(`${what}: ${middle.toFixed(0)} ms, limit ${limit}`);
}

const context = await newContext(DESKTOP);
const tab = await newTab(context, "speed");
await signIn(tab, { email, password });
await enter(tab);

const first = [];
for (let n = 0; n < ROUNDS; n += 1) {
  await tab.goto("about:blank");
  const began = performance.now();
  await tab.goto(`${base}/r/${slug}/facts`, { waitUntil: "commit" });
  await tab.locator("a.item-main").first().waitFor();
  first.push(performance.now() - began);
}
told("a list of facts, from the address to its first rows", first, 1_500);

const next = [];
for (let n = 0; n < ROUNDS; n += 1) {
  const [answer] = await Promise.all([
    tab.waitForResponse((one) => /\/facts\?.*cursor=/.test(one.url())),
    (async () => {
      for (let down = 0; down < 40; down += 1) {
        await tab.mouse.move(640, 500);
        await tab.mouse.wheel(0, 4_000);
        await tab.waitForTimeout(20);
      }
    })(),
  ]);
  await answer.finished();
  const { requestStart, responseEnd } = answer.request().timing();
  next.push(responseEnd - requestStart);
}
told("the next page of a list, as the browser sees it", next, 200);

const typed = [];
const served = [];
for (const word of ["tidal", "power", "ener", "wat", "stat", "riv", "sea", "wind", "bri"].slice(0, ROUNDS)) {
  await tab.goto(`${base}/r/${slug}/search`);
  const box = tab.getByRole("searchbox").first();
  await box.waitFor();
  const [answer] = await Promise.all([tab.waitForResponse((one) => one.ok() && /\/search\?/.test(one.url()) && new URL(one.url()).searchParams.get("q") === word), box.pressSequentially(word)]);
  const began = performance.now();
  await answer.finished();
  const { requestStart, responseStart } = answer.request().timing();
  served.push(responseStart - requestStart);
  await tab.waitForFunction(() => !document.querySelector(".skeleton, [data-pending]"));
  typed.push(performance.now() - began);
}
told("search: the service", served, 300);
told("search: from the answer to its rows", typed, 300);

const asked = [];
for (const question of ["Where does tidal power come from?", "How high is the sea?", "What do rivers carry?", "Which stations use wind?", "How long is a bridge?"]) {
  await tab.goto(`${base}/r/${slug}/ask`);
  await tab.getByLabel("Your question").fill(question);
  const began = performance.now();
  await tab.keyboard.press("Control+Enter");
  await tab.locator(".answer-piece").first().waitFor();
  asked.push(performance.now() - began);
}
told("a question, from the key to its evidence", asked, 1_000);

// A paper among a million facts.
const { token } = await ask(null, "POST", "/auth/login", { email, password });
const { readFile } = await import("node:fs/promises");
const body = new FormData();
body.append("file", new Blob([await readFile(new URL("../../docs/sample/tides.pdf", import.meta.url))], { type: "application/pdf" }), "tides.pdf");
const added = await fetch(`${base}/api/v1/repositories/${slug}/sources/upload`, { method: "POST", headers: { authorization: `Bearer ${token}` }, body });
assert.ok(added.ok, await added.clone().text());
const { source_id: source } = await added.json();
let fact;
for (let n = 0; n < 400 && !fact; n += 1) {
  const { data } = await ask(token, "GET", `/repositories/${slug}/sources/${source}/references?cited=true&limit=1`);
  fact = data[0]?.facts[0]?.fact_id;
  if (!fact) await new Promise((resolve) => setTimeout(resolve, 250));
}
assert.ok(fact, "the paper has no facts");
const lit = [];
for (let n = 0; n < ROUNDS; n += 1) {
  await tab.goto(`${base}/r/${slug}/facts`);
  await tab.locator("a.item-main").first().waitFor();
  const began = performance.now();
  await tab.evaluate((to) => history.pushState({}, "", to), `/r/${slug}/sources/${source}?fact=${fact}`);
  await tab.locator(".pdf-mark.lit").first().waitFor();
  lit.push(performance.now() - began);
}
told("a paper, from the click to the lit sentence", lit, 1_500);
await context.close();
await finish();
