//! Words of the interface. The English text is the key; a test looks that German has each of them.

export type Language = "en" | "de";
export const LANGUAGES: Record<Language, string> = { en: "English", de: "Deutsch" };
const STORED = "okt-language";

function initial(): Language {
  try {
    const stored = localStorage.getItem(STORED);
    if (stored === "en" || stored === "de") return stored;
  } catch {
    // Storage can be off.
  }
  return navigator.language.toLowerCase().startsWith("de") ? "de" : "en";
}

export const language: Language = typeof navigator === "undefined" ? "en" : initial();
let words: Record<string, string> = {};
const plurals = new Intl.PluralRules(language);

export function setLanguage(next: Language) {
  try {
    localStorage.setItem(STORED, next);
  } catch {
    // Then until the next page.
  }
  location.reload();
}

type Values = Record<string, string | number>;

function fill(text: string, values?: Values): string {
  if (!values) return text;
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    return typeof value === "number" ? count(value) : value;
  });
}

/** Before the first page is drawn. */
export async function loadWords() {
  if (language === "de") words = (await import("./de")).de;
}

/** The text in the language of the reader, with `{name}` replaced. */
export function t(text: string, values?: Values): string {
  return fill(words[text] ?? text, values);
}

/** One or several. */
export function tn(n: number, one: string, many: string, values?: Values): string {
  return t(plurals.select(n) === "one" ? one : many, { n, ...values });
}

const numbers = new Intl.NumberFormat(language);
export const count = (n: number) => numbers.format(n);

const whole = new Intl.NumberFormat(language, { style: "currency", currency: "USD", maximumFractionDigits: 2 });
const fine = new Intl.NumberFormat(language, { style: "currency", currency: "USD", minimumFractionDigits: 2, maximumFractionDigits: 4 });
export const dollars = (usd: number) => (usd > 0 && usd < 1 ? fine : whole).format(usd);

export const percent = (share: number) =>
  new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 0 }).format(share);

const days = new Intl.DateTimeFormat(language, { dateStyle: "medium" });
const moments = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "long" });
const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });

export const day = (iso: string) => days.format(new Date(iso));
export const exactly = (iso: string) => moments.format(new Date(iso));

/** `5 min ago` for what is near, the day for what is not. */
export function ago(iso: string, now = Date.now()): string {
  const seconds = (new Date(iso).getTime() - now) / 1000;
  const abs = Math.abs(seconds);
  if (abs < 45) return relative.format(0, "second");
  if (abs < 3600) return relative.format(Math.round(seconds / 60), "minute");
  if (abs < 86400) return relative.format(Math.round(seconds / 3600), "hour");
  if (abs < 7 * 86400) return relative.format(Math.round(seconds / 86400), "day");
  return day(iso);
}

export function bytes(n: number): string {
  const units = ["B", "KB", "MB", "GB"];
  let value = n;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${new Intl.NumberFormat(language, { maximumFractionDigits: unit === 0 ? 0 : 1 }).format(value)} ${units[unit]}`;
}
