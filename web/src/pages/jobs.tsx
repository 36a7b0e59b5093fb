//! What runs, what waits and why, and what failed.

import { Link, useSearch } from "@tanstack/react-router";
import { ListTodo } from "lucide-react";
import { useMemo } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { isOver, useJobs } from "../app/events";
import { useAct, useCan, usePages, useRepo, useRepository } from "../app/queries";
import { say } from "../app/toasts";
import { EXACTLY } from "../app/links";
import { useTitle } from "../app/title";
import { Badge, waitingFor, When } from "../parts/badges";
import { Button } from "../parts/button";
import { LongList } from "../parts/list";
import { Empty } from "../parts/states";
import { count, dollars, t } from "../words";
import "./sources.css";
import "./jobs.css";

type Job = Schemas["Job"];
const STATES = ["running", "available", "scheduled", "retryable", "discarded", "cancelled", "completed"] as const;

const words = (): Record<Schemas["JobState"], string> => ({
  running: t("running"),
  available: t("waiting"),
  scheduled: t("for later"),
  retryable: t("tries again"),
  discarded: t("given up"),
  cancelled: t("cancelled"),
  completed: t("done"),
});

export function jobKind(kind: string): string {
  const kinds: Record<string, string> = {
    retrieve_source: t("Fetch and read a source"),
    source_decomposition: t("Find facts"),
    embed_facts: t("Make vectors of facts"),
    deduplicate_facts: t("Compare facts"),
    extract_concepts: t("Find concepts"),
    embed_concepts: t("Make vectors of concepts"),
    embed_passages: t("Make vectors of passages"),
    index_source: t("Make a source searchable"),
    annotate_report: t("Check a report"),
    check_contradictions: t("Look for contradictions"),
    refine_concepts: t("Look for concepts that are one"),
    summarize_concepts: t("Summarize concepts"),
    synthesize_concept: t("Write a definition"),
    refresh_concept_relations: t("Count relations"),
  };
  return kinds[kind] ?? kind.replaceAll("_", " ");
}

export default function Jobs() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Jobs"), repository?.name);
  const search = useSearch({ from: "/r/$slug/jobs" });
  const state = STATES.find((one) => one === search.state);
  const can = useCan();
  const live = useJobs();
  const names = words();
  const listed = usePages<Job>(["jobs", repoID, state ?? ""], (cursor, signal) => ok(api.GET(`${R}/jobs`, { params: { path: { repoID }, query: { state, cursor, limit: 100 } }, signal })));
  // What the stream says is newer than the list.
  const rows = useMemo(() => {
    const known = new Set(listed.rows.map((job) => job.id));
    const fresh = [...live.values()].filter((job) => !known.has(job.id)).toReversed();
    const all = [...fresh, ...listed.rows.map((job) => live.get(job.id) ?? job)];
    return state ? all.filter((job) => job.state === state) : all;
  }, [listed.rows, live, state]);
  const cancel = useAct((id: string) => ok(api.POST(`${R}/jobs/{jobID}/cancel`, { params: { path: { repoID, jobID: id } } })), { done: () => say(t("Cancelled")) });
  const retry = useAct((id: string) => ok(api.POST(`${R}/jobs/{jobID}/retry`, { params: { path: { repoID, jobID: id } } })), { stale: [["jobs", repoID]], done: () => say(t("Tried again")) });
  return (
    <div className="page">
      <header>
        <h1>{t("Jobs")}</h1>
      </header>
      <nav className="tablist" aria-label={t("State")}>
        <Link to="/r/$slug/jobs" params={{ slug: repoID }} search={{ state: undefined }} className="tab" aria-current={state ? undefined : "page"} activeOptions={EXACTLY}>
          {t("All")}
        </Link>
        {STATES.map((one) => (
          <Link key={one} to="/r/$slug/jobs" params={{ slug: repoID }} search={{ state: one }} className="tab" aria-current={one === state ? "page" : undefined} activeOptions={EXACTLY}>
            {names[one]}
          </Link>
        ))}
      </nav>
      <LongList
        pages={{ ...listed, rows }}
        id={(job) => job.id}
        label={t("Jobs")}
        height={66}
        empty={<Empty icon={<ListTodo aria-hidden />} title={t("No such jobs")}>{t("Finished jobs are kept for a day, failed ones for a week.")}</Empty>}
        row={(job) => (
          <article className="item">
            <div className="row nowrap">
              <p className="grow break">
                {job.source_id ? (
                  <Link to="/r/$slug/sources/$id" params={{ slug: repoID, id: job.source_id }} className="item-main" data-main>
                    {jobKind(job.kind)}
                  </Link>
                ) : job.report_id ? (
                  <Link to="/r/$slug/reports/$id" params={{ slug: repoID, id: job.report_id }} className="item-main" data-main>
                    {jobKind(job.kind)}
                  </Link>
                ) : (
                  jobKind(job.kind)
                )}
              </p>
              {can("job:cancel") && !isOver(job) && (
                <Button small onPress={() => cancel.mutate(job.id)}>
                  {t("Cancel")}
                </Button>
              )}
              {can("job:cancel") && ["discarded", "cancelled", "retryable"].includes(job.state) && (
                <Button small onPress={() => retry.mutate(job.id)}>
                  {t("Try again")}
                </Button>
              )}
            </div>
            <div className="item-more">
              <Badge tone={job.state === "running" ? "accent" : job.state === "discarded" ? "wrong" : job.state === "completed" ? "good" : job.state === "retryable" ? "warn" : "plain"}>{names[job.state]}</Badge>
              {job.waiting_for && !isOver(job) && <Badge tone="warn">{waitingFor(job.waiting_for)}</Badge>}
              {job.progress && !isOver(job) && (
                <span>
                  {job.progress.stage.replaceAll("_", " ")} {job.progress.total ? `${count(job.progress.done)}/${count(job.progress.total)}` : ""} {job.progress.message}
                </span>
              )}
              {job.attempt > 1 && <span>{t("attempt {n} of {most}", { n: job.attempt, most: job.max_attempts })}</span>}
              {job.cost.usd > 0 && <span>{dollars(job.cost.usd)}</span>}
              <When at={job.finished_at ?? job.started_at ?? job.created_at} />
            </div>
            {job.errors.length > 0 && job.state !== "completed" && <p className="small job-error break">{job.errors.at(-1)?.message}</p>}
          </article>
        )}
      />
    </div>
  );
}
