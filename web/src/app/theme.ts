//! Light, dark, or as the system is.

export type Theme = "system" | "light" | "dark";
const STORED = "okt-theme";

export function theme(): Theme {
  try {
    const stored = localStorage.getItem(STORED);
    if (stored === "light" || stored === "dark") return stored;
  } catch {
    // Storage can be off.
  }
  return "system";
}

export function setTheme(next: Theme) {
  try {
    if (next === "system") localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, next);
  } catch {
    // Then until the next page.
  }
  applyTheme(next);
}

export function applyTheme(next = theme()) {
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
}
