// Walks through the UI of an empty installation.
//
// Usage: node walk.mjs ADDRESS
// Fails on: a sentence that is not lit within 60 s, a violation of the policy of the page, a request to another origin, an
// error of a script, a finding of axe, hostile text that does anything, a tab that is signed out.
import { strict as assert } from "node:assert";
import { mkdirSync } from "node:fs";
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";

const base = process.argv[2];
const pictures = process.env.OKT_WEB_PICTURES;
if (pictures) mkdirSync(pictures, { recursive: true });
const HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script> "javascript:alert(1)"';
const PERSON = { name: `Ada ${HOSTILE}`, email: "ada@example.org", password: "a long sentence" };
const ALLOWED = /status of (404|422)|GPU stall|WebGL|willReadFrequently/;

const browser = await chromium.launch({ executablePath: process.env.OKT_CHROMIUM, args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"] });
const problems = [];
const began = Date.now();
const since = () => `${((Date.now() - began) / 1000).toFixed(1)} s`;

function watch(page, where) {
  const note = (what) => problems.push(`${where.now}: ${what}`);
  page.on("pageerror", (error) => note(`script: ${error.message}`));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !ALLOWED.test(message.text())) note(`console: ${message.text().slice(0, 300)}`);
  });
  page.on("request", (request) => {
    if (!/^(blob|data):/.test(request.url()) && new URL(request.url()).origin !== base) note(`foreign request: ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    note(`a script of a text ran: ${dialog.message()}`);
    void dialog.dismiss();
  });
}

async function newContext(options) {
  const context = await browser.newContext(options);
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  return context;
}

/** `all`: every rule; otherwise those that depend on colours and sizes. */
async function look(page, where, name, all = true) {
  if (pictures) await page.screenshot({ path: `${pictures}/${name}.png` });
  const axe = new AxeBuilder({ page });
  const found = await (all ? axe : axe.withRules(["color-contrast", "target-size", "scrollable-region-focusable"])).analyze();
  for (const one of found.violations) problems.push(`${where.now}: axe ${one.id}: ${one.nodes.slice(0, 2).map((node) => node.html.slice(0, 120)).join(" | ")}`);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (over > 0) problems.push(`${where.now}: ${over} px wider than the screen`);
}

// 1. From nothing to a lit sentence.
const context = await newContext({ viewport: { width: 1280, height: 800 }, locale: "en-US" });
const page = await context.newPage();
const where = { now: "first run" };
watch(page, where);
await page.goto(base);
await page.getByLabel("Name").fill(PERSON.name);
await page.getByLabel("E-mail address").fill(PERSON.email);
await page.getByLabel("Password").fill(PERSON.password);
await look(page, where, "first-account");
await page.getByRole("button", { name: "Make the account" }).click();
await page.getByRole("button", { name: "Read the sample paper" }).click();
await page.waitForURL(/\/sources\/[^/]+\?fact=/, { timeout: 60_000 });
await page.locator(".pdf-mark.lit").first().waitFor({ timeout: 30_000 });
const lit = (Date.now() - began) / 1000;
console.log(`a sentence is lit after ${lit.toFixed(1)} s`);
assert.ok(lit < 60, `a sentence was lit after ${lit} s only`);
const box = await page.locator(".pdf-mark.lit").first().boundingBox();
assert.ok(box && box.width > 20 && box.height > 5 && box.y > 0 && box.y < 800, `the mark is not in view: ${JSON.stringify(box)}`);
await page.waitForFunction(() => document.querySelectorAll(".textLayer span").length > 5);
await look(page, where, "reader-first");

// 2. Hostile text, by drop as well as by the API of the page.
where.now = "add";
await page.goto(`${base}/r/starter/sources?add=1`);
const text = `# Bay ${HOSTILE}\n\nThe Bay of Fundy has the highest tides in the world. The Annapolis Royal power station opened in 1984. The tidal range at Burntcoat Head reaches 16 metres. The Moon causes two thirds of the tides of the Earth ${HOSTILE}.\n`;
await page.locator("input[type=file]").setInputFiles({ name: `${HOSTILE}.md`, mimeType: "text/markdown", buffer: Buffer.from(text) });
await look(page, where, "add");
await page.getByRole("button", { name: "Add 1 source" }).click();
await page.getByRole("link", { name: "Open" }).waitFor();
await page.getByRole("button", { name: "Close" }).last().click();

// What follows is asked for with the token of the page.
const token = (await (await fetch(`${base}/api/v1/auth/login`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ email: PERSON.email, password: PERSON.password }) })).json()).token;
const call = async (method, path, body) => {
  const response = await fetch(`${base}/api/v1/repositories/starter${path}`, { method, headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }, body: body && JSON.stringify(body) });
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`);
  return response.json();
};
const until = async (what, read) => {
  for (let n = 0; n < 120; n += 1) {
    const found = await read();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`${what} did not come`);
};
const sources = await until("the second source", async () => {
  const { data } = await call("GET", "/sources");
  return data.length === 2 && data.every((one) => one.status === "processed") && data;
});
const report = await call("POST", "/reports", { title: `Tides ${HOSTILE}`, body_markdown: `# Tides\n\nThe Annapolis Royal power station opened in 1984. Penguins build nests of pebbles every year ${HOSTILE}.\n` });
const investigation = await call("POST", "/investigations", { title: `Power ${HOSTILE}`, topic: HOSTILE });
await call("POST", `/investigations/${investigation.id}/sources`, { source_id: sources[0].id });
await until("the check of the report", async () => (await call("GET", `/reports/${report.id}`)).status === "annotated");
const concepts = await until("concepts", async () => {
  const { data } = await call("GET", "/concepts?show_small=true");
  return data.length > 0 && data;
});
const facts = (await call("GET", "/facts")).data;
const pdf = sources.find((one) => one.kind === "pdf");
const markdown = sources.find((one) => one.kind !== "pdf");
const factOf = async (source) => (await call("GET", `/sources/${source.id}/references?cited=true&limit=1`)).data[0].facts[0].fact_id;

// 3. Every page.
const r = "/r/starter";
const pages = {
  repositories: "/",
  account: "/account",
  sources: `${r}/sources`,
  reader: `${r}/sources/${pdf.id}?fact=${await factOf(pdf)}`,
  about: `${r}/sources/${pdf.id}?view=about`,
  text: `${r}/sources/${markdown.id}?fact=${await factOf(markdown)}`,
  search: `${r}/search?q=tides&explain=1`,
  facts: `${r}/facts`,
  fact: `${r}/facts/${facts[0].id}`,
  concepts: `${r}/concepts?small=1`,
  concept: `${r}/concepts/${concepts[0].id}`,
  timeline: `${r}/concepts/${concepts[0].id}?tab=timeline`,
  relations: `${r}/concepts/${concepts[0].id}?tab=relations`,
  contradictions: `${r}/contradictions`,
  investigations: `${r}/investigations`,
  investigation: `${r}/investigations/${investigation.id}`,
  reports: `${r}/reports`,
  report: `${r}/reports/${report.id}?sentence=1`,
  graph: `${r}/graph?view=drawing`,
  table: `${r}/graph?view=table`,
  history: `${r}/history`,
  jobs: `${r}/jobs`,
  missing: `${r}/facts/00000000-0000-7000-8000-000000000000`,
  nowhere: `${r}/nowhere`,
};
await context.close();
async function visit(tab, name, which) {
  where.now = which;
  await tab.goto(base + pages[name]);
  await tab.locator("h1").first().waitFor({ state: "attached" });
  await tab.waitForLoadState("networkidle", { timeout: 1_000 }).catch(() => {});
  if (name === "reader") await tab.locator(".pdf-mark.lit").first().waitFor();
  assert.ok(!/^[12]$/.test(await tab.title()), `${which}: a script of a text ran`);
  assert.equal(await tab.locator("main img:not([src*=icon])").count(), 0, `${which}: a picture of a text was made`);
}
const signIn = async (tab) => {
  where.now = "sign in";
  await tab.goto(base);
  await tab.getByLabel("E-mail address").fill(PERSON.email);
  await tab.getByLabel("Password").fill(PERSON.password);
};
const enter = async (tab) => {
  await tab.getByRole("button", { name: "Sign in" }).click();
  await tab.locator("a.item-main").first().waitFor();
};

const desktop = await newContext({ viewport: { width: 1280, height: 800 }, locale: "en-US" });
const tab = await desktop.newPage();
watch(tab, where);
await signIn(tab);
await look(tab, where, "sign-in-light");
await enter(tab);
for (const name of Object.keys(pages)) {
  await visit(tab, name, `${name}, light`);
  await look(tab, where, `${name}-light`);
  where.now = `${name}, dark`;
  await tab.emulateMedia({ colorScheme: "dark" });
  await look(tab, where, `${name}-dark`, false);
  await tab.emulateMedia({ colorScheme: "light" });
}
console.log(`all pages walked (${since()})`);

// 4. Three tabs at once stay signed in.
where.now = "three tabs";
for (let round = 0; round < 3; round += 1) {
  const tabs = await Promise.all([1, 2, 3].map(() => desktop.newPage()));
  await Promise.all(tabs.map((one) => one.goto(`${base}${r}/facts`)));
  await Promise.all(tabs.map((one) => one.locator("a.item-main").first().waitFor()));
  await Promise.all(tabs.map((one) => one.close()));
}
console.log(`three tabs stay signed in (${since()})`);

// 5. By keyboard alone: the palette leads to a fact, `?` shows the keys, `g f` and `j` lead through a list.
where.now = "keyboard";
await tab.goto(`${base}${r}/sources`);
await tab.locator("a.item-main").first().waitFor();
await tab.keyboard.press("Control+k");
await tab.getByRole("combobox").fill("Annapolis");
await tab.getByRole("option").filter({ hasText: "Annapolis Royal" }).first().waitFor();
await tab.keyboard.press("Enter");
await tab.waitForURL(/\/(facts|concepts|reports|sources)\//);
await tab.locator("h1").first().waitFor();
await tab.keyboard.press("?");
await tab.getByRole("dialog").waitFor();
await look(tab, where, "keys");
await tab.keyboard.press("Escape");
await tab.getByRole("dialog").waitFor({ state: "detached" });
await tab.keyboard.press("g");
await tab.keyboard.press("f");
await tab.waitForURL(/\/facts$/);
await tab.locator("a.item-main").first().waitFor();
// The list may be drawn anew in the moment after it came.
for (let tries = 0; tries < 20; tries++) {
  await tab.keyboard.press("j");
  if (await tab.evaluate(() => document.activeElement?.matches("[data-main]"))) break;
  await tab.waitForTimeout(250);
}
await tab.waitForFunction(() => document.activeElement?.matches("[data-main]"));
await tab.keyboard.press("Enter");
await tab.waitForURL(/\/facts\/./);
await desktop.close();

// 6. On a phone.
const phone = await newContext({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, locale: "en-US" });
const small = await phone.newPage();
watch(small, where);
await signIn(small);
await enter(small);
for (const name of ["sources", "reader", "fact", "report", "graph"]) {
  await visit(small, name, `${name}, phone`);
  await look(small, where, `${name}-phone`, false);
}
await phone.close();
await browser.close();
if (problems.length > 0) {
  console.log([...new Set(problems)].join("\n"));
  process.exit(1);
}
console.log(`nothing is wrong (${since()})`);
