import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Schemas } from "../api/client";
import { useRepo } from "../app/queries";
import { tn } from "../words";
import { FactMarks, When } from "./badges";

type Row = Schemas["FactSummary"];

/** A fact in a list. */
export function FactRow({ fact, more, end }: { fact: Row; more?: ReactNode; end?: ReactNode }) {
  const slug = useRepo();
  return (
    <article className="item">
      <Link to="/r/$slug/facts/$id" params={{ slug, id: fact.id }} className="item-main serif" data-main>
        {fact.text}
      </Link>
      <div className="item-more">
        <FactMarks fact={fact} />
        {fact.source_count > 0 && <span>{tn(fact.source_count, "{n} source", "{n} sources")}</span>}
        <When at={fact.created_at} />
        {more}
        {end}
      </div>
    </article>
  );
}

export const sourceTitle = (source: { parsed_title?: string | null; file_name?: string | null; doi?: string | null; url?: string | null }) =>
  source.parsed_title || source.file_name || source.doi || source.url || "—";
