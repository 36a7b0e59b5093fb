//! The sources of a repository: what is there, what is being read, and why something does not go on.

import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { FileText, Globe, Plus } from "lucide-react";
import { useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { useJobs } from "../app/events";
import { useAct, useCan, usePages, useRepo, useRepository } from "../app/queries";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { useTyped } from "../app/typed";
import { useKeys } from "../app/keys";
import { Badge, SourceStatus, waitingFor, When } from "../parts/badges";
import { Button } from "../parts/button";
import { sourceTitle } from "../parts/fact";
import { Checkbox, Select } from "../parts/form";
import { LongList } from "../parts/list";
import { Menu, MenuItem } from "../parts/overlay";
import { Empty } from "../parts/states";
import { dollars, t, tn } from "../words";
import { AddSources, useDropAnywhere } from "./sources-add";
import { DeleteSources, MarkSource, ProcessSource } from "./sources-acts";

type Row = Schemas["SourceSummary"];

const STATUSES = ["pending", "fetching", "fetched", "processing", "processed", "failed"] as const;

export default function Sources() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Sources"), repository?.name);
  const search = useSearch({ from: "/r/$slug/sources" });
  const navigate = useNavigate({ from: "/r/$slug/sources" });
  const can = useCan();
  const q = search.q ?? "";
  const [typed, setTyped] = useTyped(q, (words) => void navigate({ search: (old) => ({ ...old, q: words || undefined }), replace: true }));
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [deleting, setDeleting] = useState<Row[] | null>(null);
  const [marking, setMarking] = useState<Row | null>(null);
  const [again, setAgain] = useState<Row | null>(null);
  const [dropped, setDropped] = useState<File[]>([]);
  const adding = search.add !== undefined || dropped.length > 0;
  const mayWrite = can("source:write");
  const over = useDropAnywhere(mayWrite, setDropped);

  const status = STATUSES.find((one) => one === search.status);
  const sort = search.sort === "oldest" ? "oldest" : "newest";
  const pages = usePages<Row>(
    ["sources", repoID, q, status ?? "", sort],
    (cursor, signal) => ok(api.GET(`${R}/sources`, { params: { path: { repoID }, query: { q: q || undefined, status, sort, cursor, limit: 100 } }, signal })),
    { keep: true },
  );
  const jobs = useJobs();
  const jobOf = (source: Row) => [...jobs.values()].findLast((job) => job.source_id === source.id && job.state !== "completed");
  const openAdd = () => void navigate({ search: (old) => ({ ...old, add: "1" }) });
  const closeAdd = () => {
    setDropped([]);
    void navigate({ search: (old) => ({ ...old, add: undefined }) });
  };
  const retry = useAct((id: string) => ok(api.POST(`${R}/sources/{sourceID}/retry`, { params: { path: { repoID, sourceID: id } } })), {
    stale: [["sources", repoID]],
    done: () => say(t("Tried again")),
  });
  const cancel = useAct((id: string) => ok(api.POST(`${R}/jobs/{jobID}/cancel`, { params: { path: { repoID, jobID: id } } })), { done: () => say(t("Cancelled")) });
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  useKeys({
    x: () => {
      const row = document.activeElement?.closest<HTMLElement>("[data-source]");
      if (row?.dataset.source) toggle(row.dataset.source);
    },
    a: mayWrite ? openAdd : undefined,
  });
  const selected = pages.rows.filter((row) => chosen.has(row.id));

  return (
    <div className="page">
      <header>
        <h1>{t("Sources")}</h1>
        {mayWrite && (
          <Button primary onPress={openAdd}>
            <Plus aria-hidden /> {t("Add sources")}
          </Button>
        )}
      </header>
      <div className="bar">
        <input className="input" type="search" aria-label={t("Search in sources")} placeholder={t("Title, author, text, address or DOI")} value={typed} onChange={(event) => setTyped(event.target.value)} />
        <Select
          small
          hideLabel
          label={t("Status")}
          value={status ?? ""}
          onChange={(next) => void navigate({ search: (old) => ({ ...old, status: next || undefined }) })}
          options={[
            ["", t("All states")],
            ["pending", t("queued")],
            ["fetching", t("fetching")],
            ["fetched", t("reading")],
            ["processing", t("finding facts")],
            ["processed", t("ready")],
            ["failed", t("failed")],
          ]}
        />
        <Select
          small
          hideLabel
          label={t("Order")}
          value={sort}
          onChange={(next) => void navigate({ search: (old) => ({ ...old, sort: next === "newest" ? undefined : next }) })}
          options={[
            ["newest", t("Newest first")],
            ["oldest", t("Oldest first")],
          ]}
        />
        {selected.length > 0 && (
          <span className="row">
            <Badge tone="accent">{tn(selected.length, "{n} selected", "{n} selected")}</Badge>
            {can("source:delete") && (
              <Button small danger onPress={() => setDeleting(selected)}>
                {t("Delete")}
              </Button>
            )}
            <Button small quiet onPress={() => setChosen(new Set())}>
              {t("Select none")}
            </Button>
          </span>
        )}
      </div>
      <LongList
        pages={pages}
        id={(row) => row.id}
        label={t("Sources")}
        height={66}
        empty={
          q || status ? (
            <Empty title={t("No source is like this")}>{t("Other words or another state may find some.")}</Empty>
          ) : (
            <Empty icon={<FileText aria-hidden />} title={t("No sources yet")} action={mayWrite ? <Button primary onPress={openAdd}>{t("Add sources")}</Button> : undefined}>
              {mayWrite ? t("Drop PDFs anywhere on this page, or paste addresses and DOIs.") : t("Nobody has added a source to this repository.")}
            </Empty>
          )
        }
        row={(row) => (
          <SourceRow
            row={row}
            job={jobOf(row)}
            chosen={chosen.has(row.id)}
            onChoose={() => toggle(row.id)}
            acts={
              <>
                {row.status === "failed" && can("source:update") && <MenuItem onAction={() => retry.mutate(row.id)}>{t("Try again")}</MenuItem>}
                {row.status === "processed" && can("source:update") && <MenuItem onAction={() => setAgain(row)}>{t("Find facts again …")}</MenuItem>}
                {can("job:cancel") && row.status !== "processed" && row.status !== "failed" && (
                  <MenuItem onAction={() => cancel.mutate(jobOf(row)?.id ?? row.job_id)}>{t("Cancel")}</MenuItem>
                )}
                {can("source:update") && <MenuItem onAction={() => setMarking(row)}>{t("Mark as retracted or superseded …")}</MenuItem>}
                {can("source:delete") && (
                  <MenuItem danger onAction={() => setDeleting([row])}>
                    {t("Delete …")}
                  </MenuItem>
                )}
              </>
            }
            onRetry={can("source:update") ? () => retry.mutate(row.id) : undefined}
          />
        )}
      />
      {adding && <AddSources files={dropped} onClose={closeAdd} />}
      {deleting && (
        <DeleteSources
          sources={deleting}
          onClose={() => setDeleting(null)}
          onDone={() => {
            setDeleting(null);
            setChosen(new Set());
          }}
        />
      )}
      {marking && <MarkSource source={marking} onClose={() => setMarking(null)} />}
      {again && <ProcessSource source={again} onClose={() => setAgain(null)} />}
      {over && (
        <div className="dropveil" aria-hidden>
          <p>{t("Drop the files to add them")}</p>
        </div>
      )}
    </div>
  );
}

function SourceRow({ row, job, chosen, onChoose, acts, onRetry }: { row: Row; job?: Schemas["Job"]; chosen: boolean; onChoose: () => void; acts: React.ReactNode; onRetry?: () => void }) {
  const slug = useRepo();
  const title = sourceTitle(row);
  const host = row.url.startsWith("http") ? URL.parse(row.url)?.hostname : undefined;
  return (
    <div className="with-check" data-source={row.id}>
      <Checkbox checked={chosen} onChange={onChoose} label={t("Select {title}", { title })} />
      <article className="item">
        <Link to="/r/$slug/sources/$id" params={{ slug, id: row.id }} className="item-main" data-main>
          {title}
        </Link>
        <div className="item-more">
          <SourceStatus source={row} job={job} />
          {row.mark && <Badge tone={row.mark.kind === "retracted" ? "wrong" : "warn"}>{row.mark.kind === "retracted" ? t("retracted") : t("superseded")}</Badge>}
          {row.author && <span className="clip source-author">{row.author}</span>}
          {row.published_at && <span>{row.published_at.slice(0, 4)}</span>}
          {host && (
            <span className="row tight">
              <Globe aria-hidden size={13} />
              {host}
            </span>
          )}
          {row.cost.usd > 0 && <span title={t("Spent on models for it")}>{dollars(row.cost.usd)}</span>}
          <When at={row.created_at} />
        </div>
        {row.failure && (
          <p className="small source-failure">
            {row.failure.message}{" "}
            {row.failure.retryable && onRetry && (
              <Button small onPress={onRetry}>
                {t("Try again")}
              </Button>
            )}
            {row.failure.stage === "fetch" && <span className="soft"> {t("If you have the file, add it instead.")}</span>}
          </p>
        )}
        {row.waiting_for === "budget" && (
          <p className="small source-waits">
            {waitingFor("budget")}: {row.waiting_budget === "installation" ? t("that of the installation is used up for this month") : t("that of this repository is used up for this month")}
          </p>
        )}
      </article>
      <Menu label={t("More for {title}", { title })}>{acts}</Menu>
    </div>
  );
}
