//! Sums of what models were used for: of a repository, or of the whole installation.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { Button } from "../parts/button";
import { Bars } from "../parts/chart";
import { sourceTitle } from "../parts/fact";
import { Select } from "../parts/form";
import { Empty, Failure, Skeleton } from "../parts/states";
import { Table } from "../parts/table";
import { count, day, dollars, t, tn } from "../words";
import "../parts/list.css";

type Group = Schemas["UsageGroup"];
type Row = Schemas["UsageRow"];
export type UsageSearch = { by?: string; days?: string };
type Query = { group_by: Group; from: string; to: string };

const GROUPS = ["day", "model", "operation", "source"] as const;
const SPANS = ["7", "30", "90", "365"] as const;
/** Rows that are shown at first. */
const SHOWN = 50;
const DAY = 86_400_000;
const iso = (at: number) => new Date(at).toISOString().slice(0, 10);

export function operationName(key: string): string {
  const names: Record<string, string> = {
    fact_extraction: t("Finding facts"),
    image_fact_extraction: t("Finding facts in pictures"),
    concept_extraction: t("Finding concepts"),
    fact_comparison: t("Comparing facts"),
    concept_refinement: t("Comparing concepts"),
    concept_summary: t("Summarizing concepts"),
    concept_synthesis: t("Writing definitions"),
    image_picking: t("Choosing pictures"),
    posture_classification: t("Checking reports"),
    fact_embedding: t("Vectors of facts"),
    concept_embedding: t("Vectors of concepts"),
    passage_embedding: t("Vectors of passages"),
    sentence_embedding: t("Vectors of reports"),
    question_embedding: t("Vectors of questions"),
    question_reranking: t("Ranking of hits"),
    evidence_scoring: t("Choosing evidence"),
    answer_writing: t("Writing answers"),
    answer_repair: t("Mending answers"),
  };
  return names[key] ?? key.replaceAll("_", " ");
}

function SourceName({ repoID, id }: { repoID: string; id: string }) {
  const { data } = useQuery({
    queryKey: ["source", repoID, id],
    retry: false,
    staleTime: 300_000,
    queryFn: ({ signal }) => ok(api.GET(`${R}/sources/{sourceID}`, { params: { path: { repoID, sourceID: id }, query: { include: "" } }, signal })),
  });
  return (
    <Link to="/r/$slug/sources/$id" params={{ slug: repoID, id }}>
      {data ? sourceTitle(data) : id.slice(0, 8)}
    </Link>
  );
}

/** Every day, also those on which nothing was spent. */
function everyDay(rows: Row[], from: string, to: string): { key: string; name: string; value: number }[] {
  const known = new Map(rows.map((row) => [row.key, row.usd]));
  const days = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += DAY) days.push({ key: iso(at), name: day(`${iso(at)}T12:00:00Z`), value: known.get(iso(at)) ?? 0 });
  return days;
}

export function Usage({ search, change, scope, read }: { search: UsageSearch; change: (next: UsageSearch) => void; scope: string; read: (query: Query, signal: AbortSignal) => Promise<Schemas["AiUsage"]> }) {
  const group = GROUPS.find((one) => one === search.by && (one !== "source" || scope !== "")) ?? "day";
  const days = SPANS.find((one) => one === search.days) ?? "30";
  const [all, setAll] = useState(false);
  const to = iso(Date.now());
  const from = iso(Date.now() - (Number(days) - 1) * DAY);
  const usage = useQuery({ queryKey: ["usage", scope, group, from, to], placeholderData: keepPreviousData, queryFn: ({ signal }) => read({ group_by: group, from, to }, signal) });
  const groups: Record<Group, string> = { day: t("By day"), model: t("By model"), operation: t("By task"), source: t("By source") };
  const spans: Record<string, string> = { "7": t("7 days"), "30": t("30 days"), "90": t("90 days"), "365": t("A year") };
  const firstColumn: Record<Group, string> = { day: t("Day"), model: t("Model"), operation: t("Task"), source: t("Source") };
  const shownGroup = usage.data?.group_by ?? group;
  const name = (row: Row): ReactNode => {
    if (shownGroup === "day") return day(`${row.key}T12:00:00Z`);
    if (shownGroup === "operation") return operationName(row.key);
    if (shownGroup === "source" && scope) return <SourceName repoID={scope} id={row.key} />;
    return row.key;
  };
  const rows = usage.data?.data ?? [];
  const saved = usage.data?.saved;
  // What costs nothing is no bar.
  const paid = (usage.data?.total.usd ?? 0) > 0;
  const cells = (row: Row): ReactNode[] => [dollars(row.usd), count(row.calls), count(row.tokens_in), count(row.tokens_out), `${count(Math.round(row.latency_ms))} ms`, count(row.retries)];
  return (
    <section className="stack tight" aria-label={t("Spent on models")}>
      <div className="bar">
        <h2 className="grow">{t("Spent on models")}</h2>
        <Select small hideLabel label={t("Time")} value={days} onChange={(next) => change({ days: next === "30" ? undefined : next })} options={SPANS.map((one) => [one, spans[one] ?? one] as const)} />
        <Select small hideLabel label={t("Summed up")} value={group} onChange={(next) => change({ by: next === "day" ? undefined : next })} options={GROUPS.filter((one) => one !== "source" || scope !== "").map((one) => [one, groups[one]] as const)} />
      </div>
      {usage.isPending ? (
        <Skeleton rows={4} height={40} />
      ) : usage.error && !usage.data ? (
        <Failure error={usage.error} retry={() => void usage.refetch()} />
      ) : rows.length === 0 && !saved?.sources ? (
        <Empty title={t("No model was asked in this time")}>{t("What models do, and what it costs, is summed up here.")}</Empty>
      ) : (
        <div className="card stack">
          {saved && saved.sources > 0 && (
            <p className="note good">
              {tn(saved.sources, "{n} source was taken from a registry instead of read.", "{n} sources were taken from a registry instead of read.")} {t("That saved {calls} calls, {tokens} tokens and about {usd}.", { calls: saved.calls, tokens: saved.tokens_in + saved.tokens_out, usd: dollars(saved.usd) })}
            </p>
          )}
          {shownGroup === "day" && paid && <Bars data={everyDay(rows, usage.data.from, usage.data.to)} said={dollars} />}
          <Table
            label={t("Spent on models")}
            head={[firstColumn[shownGroup], { text: t("Cost"), number: true }, { text: t("Calls"), number: true }, { text: t("Tokens in"), number: true }, { text: t("Tokens out"), number: true }, { text: t("Mean time"), number: true }, { text: t("Tried again"), number: true }]}
            rows={[
              { key: "total", cells: [<strong key="n">{t("All together")}</strong>, ...cells(usage.data.total)] },
              ...(shownGroup === "day" ? rows.toReversed() : rows).slice(0, all ? undefined : SHOWN).map((row) => ({ key: row.key, cells: [name(row), ...cells(row)] })),
            ]}
          />
          {rows.length > SHOWN && !all && (
            <div>
              <Button small onPress={() => setAll(true)}>
                {t("Show all {n}", { n: rows.length })}
              </Button>
            </div>
          )}
        </div>
      )}
    </section>
  );
}
