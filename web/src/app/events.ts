//! Live jobs of a repository: one stream for all tabs of this browser.
//!
//! The tab that holds the lock reads the stream and tells the others. Browsers allow few connections to one host, so a
//! stream for each tab would leave none for the pages.

import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { ApiError, api, ok, R, raw, type Schemas } from "../api/client";
import { session } from "../api/session";
import { listen, pause } from "./stream";

export type Job = Schemas["Job"];
/** `polled`: the service has no room for a stream, and is asked now and then. `away`: it does not answer. */
export type Line = "live" | "polled" | "away";
type News = { repo: string } & ({ job: Job; at: string } | { health: string } | { line: Line });
/** A tab that has just been opened asks for what was told before, and is answered alone. */
type Said = News & { to?: string } | { repo: string; opened: string };

const POLL = 15_000;
/** The longest pause between two tries. */
const PATIENCE = 10_000;
const FINAL = new Set(["completed", "cancelled", "discarded"]);
/** What a list shows otherwise when a job of this kind is over. */
const CHANGES: Record<string, string> = { deduplicate_facts: "contradictions", check_contradictions: "contradictions", pull_all_from_registry: "sources", extract_concepts: "concepts", refine_concepts: "concepts", refresh_concept_relations: "concepts" };
/** Finished jobs are shown for a while. */
const KEPT = 200;

let jobs: ReadonlyMap<string, Job> = new Map();
let line: Line = "live";
/** The id of the last event: whichever tab reads the stream next goes on there. */
let last = "";
const listeners = new Set<() => void>();
function tell() {
  for (const listener of listeners) listener();
}
const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export const isOver = (job: Job) => FINAL.has(job.state);

/** All jobs that are known of, by their ids. */
export const useJobs = () => useSyncExternalStore(subscribe, () => jobs);
/** Whether news comes as it happens. */
export const useLine = () => useSyncExternalStore(subscribe, () => line);

function setLine(client: QueryClient, next: Line) {
  if (line === next) return;
  // What a page asked for meanwhile has failed, and nobody should have to press a button for it.
  if (line === "away") void client.invalidateQueries();
  line = next;
  tell();
}

function take(client: QueryClient, repo: string, job: Job) {
  const next = new Map(jobs);
  next.delete(job.id);
  next.set(job.id, job);
  while (next.size > KEPT) next.delete(next.keys().next().value as string);
  jobs = next;
  tell();
  const { source_id: source } = job;
  if (source) later(`${repo}/${source}`, () => void refreshSource(client, repo, source));
  const changed = isOver(job) ? CHANGES[job.kind] : undefined;
  if (changed) later(`${repo} ${changed}`, () => void client.invalidateQueries({ queryKey: [changed, repo] }));
  if (job.report_id && isOver(job)) {
    void client.invalidateQueries({ queryKey: ["report", repo, job.report_id] });
    void client.invalidateQueries({ queryKey: ["reports", repo] });
  }
}

const waiting = new Map<string, ReturnType<typeof setTimeout>>();

/** Once for several things that happen together. */
function later(key: string, act: () => void) {
  if (waiting.has(key)) return;
  waiting.set(
    key,
    setTimeout(() => {
      waiting.delete(key);
      act();
    }, 300),
  );
}

/** Changes the rows where a source is shown. */
async function refreshSource(client: QueryClient, repo: string, source: string) {
  let row: Schemas["Source"];
  try {
    row = await ok(api.GET(`${R}/sources/{sourceID}`, { params: { path: { repoID: repo, sourceID: source }, query: { include: "" } } }));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) void client.invalidateQueries({ queryKey: ["sources", repo] });
    return;
  }
  let known = false;
  client.setQueriesData<{ pages: { data: Schemas["SourceSummary"][] }[] }>({ queryKey: ["sources", repo] }, (old) => {
    if (!old) return old;
    const pages = old.pages.map((page) => {
      if (!page.data.some((one) => one.id === source)) return page;
      known = true;
      return { ...page, data: page.data.map((one) => (one.id === source ? { ...one, ...row } : one)) };
    });
    return { ...old, pages };
  });
  const before = client.getQueryData<Schemas["Source"]>(["source", repo, source]);
  client.setQueryData(["source", repo, source], row);
  if (!known) void client.invalidateQueries({ queryKey: ["sources", repo] });
  if (before && (before.fact_count !== row.fact_count || before.status !== row.status)) {
    void client.invalidateQueries({ queryKey: ["source-facts", repo, source] });
    void client.invalidateQueries({ queryKey: ["source-page", repo, source] });
  }
  if (row.status === "processed") {
    void client.invalidateQueries({ queryKey: ["facts", repo] });
    void client.invalidateQueries({ queryKey: ["repository", repo] });
  }
}

/** Follows the jobs of a repository for as long as the page is shown. */
export function useEvents(repo: string) {
  const client = useQueryClient();
  useEffect(() => {
    if (!repo) return;
    const stop = new AbortController();
    const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("okt-events") : null;
    const me = Math.random().toString(36);
    let leads = false;
    const hear = (news: News) => {
      if ("job" in news) {
        last = news.at || last;
        take(client, repo, news.job);
      } else if ("line" in news) setLine(client, news.line);
      else void client.invalidateQueries({ queryKey: ["report", repo, news.health] });
    };
    channel?.addEventListener("message", ({ data }: MessageEvent<Said>) => {
      if (data.repo !== repo) return;
      if (!("opened" in data)) return (data.to ?? me) === me ? hear(data) : undefined;
      if (!leads) return;
      const tell = (news: News) => channel.postMessage({ ...news, to: data.opened });
      for (const job of jobs.values()) if (!isOver(job)) tell({ repo, job, at: last });
      tell({ repo, line });
    });
    channel?.postMessage({ repo, opened: me } satisfies Said);
    const spread = (news: News) => {
      hear(news);
      channel?.postMessage(news);
    };
    const lead = () => {
      leads = true;
      return follow(repo, spread, stop.signal);
    };
    if (navigator.locks) {
      navigator.locks.request(`okt-events:${repo}`, { signal: stop.signal }, lead).catch(() => {});
    } else void lead();
    return () => {
      stop.abort();
      channel?.close();
      jobs = new Map();
      last = "";
    };
  }, [repo, client]);
}

async function follow(repo: string, spread: (news: News) => void, signal: AbortSignal) {
  let failures = 0;
  while (!signal.aborted) {
    try {
      if (session.state() === "out") throw new Error("signed out");
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (last) headers["last-event-id"] = last;
      await listen(
        (ends) => raw(`api/v1/repositories/${repo}/events`, { headers, signal: ends }),
        signal,
        () => {
          spread({ repo, line: "live" });
          failures = 0;
        },
        (event) => {
          if (event.id) last = event.id;
          if (!event.data) return;
          if (event.event === "job") spread({ repo, job: JSON.parse(event.data) as Job, at: last });
          if (event.event === "report.health_changed") spread({ repo, health: (JSON.parse(event.data) as { report_id: string }).report_id });
        },
      );
      // An answer that ends at once must not be asked for without a pause.
      await pause(500, signal);
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      const refused = error instanceof ApiError && (error.status === 429 || error.status === 503);
      if (refused) spread({ repo, line: "polled" });
      else if (failures > 1) spread({ repo, line: "away" });
      if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return;
      if (refused) await poll(repo, spread);
      await pause(refused ? POLL : Math.min(PATIENCE, 1_000 * 2 ** (failures - 1)) * (0.8 + Math.random() * 0.4), signal);
    }
  }
}

async function poll(repo: string, spread: (news: News) => void) {
  try {
    const page = await ok(api.GET(`${R}/jobs`, { params: { path: { repoID: repo }, query: { limit: 50 } } }));
    for (const job of page.data.toReversed()) spread({ repo, job, at: "" });
  } catch {
    // The next time.
  }
}
