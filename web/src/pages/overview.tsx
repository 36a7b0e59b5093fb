//! Where a repository begins: for one that is empty, the way to the first lit sentence; otherwise its sources.

import { Navigate, useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { CircleAlert, CircleCheck, CircleDashed, Loader } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { api, ok, R, raw, type Schemas } from "../api/client";
import { BASE } from "../api/session";
import { sample as samplePaper } from "../app/download";
import { useAct, useCan, useRepo, useRepository } from "../app/queries";
import { useTitle } from "../app/title";
import { Button, LinkButton } from "../parts/button";
import { Skeleton } from "../parts/states";
import { t } from "../words";
import "./overview.css";

export default function Overview() {
  const slug = useRepo();
  const repository = useRepository();
  const can = useCan();
  const began = useRef("");
  useTitle(repository.data?.name);
  if (repository.isPending) return <div className="page"><Skeleton /></div>;
  // What was empty when one came stays the beginning, also when the first source is there.
  if (can("source:write") && repository.data?.counts?.sources === 0) began.current = slug;
  if (began.current === slug) return <First slug={slug} />;
  return <Begun slug={slug} mayAdd={can("source:write")} />;
}

/** Permissions come a moment later than the page: what has sources goes on at once. */
function Begun({ slug, mayAdd }: { slug: string; mayAdd: boolean }) {
  const { data } = useRepository();
  const [waited, setWaited] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setWaited(true), 1_500);
    return () => clearTimeout(timer);
  }, []);
  if (waited || mayAdd || (data?.counts?.sources ?? 0) > 0) return <Navigate to="/r/$slug/sources" params={{ slug }} replace />;
  return <div className="page"><Skeleton /></div>;
}

type Step = "waits" | "runs" | "done" | "failed";

function First({ slug }: { slug: string }) {
  const can = useCan();
  const navigate = useNavigate();
  const [source, setSource] = useState<string | null>(null);
  const sample = useAct(async () => {
    const form = new FormData();
    form.set("file", new File([await samplePaper("sample.pdf")], "sample.pdf", { type: "application/pdf" }));
    const answer = await raw(`api/v1/repositories/${slug}/sources/upload`, { method: "POST", body: form });
    const accepted = (await answer.json()) as Schemas["SourceAccepted"];
    setSource(accepted.source_id);
  });
  const path = { repoID: slug, sourceID: source ?? "" };
  const progress = useQuery({
    queryKey: ["source", slug, source],
    enabled: source !== null,
    refetchInterval: 1_000,
    queryFn: ({ signal }) => ok(api.GET(`${R}/sources/{sourceID}`, { params: { path, query: { include: "" } }, signal })),
  });
  const status = progress.data?.status;
  const first = useQuery({
    queryKey: ["source-facts", slug, source, "first"],
    enabled: status === "processed" || status === "processing",
    refetchInterval: 700,
    queryFn: ({ signal }) => ok(api.GET(`${R}/sources/{sourceID}/references`, { params: { path, query: { cited: true, limit: 1 } }, signal })),
  });
  const found = first.data?.data[0];
  const fact = found?.facts[0]?.fact_id;
  useEffect(() => {
    if (!source) return;
    if (fact) void navigate({ to: "/r/$slug/sources/$id", params: { slug, id: source }, search: { fact, page: found?.page ?? undefined }, replace: true });
    else if (status === "failed") void navigate({ to: "/r/$slug/sources/$id", params: { slug, id: source }, replace: true });
  }, [fact, status, source, slug, navigate, found?.page]);
  const reached = ["pending", "fetching", "fetched", "processing", "processed"].indexOf(status ?? "");
  const state = (from: number, to: number): Step => (source === null ? (sample.isPending && from === 0 ? "runs" : "waits") : status === "failed" ? "failed" : reached >= to ? "done" : reached >= from || from === 0 ? "runs" : "waits");
  return (
    <div className="page reading stack wide">
      <header className="stack tight">
        <h1>{t("From a document to its facts")}</h1>
        <p className="soft">{t("Add a paper, watch it being read, and see each fact lit on the page it stands on.")}</p>
      </header>
      <Checks />
      <section className="card stack">
        <h2>{t("Try it")}</h2>
        <p>{t("A short sample paper is here already. It needs no key and no network.")}</p>
        {source === null ? (
          <div className="row">
            <Button primary onPress={() => sample.mutate(undefined)} busy={sample.isPending}>
              {t("Read the sample paper")}
            </Button>
            <LinkButton to="/r/$slug/sources" params={{ slug }} search={{ add: "1" }}>
              {t("Add my own sources")}
            </LinkButton>
            {can("graph:write") && (
              <LinkButton to="/r/$slug/exchange" params={{ slug }} search={{ sample: "1" }}>
                {t("Look at a finished repository")}
              </LinkButton>
            )}
          </div>
        ) : (
          <ol className="steps" aria-live="polite">
            <StepLine step={state(0, 1)}>{t("The file is taken in")}</StepLine>
            <StepLine step={state(1, 3)}>{t("Its pages are read, and cut into sentences")}</StepLine>
            <StepLine step={state(3, 4)}>{t("Facts are found in the sentences")}</StepLine>
            <StepLine step={fact ? "done" : reached === 4 ? "runs" : "waits"}>{t("The first one is lit")}</StepLine>
          </ol>
        )}
      </section>
    </div>
  );
}

function StepLine({ step, children }: { step: Step; children: ReactNode }) {
  const signs: Record<Step, ReactNode> = {
    waits: <CircleDashed size={18} aria-hidden />,
    runs: <Loader size={18} aria-hidden className="is-running" />,
    done: <CircleCheck size={18} aria-hidden className="is-done" />,
    failed: <CircleAlert size={18} aria-hidden className="is-failed" />,
  };
  const words: Record<Step, string> = { waits: t("waiting"), runs: t("running"), done: t("done"), failed: t("failed") };
  return (
    <li>
      {signs[step]} {children} <span className="unseen">({words[step]})</span>
    </li>
  );
}

/** What works on this installation, and the line that would make the rest work. */
function Checks() {
  const ready = useQuery({
    queryKey: ["readyz"],
    queryFn: async ({ signal }) => (await (await fetch(`${BASE}readyz`, { signal })).json()) as Schemas["Readiness"],
  });
  const readers = useQuery({ queryKey: ["decomposition-providers"], staleTime: 300_000, queryFn: ({ signal }) => ok(api.GET("/api/v1/sources/decomposition/providers", { signal })) });
  const search = useQuery({ queryKey: ["source-providers"], staleTime: 300_000, queryFn: ({ signal }) => ok(api.GET("/api/v1/sources/providers", { signal })) });
  const model = readers.data?.fact_extraction.find((one) => one.configured);
  const free = !model || model.model.startsWith("builtin") || model.id.startsWith("builtin");
  const checks = Object.entries((ready.data?.checks ?? {}) as Record<string, Schemas["Dependency"]>);
  const bad = checks.filter(([, one]) => one.status !== "ok");
  const finders = search.data?.search.filter((one) => one.configured) ?? [];
  return (
    <ul className="checks" aria-label={t("What works here")}>
      <Check good={ready.data ? bad.length === 0 : undefined}>
        {!ready.data ? t("Asking the service …") : bad.length === 0 ? t("Database, files and vectors answer") : bad.map(([name, one]) => `${name}: ${one.reason ?? one.status}`).join("; ")}
      </Check>
      <Check good={readers.data ? true : undefined}>
        {!readers.data ? t("Asking the service …") : free ? t("No model: okt works without one, facts are the sentences as they stand, at no cost") : t("Facts are found by {model}", { model: model.model })}
        {readers.data && free && <code>SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL=…</code>}
      </Check>
      <Check good={search.data ? finders.length > 0 : undefined} soft>
        {!search.data ? t("Asking the service …") : finders.length > 0 ? t("Sources can be looked for: {names}", { names: finders.map((one) => one.id).join(", ") }) : t("No search service is set up: add sources by file or address")}
      </Check>
    </ul>
  );
}

function Check({ good, soft, children }: { good: boolean | undefined; soft?: boolean; children: ReactNode }) {
  return (
    <li>
      {good === undefined ? <CircleDashed size={18} aria-hidden /> : good ? <CircleCheck size={18} aria-hidden className="is-done" /> : <CircleAlert size={18} aria-hidden className={soft ? "is-soft" : "is-failed"} />}
      <span className="break">{children}</span>
    </li>
  );
}
