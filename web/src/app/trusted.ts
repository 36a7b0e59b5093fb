//! The one policy of this page for strings that become scripts: our own worker files and nothing else.

import { BASE } from "../api/session";

type Factory = { createPolicy(name: string, rules: { createScriptURL: (address: string) => string }): { createScriptURL(address: string): unknown } };

function checked(address: string): string {
  const url = new URL(address, BASE);
  const base = new URL(BASE);
  const ours = url.origin === base.origin && (import.meta.env.DEV || (url.pathname.startsWith(`${base.pathname}assets/`) && /\/(pdf\.worker|layout)[^/]*\.m?js$/.test(url.pathname)));
  if (!ours) throw new TypeError(`${address} is no script of ours`);
  return url.href;
}

const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;
const policy = factory?.createPolicy("okt", { createScriptURL: checked });

/** An address that a worker may be started from. */
export const scriptUrl = (address: string): unknown => (policy ? policy.createScriptURL(address) : checked(address));
