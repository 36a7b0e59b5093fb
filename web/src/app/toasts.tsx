//! Short news at the lower edge: what was done, with the way back where there is one.

import { useSyncExternalStore } from "react";
import { Button } from "../parts/button";
import { t } from "../words";

type Toast = { id: number; text: string; wrong: boolean; undo?: () => void | Promise<unknown> };

let toasts: Toast[] = [];
let next = 1;
const listeners = new Set<() => void>();

function change(to: Toast[]) {
  toasts = to;
  for (const listener of listeners) listener();
}

export function dismiss(id: number) {
  change(toasts.filter((toast) => toast.id !== id));
}

/** `undo` shows a button for as long as the toast stays. */
export function say(text: string, undo?: Toast["undo"]) {
  const id = next++;
  change([...toasts.slice(-2), { id, text, wrong: false, undo }]);
  setTimeout(() => dismiss(id), undo ? 12_000 : 5_000);
}

export function complain(text: string) {
  const id = next++;
  change([...toasts.slice(-2), { id, text, wrong: true }]);
  setTimeout(() => dismiss(id), 10_000);
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.id} className={toast.wrong ? "toast wrong" : "toast"}>
          <span className="grow">{toast.text}</span>
          {toast.undo && (
            <Button
              small
              onPress={() => {
                dismiss(toast.id);
                // Whoever undoes says when that fails.
                void Promise.resolve(toast.undo?.()).catch(() => {});
              }}
            >
              {t("Undo")}
            </Button>
          )}
          <Button small quiet onPress={() => dismiss(toast.id)} aria-label={t("Close")}>
            ×
          </Button>
        </div>
      ))}
    </div>
  );
}
