//! The session of this browser: a short-lived token in memory, and one refresh at a time for all tabs.
//!
//! The refresh token is in a cookie that scripts can't read. Each can be used once, and two tabs that use the same one at
//! once can end the session; so tabs ask each other for the token first, and refresh one after the other.

/** The address of the installation, with a slash at its end. */
export const BASE = new URL(".", document.baseURI).href;

export type SessionState = "starting" | "in" | "out";
type Message = { kind: "ask" } | { kind: "token"; token: string; until: number } | { kind: "out" };

const LOCK = "okt-refresh";
/** How long other tabs have to answer. */
const ASK_FOR = 80;
/** How often a page that begins tries to. */
const PATIENCE = 4;
/** How long before its end a token is exchanged. */
const EARLY = 60_000;

let token: string | null = null;
let until = 0;
/** Whose the page is, also while nobody is signed in. */
let user: string | null = null;
let state: SessionState = "starting";
let refreshing: Promise<boolean> | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();
const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("okt") : null;
let answered: (() => void) | null = null;

export const session = {
  state: () => state,
  token: () => token,
  subscribe(listener: () => void) {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

function become(next: SessionState) {
  if (state === next) return;
  state = next;
  for (const listener of listeners) listener();
}

/** Whom a token is of: it is a JWT. */
function owner(of: string): string | null {
  try {
    const claims = (of.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    return (JSON.parse(atob(claims)) as { sub?: string }).sub ?? null;
  } catch {
    return null;
  }
}

/** False: it is another person's, who gets a page of their own. */
function keep(next: string, ends: number): boolean {
  const theirs = owner(next);
  if (user !== null && theirs !== user) {
    location.reload();
    return false;
  }
  user = theirs;
  token = next;
  until = ends;
  clearTimeout(timer);
  // Not all tabs at the same moment.
  const wait = Math.max(1_000, ends - Date.now() - EARLY - Math.random() * 10_000);
  timer = setTimeout(() => void refresh(), Math.min(wait, 2_000_000_000));
  become("in");
  return true;
}

const valid = () => token !== null && until - Date.now() > EARLY / 2;

channel?.addEventListener("message", (event: MessageEvent<Message>) => {
  const said = event.data;
  if (said.kind === "ask" && token !== null && valid()) channel.postMessage({ kind: "token", token, until });
  if (said.kind === "token" && said.until > until) {
    if (keep(said.token, said.until)) answered?.();
  }
  if (said.kind === "out") forget();
});

function askOthers(): Promise<void> {
  if (!channel) return Promise.resolve();
  return new Promise((resolve) => {
    answered = resolve;
    channel.postMessage({ kind: "ask" });
    setTimeout(resolve, ASK_FOR);
  });
}

/** Runs alone in this browser, where that can be had. */
function alone<T>(run: () => Promise<T>): Promise<T> {
  return navigator.locks ? navigator.locks.request(LOCK, run) : run();
}

/** A token that is valid, from another tab or from the service. False: nobody is signed in. */
export function refresh(refused?: string): Promise<boolean> {
  refreshing ??= renewed(refused).finally(() => {
    refreshing = null;
  });
  return refreshing;
}

const fresh = (refused?: string) => token !== null && token !== refused && until - Date.now() > EARLY;

async function renewed(refused?: string): Promise<boolean> {
  await askOthers();
  if (fresh(refused)) return true;
  return alone(async () => {
    // While this tab waited another one may have refreshed.
    await askOthers();
    if (fresh(refused)) return true;
    for (let tries = 1; ; tries += 1) {
      const answer = await exchange();
      if (answer === "refused") forget();
      if (answer === "refused" || answer === "done") return answer === "done";
      // While the service does not answer nobody is signed out; a page that begins waits for it a little.
      if (state !== "starting" || tries === PATIENCE) break;
      await new Promise((resolve) => setTimeout(resolve, 500 * tries));
    }
    if (state === "starting") become(token ? "in" : "out");
    return false;
  });
}

async function exchange(): Promise<"done" | "refused" | "away"> {
  try {
    const response = await fetch(`${BASE}api/v1/auth/refresh`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    if (!response.ok) return response.status < 500 && response.status !== 429 ? "refused" : "away";
    const body = (await response.json()) as { token: string; expires_in: number };
    return accept(body.token, body.expires_in) ? "done" : "away";
  } catch {
    return "away";
  }
}

/** A token that the service has just given. False: the page is loaded again, for another person. */
export function accept(next: string, seconds: number): boolean {
  const ends = Date.now() + seconds * 1000;
  channel?.postMessage({ kind: "token", token: next, until: ends });
  return keep(next, ends);
}

function forget() {
  token = null;
  until = 0;
  clearTimeout(timer);
  become("out");
}

const leave = () =>
  fetch(`${BASE}api/v1/auth/logout`, { method: "POST", headers: { authorization: `Bearer ${token}` } }).then(
    ({ status }) => status,
    () => 0,
  );

/** False: the session goes on, and its cookie would sign the person in again. */
export async function signOut(): Promise<boolean> {
  let status = (await refresh()) ? await leave() : 0;
  if (status === 401 && token) status = (await refresh(token)) ? await leave() : 0;
  // What is refused with a new token, or can't be renewed, is over already.
  if (status !== 204 && status !== 401 && state !== "out") return false;
  forget();
  channel?.postMessage({ kind: "out" });
  return true;
}

/** As `fetch`, with the token; after 401 once more with a new one, and when there is none as soon as somebody has signed in. */
export async function authorized(input: Request): Promise<Response> {
  for (let attempt = 0; ; attempt += 1) {
    const used = token;
    const request = input.clone();
    if (used) request.headers.set("authorization", `Bearer ${used}`);
    const response = await fetch(request);
    if (response.status !== 401 || attempt >= 3) return response;
    if (await refresh(used ?? undefined)) continue;
    if (state !== "out") return response;
    await signedIn(input.signal);
  }
}

function signedIn(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = session.subscribe(() => {
      if (state !== "in") return;
      stop();
      resolve();
    });
    signal.addEventListener("abort", () => {
      stop();
      reject(signal.reason);
    });
  });
}
