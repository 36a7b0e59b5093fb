// Kills the service under an open page and starts it again: the page says so, goes on by itself, and misses nothing.
//
// Usage: node outage.mjs ADDRESS PROGRAM LOG EMAIL PASSWORD   (the environment is that of the program; it must not be running)
import { strict as assert } from "node:assert";
import { spawn } from "node:child_process";
import { openSync } from "node:fs";
import { DESKTOP, ask, base, done, enter, finish, look, newContext, newTab, problems, signIn, until } from "./browser.mjs";

const [program, log, email, password] = process.argv.slice(3);
const PAGES = [["investigations", "Investigations"], ["reports", "Reports"], ["contradictions", "Contradictions"]];
const KILLS = PAGES.length;
const output = openSync(log, "a");
let service;
let ended;

async function start() {
  service = spawn(program, ["serve"], { stdio: ["ignore", output, output] });
  ended = new Promise((resolve) => service.once("exit", resolve));
  await until("the service", () => {
    assert.equal(service.exitCode, null, "the service has ended by itself");
    return fetch(`${base}/readyz`).then((answer) => answer.ok, () => false);
  });
}

async function kill() {
  service.kill("SIGKILL");
  await ended;
}

process.on("exit", () => service?.kill("SIGKILL"));
await start();
const { token } = await ask(null, "POST", "/auth/login", { email, password });
const { slug } = await ask(token, "POST", "/repositories", { name: "Outage" });
const add = async (name) => {
  const body = new FormData();
  body.append("file", new Blob([`The lighthouse ${name} was built in 1884. The lighthouse ${name} is 43 metres high.\n`], { type: "text/plain" }), `${name}.txt`);
  const answer = await fetch(`${base}/api/v1/repositories/${slug}/sources/upload`, { method: "POST", headers: { authorization: `Bearer ${token}` }, body });
  assert.equal(answer.status, 202, await answer.text());
};
await add("Before");

const context = await newContext(DESKTOP);
const tab = await newTab(context, "outage");
await signIn(tab, { email, password });
await enter(tab);
await tab.evaluate((to) => history.pushState({}, "", to), `/r/${slug}/sources`);
const row = (name) => tab.locator("article.item", { hasText: name });
await row("Before").waitFor();
await tab.evaluate(() => (globalThis.notReloaded = true));
for (const [round, [path, title]] of PAGES.entries()) {
  tab.now = `outage ${round}`;
  await kill();
  await tab.getByText("The service does not answer, trying again").waitFor();
  // Not even the script of this page is here; it comes when the service is back.
  await tab.evaluate((to) => history.pushState({}, "", to), `/r/${slug}/${path}`);
  await tab.waitForTimeout(3_000);
  assert.equal(await tab.getByText("The service does not answer, trying again").count(), 1, "the page does not say that the service is away");
  if (round === 0) await look(tab, "away", ["color-contrast"]);
  await start();
  // Added before the page has noticed: no event of it may be missed.
  await add(`Beacon${round}`);
  await tab.getByRole("heading", { name: title, level: 1 }).waitFor();
  await tab.evaluate((to) => history.pushState({}, "", to), `/r/${slug}/sources`);
  await row(`Beacon${round}`).waitFor();
  // Before news comes, and between two jobs of a source, nothing runs as far as the page knows: what it says is compared
  // with what is so. A job that one kill has met is not met by the next one: after three of them it would be given up.
  const sources = await until("all sources", async () => {
    const { data } = await ask(token, "GET", `/repositories/${slug}/sources`);
    return data.every((one) => one.status === "processed" || one.status === "failed") && data;
  });
  assert.equal(sources.length, round + 2);
  for (const one of sources) assert.equal(one.status, "processed", `${one.title}: ${JSON.stringify(one.failure)}`);
  for (const name of ["Before", ...PAGES.slice(0, round + 1).keys().map((n) => `Beacon${n}`)]) await row(name).getByText("ready", { exact: true }).waitFor();
  await tab.getByText("Nothing is running").waitFor();
}
// A question that is asked while nobody answers is kept, and asked again when one asks again.
tab.now = "outage, ask";
await tab.evaluate((to) => history.pushState({}, "", to), `/r/${slug}/ask`);
await tab.getByLabel("Your question").fill("How high is the lighthouse Before?");
await kill();
await tab.keyboard.press("Control+Enter");
await tab.getByRole("alert").getByText("The service does not answer").first().waitFor();
await start();
await tab.getByLabel("Your question").focus();
await tab.keyboard.press("Control+Enter");
await tab.waitForURL(/\/answers\/./);
await tab.locator(".answer-sentence", { hasText: "43 metres" }).first().waitFor();
assert.equal(await tab.evaluate(() => globalThis.notReloaded), true, "the page was loaded anew");
// While the service is away requests fail, and the browser says so.
problems.splice(0, problems.length, ...problems.filter((one) => !/net::ERR_|status of 50[23]/.test(one)));
done(`the service was killed ${KILLS} times under an open page`);
await context.close();
await kill();
await finish();
