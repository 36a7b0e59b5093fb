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

// In a browser that has nothing of the UI yet. The service lets nobody sign in often.
const first = [];
for (let n = 0; n < 5; n += 1) {
  // A page of the service that loads no script; its policy lets it ask for nothing.
  const fresh = await newContext({ ...DESKTOP, bypassCSP: true });
  const one = await newTab(fresh, "first rows");
  await one.goto(`${base}/healthz`);
  const body = JSON.stringify({ email, password, cookie: true });
  assert.ok(await one.evaluate((body) => fetch("/api/v1/auth/login", { method: "POST", headers: { "content-type": "application/json" }, body }).then(({ ok }) => ok), body));
  const began = performance.now();
  await one.goto(`${base}/r/${slug}/facts`, { waitUntil: "commit" });
  await one.locator("a.item-main").first().waitFor();
  first.push(performance.now() - began);
  await fresh.close();
}
told("a list of facts, from the address to its first rows", first, 1_500);

await tab.goto(`${base}/r/${slug}/facts`);
await tab.locator("a.item-main").first().waitFor();
const next = [];
/** Whether the foot of the list counts other rows than it did. */
const grown = (before) => document.querySelector(".longlist-foot")?.firstChild.data !== before;
for (let n = 0; n < ROUNDS; n += 1) {
  const before = await tab.locator(".longlist-foot").evaluate((foot) => foot.firstChild.data);
  let began = 0;
  const asked = tab.waitForRequest((one) => /\/facts\?.*cursor=/.test(one.url())).then(() => (began = performance.now()));
  while (began === 0) {
    await tab.mouse.move(640, 500);
    await tab.mouse.wheel(0, 4_000);
    await Promise.race([asked, tab.waitForTimeout(20)]);
  }
  await tab.waitForFunction(grown, before);
  next.push(performance.now() - began);
}
told("the next page of a list, from the request to its rows", next, 200);

// Words that the repository has.
const { token } = await ask(null, "POST", "/auth/login", { email, password });
const { data: some } = await ask(token, "GET", `/repositories/${slug}/facts?limit=200`);
const known = [...new Set(some.flatMap((fact) => fact.text.match(/(?<!\p{L})\p{Ll}{4,}/gu) ?? []))];
assert.ok(known.length >= ROUNDS, "the facts have too few words");
const typed = [];
const served = [];
for (let n = 0; n < ROUNDS; n += 1) {
  const word = known[Math.floor((n * known.length) / ROUNDS)];
  await tab.goto(`${base}/r/${slug}/search`);
  const box = tab.getByRole("searchbox").first();
  await box.waitFor();
  await box.pressSequentially(word.slice(0, -1));
  // Not the request for what the results can be narrowed to.
  const wanted = ({ searchParams }) => searchParams.get("q") === word && !searchParams.has("facets");
  const answered = tab.waitForResponse((one) => /\/search\?/.test(one.url()) && wanted(new URL(one.url())));
  const began = performance.now();
  await box.press(word.at(-1));
  const answer = await answered;
  assert.ok(answer.ok(), `search for ${word}: ${answer.status()}`);
  await tab.locator(".longlist:not([data-stale]) a").first().waitFor();
  const shown = performance.now() - began;
  await answer.finished();
  const { requestStart, responseStart } = answer.request().timing();
  served.push(responseStart - requestStart);
  typed.push(shown - (responseStart - requestStart));
}
told("search: the service", served, 300);
// With the pause that ends a word.
told("search: from the last key to the rows, without the service", typed, 300);

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
