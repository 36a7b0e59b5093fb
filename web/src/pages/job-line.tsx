//! A job that the reader has asked for, followed until it is over.

import { useQuery } from "@tanstack/react-query";
import { CircleX, Loader } from "lucide-react";
import type { ReactNode } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { isOver } from "../app/events";
import { reason, useRepo } from "../app/queries";
import { waitingFor } from "../parts/badges";
import { count, t } from "../words";

type Job = Schemas["Job"];

export function useJob(id: string | null) {
  const repoID = useRepo();
  return useQuery<Job>({
    queryKey: ["job", repoID, id],
    enabled: id !== null,
    refetchInterval: (query) => (query.state.data && isOver(query.state.data) ? false : 1_000),
    queryFn: ({ signal }) => ok(api.GET(`${R}/jobs/{jobID}`, { params: { path: { repoID, jobID: id ?? "" } }, signal })),
  });
}

export function JobLine({ job, error, running, done }: { job: Job | undefined; error: unknown; running: string; done: ReactNode }) {
  if (error) return <p className="note wrong">{reason(error)}</p>;
  if (job?.state === "completed") return <>{done}</>;
  if (job && isOver(job)) {
    return (
      <p className="note wrong break" role="alert">
        <CircleX aria-hidden size={16} /> {job.state === "cancelled" ? t("It was cancelled.") : (job.errors.at(-1)?.message ?? t("It failed."))}
      </p>
    );
  }
  const share = job?.progress?.total ? ` ${count(job.progress.done)}/${count(job.progress.total)}` : "";
  return (
    <p className="row" role="status">
      <Loader aria-hidden size={16} /> {running}
      {share} {job?.waiting_for && <span className="soft">{waitingFor(job.waiting_for)}</span>}
    </p>
  );
}
