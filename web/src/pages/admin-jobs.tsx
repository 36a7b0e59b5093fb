//! Jobs of all repositories.

import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { ListTodo } from "lucide-react";
import { api, ok, type Schemas } from "../api/client";
import { isOver } from "../app/events";
import { EXACTLY } from "../app/links";
import { usePages, useRepositories } from "../app/queries";
import { useTitle } from "../app/title";
import { Badge, waitingFor, When } from "../parts/badges";
import { Select } from "../parts/form";
import { LongList } from "../parts/list";
import { Empty } from "../parts/states";
import { dollars, t } from "../words";
import { AdminShell } from "./admin-shell";
import { JOB_STATES, jobKind, jobStates } from "./job-words";
import "./jobs.css";

type Job = Schemas["Job"];

export default function AdminJobs() {
  useTitle(t("Jobs"), t("Installation"));
  const search = useSearch({ from: "/admin/jobs" });
  const navigate = useNavigate({ from: "/admin/jobs" });
  const state = JOB_STATES.find((one) => one === search.state);
  const names = jobStates();
  const repositories = useRepositories();
  const pages = usePages<Job>(["all-jobs", state ?? "", search.kind ?? ""], (cursor, signal) => ok(api.GET("/api/v1/jobs", { params: { query: { state, kind: search.kind, cursor, limit: 100 } }, signal })), { keep: true, refetchInterval: 10_000 });
  const kinds = [...new Set([...(search.kind ? [search.kind] : []), ...pages.rows.map((job) => job.kind)])].sort();
  const repository = (id: string | null | undefined) => repositories.data?.data.find((one) => one.id === id);
  return (
    <AdminShell>
      <nav className="tablist" aria-label={t("State")}>
        <Link to="/admin/jobs" search={{ state: undefined, kind: search.kind }} className="tab" aria-current={state ? undefined : "page"} activeOptions={EXACTLY}>
          {t("All")}
        </Link>
        {JOB_STATES.map((one) => (
          <Link key={one} to="/admin/jobs" search={{ state: one, kind: search.kind }} className="tab" aria-current={one === state ? "page" : undefined} activeOptions={EXACTLY}>
            {names[one]}
          </Link>
        ))}
      </nav>
      <div className="bar">
        <Select small hideLabel label={t("Kind")} value={search.kind ?? ""} onChange={(kind) => void navigate({ search: (old) => ({ ...old, kind: kind || undefined }), replace: true })} options={[["", t("All kinds")], ...kinds.map((kind) => [kind, jobKind(kind)] as const)]} />
      </div>
      <LongList
        pages={pages}
        id={(job) => job.id}
        label={t("Jobs")}
        height={66}
        empty={<Empty icon={<ListTodo aria-hidden />} title={t("No such jobs")}>{t("Finished jobs are kept for a day, failed ones for a week.")}</Empty>}
        row={(job) => {
          const where = repository(job.repository_id);
          return (
            <article className="item">
              <p className="break">{jobKind(job.kind)}</p>
              <div className="item-more">
                <Badge tone={job.state === "running" ? "accent" : job.state === "discarded" ? "wrong" : job.state === "completed" ? "good" : job.state === "retryable" ? "warn" : "plain"}>{names[job.state]}</Badge>
                {job.waiting_for && !isOver(job) && <Badge tone="warn">{waitingFor(job.waiting_for)}</Badge>}
                {where ? (
                  <Link to="/r/$slug/jobs" params={{ slug: where.slug }} data-main>
                    {where.name}
                  </Link>
                ) : (
                  <span>{job.repository_id ? job.repository_id.slice(0, 8) : t("of the installation")}</span>
                )}
                {job.attempt > 1 && <span>{t("attempt {n} of {most}", { n: job.attempt, most: job.max_attempts })}</span>}
                {job.cost.usd > 0 && <span>{dollars(job.cost.usd)}</span>}
                <When at={job.finished_at ?? job.started_at ?? job.created_at} />
              </div>
              {job.errors.length > 0 && job.state !== "completed" && <p className="small job-error break">{job.errors.at(-1)?.message}</p>}
            </article>
          );
        }}
      />
    </AdminShell>
  );
}
