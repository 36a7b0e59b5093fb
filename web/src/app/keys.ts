//! Keys of the whole page. Nothing happens while somebody types.

import { useLayoutEffect, useRef } from "react";

/** Whether a key belongs to what has the focus. */
export function typing(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  if (!element?.closest) return false;
  return element.isContentEditable || element.closest("input, textarea, select, [role=listbox], [role=menu], [role=dialog] [role=menu]") !== null;
}

const overlaid = () => document.querySelector("[role=dialog], [role=alertdialog], [role=menu], [role=listbox].menu") !== null;

/** How long after `g` the second key may come. */
const PAIR = 1_000;

/** `keys` maps what was pressed, such as `n`, `?` or `g s`, to what it does. */
export function useKeys(keys: Record<string, (() => void) | undefined>, active = true) {
  const now = useRef(keys);
  now.current = keys;
  // Whoever sees the page can use its keys.
  useLayoutEffect(() => {
    if (!active) return;
    let begun = Number.NEGATIVE_INFINITY;
    const press = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented || typing(event.target) || overlaid()) return;
      // By when they were pressed: a busy page may hear of them late.
      const second = event.timeStamp - begun < PAIR;
      const act = now.current[second ? `g ${event.key}` : event.key];
      begun = event.key === "g" && !second ? event.timeStamp : Number.NEGATIVE_INFINITY;
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [active]);
}
