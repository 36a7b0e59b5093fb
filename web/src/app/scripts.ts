//! Scripts of pages and parts, loaded when they are wanted.

import { BASE } from "../api/session";

const PAUSE = 2_000;
const RELOADED = "okt-reloaded";

/**
 * While the service is away, this waits for it: loading the page again would lose what is on it. What is gone although the
 * service answers was replaced by an update; then the page is loaded again, once.
 */
export async function script<T>(load: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await load();
    } catch {
      if (await answers()) break;
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }
  // It may have come back in between.
  return load().catch((error: unknown) => {
    reloadOnce();
    throw error;
  });
}

// What loads scripts takes a style for loaded that is in the page, although it failed; without this a page that was opened
// while the service was away would never be styled.
document.addEventListener("error", ({ target }) => target instanceof HTMLLinkElement && target.remove(), true);

const answers = () => fetch(`${BASE}healthz`).then((answer) => answer.ok, () => false);

function reloadOnce() {
  try {
    if (sessionStorage.getItem(RELOADED) === location.href) return;
    sessionStorage.setItem(RELOADED, location.href);
    location.reload();
  } catch {
    // Without storage nobody knows whether it was done already.
  }
}
