//! Whether everything that okt needs answers.

import { useQuery } from "@tanstack/react-query";
import { CircleAlert, CircleCheck, TriangleAlert } from "lucide-react";
import { api, ok, open, type Schemas } from "../api/client";
import { BASE } from "../api/session";
import { useAct, useCanHere } from "../app/queries";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Badge } from "../parts/badges";
import { Button } from "../parts/button";
import { Failure, Skeleton } from "../parts/states";
import { Table } from "../parts/table";
import { count, t, tn } from "../words";
import { AdminShell } from "./admin-shell";
import { jobKind } from "./job-words";
import "./overview.css";

export default function Health() {
  useTitle(t("Health"), t("Installation"));
  const can = useCanHere();
  const setup = useQuery({ queryKey: ["setup"], staleTime: 60_000, queryFn: ({ signal }) => ok(open.GET("/api/v1/setup", { signal })) });
  const ready = useQuery({
    queryKey: ["readyz"],
    refetchInterval: 15_000,
    queryFn: async ({ signal }) => (await (await fetch(`${BASE}readyz`, { signal })).json()) as Schemas["Readiness"],
  });
  const readers = useQuery({ queryKey: ["decomposition-providers"], staleTime: 300_000, queryFn: ({ signal }) => ok(api.GET("/api/v1/sources/decomposition/providers", { signal })) });
  const finders = useQuery({ queryKey: ["source-providers"], staleTime: 300_000, queryFn: ({ signal }) => ok(api.GET("/api/v1/sources/providers", { signal })) });
  const words: Record<Schemas["ReadinessStatus"], string> = {
    ready: t("Everything answers"),
    degraded: t("It works, but not all of it"),
    draining: t("It is being stopped"),
    unavailable: t("It takes no requests"),
  };
  const registration: Record<string, string> = { open: t("open to everybody"), invite: t("by invitation"), closed: t("closed") };
  const checks = Object.entries((ready.data?.checks ?? {}) as Record<string, Schemas["Dependency"]>);
  const asked = readers.data?.fact_extraction.find((one) => one.configured);
  const found = finders.data?.search.filter((one) => one.configured) ?? [];
  return (
    <AdminShell>
      <div className="stack">
        {ready.isPending ? (
          <Skeleton rows={3} height={36} />
        ) : ready.error ? (
          <Failure error={ready.error} retry={() => void ready.refetch()} />
        ) : (
          <section className="card stack" aria-label={t("Health")}>
            <div className="row">
              <h2 className="grow">{t("Health")}</h2>
              <Badge tone={ready.data.status === "ready" ? "good" : ready.data.status === "degraded" ? "warn" : "wrong"}>{words[ready.data.status] ?? ready.data.status}</Badge>
            </div>
            <ul className="checks">
              {checks.map(([name, one]) => (
                <li key={name}>
                  {one.status === "ok" ? <CircleCheck size={18} aria-hidden className="is-done" /> : one.status === "degraded" ? <TriangleAlert size={18} aria-hidden className="is-soft" /> : <CircleAlert size={18} aria-hidden className="is-failed" />}
                  <span className="break">
                    <strong>{name}</strong> <span className="soft">{one.status === "ok" ? t("answers") : one.status === "degraded" ? t("answers in part") : t("does not answer")}</span>
                    {one.reason && <span className="small"> — {one.reason}</span>}
                  </span>
                </li>
              ))}
            </ul>
          </section>
        )}
        <section className="card stack tight" aria-label={t("This installation")}>
          <h2>{t("This installation")}</h2>
          {setup.data && (
            <Table
              label={t("This installation")}
              head={[t("What"), t("How it is")]}
              rows={[
                { key: "version", cells: [t("Version"), setup.data.version] },
                { key: "mode", cells: [t("Mode"), setup.data.mode] },
                { key: "https", cells: [t("Public address is https"), setup.data.https ? t("yes") : t("no")] },
                { key: "registration", cells: [t("New accounts"), registration[setup.data.registration] ?? setup.data.registration] },
                { key: "model", cells: [t("Facts are found by"), asked?.model ?? t("a rule, without a model")] },
                { key: "search", cells: [t("Sources are looked for with"), found.length > 0 ? found.map((one) => one.id).join(", ") : t("nothing")] },
              ]}
            />
          )}
        </section>
        {can("job:read") && <Workers mayRescue={can("job:cancel")} />}
      </div>
    </AdminShell>
  );
}

function Workers({ mayRescue }: { mayRescue: boolean }) {
  const stats = useQuery({ queryKey: ["job-stats"], refetchInterval: 15_000, queryFn: ({ signal }) => ok(api.GET("/api/v1/jobs/stats", { signal })) });
  const rescue = useAct(() => ok(api.POST("/api/v1/admin/jobs/rescue")), { stale: [["job-stats"]], done: ({ rescued }) => say(rescued === 0 ? t("No job had to be released") : tn(rescued, "{n} job released", "{n} jobs released")) });
  if (stats.isPending) return <Skeleton rows={4} height={36} />;
  if (stats.error) return <Failure error={stats.error} retry={() => void stats.refetch()} />;
  const rows = stats.data.data.toSorted((a, b) => b.running + b.available + b.discarded - (a.running + a.available + a.discarded));
  const least = stats.data.complete ? "" : "+";
  return (
    <section className="card stack tight" aria-label={t("Workers")}>
      <div className="row">
        <h2 className="grow">{t("Workers")}</h2>
        {mayRescue && (
          <Button small onPress={() => rescue.mutate(undefined)} busy={rescue.isPending}>
            {t("Release jobs of dead workers")}
          </Button>
        )}
      </div>
      <Table
        label={t("Workers")}
        head={[t("Job"), { text: t("Workers"), number: true }, { text: t("running"), number: true }, { text: t("waiting"), number: true }, { text: t("for later"), number: true }, { text: t("tries again"), number: true }, { text: t("given up"), number: true }]}
        rows={rows.map((one) => ({
          key: one.kind,
          cells: [
            <span key="k">
              {jobKind(one.kind)} {one.workers === 0 && one.available > 0 && <Badge tone="wrong">{t("no worker runs")}</Badge>}
            </span>,
            ...[one.workers, one.running, one.available, one.scheduled, one.retryable, one.discarded].map((n, at) => (n === 0 ? <span className="soft">0</span> : count(n) + (at > 0 ? least : ""))),
          ],
        }))}
      />
    </section>
  );
}
