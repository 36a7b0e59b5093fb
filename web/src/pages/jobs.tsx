//! What runs, what waits and why, and what failed.

import { Link, useSearch } from "@tanstack/react-router";
import { ListTodo } from "lucide-react";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
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
import { count, dollars, t, tn } from "../words";
import { JOB_STATES, jobKind, jobStates, likeness, stageWord } from "./job-words";
import "./sources.css";
import "./jobs.css";

type Job = Schemas["Job"];
export default function Jobs() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Jobs"), repository?.name);
  const search = useSearch({ from: "/r/$slug/jobs" });
  const state = JOB_STATES.find((one) => one === search.state);
  const can = useCan();
  const live = useJobs();
  const names = jobStates();
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
      <Idle />
      <nav className="tablist" aria-label={t("State")}>
        <Link to="/r/$slug/jobs" params={{ slug: repoID }} search={{ state: undefined }} className="tab" aria-current={state ? undefined : "page"} activeOptions={EXACTLY}>
          {t("All")}
        </Link>
        {JOB_STATES.map((one) => (
          <Link key={one} to="/r/$slug/jobs" params={{ slug: repoID }} search={{ state: one }} className="tab" aria-current={one === state ? "page" : undefined} activeOptions={EXACTLY}>
            {names[one]}
          </Link>
        ))}
      </nav>
      {state === "discarded" && <Alike jobs={rows} again={can("job:cancel") ? (id) => retry.mutateAsync(id) : undefined} />}
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
                  {stageWord(job.progress.stage)} {job.progress.total ? `${count(job.progress.done)}/${count(job.progress.total)}` : ""} {job.progress.message}
                </span>
              )}
              {job.attempt > 1 && <span>{t("attempt {n} of {most}", { n: job.attempt, most: job.max_attempts })}</span>}
              {job.cost.usd > 0 && <span>{dollars(job.cost.usd)}</span>}
              <When at={job.finished_at ?? job.started_at ?? job.created_at} />
            </div>
            {notGiven(job) && <p className="small soft break">{t("Not given: {why}", { why: notGiven(job) ?? "" })}</p>}
            {job.errors.length > 0 && job.state !== "completed" && <p className="small job-error break">{job.errors.at(-1)?.message}</p>}
          </article>
        )}
      />
    </div>
  );
}

/** Why the job of a contribution gave nothing, although nothing failed. */
function notGiven(job: Job): string | undefined {
  const output = job.output as { pushed?: boolean; reason?: string } | null | undefined;
  return job.kind === "contribute_source" && output?.pushed === false ? output.reason : undefined;
}

/** Kinds of jobs that wait and that no process runs. */
function Idle() {
  const repoID = useRepo();
  const { data } = useQuery({ queryKey: ["job-stats", repoID], refetchInterval: 30_000, queryFn: ({ signal }) => ok(api.GET(`${R}/jobs/stats`, { params: { path: { repoID } }, signal })) });
  const idle = data?.data.filter((one) => one.workers === 0 && one.available > 0) ?? [];
  if (idle.length === 0) return null;
  return (
    <p className="note warn jobs-idle">
      {t("No worker runs: {names}. They wait until the operator starts one.", { names: idle.map((one) => jobKind(one.kind)).join(", ") })}
    </p>
  );
}

/** Failures of one cause together. */
function Alike({ jobs, again }: { jobs: Job[]; again?: (id: string) => Promise<unknown> }) {
  const groups = new Map<string, Job[]>();
  for (const job of jobs) {
    const key = `${job.kind} ${likeness(job.errors.at(-1)?.message ?? "")}`;
    groups.set(key, [...(groups.get(key) ?? []), job]);
  }
  const several = [...groups.values()].filter((group) => group.length > 1).sort((a, b) => b.length - a.length);
  const [busy, setBusy] = useState(false);
  if (several.length === 0) return null;
  const all = async (group: Job[]) => {
    setBusy(true);
    // One after the other: a failure is told, and ends it.
    try {
      for (const job of group) await again?.(job.id);
    } catch {
      // It was told.
    }
    setBusy(false);
  };
  return (
    <section className="card stack tight jobs-alike" aria-label={t("Of one cause")}>
      <h2>{t("Of one cause")}</h2>
      <ul className="stack tight">
        {several.map((group) => {
          const first = group[0] as Job;
          return (
            <li key={first.id} className="row">
              <span className="grow break">
                <strong>{tn(group.length, "{n} job", "{n} jobs")}</strong> {jobKind(first.kind)} <span className="small job-error">{first.errors.at(-1)?.message}</span>
              </span>
              {again && (
                <Button small onPress={() => void all(group)} busy={busy}>
                  {t("Try all again")}
                </Button>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
