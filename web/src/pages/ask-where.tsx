//! Where a piece of evidence stands, and the way there.

import { Link, type useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Schemas } from "../api/client";
import { useRepo } from "../app/queries";
import { t } from "../words";

type Evidence = Schemas["AnswerEvidence"];

const inSource = (slug: string, fact: Evidence, id: string) => ({ to: "/r/$slug/sources/$id" as const, params: { slug, id }, search: { fact: fact.id ?? undefined, page: fact.source?.page ?? undefined } });
const ofFact = (slug: string, id: string) => ({ to: "/r/$slug/facts/$id" as const, params: { slug, id } });

/** A link to the words in their source. Where that was deleted: to the fact, if others make it as well. */
export function Where({ fact, children, ...rest }: { fact: Evidence; children: ReactNode; className?: string; "aria-label"?: string }) {
  const slug = useRepo();
  if (fact.source) return <Link {...inSource(slug, fact, fact.source.id)} {...rest}>{children}</Link>;
  if (fact.id && fact.text) return <Link {...ofFact(slug, fact.id)} {...rest}>{children}</Link>;
  return <span className={rest.className}>{children}</span>;
}

/** The same for a key. */
export function goTo(navigate: ReturnType<typeof useNavigate>, slug: string, fact: Evidence) {
  if (fact.source) void navigate(inSource(slug, fact, fact.source.id));
  else if (fact.id && fact.text) void navigate(ofFact(slug, fact.id));
}

/** What it says; when its source was deleted its words went as well. */
export const wordsOf = (fact: Evidence) => fact.text || t("Its source was deleted, and its words with it.");

/** What a screen reader calls it: of a passage the beginning. */
export function nameOf(fact: Evidence): string {
  const words = wordsOf(fact);
  return words.length > 300 ? `${words.slice(0, 299)}…` : words;
}

/** Title, year and page. */
export function sourceLine({ source }: Evidence): string {
  if (!source) return t("deleted source");
  return [source.title ?? t("without a title"), source.year, source.page ? t("p. {n}", { n: source.page }) : null].filter(Boolean).join(", ");
}
