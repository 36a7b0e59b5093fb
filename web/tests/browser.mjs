// A browser that notes what goes wrong in its tabs, for the walks beside this file.
//
//   OKT_WEB_LONG=1     the long form
//   OKT_WEB_PICTURES   a folder for pictures of the pages
import { strict as assert } from "node:assert";
import { mkdirSync, writeFileSync } from "node:fs";
import axe from "axe-core";
import { chromium } from "playwright-core";

export const base = process.argv[2];
export const long = process.env.OKT_WEB_LONG === "1";
export const pictures = process.env.OKT_WEB_PICTURES;
if (pictures) mkdirSync(pictures, { recursive: true });
const ALLOWED = /status of (403|404|422)|GPU stall|WebGL|willReadFrequently|^@scalar/;
/** Rules of axe that depend on colours and sizes. */
export const COLOURS = ["color-contrast", "target-size", "scrollable-region-focusable"];
// Without motion colours change at once.
export const DESKTOP = { viewport: { width: 1280, height: 800 }, locale: "en-US", reducedMotion: "reduce" };
export const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, locale: "en-US", reducedMotion: "reduce" };
/** 1280 pixels at 400 %. */
export const ZOOMED = { ...DESKTOP, viewport: { width: 320, height: 256 } };

export const browser = await chromium.launch({ executablePath: process.env.OKT_CHROMIUM, args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"] });
export const problems = [];
const tabs = new Set();
export const began = Date.now();
export const since = () => `${((Date.now() - began) / 1000).toFixed(1)} s`;
export const done = (what) => console.log(`${what} (${since()})`);

/** Longer than anything takes on a machine that does other things besides: what does not come at all fails. */
export const PATIENCE = 90_000;

export async function newContext(options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE);
  context.setDefaultNavigationTimeout(PATIENCE);
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  return context;
}

/** A tab that notes what goes wrong in it. `tab.now` says where it is. */
export async function newTab(context, now = "") {
  const tab = await context.newPage();
  tab.now = now;
  tabs.add(tab);
  tab.on("close", () => tabs.delete(tab));
  const note = (what) => problems.push(`${tab.now}: ${what}`);
  tab.on("pageerror", (error) => note(`script: ${error.message}`));
  tab.on("console", (message) => {
    // The page that connects agents tries the endpoint as somebody without a key.
    const tried = tab.now.startsWith("connect") && /status of 401/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !tried && !ALLOWED.test(message.text())) note(`console: ${message.text().slice(0, 300)}`);
  });
  tab.on("request", (request) => {
    if (!/^(blob|data):/.test(request.url()) && new URL(request.url()).origin !== base) note(`foreign request: ${request.url()}`);
  });
  tab.on("dialog", (dialog) => {
    note(`a script of a text ran: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return tab;
}

/** `rules`: only these; otherwise all. */
export async function look(tab, name, rules) {
  // A page that is read anew has its heading a moment later; where it has none, the check below says so.
  await tab.locator("h1").first().waitFor({ state: "attached", timeout: 10_000 }).catch(() => {});
  // A dialog is there, and not seen, before it is.
  await tab.waitForFunction(() => [...document.querySelectorAll(".veil, .modal, .popover")].every((one) => getComputedStyle(one).opacity !== "0"));
  if (pictures) await tab.screenshot({ path: `${pictures}/${name}.png` });
  if (!(await tab.evaluate(() => "axe" in globalThis))) await tab.evaluate(axe.source);
  const { found, over } = await tab.evaluate(async (only) => {
    const options = { resultTypes: ["violations"], ...(only ? { runOnly: { type: "rule", values: only } } : {}) };
    // What React Aria announces names what may be gone a moment later.
    const { violations } = await globalThis.axe.run({ exclude: ["[data-live-announcer]"] }, options);
    const found = violations.map(({ id, nodes }) => `axe ${id}: ${nodes.slice(0, 2).map((node) => node.html.slice(0, 120)).join(" | ")}`);
    // A phone makes its window as wide as what is too wide for it.
    const over = document.documentElement.scrollWidth - Math.min(innerWidth, screen.width);
    // German words are the longer ones. What scrolls, or is cut on purpose, can be read otherwise; of texts that only screen
    // readers get one pixel is there.
    const cut = (one) =>
      one.clientWidth > 1 &&
      one.scrollWidth > one.clientWidth + 2 &&
      [...one.childNodes].some((part) => part.nodeType === Node.TEXT_NODE && part.data.trim() !== "") &&
      !/auto|scroll/.test(getComputedStyle(one).overflowX) &&
      !one.closest(".clip, .textLayer, svg, pre");
    const texts = document.documentElement.lang === "de" ? [...document.body.querySelectorAll("*")].filter(cut) : [];
    for (const one of texts) found.push(`cut: ${one.textContent.trim().slice(0, 80)} (${one.scrollWidth} px in ${one.clientWidth})`);
    return { found, over };
  }, rules);
  for (const one of found) problems.push(`${tab.now}: ${one}`);
  if (over > 0) problems.push(`${tab.now}: ${over} px wider than the screen`);
}

/** Roles of what somebody can act on. */
const ACTED_ON = /^\s*- '?(button|link|checkbox|radio|switch|textbox|searchbox|combobox|tab|menuitem|option|slider|spinbutton)(?! ")\b.*/gm;

/** A screen reader has a name for all that can be acted on. */
export async function named(tab, name) {
  const tree = await tab.locator("body").ariaSnapshot();
  if (pictures) writeFileSync(`${pictures}/${name}.yml`, tree);
  // A link of more than 900 letters, such as a passage, stands there without its name; axe looks at the names of links as well.
  for (const [line] of tree.matchAll(ACTED_ON)) if (line.trim() !== "- link:") problems.push(`${tab.now}: without a name: ${line.trim()}`);
}

/** The page of the address is drawn, not still the one before it, and nothing is loading. */
export async function settled(tab) {
  await tab.waitForFunction(() => {
    const router = globalThis.__TSR_ROUTER__;
    return router?.state.status === "idle" && router.state.resolvedLocation?.href === router.latestLocation.href;
  });
  await tab.locator("h1").first().waitFor({ state: "attached" });
  await tab.waitForFunction(() => !document.querySelector(".skeleton, [data-pending]"), undefined, { timeout: 30_000 }).catch(() => problems.push(`${tab.now}: it does not come to an end`));
}

/** Within the page, as a click on a link goes, or from outside. */
export async function visit(tab, path, name, fresh = false) {
  tab.now = name;
  if (fresh || !tab.url().startsWith(base)) await tab.goto(base + path);
  else await tab.evaluate((to) => history.pushState({}, "", to), path);
  await settled(tab);
  assert.ok(!/^[12]$/.test(await tab.title()), `${name}: a script of a text ran`);
  assert.equal(await tab.locator("main img:not([src*=icon])").count(), 0, `${name}: a picture of a text was made`);
}

export async function signIn(tab, person) {
  tab.now = "sign in";
  await tab.goto(base);
  await tab.getByLabel("E-mail address").fill(person.email);
  await tab.getByLabel("Password").fill(person.password);
}
export async function enter(tab) {
  await tab.getByRole("button", { name: "Sign in" }).click();
  await tab.locator("a.item-main").first().waitFor();
}

/** Runs these at once. */
export const together = (...tasks) => Promise.all(tasks.map((task) => task()));

/** A request of a program, which must succeed. */
export async function ask(token, method, path, body) {
  const headers = { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(`${base}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`);
  return response.json();
}

/** What `read` gives as soon as it gives something. */
export async function until(what, read) {
  for (const end = Date.now() + PATIENCE; Date.now() < end; ) {
    const found = await read();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 125));
  }
  throw new Error(`${what} did not come`);
}

// Whoever reads only the log sees where it stopped, and what was on the screen.
process.once("uncaughtException", async (error) => {
  // What fails because of the first failure says nothing.
  process.on("uncaughtException", () => {});
  console.log(`FAILED (${since()}): ${error.stack ?? error}`);
  for (const one of new Set(problems)) console.log(one);
  for (const tab of tabs) {
    const text = await tab.locator("body").innerText({ timeout: 2_000 }).catch(() => "(no text)");
    console.log(`--- ${tab.now}: ${tab.url()}\n${text.replaceAll(/\n+/g, " | ").slice(0, 1_500)}`);
    if (pictures) await tab.screenshot({ path: `${pictures}/failed-${tab.now.replaceAll(/\W+/g, "-")}.png`, timeout: 5_000 }).catch(() => {});
  }
  process.exit(1);
});

/** Ends the browser; fails if anything was noted. */
export async function finish() {
  await browser.close();
  if (problems.length > 0) {
    console.log([...new Set(problems)].join("\n"));
    process.exit(1);
  }
  done("nothing is wrong");
}
