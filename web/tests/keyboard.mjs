// The main tasks, with a keyboard and nothing else: each control is reached by Tab, or by a key of its own.
import { strict as assert } from "node:assert";
import { DESKTOP, base, done, look, newContext, newTab, settled } from "./browser.mjs";

/** Tab until something with this name has the focus. */
async function to(tab, name, most = 150) {
  for (let n = 0; n < most; n += 1) {
    const at = await tab.evaluate(() => {
      const element = document.activeElement;
      const labelled = element?.getAttribute("aria-labelledby")?.split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ");
      const label = element?.id ? document.querySelector(`label[for="${CSS.escape(element.id)}"]`)?.textContent : "";
      return [element?.getAttribute("aria-label"), labelled, label, element?.matches("input, textarea, body") ? "" : element?.textContent].filter(Boolean).map((one) => one.trim());
    });
    if (at.some((one) => (typeof name === "string" ? one === name || one.startsWith(name) : name.test(one)))) return;
    await tab.keyboard.press("Tab");
  }
  throw new Error(`${tab.now}: no Tab leads to ${name}`);
}

const press = async (tab, name) => {
  await to(tab, name);
  await tab.keyboard.press("Enter");
};
const type = async (tab, name, text) => {
  await to(tab, name);
  await tab.keyboard.press("Control+a");
  await tab.keyboard.type(text);
};
const menu = async (tab, button, item) => {
  await press(tab, button);
  await tab.getByRole("menuitem", { name: item }).waitFor();
  for (let n = 0; n < 30; n += 1) {
    if (await tab.evaluate((text) => document.activeElement?.textContent?.startsWith(text), item)) break;
    await tab.keyboard.press("ArrowDown");
  }
  await tab.keyboard.press("Enter");
};
const keys = async (tab, ...pressed) => {
  for (const key of pressed) await tab.keyboard.press(key);
};
/** `j` until a row has the focus: a list may be drawn anew in the moment after it came. */
export async function row(tab) {
  await tab.locator("[data-main]").first().waitFor();
  for (let n = 0; n < 20; n += 1) {
    await tab.keyboard.press("j");
    if (await tab.evaluate(() => document.activeElement?.matches("[data-main]"))) return;
    await tab.waitForTimeout(250);
  }
  throw new Error(`${tab.now}: j leads to no row`);
}

/** Opens a row of the list of this title: it may be drawn anew between the key that chooses and the one that opens. */
export async function openRow(tab, title, url) {
  await tab.getByRole("heading", { name: title, level: 1 }).waitFor();
  for (let n = 0; n < 10; n += 1) {
    await row(tab);
    await tab.keyboard.press("Enter");
    if (await tab.waitForURL(url, { timeout: 5_000 }).then(() => true, () => false)) return;
  }
  throw new Error(`${tab.now}: Enter opens no row`);
}

export async function tenTasks(person) {
  const context = await newContext(DESKTOP);
  const tab = await newTab(context, "keyboard: sign in");
  await tab.goto(base);
  await tab.getByLabel("E-mail address").waitFor();
  await type(tab, "E-mail address", person.email);
  await type(tab, "Password", person.password);
  await tab.keyboard.press("Enter");
  await tab.locator("a.item-main").first().waitFor();

  tab.now = "keyboard: a repository";
  await press(tab, "New repository");
  await tab.getByRole("dialog").waitFor();
  await type(tab, "Name", "By keyboard");
  await press(tab, "Create");
  await tab.getByRole("link", { name: "Look at a finished repository" }).waitFor();

  tab.now = "keyboard: the sample";
  await press(tab, "Look at a finished repository");
  await tab.getByRole("button", { name: "Take it in" }).waitFor();
  await press(tab, "Take it in");
  await tab.getByText("“Electric ferries” is here.").waitFor();
  await tab.keyboard.press("Escape");

  tab.now = "keyboard: find a fact";
  // Words are found as soon as the texts of the bundle are read.
  for (let n = 0; ; n += 1) {
    await keys(tab, "Control+k");
    await tab.getByRole("combobox").waitFor();
    await tab.keyboard.type("ferry".slice(0, 3 + (n % 3)));
    const found = await tab.getByRole("option").nth(2).waitFor({ timeout: 3_000 }).then(() => true, () => false);
    await tab.keyboard.press("Escape");
    await tab.getByRole("combobox").waitFor({ state: "detached" });
    if (found) break;
    assert.ok(n < 30, "the palette finds nothing");
  }
  await keys(tab, "g", "f");
  await tab.waitForURL(/\/facts/);
  await openRow(tab, "Facts", /\/facts\/./);

  tab.now = "keyboard: reject a fact, and take it back";
  await tab.getByRole("button", { name: "Reject …" }).waitFor();
  await press(tab, "Reject …");
  await tab.getByRole("dialog").or(tab.getByRole("alertdialog")).waitFor();
  await press(tab, /^Reject$/);
  await tab.getByRole("button", { name: "Restore" }).first().waitFor();
  await press(tab, "Restore");
  await tab.getByRole("button", { name: "Reject …" }).waitFor();

  tab.now = "keyboard: read a source";
  await keys(tab, "g", "s");
  await tab.waitForURL(/\/sources/);
  await openRow(tab, "Sources", /\/sources\/./);
  await tab.getByRole("region", { name: "Document" }).waitFor();
  await keys(tab, "f");
  await tab.getByRole("searchbox", { name: "Find in the document" }).waitFor();
  await tab.keyboard.type("ferr");
  await tab.waitForFunction(() => /^1 of \d/.test(document.querySelector(".find-sum")?.textContent ?? ""));
  await tab.keyboard.press("Escape");

  tab.now = "keyboard: rename a concept";
  await keys(tab, "g", "c");
  await tab.waitForURL(/\/concepts/);
  await openRow(tab, "Concepts", /\/concepts\/./);
  await tab.getByRole("button", { name: /^More for/ }).first().waitFor();
  await menu(tab, /^More for/, "Rename or move");
  await tab.getByRole("dialog").waitFor();
  await type(tab, "Name", "Named by keyboard");
  await press(tab, "Save");
  await tab.getByRole("heading", { name: "Named by keyboard" }).first().waitFor();

  tab.now = "keyboard: decide a contradiction";
  await keys(tab, "g", "d");
  await tab.waitForURL(/\/contradictions/);
  // A fact of it was rejected and restored a moment ago: until the service has compared it anew, the list may be empty.
  const scope = tab.getByRole("button", { name: "Scope differs" });
  for (let tries = 0; tries < 30 && !(await scope.first().waitFor({ timeout: 1_000 }).then(() => true, () => false)); tries += 1) {
    await tab.reload();
  }
  await settled(tab);
  await press(tab, "Scope differs");
  await tab.getByText("Decided").first().waitFor();

  tab.now = "keyboard: write a report";
  await keys(tab, "g", "r");
  await tab.waitForURL(/\/reports/);
  await tab.getByRole("button", { name: "New report" }).first().waitFor();
  await press(tab, "New report");
  await type(tab, "Title", "By keyboard");
  await type(tab, "Text, in Markdown", "The ferry carries passengers every day of the year. Electric ferries need shore power in every harbour that they call at.");
  await press(tab, "Create and check");
  await tab.waitForURL(/\/reports\/./);
  await tab.locator(".claim").first().waitFor();
  await keys(tab, "n");
  await tab.waitForURL(/sentence=/);
  await look(tab, "keyboard-report");

  tab.now = "keyboard: search";
  await keys(tab, "/");
  await tab.waitForURL(/\/search/);
  await tab.getByRole("searchbox").first().waitFor();
  await tab.keyboard.type("shore power");
  await tab.locator("[data-main]").first().waitFor();
  for (let n = 0; n < 60 && !(await tab.evaluate(() => document.activeElement?.matches("[data-main]"))); n += 1) await tab.keyboard.press("Tab");
  assert.ok(await tab.evaluate(() => document.activeElement?.matches("[data-main]")), "no Tab leads to what was found");
  await tab.keyboard.press("Enter");
  await tab.waitForURL(/\/(facts|concepts|sources|reports)\/./);

  tab.now = "keyboard: ask";
  await keys(tab, "g", "a");
  await tab.waitForURL(/\/ask/);
  await tab.getByLabel("Your question").waitFor();
  await type(tab, "Your question", "How much shore power do the ferries need?");
  await tab.keyboard.press("Control+Enter");
  await tab.waitForURL(/\/answers\/./);
  await tab.locator(".answer-sentence").first().waitFor();
  await keys(tab, "1");
  await tab.waitForURL(/\/sources\/./);
  await context.close();
  done("eleven tasks by keyboard alone");
}
