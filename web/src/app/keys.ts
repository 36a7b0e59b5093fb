//! Keys of the whole page. Nothing happens while somebody types.

import { useEffect, useRef } from "react";

/** Whether a key belongs to what has the focus. */
export function typing(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  if (!element?.closest) return false;
  return element.isContentEditable || element.closest("input, textarea, select, [role=listbox], [role=menu], [role=dialog] [role=menu]") !== null;
}

const overlaid = () => document.querySelector("[role=dialog], [role=alertdialog], [role=menu], [role=listbox].menu") !== null;

/** `keys` maps what was pressed, such as `n`, `?` or `g s`, to what it does. */
export function useKeys(keys: Record<string, (() => void) | undefined>, active = true) {
  const now = useRef(keys);
  now.current = keys;
  useEffect(() => {
    if (!active) return;
    let before = "";
    let timer: ReturnType<typeof setTimeout> | undefined;
    const press = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented || typing(event.target) || overlaid()) return;
      const both = before ? `${before} ${event.key}` : event.key;
      const act = now.current[both] ?? now.current[event.key];
      clearTimeout(timer);
      before = event.key === "g" ? "g" : "";
      timer = setTimeout(() => {
        before = "";
      }, 1_000);
      if (!act) return;
      event.preventDefault();
      before = "";
      act();
    };
    addEventListener("keydown", press);
    return () => {
      removeEventListener("keydown", press);
      clearTimeout(timer);
    };
  }, [active]);
}
