//! The documentation of the API, by Scalar, which is beside this script as it is published. Nothing is fetched from elsewhere.

import { authorized, BASE, refresh, session } from "../api/session";
import { type Document, readable } from "./document";
import { applyTheme, theme } from "../app/theme";
import "../app/tokens.css";
import "./docs.css";

type Reference = { createApiReference: (where: Element, configuration: object) => { updateConfiguration: (configuration: object) => void } };

/** Where a problem's `type` leads to. */
const PROBLEM = /^#problem-([a-z_]+)$/;

/** As `fetch`, as the reader: unless they have given a credential of their own. */
async function asked(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  const given = /^Bearer +\S/.test(request.headers.get("authorization") ?? "");
  if (given || new URL(request.url).origin !== location.origin || session.state() !== "in") return fetch(request);
  return authorized(request);
}

/** What Scalar leaves without a name, or out of reach of the keys. */
function mend() {
  for (const one of where.querySelectorAll("button[class*='copy-button']:not([aria-label])")) one.setAttribute("aria-label", "Copy");
  for (const one of where.querySelectorAll("code.custom-scroll:not([tabindex])")) one.setAttribute("tabindex", "0");
  for (const one of where.querySelectorAll(".response-card[role='region']")) one.setAttribute("role", "group");
}

const dark = () => theme() === "dark" || (theme() === "system" && matchMedia("(prefers-color-scheme: dark)").matches);

/** What a problem's `type` names, in the words of this page: a heading of the introduction. */
function named(): string | null {
  const code = PROBLEM.exec(location.hash)?.[1];
  if (!code) return null;
  const place = `description/${code.replaceAll("_", "-")}`;
  // The page has a `<base>`: an address of its own begins with its path.
  history.replaceState(null, "", `${location.pathname}${location.search}#${place}`);
  return place;
}

/** Goes there as soon as it is drawn, and stays there while what is above it is drawn, until the reader does something. */
async function go(place: string) {
  const taken = new AbortController();
  for (const act of ["wheel", "touchstart", "pointerdown", "keydown"]) addEventListener(act, () => taken.abort(), { signal: taken.signal, passive: true });
  let at: number | undefined;
  for (let tries = 0, still = 0; tries < 600 && still < 30 && !taken.signal.aborted; tries += 1) {
    const heading = where.querySelector(`h3[id$="/${place}"]`);
    if (heading && heading.getBoundingClientRect().top !== at) {
      heading.scrollIntoView();
      at = heading.getBoundingClientRect().top;
      still = 0;
    } else if (heading) still += 1;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  taken.abort();
}

// What checks the shape of the document would try whether it may make functions of strings: it may not.
(globalThis as { __zod_globalConfig?: object }).__zod_globalConfig = { jitless: true };

applyTheme();
const place = named();
const where = document.getElementById("reference") as HTMLElement;
try {
  const [{ createApiReference }, answer] = await Promise.all([
    import(/* @vite-ignore */ `${BASE}${SCALAR_FOLDER}/standalone.esm.js`) as Promise<Reference>,
    fetch(`${BASE}api/v1/openapi.json`),
    refresh(),
  ]);
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  new MutationObserver(mend).observe(where, { subtree: true, childList: true });
  createApiReference(where, {
    content: readable((await answer.json()) as Document, BASE),
    // Below a path, too.
    servers: [{ url: BASE.replace(/\/$/, ""), description: "This installation" }],
    customFetch: asked,
    authentication: { preferredSecurityScheme: "bearer" },
    theme: "none",
    layout: "modern",
    defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
    hiddenClients: { c: true, clojure: true, csharp: true, dart: true, fsharp: true, java: true, kotlin: true, objc: true, ocaml: true, powershell: true, r: true, swift: true },
    // The same as that of the other pages, where it is chosen.
    hideDarkModeToggle: true,
    forceDarkModeState: dark() ? "dark" : "light",
    withDefaultFonts: false,
    showDeveloperTools: "never",
    hideClientButton: true,
    telemetry: false,
    persistAuth: false,
    agent: { disabled: true, hideAddApi: true },
    mcp: { disabled: true },
    defaultOpenAllTags: false,
    hideModels: false,
    documentDownloadType: "json",
    metaData: { title: "API · okt" },
  });
  if (place) await go(place);
} catch (error) {
  where.textContent = `The documentation can't be shown (${error instanceof Error ? error.message : String(error)}). The document is at ${BASE}api/v1/openapi.json`;
}
