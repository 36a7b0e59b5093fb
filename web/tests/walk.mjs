// Walks through the UI of an empty installation.
//
// Usage: node walk.mjs ADDRESS
//   OKT_WEB_LONG=1     also every page on a phone, at 400 % zoom, in German, and with every text in brackets; the marks of PDFs
//   OKT_WEB_PICTURES   a folder for pictures of the pages
// Fails on: a sentence that is not lit within 60 s, a violation of the policy of a page, a request to another origin, an
// error of a script, a finding of axe, hostile text that does anything, a tab that is signed out, what an account sees that
// it may not see.
import { strict as assert } from "node:assert";
import { COLOURS, DESKTOP, PHONE, ZOOMED, ask, base, began, done, enter, finish, long, look, named, newContext, newTab, signIn, together, until, visit } from "./browser.mjs";
import { boxes } from "./boxes.mjs";
import { hostile } from "./hostile.mjs";
import { openRow, tenTasks } from "./keyboard.mjs";
import { pseudo } from "./pseudo.mjs";
import { tabs } from "./tabs.mjs";

const HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script> "javascript:alert(1)"';
const PERSON = { name: `Ada ${HOSTILE}`, email: "ada@example.org", password: "a long sentence" };
const GUEST = { name: `Grace ${HOSTILE}`, email: "grace@example.org", password: "another sentence" };

// 1. From nothing to a lit sentence.
const context = await newContext(DESKTOP);
const page = await newTab(context, "first run");
await page.goto(base);
await page.getByLabel("Name").fill(PERSON.name);
await page.getByLabel("E-mail address").fill(PERSON.email);
await page.getByLabel("Password").fill(PERSON.password);
await look(page, "first-account");
await page.getByRole("button", { name: "Make the account" }).click();
await page.getByRole("button", { name: "Read the sample paper" }).click();
await page.waitForURL(/\/sources\/[^/]+\?fact=/, { timeout: 60_000 });
await page.locator(".pdf-mark.lit").first().waitFor();
const lit = (Date.now() - began) / 1000;
console.log(`a sentence is lit after ${lit.toFixed(1)} s`);
assert.ok(lit < 60, `a sentence was lit after ${lit} s only`);
await until("the mark in view", async () => {
  const box = await page.locator(".pdf-mark.lit").first().boundingBox();
  return box && box.width > 20 && box.height > 5 && box.y > 0 && box.y + box.height < 800;
});
await page.waitForFunction(() => document.querySelectorAll(".textLayer span").length > 5);
await look(page, "reader-first");

// 2. Hostile text, by drop as well as by the API of the page.
page.now = "add";
await page.goto(`${base}/r/starter/sources?add=1`);
const text = `# Bay ${HOSTILE}\n\nThe Bay of Fundy has the highest tides in the world. The Annapolis Royal power station opened in 1984. The tidal range at Burntcoat Head reaches 16 metres. The Moon causes two thirds of the tides of the Earth ${HOSTILE}.\n`;
await page.locator("input[type=file]").setInputFiles({ name: `${HOSTILE}.md`, mimeType: "text/markdown", buffer: Buffer.from(text) });
await look(page, "add");
await page.getByRole("button", { name: "Add 1 source" }).click();
await page.getByRole("link", { name: "Open" }).waitFor();
await page.getByRole("button", { name: "Close" }).last().click();

// What follows is asked for by a program.
const { token } = await ask(null, "POST", "/auth/login", { email: PERSON.email, password: PERSON.password });
const call = (method, path, body) => ask(token, method, `/repositories/starter${path}`, body);
const sources = await until("the second source", async () => {
  const { data } = await call("GET", "/sources");
  return data.length === 2 && data.every((one) => one.status === "processed") && data;
});
const report = await call("POST", "/reports", { title: `Tides ${HOSTILE}`, body_markdown: `# Tides\n\nThe Annapolis Royal power station opened in 1984. Penguins build nests of pebbles every year ${HOSTILE}.\n` });
const investigation = await call("POST", "/investigations", { title: `Power ${HOSTILE}`, topic: HOSTILE });
await call("POST", `/investigations/${investigation.id}/sources`, { source_id: sources[0].id });
await call("POST", "/settings/contexts", { label: `Tides ${HOSTILE}`.slice(0, 100), description: HOSTILE });
await call("POST", "/webhooks", { url: "https://hooks.example.org/okt", description: `Nightly ${HOSTILE}`.slice(0, 200), events: ["source.processed"] });
const other = await ask(token, "POST", "/repositories", { name: `Secret ${HOSTILE}` });
await until("the check of the report", async () => (await call("GET", `/reports/${report.id}`)).status === "annotated");
const concepts = await until("concepts", async () => {
  const { data } = await call("GET", "/concepts?show_small=true");
  return data.length > 0 && data;
});
const facts = (await call("GET", "/facts")).data;
const pdf = sources.find((one) => one.kind === "pdf");
const markdown = sources.find((one) => one.kind !== "pdf");
// Without a model an answer is made of facts as they stand.
const answer = await call("POST", "/ask", { question: `How high are the tides of the Bay of Fundy? ${HOSTILE}`, mode: "extractive" });
const nothing = await call("POST", "/ask", { question: "Xyzzy plugh quux?" });
const answers = [answer, nothing].map((one) => one.id ?? one.answer_id);
await call("PUT", `/answers/${answers[1]}`, { shared: true });
await until("answers", async () => (await Promise.all(answers.map((id) => call("GET", `/answers/${id}`)))).every((one) => one.status !== "running"));
const factOf = async (source) => (await call("GET", `/sources/${source.id}/references?cited=true&limit=1`)).data[0].facts[0].fact_id;
done("sources, a report and concepts are there");

// 3. Every page.
const r = "/r/starter";
const pages = {
  repositories: "/",
  account: "/account",
  keys: "/account/keys",
  programs: "/account/programs",
  connect: "/account/connect",
  sources: `${r}/sources`,
  reader: `${r}/sources/${pdf.id}?fact=${await factOf(pdf)}`,
  about: `${r}/sources/${pdf.id}?view=about`,
  text: `${r}/sources/${markdown.id}?fact=${await factOf(markdown)}`,
  search: `${r}/search?q=tides&explain=1`,
  ask: `${r}/ask`,
  narrowed: `${r}/ask?q=tides&concepts=${concepts[0].id}&sources=${pdf.id}&from=1990`,
  answer: `${r}/answers/${answers[0]}`,
  abstained: `${r}/answers/${answers[1]}`,
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
  cost: `${r}/cost`,
  exchange: `${r}/exchange`,
  members: `${r}/members`,
  settings: `${r}/settings`,
  reading: `${r}/settings?tab=reading`,
  contexts: `${r}/settings?tab=contexts`,
  asking: `${r}/settings?tab=ask`,
  registry: `${r}/settings?tab=registry`,
  webhooks: `${r}/settings?tab=webhooks`,
  audit: `${r}/audit`,
  health: "/admin",
  accounts: "/admin/users",
  "all-jobs": "/admin/jobs",
  "all-cost": "/admin/cost",
  roles: "/admin/roles",
  "all-audit": "/admin/audit",
  promptsets: "/promptsets",
  missing: `${r}/facts/00000000-0000-7000-8000-000000000000`,
  nowhere: `${r}/nowhere`,
};
await context.close();
const desktop = await newContext(DESKTOP);
const tab = await newTab(desktop);
await signIn(tab, PERSON);
await look(tab, "sign-in-light");
await enter(tab);

async function walk(names, tab, { suffix = "light", dark = true, rules, fresh = false } = {}) {
  for (const name of names) {
    await visit(tab, pages[name], `${name}, ${suffix}`, fresh);
    if (name === "reader") await tab.locator(".pdf-mark.lit").first().waitFor();
    await look(tab, `${name}-${suffix}`, rules);
    if (!rules) await named(tab, `${name}-${suffix}`);
    if (!dark) continue;
    tab.now = `${name}, ${suffix}, dark`;
    await tab.emulateMedia({ colorScheme: "dark" });
    await look(tab, suffix === "light" ? `${name}-dark` : `${name}-${suffix}-dark`, ["color-contrast"]);
    await tab.emulateMedia({ colorScheme: "light" });
  }
}

/** By keyboard alone: the palette leads to a fact, `?` shows the keys, `g f` and `j` lead through a list. */
async function keyboard() {
  const tab = await newTab(desktop, "keyboard");
  await tab.goto(`${base}${r}/sources`);
  await tab.locator("a.item-main").first().waitFor();
  await tab.keyboard.press("Control+k");
  await tab.getByRole("combobox").fill("Annapolis");
  await tab.locator("[role=option][aria-selected=true]", { hasText: "Annapolis" }).filter({ hasNotText: "Search for" }).waitFor();
  await tab.keyboard.press("Enter");
  await tab.waitForURL(/\/(facts|concepts|reports|sources)\//);
  await tab.getByRole("combobox").waitFor({ state: "detached" });
  await tab.keyboard.press("?");
  await tab.getByRole("dialog").waitFor();
  await look(tab, "keys");
  await tab.keyboard.press("Escape");
  await tab.getByRole("dialog").waitFor({ state: "detached" });
  await tab.keyboard.press("g");
  await tab.keyboard.press("f");
  await tab.waitForURL(/\/facts$/);
  await openRow(tab, "Facts", /\/facts\/./);
  await tab.close();
  done("by keyboard alone");
}

/** `f` finds words in a PDF, without case, and marks them where they stand; and in a text. */
async function finding() {
  const tab = await newTab(desktop, "find");
  for (const [path, words] of [[`${r}/sources/${pdf.id}`, "THE "], [`${r}/sources/${markdown.id}`, "annapolis"]]) {
    await tab.goto(base + path);
    await tab.getByRole("region", { name: "Document" }).waitFor();
    await tab.locator("h1").first().waitFor();
    await tab.keyboard.press("f");
    await tab.getByRole("searchbox", { name: "Find in the document" }).fill(words.trim());
    await tab.waitForFunction(() => /^1 of \d/.test(document.querySelector(".find-sum")?.textContent ?? ""));
    await tab.waitForFunction(() => [...(CSS.highlights.get("okt-found-now") ?? [])].some((range) => {
      const at = range.getBoundingClientRect();
      return at.width > 0 && at.top > 0 && at.bottom < innerHeight;
    }));
    await look(tab, `find-${words.trim().toLowerCase()}`);
    if (words === "THE ") {
      await tab.keyboard.press("Enter");
      await tab.waitForFunction(() => /^2 of \d/.test(document.querySelector(".find-sum")?.textContent ?? ""));
    }
    await tab.keyboard.press("Escape");
    await tab.locator(".find").waitFor({ state: "detached" });
  }
  // A sentence that no fact rests on is marked as well when somebody asks for it.
  await tab.goto(`${base}${r}/sources/${pdf.id}?view=uncited`);
  await tab.locator(".reader-side [data-main]").first().click();
  await tab.locator(".pdf-mark.looked").first().waitFor();
  await look(tab, "reader-uncited", COLOURS);
  await tab.close();
  done("words are found in documents");
}

/** A bundle is written, downloaded, and known again; a key is made and works. */
async function keeping() {
  const tab = await newTab(desktop, "bundle");
  await tab.goto(`${base}${r}/exchange`);
  await tab.getByRole("button", { name: "Write a bundle" }).click();
  await tab.getByText(/The bundle is ready\. [\d.,]+ [KM]?B/).waitFor();
  // It is still there for who comes back.
  await tab.reload();
  const [file] = await Promise.all([tab.waitForEvent("download"), tab.getByRole("button", { name: "Download" }).click()]);
  const bundle = await file.path();
  await tab.locator("input[type=file]").setInputFiles(bundle);
  await tab.getByText("Everything in it is here already.").waitFor();
  await look(tab, "bundle");
  tab.now = "new key";
  await visit(tab, "/account/keys", "new key");
  await tab.getByRole("button", { name: "New key" }).first().click();
  await tab.getByLabel("Name").fill("Nightly");
  await look(tab, "new-key");
  await tab.getByRole("button", { name: "Make a key" }).click();
  const key = await tab.getByLabel("Key", { exact: true }).inputValue();
  assert.ok((await ask(key, "GET", "/repositories/starter/facts")).data.length > 0, "the key reads facts");
  await tab.close();
  done("a bundle is known again, a key works");
}

/** A question is asked, its evidence is there within a second, and it is saved as a report. */
async function asking() {
  const tab = await newTab(desktop, "ask");
  await visit(tab, `${r}/ask`, "ask");
  const box = tab.getByLabel("Your question");
  await tab.getByRole("group", { name: "Questions to begin with" }).getByRole("button").first().click();
  assert.match(await box.inputValue(), /^What is known of /);
  await box.fill("When did the Annapolis Royal power station open?");
  await tab.keyboard.press("Control+Enter");
  await tab.waitForURL(/\/answers\/./);
  const before = Date.now();
  await tab.locator(".answer-piece").first().waitFor();
  console.log(`evidence after ${Date.now() - before} ms`);
  await tab.locator(".answer-sentence", { hasText: "1984" }).first().waitFor();
  await tab.getByText("facts only").waitFor();
  await look(tab, "answered");
  await tab.locator(".answer-sentence").first().hover();
  await tab.locator(".answer-piece.lit").first().waitFor();
  // The same by its address.
  await tab.reload();
  await tab.locator(".answer-sentence", { hasText: "1984" }).first().waitFor();
  await tab.getByRole("button", { name: "Is it right?" }).click();
  await tab.getByRole("dialog").waitFor();
  await look(tab, "answer-feedback");
  await tab.getByRole("button", { name: "Save", exact: true }).click();
  await tab.getByText("You said what you think of it").waitFor();
  await tab.getByLabel("A question that follows").fill("And how high is the water there?");
  await tab.keyboard.press("Control+Enter");
  await tab.getByText("It follows on:").waitFor();
  const more = tab.getByRole("button", { name: /^More for/ }).last();
  await more.click();
  await tab.getByRole("menuitem", { name: "Show it to all who read here" }).click();
  await tab.getByText("shared by you").waitFor();
  await more.click();
  await tab.getByRole("menuitem", { name: "Delete …" }).click();
  await tab.getByRole("alertdialog").or(tab.getByRole("dialog")).getByRole("button", { name: "Delete" }).click();
  await tab.waitForURL(/\/ask$/);
  await tab.getByRole("link", { name: "Annapolis Royal" }).first().click();
  await tab.getByRole("heading", { name: "Annapolis Royal", level: 1 }).waitFor();
  await tab.getByRole("button", { name: "Save as a report" }).click();
  await tab.waitForURL(/\/reports\/./);
  await tab.locator(".claim").first().waitFor();
  await tab.close();
  done("a question is answered");
}

/** What only a model brings about, which there is none of here: what was left out, what speaks against it, what is missing, what has changed. */
async function answered() {
  const tab = await newTab(desktop, "an answer of a model");
  await tab.route(new RegExp(`/api/v1/.*/answers/${answers[0]}$`), async (route) => {
    const answer = await route.fetch();
    const json = await answer.json();
    const [one, other] = json.facts;
    const sentence = { text: one.text, fact_ids: [one.id], keys: [one.key], confidence: 0.9, method: "model", group: null };
    const sentences = ["supported", "contradicted", "unverified"].map((verdict, index) => ({ ...sentence, index, verdict }));
    const dropped = [
      { text: "The tides reach 41 metres.", code: "number", reason: "41 is in none of the cited facts" },
      { text: null, code: "unsupported", reason: "it has an address, which is no part of an answer" },
    ];
    const disagreeing = [{ index: 1, facts: [{ ...other, against: one.id, confidence: 0.9, judged_by: "builtin-posture-1" }] }];
    const evidence_changed = [{ fact_id: one.id, change: "retracted" }, { fact_id: other.id, change: "removed" }];
    const facts = [one, { ...other, source: null, quote: null, text: "" }, ...json.facts.slice(2)];
    await route.fulfill({ response: answer, json: { ...json, status: "partly", mode: "model", extractive_reason: null, model: "example/model-1", facts, sentences, dropped, disagreeing, evidence_changed, missing: "when they are highest" } });
  });
  await visit(tab, pages.answer, "an answer of a model", true);
  for (const text of ["answered in part", "2 sentences did not hold", "What speaks against it", "What is missing", "The evidence has changed since", "Its source was deleted", "not verified"]) await tab.getByText(text).first().waitFor();
  await tab.getByText("2 sentences did not hold").click();
  await tab.getByText("41 is in none of the cited facts").waitFor();
  await look(tab, "answer-model");
  await tab.emulateMedia({ colorScheme: "dark" });
  await look(tab, "answer-model-dark", COLOURS);
  await tab.emulateMedia({ colorScheme: "light" });
  await tab.setViewportSize({ width: 390, height: 844 });
  // What lies half below the head counts as small.
  await tab.evaluate(() => scrollTo(0, 0));
  await look(tab, "answer-model-narrow", COLOURS);
  await tab.unrouteAll({ behavior: "ignoreErrors" });
  await tab.close();
  done("an answer of a model is shown with all that speaks against it");
}

/** A webhook is made, switched off, and what it was told is looked at. */
async function telling() {
  const tab = await newTab(desktop, "webhooks");
  await visit(tab, `${r}/settings?tab=webhooks`, "webhooks");
  await tab.getByRole("button", { name: "New webhook" }).click();
  await tab.getByLabel("Address").fill("https://hooks.example.org/other");
  await look(tab, "new-webhook");
  await tab.getByRole("button", { name: "Make the webhook" }).click();
  assert.match(await tab.getByLabel("Secret", { exact: true }).inputValue(), /^whsec_/);
  await tab.getByRole("button", { name: "Done" }).click();
  await tab.getByRole("button", { name: "More for https://hooks.example.org/other" }).click();
  await tab.getByRole("menuitem", { name: "Switch off" }).click();
  await tab.locator("article", { hasText: "hooks.example.org/other" }).getByText("off", { exact: true }).waitFor();
  await tab.getByRole("button", { name: "More for https://hooks.example.org/other" }).click();
  await tab.getByRole("menuitem", { name: "Deliveries" }).click();
  await tab.getByText("Nothing was delivered yet").waitFor();
  await look(tab, "deliveries");
  await tab.close();
  done("a webhook is made");
}

/** With a registry: whose packages are taken is chosen with the keys that count. */
async function trusting() {
  const tab = await newTab(desktop, "registry");
  // The installation has none, and nothing here asks one.
  await tab.route(/\/repositories\/starter\/settings$/, async (route) => {
    const answer = await route.fetch();
    const json = await answer.json();
    json.registry.available = [{ id: "public", url: "https://registry.example.org/", auth_mode: "none", allowed_models: ["*"] }];
    await route.fulfill({ response: answer, json });
  });
  await tab.goto(`${base}${r}/settings?tab=registry`);
  const choose = async (from, to) => {
    await tab.locator(".select-button", { hasText: from }).click();
    await tab.getByRole("option", { name: to }).click();
  };
  await choose("Everybody's", "Only those signed with a key of this list");
  const keys = tab.getByLabel("Trusted keys");
  await keys.fill("okp_short");
  await tab.getByText("“okp_short” is no key").waitFor();
  await look(tab, "registry-keys");
  await keys.fill("okp_11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
  await tab.locator("section", { has: keys }).getByRole("button", { name: "Save" }).click();
  await until("the trusted key", async () => (await call("GET", "/settings")).registry.trust === "listed");
  await choose("Only those signed", "Everybody's");
  await until("everybody's packages", async () => (await call("GET", "/settings")).registry.trust === "anyone");
  await tab.unrouteAll({ behavior: "ignoreErrors" });
  await tab.close();
  done("keys of a registry are trusted");
}

/** An empty repository takes in the sample, and shows all of it. */
async function sample() {
  const tab = await newTab(desktop, "sample");
  const { slug } = await ask(token, "POST", "/repositories", { name: "Ferries" });
  await tab.goto(`${base}/r/${slug}`);
  await tab.getByRole("link", { name: "Look at a finished repository" }).click();
  await tab.getByRole("button", { name: "Take it in" }).click();
  // The page also says "what is here already stays as it is", before anything was taken in.
  await tab.getByText("“Electric ferries” is here.").waitFor();
  await look(tab, "sample");
  await tab.goto(`${base}/r/${slug}/contradictions`);
  await tab.getByText("Marholm").first().waitFor();
  await look(tab, "sample-contradictions");
  await tab.goto(`${base}/r/${slug}/reports`);
  await tab.getByRole("link", { name: "Should Norrøy get electric ferries?" }).click();
  await tab.getByText(/contradicted/i).first().waitFor();
  await look(tab, "sample-report");
  // No model is set up: the facts themselves, and what becomes of an answer when one of them is rejected.
  await visit(tab, `/r/${slug}/ask`, "sample, ask");
  await tab.getByLabel("Your question").fill("How much shore power do electric ferries need?");
  await look(tab, "sample-ask");
  await tab.keyboard.press("Control+Enter");
  await tab.waitForURL(/\/answers\/./);
  await tab.getByText("facts only").waitFor();
  await tab.locator(".answer-sentence").first().waitFor();
  await look(tab, "sample-answer");
  const id = new URL(tab.url()).pathname.split("/").at(-1);
  const given = await ask(token, "GET", `/repositories/${slug}/answers/${id}`);
  const [fact] = given.sentences[0].fact_ids;
  await ask(token, "PUT", `/repositories/${slug}/facts/${fact}`, { status: "rejected" });
  await tab.reload();
  await tab.getByRole("region", { name: "The evidence has changed since" }).getByText("was rejected").waitFor();
  await look(tab, "sample-answer-changed");
  await tab.close();
  done("the sample is taken in");
}

/** Somebody is invited, makes an account, and sees what a viewer may see, and nothing of another repository. */
async function guest() {
  const host = await newTab(desktop, "invite");
  await host.goto(`${base}${r}/members`);
  await host.getByRole("button", { name: "Invite somebody" }).click();
  await host.getByLabel("E-mail address").fill(GUEST.email);
  await host.getByRole("button", { name: "Make a link" }).click();
  const link = await host.getByLabel("Link", { exact: true }).inputValue();
  await look(host, "invited", COLOURS);
  await host.close();
  const theirs = await newContext(DESKTOP);
  const tab = await newTab(theirs, "join");
  await tab.goto(link);
  await tab.getByLabel("Name").fill(GUEST.name);
  await tab.getByLabel("E-mail address").fill(GUEST.email);
  await tab.getByLabel("Password").fill(GUEST.password);
  await look(tab, "join");
  await tab.getByRole("button", { name: "Make the account" }).click();
  await tab.locator("a.item-main").first().waitFor();
  assert.equal(await tab.getByText("Secret").count(), 0, "another repository is listed");
  for (const [path, said] of [[`${r}/settings?tab=reading`, "You can't see this"], [`${r}/settings?tab=webhooks`, "You can't see this"], [`${r}/answers/${answers[0]}`, "There is nothing here"], [`${r}/audit`, "You can't see this"], [`/r/${other.slug}/sources`, "There is nothing here"], ["/admin/users", "You can't see this"]]) {
    await visit(tab, path, `${path}, as a guest`);
    await tab.getByText(said).first().waitFor();
    assert.equal(await tab.getByText("Secret").count(), 0, `${path} tells of another repository`);
  }
  await look(tab, "forbidden");
  await visit(tab, `${r}/answers/${answers[1]}`, "a shared answer, as a guest");
  await tab.getByText("shared by somebody").waitFor();
  // Whoever signs out stays signed in until the service agrees; then the other tab is locked, and becomes that of the next person.
  const second = await newTab(theirs, "sign out");
  await second.goto(`${base}${r}/facts`);
  const signOut = async () => {
    await second.getByRole("button", { name: /^Account: Grace/ }).click();
    await second.getByRole("menuitem", { name: "Sign out" }).click();
  };
  await second.route(/\/auth\/logout$/, (route) => route.fulfill({ status: 422 }));
  await signOut();
  await second.getByText("you are still signed in").waitFor();
  await second.unrouteAll({ behavior: "ignoreErrors" });
  await signOut();
  // The page that is left shows the same fields.
  await second.waitForURL(`${base}/`);
  await tab.getByRole("dialog", { name: "Sign in again" }).waitFor();
  await second.getByLabel("E-mail address").fill(PERSON.email);
  await second.getByLabel("Password").fill(PERSON.password);
  await enter(second);
  await tab.getByRole("button", { name: /^Account: Ada/ }).waitFor();
  await theirs.close();
  done("a guest sees what they may see");
}

/** The documentation of the API, under its own policy: what a problem leads to, search, a request as oneself. */
async function documentation() {
  const tab = await newTab(desktop, "documentation");
  await tab.goto(`${base}/api/docs#problem-not_found`);
  const heading = tab.getByRole("heading", { name: "not found", exact: true }).first();
  await heading.waitFor();
  await tab.waitForFunction(() => {
    const at = [...document.querySelectorAll("h3")].find((one) => one.textContent?.trim() === "not found")?.getBoundingClientRect();
    return at && at.top > -50 && at.top < innerHeight;
  });
  await look(tab, "documentation-problem");
  await tab.getByRole("button", { name: /^(Open )?Search/ }).first().click();
  await tab.getByRole("combobox").fill("own profile");
  await tab.getByRole("option", { name: /Your own profile/ }).first().waitFor();
  await tab.keyboard.press("Escape");
  await tab.goto("about:blank");
  await tab.goto(`${base}/api/docs#tag/accounts/GET/api/v1/users/me`);
  const operation = tab.locator("section[id$='GET/api/v1/users/me']");
  await operation.getByRole("button", { name: /Test Request/ }).click();
  const [answer] = await Promise.all([tab.waitForResponse(/\/api\/v1\/users\/me$/), tab.getByRole("button", { name: /^Send/ }).first().click()]);
  assert.equal(answer.status(), 200, "a request of the documentation is sent as oneself");
  await tab.close();
  const phone = await newContext({ ...PHONE, colorScheme: "dark" });
  const small = await newTab(phone, "documentation, phone");
  await small.goto(`${base}/api/docs`);
  await small.getByRole("heading", { name: "Getting started" }).first().waitFor();
  // Scalar's own lists scroll beside the page.
  await look(small, "documentation-phone", COLOURS.filter((rule) => rule !== "scrollable-region-focusable"));
  await phone.close();
  done("the documentation works");
}

async function onPhone(names) {
  const phone = await newContext(PHONE);
  const small = await newTab(phone);
  await signIn(small, PERSON);
  await enter(small);
  await walk(names, small, { suffix: "phone", rules: COLOURS });
  await phone.close();
  done("on a phone");
}

const names = Object.keys(pages);
const half = Math.ceil(names.length / 2);
const second = await newTab(desktop);
await second.goto(base);
await second.locator("a.item-main").first().waitFor();
// Two things at a time: while one waits the other one works.
await together(
  () => walk(names.slice(0, half), tab),
  () => walk(names.slice(half), second),
);
await Promise.all([tab.close(), second.close()]);
done("all pages walked");
await together(
  async () => {
    await keyboard();
    await tenTasks(PERSON);
    await finding();
    await keeping();
    await asking();
    await answered();
    await telling();
    await trusting();
    await sample();
  },
  async () => {
    await guest();
    await documentation();
    await onPhone(["sources", "reader", "fact", "ask", "answer", "report", "webhooks", "graph", "cost", "settings", "members"]);
    await tabs(PERSON, `${r}/facts`, long ? 10 : 3, long ? 10 : 3);
    await hostile(desktop, token, long ? 200 : 20);
  },
);

if (long) {
  await onPhone(names);
  const zoomed = await newContext(ZOOMED);
  const near = await newTab(zoomed);
  await signIn(near, PERSON);
  await enter(near);
  await walk(names, near, { suffix: "zoomed", dark: false });
  await zoomed.close();
  done("at 400 % zoom");
  const german = await newContext({ ...DESKTOP, locale: "de-DE" });
  const deutsch = await newTab(german, "Anmelden");
  await deutsch.goto(base);
  await deutsch.getByLabel("E-Mail-Adresse").fill(PERSON.email);
  await deutsch.getByLabel("Passwort").fill(PERSON.password);
  await deutsch.getByRole("button", { name: "Anmelden" }).click();
  await deutsch.locator("a.item-main").first().waitFor();
  await walk(names, deutsch, { suffix: "german", dark: false });
  await german.close();
  done("in German");
  await pseudo(pages, PERSON);
  await boxes(desktop, token);
}
await desktop.close();
await finish();
