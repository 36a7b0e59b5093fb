//! Scripts of pages and parts, loaded when they are wanted.

import { BASE } from "../api/session";

const PAUSE = 2_000;
/** Of one script: else one that loads would let another one that never does load the page again for ever. */
const reloaded = (load: () => unknown) => `okt-reloaded ${load}`;

/**
 * While the service is away, this waits for it: loading the page again would lose what is on it. What is gone although the
 * service answers was replaced by an update; then the page is loaded again, once.
 */
export async function script<T>(load: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      const loaded = await load();
      forget(load);
      return loaded;
    } catch {
      if (await answers()) break;
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }
  // It may have come back in between.
  return load().catch((error: unknown) => {
    reloadOnce(load);
    throw error;
  });
}

// What loads scripts takes a style for loaded that is in the page, although it failed; without this a page that was opened
// while the service was away would never be styled.
document.addEventListener("error", ({ target }) => target instanceof HTMLLinkElement && target.remove(), true);

const answers = () => fetch(`${BASE}healthz`).then((answer) => answer.ok, () => false);

/** After the next update the page may be loaded again once more. */
function forget(load: () => unknown) {
  try {
    sessionStorage.removeItem(reloaded(load));
  } catch {
    // Then there is nothing to forget.
  }
}

function reloadOnce(load: () => unknown) {
  try {
    if (sessionStorage.getItem(reloaded(load))) return;
    sessionStorage.setItem(reloaded(load), "1");
    location.reload();
  } catch {
    // Without storage nobody knows whether it was done already.
  }
}
