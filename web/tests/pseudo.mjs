// Every text of the UI goes through its table of words: with a table that puts each into brackets, no other text is left.
import { DESKTOP, done, enter, newContext, newTab, problems, signIn, visit } from "./browser.mjs";

/** Names, keys, and what is written the same in all languages. */
const ALLOWED = /^(okt|English|Deutsch|Esc|Enter|Ctrl|Shift|Alt|Tab|Space|API|PDF|HTML|CSV|URL|DOI|ID|MCP|RIS|BibTeX|CSL-JSON|JSON-LD|GraphML|Claude( Code)?|ChatGPT|Cursor|VS Code|Codex|Inspector|Markdown|USD|OAuth|kB|MB|GB|ms|min|s|p)$/;

export async function pseudo(pages, person) {
  const context = await newContext({ ...DESKTOP, locale: "de-DE" });
  await context.route(/\/assets\/de-[\w-]+\.js$/, (route) =>
    route.fulfill({ contentType: "text/javascript", body: "export const de = new Proxy({}, { get: (_, text) => (typeof text === 'string' ? `⟦${text}⟧` : undefined) });" }));
  const tab = await newTab(context, "pseudo");
  // What the service says is data: names, titles, sentences, reasons.
  let said = "";
  tab.on("response", async (response) => {
    if (!/json|event-stream/.test(response.headers()["content-type"] ?? "") || /event-stream/.test(response.headers()["content-type"])) return;
    said += await response.text().catch(() => "");
  });
  await signIn(tab, person);
  await enter(tab);
  for (const [name, path] of Object.entries(pages)) {
    await visit(tab, path, `${name}, pseudo`);
    const texts = await tab.evaluate(() => {
      const found = new Set();
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
      for (let at = walker.nextNode(); at; at = walker.nextNode()) {
        if (at.nodeType === Node.TEXT_NODE) {
          if (!at.parentElement.closest("code, pre, kbd, time, script, style, .textLayer, [lang]:not(html)")) found.add(at.data);
        } else if (!at.matches("time")) for (const one of ["aria-label", "placeholder", "title"]) if (at.getAttribute(one)) found.add(at.getAttribute(one));
      }
      return [...found];
    });
    const heard = said.replaceAll(/\\u([0-9a-f]{4})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
    for (const text of texts) {
      const bare = text.replaceAll(/⟦[^⟧]*⟧/g, "").trim();
      if (!/\p{L}{2}/u.test(bare) || text.includes("⟦") || ALLOWED.test(bare) || /^[\d.,:\s–-]*\s*(\d|Jan|Feb|März|Apr|Mai|Juni|Juli|Aug|Sept|Okt|Nov|Dez|vor|in|Sek|Min|Std|Tag)/u.test(bare)) continue;
      // Permissions are names of the API, and several stand in one text.
      if (/^[a-z_]+:[a-z_]+(, [a-z_]+:[a-z_]+)*$/.test(bare)) continue;
      if (heard.includes(JSON.stringify(bare).slice(1, -1)) || heard.includes(bare)) continue;
      problems.push(`${tab.now}: not in the words: ${JSON.stringify(bare.slice(0, 100))}`);
    }
  }
  await context.close();
  done("every text is in the table of words");
}
