//! A report: each sentence with how it stands, the evidence beside it, and how that came to be.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { download, fileName } from "../app/download";
import { useJobs } from "../app/events";
import { useKeys } from "../app/keys";
import { useAct, useCan, usePages, useRepo } from "../app/queries";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Badge, PostureBadge, StandingBadge, standing, When } from "../parts/badges";
import { Button } from "../parts/button";
import { Field, Form } from "../parts/form";
import { LongList } from "../parts/list";
import { Confirm, Dialog, Menu, MenuItem } from "../parts/overlay";
import { Empty, Failure, Skeleton } from "../parts/states";
import { count, percent, t, tn } from "../words";
import { bare, type Block, blocksOf } from "./report-blocks";
import { ReportStatus } from "./reports";
import "./report.css";

type Report = Schemas["Report"];
type Sentence = Schemas["ReportSentence"];
type Annotation = Schemas["ReportAnnotation"];
type State = Schemas["SentenceStanding"];

const SHOWN = ["all", "contradicted", "unsupported", "supported", "waiting"] as const;
/** Pages of 200 that are read at most. */
const MOST_PAGES = 250;

/** All pages of a list, for what is shown as a whole. */
async function whole<T>(read: (cursor: string | undefined) => Promise<{ data: T[]; next_cursor?: string | null }>): Promise<T[]> {
  const rows: T[] = [];
  let cursor: string | undefined;
  for (let n = 0; n < MOST_PAGES; n += 1) {
    const page = await read(cursor);
    rows.push(...page.data);
    cursor = page.next_cursor ?? undefined;
    if (!cursor) break;
  }
  return rows;
}

export default function ReportPage() {
  const repoID = useRepo();
  const { id } = useParams({ from: "/r/$slug/reports/$id" });
  const report = useQuery({
    queryKey: ["report", repoID, id],
    queryFn: ({ signal }) => ok(api.GET(`${R}/reports/{reportID}`, { params: { path: { repoID, reportID: id }, query: { include: "body" } }, signal })),
    refetchInterval: (query) => (query.state.data && ["pending", "annotating"].includes(query.state.data.status) ? 3_000 : false),
  });
  useTitle(report.data?.title);
  if (report.isPending) return <div className="page"><Skeleton rows={8} /></div>;
  if (report.error && !report.data) return <div className="page"><Failure whole error={report.error} retry={() => void report.refetch()} /></div>;
  return <Shown report={report.data} />;
}

function Shown({ report }: { report: Report }) {
  const repoID = useRepo();
  const can = useCan();
  const navigate = useNavigate({ from: "/r/$slug/reports/$id" });
  const search = useSearch({ from: "/r/$slug/reports/$id" });
  const path = { repoID, reportID: report.id };
  const [open, setOpen] = useState<"edit" | "delete" | "health" | null>(null);
  const filter = SHOWN.find((one) => one === search.show) ?? "all";
  const chosen = search.sentence === undefined ? undefined : Number(search.sentence);
  const working = report.status === "pending" || report.status === "annotating";
  const stamp = `${report.updated_at} ${report.checked_at} ${report.status} ${JSON.stringify(report.counts)}`;
  const sentences = useQuery({
    queryKey: ["report", repoID, report.id, "sentences", stamp],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => whole<Sentence>((cursor) => ok(api.GET(`${R}/reports/{reportID}/sentences`, { params: { path, query: { cursor, limit: 200 } }, signal }))),
  });
  const annotations = useQuery({
    queryKey: ["report", repoID, report.id, "annotations", stamp],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => whole<Annotation>((cursor) => ok(api.GET(`${R}/reports/{reportID}/annotations`, { params: { path, query: { cursor, limit: 200 } }, signal }))),
  });
  const bySentence = useMemo(() => {
    const map = new Map<number, Annotation[]>();
    for (const one of annotations.data ?? []) map.set(one.sentence_index, [...(map.get(one.sentence_index) ?? []), one]);
    return map;
  }, [annotations.data]);
  const rows = sentences.data ?? [];
  const blocks = useMemo(() => blocksOf(report.body_markdown ?? "", rows), [report.body_markdown, rows]);
  const claims = rows.filter((one) => one.state !== "not_a_claim" && (filter === "all" || one.state === filter));
  const choose = (index: number | undefined) => void navigate({ search: (old) => ({ ...old, sentence: index === undefined ? undefined : String(index) }), replace: true, resetScroll: false });
  const step = (by: number) => {
    if (claims.length === 0) return;
    const now = claims.findIndex((one) => one.sentence_index === chosen);
    const next = claims[now === -1 ? (by > 0 ? 0 : claims.length - 1) : (now + by + claims.length) % claims.length];
    if (!next) return;
    choose(next.sentence_index);
    document.querySelector(`[data-claim="${next.sentence_index}"]`)?.scrollIntoView({ block: "center" });
  };
  useKeys({ n: () => step(1), p: () => step(-1), Escape: chosen === undefined ? undefined : () => choose(undefined) });
  useEffect(() => {
    if (chosen !== undefined && rows.length > 0) document.querySelector(`[data-claim="${chosen}"]`)?.scrollIntoView({ block: "nearest" });
    // When the sentences come.
  }, [rows.length > 0]);
  const stale = [["report", repoID, report.id], ["reports", repoID]];
  const check = useAct(() => ok(api.POST(`${R}/reports/{reportID}/annotate`, { params: { path } })), { stale, done: () => say(t("All claims are checked once more")) });
  const remove = useAct(() => ok(api.DELETE(`${R}/reports/{reportID}`, { params: { path } })), { stale: [["reports", repoID]], done: () => void navigate({ to: "/r/$slug/reports", params: { slug: repoID } }) });
  const save = (format: Schemas["ReportFormat"], end: string) => void download(`api/v1/repositories/${repoID}/reports/${report.id}/export?format=${format}`, `${fileName(report.title)}.${end}`);
  const jobs = useJobs();
  const job = [...jobs.values()].findLast((one) => one.report_id === report.id && one.state === "running");
  const { counts } = report;
  const sums: [State, number][] = [
    ["supported", counts.supported],
    ["contradicted", counts.contradicted],
    ["unsupported", counts.unsupported],
    ["waiting", counts.waiting],
  ];
  const active = rows.find((one) => one.sentence_index === chosen);
  return (
    <div className="page report">
      <header>
        <div className="stack tight">
          <h1>{report.title}</h1>
          <div className="item-more">
            <ReportStatus report={report} />
            {working && job?.progress?.total ? <span>{t("{done} of {total}", { done: job.progress.done, total: job.progress.total })}</span> : null}
            {report.checked_at && (
              <span>
                {t("checked")} <When at={report.checked_at} />
              </span>
            )}
          </div>
        </div>
        {can("report:update") && (
          <Button onPress={() => setOpen("edit")}>{t("Edit")}</Button>
        )}
        <Menu label={t("More for {title}", { title: report.title })} quiet={false}>
          <MenuItem onAction={() => setOpen("health")}>{t("How it came to stand so")}</MenuItem>
          {can("report:update") && <MenuItem onAction={() => check.mutate(undefined)}>{t("Check all once more")}</MenuItem>}
          <MenuItem onAction={() => save("md", "md")}>{t("Save as Markdown")}</MenuItem>
          <MenuItem onAction={() => save("html", "html")}>{t("Save as a page")}</MenuItem>
          <MenuItem onAction={() => save("bibtex", "bib")}>{t("References as BibTeX")}</MenuItem>
          <MenuItem onAction={() => save("ris", "ris")}>{t("References as RIS")}</MenuItem>
          <MenuItem onAction={() => save("csl", "json")}>{t("References as CSL-JSON")}</MenuItem>
          {can("report:delete") && (
            <MenuItem danger onAction={() => setOpen("delete")}>
              {t("Delete …")}
            </MenuItem>
          )}
        </Menu>
      </header>
      {report.failure && <p className="note wrong">{report.failure.message}</p>}
      <div className="row report-sums" role="group" aria-label={t("Which claims are shown")}>
        <Button small primary={filter === "all"} aria-pressed={filter === "all"} onPress={() => void navigate({ search: (old) => ({ ...old, show: undefined }), resetScroll: false })}>
          {tn(report.claim_count, "{n} claim", "{n} claims")}
        </Button>
        {sums
          .filter(([, n]) => n > 0)
          .map(([state, n]) => (
            <Button key={state} small aria-pressed={filter === state} className={filter === state ? "is-on" : ""} onPress={() => void navigate({ search: (old) => ({ ...old, show: filter === state ? undefined : state }), resetScroll: false })}>
              <StandingBadge state={state} n={n} />
            </Button>
          ))}
      </div>
      <div className="report-columns">
        <article className="report-text serif" lang={report.language ?? undefined}>
          {sentences.isPending ? (
            <Skeleton rows={8} height={40} />
          ) : sentences.error ? (
            <Failure error={sentences.error} retry={() => void sentences.refetch()} />
          ) : blocks.length === 0 ? (
            <Empty title={t("The text is being cut into sentences")} />
          ) : (
            blocks.map((block, n) => <ShownBlock key={n} block={block} filter={filter} chosen={chosen} choose={choose} annotations={bySentence} />)
          )}
        </article>
        <aside className="report-side card" aria-label={t("Evidence")} aria-live="polite">
          {active ? (
            <Evidence sentence={active} annotations={bySentence.get(active.sentence_index) ?? []} report={report.id} close={() => choose(undefined)} step={step} />
          ) : (
            <p className="soft">{t("Choose a sentence to see the facts that speak for and against it. Keys: n and p.")}</p>
          )}
        </aside>
      </div>
      {open === "edit" && <Edit report={report} onClose={() => setOpen(null)} />}
      {open === "health" && <Health report={report} onClose={() => setOpen(null)} />}
      {open === "delete" && (
        <Confirm title={t("Delete this report?")} open onClose={() => setOpen(null)} onConfirm={() => remove.mutate(undefined)} action={t("Delete")} busy={remove.isPending}>
          <p>{t("With all that was said of it. This can't be undone.")}</p>
        </Confirm>
      )}
    </div>
  );
}

function ShownBlock({ block, filter, chosen, choose, annotations }: { block: Block; filter: string; chosen: number | undefined; choose: (index: number | undefined) => void; annotations: Map<number, Annotation[]> }) {
  const inside: ReactNode = block.parts.map((part, n) => {
    const { sentence } = part;
    if (!sentence || sentence.state === "not_a_claim") return <span key={n}>{bare(part.text)}</span>;
    const [tone, icon, word] = standing(sentence.state);
    const off = filter !== "all" && filter !== sentence.state;
    const near = annotations.get(sentence.sentence_index)?.filter((one) => one.posture !== "related").length ?? 0;
    return (
      <span key={n} data-claim={sentence.sentence_index}>
        <button type="button" className={`claim ${tone}${off ? " off" : ""}`} aria-pressed={chosen === sentence.sentence_index} onClick={() => choose(chosen === sentence.sentence_index ? undefined : sentence.sentence_index)}>
          {bare(part.text)}
          <span className="claim-sign" title={word}>
            {icon}
            <span className="unseen">{word}</span>
            {near > 0 && count(near)}
          </span>
        </button>
      </span>
    );
  });
  switch (block.kind) {
    case "h1":
      return <h2 className="report-h">{inside}</h2>;
    case "h2":
      return <h3 className="report-h">{inside}</h3>;
    case "h3":
      return <h4 className="report-h">{inside}</h4>;
    case "li":
      return <p className="report-li">{inside}</p>;
    case "pre":
      return <pre>{block.parts.map((part) => part.text).join("")}</pre>;
    default:
      return <p>{inside}</p>;
  }
}

type Judged = Schemas["AnnotationJudgement"]["posture"];

/** The facts for and against a sentence, and the words by which one can say otherwise. */
function Evidence({ sentence, annotations, report, close, step }: { sentence: Sentence; annotations: Annotation[]; report: string; close: () => void; step: (by: number) => void }) {
  const repoID = useRepo();
  const can = useCan();
  const stale = [["report", repoID, report]];
  const judge = useAct(
    ({ n, posture }: { n: number; posture: Judged; before: Judged }) =>
      ok(api.PUT(`${R}/reports/{reportID}/annotations/{n}`, { params: { path: { repoID, reportID: report, n } }, body: { posture } })),
    { stale, done: (_, asked) => say(t("Recorded"), () => judge.mutateAsync({ n: asked.n, posture: asked.before, before: asked.posture })) },
  );
  const order = { contradicts: 0, supports: 1, related: 2, irrelevant: 3 };
  const sorted = annotations.toSorted((a, b) => order[a.posture] - order[b.posture] || b.score - a.score);
  return (
    <div className="stack">
      <div className="row nowrap">
        <span className="grow">
          <StandingBadge state={sentence.state} />
          {sentence.waiting && sentence.state !== "waiting" && <Badge tone="accent">{t("is checked again")}</Badge>}
        </span>
        <Button small quiet onPress={() => step(-1)} aria-label={t("Previous claim")}>
          ↑
        </Button>
        <Button small quiet onPress={() => step(1)} aria-label={t("Next claim")}>
          ↓
        </Button>
        <Button small quiet onPress={close} aria-label={t("Close")}>
          ×
        </Button>
      </div>
      <p className="serif break">{bare(sentence.text)}</p>
      {sorted.length === 0 && (
        <div className="stack tight">
          <p className="soft">{sentence.state === "waiting" ? t("It was not checked yet.") : t("No fact is near to it.")}</p>
          {sentence.state !== "waiting" && (
            <p className="small">
              <Link to="/r/$slug/search" params={{ slug: repoID }} search={{ q: bare(sentence.text).slice(0, 300) }}>
                {t("Search for it")}
              </Link>
            </p>
          )}
        </div>
      )}
      <ul className="stack">
        {sorted.map((one) => (
          <li key={one.n} className="evidence">
            <div className="row tight">
              <PostureBadge posture={one.posture} />
              {one.retracted && <Badge tone="wrong">{t("retracted")}</Badge>}
              {one.person ? <Badge tone="accent">{t("said by a person")}</Badge> : <span className="soft small">{one.judged_by.startsWith("builtin") ? t("by rule") : one.judged_by}, {percent(one.confidence)}</span>}
            </div>
            <p className="serif break">
              <Link to="/r/$slug/facts/$id" params={{ slug: repoID, id: one.fact_id }} className="item-main">
                {one.fact_text}
              </Link>
            </p>
            {can("report:update") && (
              <div className="row tight" role="group" aria-label={t("How the fact stands to the sentence")}>
                {(
                  [
                    ["supports", t("Supports")],
                    ["contradicts", t("Contradicts")],
                    ["related", t("Related")],
                    ["irrelevant", t("Irrelevant")],
                  ] as const
                ).map(([posture, word]) => (
                  <Button key={posture} small quiet={one.posture !== posture} aria-pressed={one.posture === posture} onPress={() => judge.mutate({ n: one.n, posture, before: one.person ? one.posture : null })} isDisabled={judge.isPending}>
                    {word}
                  </Button>
                ))}
                {one.person && (
                  <Button small quiet onPress={() => judge.mutate({ n: one.n, posture: null, before: one.posture })}>
                    {t("Take back")}
                  </Button>
                )}
              </div>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Edit({ report, onClose }: { report: Report; onClose: () => void }) {
  const repoID = useRepo();
  const [given, setGiven] = useState({ title: report.title, body_markdown: report.body_markdown ?? "" });
  const act = useAct(() => ok(api.PUT(`${R}/reports/{reportID}`, { params: { path: { repoID, reportID: report.id } }, body: given })), { stale: [["report", repoID, report.id], ["reports", repoID]], quiet: true, done: onClose });
  return (
    <Dialog title={t("Edit")} open onClose={onClose} wide>
      <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
        <Field label={t("Title")} value={given.title} onChange={(title) => setGiven({ ...given, title })} />
        <Field label={t("Text, in Markdown")} area rows={18} autoFocus value={given.body_markdown} onChange={(body_markdown) => setGiven({ ...given, body_markdown })} hint={t("Sentences that stay keep what was said of them.")} />
        <div className="row dialog-buttons">
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button primary type="submit" busy={act.isPending}>
            {t("Save and check")}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}

function Health({ report, onClose }: { report: Report; onClose: () => void }) {
  const repoID = useRepo();
  const pages = usePages<Schemas["ReportChange"]>(["report", repoID, report.id, "health"], async (cursor, signal) => {
    const health = await ok(api.GET(`${R}/reports/{reportID}/health`, { params: { path: { repoID, reportID: report.id }, query: { cursor, limit: 50 } }, signal }));
    return { data: health.changes, next_cursor: health.next_cursor };
  });
  const causes: Record<Schemas["ChangeCause"], string> = {
    checked: t("checked for the first time"),
    fact_added: t("a source stated something new"),
    fact_removed: t("the fact was deleted or rejected"),
    fact_merged: t("another fact stands for it now"),
    source_marked: t("a source was retracted, or that was taken back"),
    person: t("somebody judged"),
    judged: t("judged by another model"),
  };
  return (
    <Dialog title={t("How it came to stand so")} open onClose={onClose} wide>
      <div className="health">
        <LongList
          still
          plain
          pages={pages}
          id={(one) => `${one.at} ${one.sentence_index} ${one.fact_id}`}
          label={t("Changes")}
          empty={<Empty title={t("Nothing has changed yet")} />}
          row={(one) => (
            <div className="item">
              <p className="break">{one.sentence ? bare(one.sentence) : t("a sentence that is gone")}</p>
              <div className="item-more">
                {one.before && <StandingBadge state={one.before} />}
                {one.before && <span aria-label={t("then")}>→</span>}
                <StandingBadge state={one.after} />
                <span>{causes[one.cause]}</span>
                {one.fact_id && (
                  <Link to="/r/$slug/facts/$id" params={{ slug: repoID, id: one.fact_id }} onClick={onClose}>
                    {t("the fact")}
                  </Link>
                )}
                <When at={one.at} />
              </div>
            </div>
          )}
        />
      </div>
    </Dialog>
  );
}
