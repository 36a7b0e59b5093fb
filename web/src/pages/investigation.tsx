//! One question: its sources, how far they are read, what they say and what they cost.

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Plus, Search } from "lucide-react";
import { useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { download } from "../app/download";
import { useAct, useCan, usePages, useRepo } from "../app/queries";
import { complain, say } from "../app/toasts";
import { EXACTLY } from "../app/links";
import { useTitle } from "../app/title";
import { Badge, SourceStatus, When } from "../parts/badges";
import { Button } from "../parts/button";
import { FactRow, sourceTitle } from "../parts/fact";
import { Checkbox, Field, Form } from "../parts/form";
import { LongList } from "../parts/list";
import { Confirm, Dialog, Menu, MenuItem } from "../parts/overlay";
import { Empty, Failure, Skeleton } from "../parts/states";
import { count, dollars, t, tn } from "../words";
import { AddSources } from "./sources-add";
import "./sources.css";

type Investigation = Schemas["Investigation"];
const TABS = ["sources", "facts", "concepts"] as const;

export default function InvestigationPage() {
  const repoID = useRepo();
  const { id } = useParams({ from: "/r/$slug/investigations/$id" });
  const found = useQuery({
    queryKey: ["investigation", repoID, id],
    queryFn: ({ signal }) => ok(api.GET(`${R}/investigations/{investigationID}`, { params: { path: { repoID, investigationID: id } }, signal })),
    refetchInterval: (query) => (query.state.data && query.state.data.progress.done < query.state.data.progress.total ? 5_000 : false),
  });
  useTitle(found.data?.title);
  if (found.isPending) return <div className="page"><Skeleton rows={6} /></div>;
  if (found.error && !found.data) return <div className="page"><Failure whole error={found.error} retry={() => void found.refetch()} /></div>;
  return <Shown one={found.data} />;
}

function Shown({ one }: { one: Investigation }) {
  const repoID = useRepo();
  const can = useCan();
  const navigate = useNavigate();
  const search = useSearch({ from: "/r/$slug/investigations/$id" });
  const tab = TABS.find((name) => name === search.tab) ?? "sources";
  const [open, setOpen] = useState<"add" | "find" | "edit" | "delete" | null>(null);
  const path = { repoID, investigationID: one.id };
  const remove = useAct(() => ok(api.DELETE(`${R}/investigations/{investigationID}`, { params: { path } })), {
    stale: [["investigations", repoID]],
    done: () => void navigate({ to: "/r/$slug/investigations", params: { slug: repoID } }),
  });
  const { progress } = one;
  const words = { sources: tn(progress.total, "{n} source", "{n} sources"), facts: `${tn(one.fact_count, "{n} fact", "{n} facts")}${one.fact_count_complete ? "" : "+"}`, concepts: t("Concepts") };
  const cite = (format: "bibtex" | "ris" | "csl", end: string) => void download(`api/v1/repositories/${repoID}/investigations/${one.id}/export?format=${format}`, `references.${end}`);
  return (
    <div className="page">
      <header>
        <div className="stack tight">
          <h1>{one.title}</h1>
          {one.topic && <p className="soft break">{one.topic}</p>}
          <div className="item-more">
            <span>{t("{done} of {total} sources read", { done: progress.done, total: progress.total })}</span>
            {progress.sources.failed > 0 && <Badge tone="wrong">{tn(progress.sources.failed, "{n} failed", "{n} failed")}</Badge>}
            {progress.sources.waiting_for_budget > 0 && <Badge tone="warn">{tn(progress.sources.waiting_for_budget, "{n} waits for the budget", "{n} wait for the budget")}</Badge>}
            {progress.sources.waiting_for_rate_limit > 0 && <Badge tone="warn">{tn(progress.sources.waiting_for_rate_limit, "{n} waits for a rate limit", "{n} wait for a rate limit")}</Badge>}
            {progress.jobs.running + progress.jobs.waiting > 0 && <span>{tn(progress.jobs.running + progress.jobs.waiting, "{n} job open", "{n} jobs open")}</span>}
            <span>{dollars(one.cost.usd)}</span>
          </div>
        </div>
        {can("source:write") && (
          <>
            <Button onPress={() => setOpen("find")}>
              <Search aria-hidden /> {t("Look for sources")}
            </Button>
            <Button primary onPress={() => setOpen("add")}>
              <Plus aria-hidden /> {t("Add sources")}
            </Button>
          </>
        )}
        <Menu label={t("More for {title}", { title: one.title })} quiet={false}>
          <MenuItem onAction={() => cite("bibtex", "bib")}>{t("References as BibTeX")}</MenuItem>
          <MenuItem onAction={() => cite("ris", "ris")}>{t("References as RIS")}</MenuItem>
          <MenuItem onAction={() => cite("csl", "json")}>{t("References as CSL-JSON")}</MenuItem>
          {can("investigation:update") && <MenuItem onAction={() => setOpen("edit")}>{t("Change title and question …")}</MenuItem>}
          {can("investigation:delete") && (
            <MenuItem danger onAction={() => setOpen("delete")}>
              {t("Delete …")}
            </MenuItem>
          )}
        </Menu>
      </header>
      <nav className="tablist" aria-label={t("Investigation")}>
        {TABS.map((name) => (
          <Link key={name} to="/r/$slug/investigations/$id" params={{ slug: repoID, id: one.id }} search={{ tab: name === "sources" ? undefined : name }} className="tab" aria-current={name === tab ? "page" : undefined} activeOptions={EXACTLY} resetScroll={false}>
            {words[name]}
          </Link>
        ))}
      </nav>
      {tab === "sources" && <Sources one={one} onAdd={can("source:write") ? () => setOpen("add") : undefined} />}
      {tab === "facts" && <Facts one={one} />}
      {tab === "concepts" && <Concepts one={one} />}
      {open === "add" && <AddSources investigation={one.id} onClose={() => setOpen(null)} />}
      {open === "find" && <FindSources one={one} onClose={() => setOpen(null)} />}
      {open === "edit" && <Edit one={one} onClose={() => setOpen(null)} />}
      {open === "delete" && (
        <Confirm title={t("Delete this investigation?")} open onClose={() => setOpen(null)} onConfirm={() => remove.mutate(undefined)} action={t("Delete")} busy={remove.isPending}>
          <p>{t("Its sources and facts stay in the repository.")}</p>
        </Confirm>
      )}
    </div>
  );
}

function Sources({ one, onAdd }: { one: Investigation; onAdd?: () => void }) {
  const repoID = useRepo();
  const can = useCan();
  const pages = usePages<Schemas["SourceSummary"]>(["sources", repoID, "investigation", one.id], (cursor, signal) => ok(api.GET(`${R}/investigations/{investigationID}/sources`, { params: { path: { repoID, investigationID: one.id }, query: { cursor, limit: 100 } }, signal })));
  const stale = [["sources", repoID, "investigation", one.id], ["investigation", repoID, one.id]];
  const put = useAct((sourceID: string) => ok(api.POST(`${R}/investigations/{investigationID}/sources`, { params: { path: { repoID, investigationID: one.id } }, body: { source_id: sourceID } })), { stale });
  const take = useAct((sourceID: string) => ok(api.DELETE(`${R}/investigations/{investigationID}/sources/{sourceID}`, { params: { path: { repoID, investigationID: one.id, sourceID } } })), {
    stale,
    done: (_, sourceID) => say(t("Taken out; it stays in the repository"), () => put.mutateAsync(sourceID)),
  });
  return (
    <LongList
      pages={pages}
      id={(row) => row.id}
      label={t("Sources")}
      height={60}
      empty={<Empty title={t("No sources yet")} action={onAdd && <Button primary onPress={onAdd}>{t("Add sources")}</Button>} />}
      row={(row) => (
        <div className="with-check">
          <span />
          <article className="item">
            <Link to="/r/$slug/sources/$id" params={{ slug: repoID, id: row.id }} className="item-main" data-main>
              {sourceTitle(row)}
            </Link>
            <div className="item-more">
              <SourceStatus source={row} />
              {row.author && <span className="clip source-author">{row.author}</span>}
              {row.published_at && <span>{row.published_at.slice(0, 4)}</span>}
              {row.cost.usd > 0 && <span>{dollars(row.cost.usd)}</span>}
              <When at={row.created_at} />
            </div>
            {row.failure && <p className="small source-failure">{row.failure.message}</p>}
          </article>
          {can("investigation:update") && (
            <Menu label={t("More for {title}", { title: sourceTitle(row) })}>
              <MenuItem onAction={() => take.mutate(row.id)}>{t("Take out")}</MenuItem>
            </Menu>
          )}
        </div>
      )}
    />
  );
}

function Facts({ one }: { one: Investigation }) {
  const repoID = useRepo();
  const pages = usePages<Schemas["FactSummary"]>(["facts", repoID, "investigation", one.id], (cursor, signal) => ok(api.GET(`${R}/investigations/{investigationID}/facts`, { params: { path: { repoID, investigationID: one.id }, query: { cursor, limit: 100 } }, signal })));
  return <LongList pages={pages} id={(fact) => fact.id} label={t("Facts")} height={72} empty={<Empty title={t("No facts yet")} />} row={(fact) => <FactRow fact={fact} />} />;
}

function Concepts({ one }: { one: Investigation }) {
  const repoID = useRepo();
  const pages = usePages<Schemas["InvestigationConcept"], Schemas["InvestigationConceptPage"]>(["concepts", repoID, "investigation", one.id], (cursor, signal) => ok(api.GET(`${R}/investigations/{investigationID}/concepts`, { params: { path: { repoID, investigationID: one.id }, query: { cursor, limit: 100 } }, signal })));
  return (
    <LongList
      pages={pages}
      id={(row) => row.concept_id}
      label={t("Concepts")}
      height={56}
      empty={<Empty title={t("No concepts yet")} />}
      row={(row) => (
        <article className="item">
          <Link to="/r/$slug/concepts/$id" params={{ slug: repoID, id: row.concept_id }} className="item-main" data-main>
            <strong>{row.canonical_name}</strong>
          </Link>
          <div className="item-more">
            <span>{row.context}</span>
            <span>{tn(row.fact_count, "{n} fact", "{n} facts")}</span>
          </div>
        </article>
      )}
    />
  );
}

function Edit({ one, onClose }: { one: Investigation; onClose: () => void }) {
  const repoID = useRepo();
  const [given, setGiven] = useState({ title: one.title, topic: one.topic ?? "" });
  const act = useAct(() => ok(api.PUT(`${R}/investigations/{investigationID}`, { params: { path: { repoID, investigationID: one.id } }, body: given })), { stale: [["investigation", repoID, one.id], ["investigations", repoID]], quiet: true, done: onClose });
  return (
    <Dialog title={t("Change title and question")} open onClose={onClose}>
      <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
        <Field label={t("Title")} autoFocus value={given.title} onChange={(title) => setGiven({ ...given, title })} />
        <Field label={t("What is asked")} area rows={4} value={given.topic} onChange={(topic) => setGiven({ ...given, topic })} />
        <div className="row dialog-buttons">
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button primary type="submit" busy={act.isPending}>
            {t("Save")}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}

/** Candidates from the search providers of the repository. */
function FindSources({ one, onClose }: { one: Investigation; onClose: () => void }) {
  const repoID = useRepo();
  const [query, setQuery] = useState(one.topic || one.title);
  const [hits, setHits] = useState<Schemas["SourceHit"][] | null>(null);
  const [cursor, setCursor] = useState<string | null>(null);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const find = useAct((more: string | null) => ok(api.POST(`${R}/sources/search`, { params: { path: { repoID } }, body: { query, cursor: more ?? undefined } })), {
    quiet: true,
    done: (found, more) => {
      setHits((old) => [...(more ? (old ?? []) : []), ...found.data]);
      setCursor(found.next_cursor ?? null);
      if (!more) setChosen(new Set());
    },
  });
  const add = useAct(
    () => {
      const wanted = (hits ?? []).filter((hit) => chosen.has(hit.url)).slice(0, 50);
      return ok(api.POST(`${R}/investigations/{investigationID}/sources`, { params: { path: { repoID, investigationID: one.id } }, body: { candidates: wanted.map((hit) => (hit.doi ? { doi: hit.doi } : { url: hit.url })) } }));
    },
    {
      stale: [["sources", repoID], ["investigation", repoID, one.id]],
      quiet: true,
      done: (added) => {
        const bad = added.data.filter((row) => row.outcome === "skipped" || row.outcome === "invalid");
        say(tn(added.data.length - bad.length, "{n} source added", "{n} sources added"));
        if (bad[0]?.message) complain(bad[0].message);
        onClose();
      },
    },
  );
  const toggle = (url: string) => {
    const next = new Set(chosen);
    if (!next.delete(url)) next.add(url);
    setChosen(next);
  };
  return (
    <Dialog title={t("Look for sources")} open onClose={onClose} wide>
      <Form onSubmit={() => find.mutate(null)} error={find.error ?? add.error}>
        <div className="row nowrap find-row">
          <div className="grow">
            <Field label={t("What to look for")} autoFocus value={query} onChange={setQuery} />
          </div>
          <Button type="submit" busy={find.isPending}>
            {t("Look")}
          </Button>
        </div>
        {hits && hits.length === 0 && <p className="soft">{t("Nothing is found")}</p>}
        {hits && hits.length > 0 && (
          <ul className="finds" aria-label={t("What is found")}>
            {hits.map((hit) => (
              <li key={hit.url} className="with-check">
                <Checkbox checked={chosen.has(hit.url)} onChange={() => toggle(hit.url)} label={t("Select {title}", { title: hit.title })} />
                <div className="item">
                  <a href={hit.url} target="_blank" rel="noreferrer noopener" className="item-main">
                    {hit.title}
                  </a>
                  <p className="small soft break">{hit.snippet}</p>
                  <div className="item-more">
                    {hit.published_at && <span>{hit.published_at.slice(0, 4)}</span>}
                    {hit.doi && <span>{hit.doi}</span>}
                    {hit.retracted && <Badge tone="wrong">{t("retracted")}</Badge>}
                    {hit.already_exists && <Badge>{t("there already")}</Badge>}
                  </div>
                </div>
                <span />
              </li>
            ))}
          </ul>
        )}
        <div className="row dialog-buttons">
          {cursor && (
            <Button onPress={() => find.mutate(cursor)} busy={find.isPending}>
              {t("Load more")}
            </Button>
          )}
          <span className="grow" />
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button primary isDisabled={chosen.size === 0 || chosen.size > 50} busy={add.isPending} onPress={() => add.mutate(undefined)}>
            {chosen.size === 0 ? t("Add") : t("Add {n}", { n: count(chosen.size) })}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}
