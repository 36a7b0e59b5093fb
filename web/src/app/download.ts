//! Files that the service makes: fetched with the token, and given to the browser to save.

import { problem, raw } from "../api/client";
import { BASE } from "../api/session";
import { reason } from "./queries";
import { complain } from "./toasts";

/** Saves what an answer carries as a file. `path` begins after the address of the installation. */
export async function download(path: string, name: string) {
  try {
    const response = await raw(path);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await response.blob());
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch (error) {
    complain(reason(error));
  }
}

/** A sample that comes with the page. */
export async function sample(file: "sample.pdf" | "sample.okt"): Promise<Blob> {
  const response = await fetch(`${BASE}${file}`).catch(() => undefined);
  if (!response?.ok) throw problem(response, undefined);
  return response.blob();
}

/** A title as the name of a file. */
export const fileName = (title: string) => title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "okt";
