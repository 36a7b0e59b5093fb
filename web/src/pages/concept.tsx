//! One concept: what is known of it in words, its facts, time, relations and sources, and what people decide about it.

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { reason, useAct, useCan, usePages, useRepo } from "../app/queries";
import { say } from "../app/toasts";
import { EXACTLY } from "../app/links";
import { useTitle } from "../app/title";
import { script } from "../app/scripts";
import { Badge, FactMarks, When } from "../parts/badges";
import { Button, LinkButton } from "../parts/button";
import { FactRow } from "../parts/fact";
import { Checkbox, Select } from "../parts/form";
import { LongList } from "../parts/list";
import { Menu, MenuItem } from "../parts/overlay";
import { Empty, Failure, Skeleton } from "../parts/states";
import { count, day, dollars, t, tn } from "../words";
import { AddAlias, MergeConcept, RenameConcept, SplitConcept, useUndo } from "./concept-acts";
import { Steps } from "./history";
import "./concept.css";
import "./sources.css";

const Prose = lazy(() => script(() => import("../parts/prose")));
type Concept = Schemas["Concept"];

const TABS = ["definition", "facts", "timeline", "relations", "sources", "history"] as const;

export default function ConceptPage() {
  const repoID = useRepo();
  const { id } = useParams({ from: "/r/$slug/concepts/$id" });
  const concept = useQuery({
    queryKey: ["concept", repoID, id],
    queryFn: ({ signal }) => ok(api.GET(`${R}/concepts/{conceptID}`, { params: { path: { repoID, conceptID: id } }, signal })),
  });
  useTitle(concept.data?.canonical_name);
  if (concept.isPending) return <div className="page"><Skeleton rows={6} height={64} /></div>;
  if (concept.error) return <div className="page"><Failure whole error={concept.error} retry={() => void concept.refetch()} /></div>;
  return <Shown concept={concept.data} key={concept.data.id} />;
}

function Shown({ concept }: { concept: Concept }) {
  const slug = useRepo();
  const can = useCan();
  const search = useSearch({ from: "/r/$slug/concepts/$id" });
  const tab = TABS.find((one) => one === search.tab) ?? "definition";
  const [act, setAct] = useState<"merge" | "rename" | "alias" | null>(null);
  const words: Record<(typeof TABS)[number], string> = {
    definition: t("What is known"),
    facts: tn(concept.fact_count, "{n} fact", "{n} facts"),
    timeline: t("By time"),
    relations: t("Relations"),
    sources: t("Sources"),
    history: t("History"),
  };
  const undo = useUndo(concept.id);
  const removeAlias = useAct((alias: string) => ok(api.DELETE(`${R}/concepts/{conceptID}/aliases`, { params: { path: { repoID: slug, conceptID: concept.id } }, body: { alias } })), {
    stale: [["concept", slug]],
    done: (step) => say(t("The name is removed"), undo(step.curation_id)),
  });
  const others = concept.contexts.filter((one) => one.concept_id !== concept.id);
  return (
    <div className="page">
      <header>
        <div className="stack tight">
          <h1>{concept.canonical_name}</h1>
          <div className="item-more">
            <Badge>{concept.context}</Badge>
            {concept.merged_from && <Badge tone="accent">{t("merged from another concept")}</Badge>}
            {others.map((one) => (
              <Link key={one.concept_id} to="/r/$slug/concepts/$id" params={{ slug, id: one.concept_id }}>
                {t("as {context} ({n})", { context: one.context, n: one.fact_count })}
              </Link>
            ))}
          </div>
          {concept.description && <p className="soft">{concept.description}</p>}
          {concept.aliases.length > 0 && (
            <ul className="row" aria-label={t("Other names")}>
              {concept.aliases.map((one) => (
                <li key={one.alias} className="chip">
                  {one.alias}
                  {can("concept:update") && (
                    <Button small quiet aria-label={t("Remove the name {name}", { name: one.alias })} onPress={() => removeAlias.mutate(one.alias)}>
                      ×
                    </Button>
                  )}
                </li>
              ))}
            </ul>
          )}
        </div>
        <LinkButton to="/r/$slug/graph" params={{ slug }} search={{ center: concept.id }}>
          {t("Graph")}
        </LinkButton>
        {can("concept:update") && (
          <Menu label={t("More for {title}", { title: concept.canonical_name })} quiet={false}>
            <MenuItem onAction={() => setAct("rename")}>{t("Rename or move …")}</MenuItem>
            <MenuItem onAction={() => setAct("alias")}>{t("Add another name …")}</MenuItem>
            <MenuItem onAction={() => setAct("merge")}>{t("Merge into another one …")}</MenuItem>
          </Menu>
        )}
      </header>
      <nav className="tablist" aria-label={t("Concept")}>
        {TABS.map((one) => (
          <Link key={one} to="/r/$slug/concepts/$id" params={{ slug, id: concept.id }} search={{ tab: one === "definition" ? undefined : one }} className="tab" aria-current={one === tab ? "page" : undefined} activeOptions={EXACTLY} resetScroll={false}>
            {words[one]}
          </Link>
        ))}
      </nav>
      {tab === "definition" && <Definition concept={concept} />}
      {tab === "facts" && <Facts concept={concept} />}
      {tab === "timeline" && <Timeline concept={concept} />}
      {tab === "relations" && <Relations concept={concept} />}
      {tab === "sources" && <Sources concept={concept} />}
      {tab === "history" && <Steps concept={concept.id} />}
      {act === "merge" && <MergeConcept concept={concept} onClose={() => setAct(null)} />}
      {act === "rename" && <RenameConcept concept={concept} onClose={() => setAct(null)} />}
      {act === "alias" && <AddAlias concept={concept} onClose={() => setAct(null)} />}
    </div>
  );
}

/** The text with live citations, its versions, and what changed between two of them. */
function Definition({ concept }: { concept: Concept }) {
  const slug = useRepo();
  const can = useCan();
  const search = useSearch({ from: "/r/$slug/concepts/$id" });
  const navigate = useNavigate({ from: "/r/$slug/concepts/$id" });
  const path = { repoID: slug, conceptID: concept.id };
  const definition = useQuery({
    queryKey: ["concept", slug, concept.id, "definition", search.version ?? 0, search.diff ?? 0],
    queryFn: ({ signal }) => ok(api.GET(`${R}/concepts/{conceptID}/definition`, { params: { path, query: { version: search.version, diff: search.diff } }, signal })),
  });
  const [asking, setAsking] = useState(false);
  const estimate = useQuery({
    queryKey: ["concept", slug, concept.id, "resynthesize"],
    enabled: asking,
    retry: false,
    queryFn: () => ok(api.POST(`${R}/concepts/{conceptID}/resynthesize`, { params: { path, query: { dry_run: true } } })),
  });
  const write = useAct(() => ok(api.POST(`${R}/concepts/{conceptID}/resynthesize`, { params: { path } })), {
    stale: [["concept", slug, concept.id]],
    done: () => {
      setAsking(false);
      say(t("A new version is being written"));
    },
  });
  const [shown, setShown] = useState<string | null>(null);
  if (definition.isPending) return <Skeleton rows={4} height={56} />;
  if (definition.error) return <Failure error={definition.error} retry={() => void definition.refetch()} />;
  const found = definition.data;
  const cited = found.facts.find((one) => one.fact_id === shown);
  const versions = found.versions;
  return (
    <div className="definition">
      <div className="stack">
        {found.content.trim() === "" ? (
          <Empty title={t("Nothing is written yet")}>{t("There are no facts to make a text of.")}</Empty>
        ) : found.diff ? (
          <ol className="diff serif">
            {found.diff.sentences.map((one, n) => (
              <li key={n} className={one.change}>
                {one.change !== "same" && <span className="unseen">{one.change === "added" ? t("added") : t("removed")}: </span>}
                {plain(one.text)}
              </li>
            ))}
          </ol>
        ) : (
          <Suspense fallback={<Skeleton rows={4} />}>
            <Prose text={found.content} onFact={(fact) => setShown(fact)} chosen={shown} />
          </Suspense>
        )}
        <div className="item-more">
          {found.method === "extractive" ? (
            <Badge title={t("The sentences of the facts as they stand; no model has written this")}>{t("facts as they stand")}</Badge>
          ) : (
            <span>
              {found.synthesis?.model}, {t("version {n}", { n: found.synthesis?.version ?? 0 })}, {found.synthesis && <When at={found.synthesis.created_at} />}
            </span>
          )}
          {found.synthesis && !found.synthesis.is_current && <Badge tone="warn">{t("something changed since")}</Badge>}
          {found.retracted_facts.length > 0 && <Badge tone="wrong">{tn(found.retracted_facts.length, "{n} cited fact is retracted", "{n} cited facts are retracted")}</Badge>}
          <span>{tn(found.facts.length, "{n} fact cited", "{n} facts cited")}</span>
        </div>
        {versions.length > 1 && (
          <div className="row">
            <Select small hideLabel label={t("Version")} value={String(search.version ?? versions[0]?.version ?? "")} onChange={(next) => void navigate({ search: (old) => ({ ...old, version: Number(next) === versions[0]?.version ? undefined : Number(next) }) })} options={versions.map((one) => [String(one.version), t("Version {n}, {day}", { n: one.version, day: day(one.created_at) })] as const)} />
            <Select small hideLabel label={t("Compare with")} value={String(search.diff ?? "")} onChange={(next) => void navigate({ search: (old) => ({ ...old, diff: next ? Number(next) : undefined }) })} options={[["", t("compare with …")], ...versions.map((one) => [String(one.version), t("Version {n}", { n: one.version })] as const)]} />
          </div>
        )}
        {found.diff && (found.diff.facts_added.length > 0 || found.diff.facts_removed.length > 0) && (
          <div className="against">
            <section className="stack tight">
              <h3>{t("Facts that came")}</h3>
              {found.diff.facts_added.map((one) => (
                <p key={one.fact_id} className="small">
                  <Link to="/r/$slug/facts/$id" params={{ slug, id: one.fact_id }}>{one.text ?? one.fact_id}</Link>
                </p>
              ))}
            </section>
            <section className="stack tight">
              <h3>{t("Facts that went")}</h3>
              {found.diff.facts_removed.map((one) => (
                <p key={one.fact_id} className="small">{one.text ?? t("deleted")}</p>
              ))}
            </section>
          </div>
        )}
        {can("concept:update") && (
          <div>
            {!asking ? (
              <Button small onPress={() => setAsking(true)}>
                {t("Write it again …")}
              </Button>
            ) : estimate.isPending ? (
              <Skeleton rows={1} height={32} />
            ) : estimate.error ? (
              <p className="note warn">{reason(estimate.error)}</p>
            ) : (
              <div className="note row">
                <span className="grow">{estimate.data && "usd" in estimate.data ? t("{model}, about {usd}", { model: estimate.data.model, usd: dollars(estimate.data.usd) }) : ""}</span>
                <Button small onPress={() => setAsking(false)}>
                  {t("Cancel")}
                </Button>
                <Button small primary onPress={() => write.mutate(undefined)} busy={write.isPending}>
                  {t("Write")}
                </Button>
              </div>
            )}
          </div>
        )}
      </div>
      <aside className="card stack tight definition-side" aria-live="polite">
        {shown && cited ? (
          <>
            <h2>{t("The fact behind it")}</h2>
            <p className="serif">{cited.text ?? t("deleted")}</p>
            <p className="row">
              <LinkButton small to="/r/$slug/facts/$id" params={{ slug, id: cited.fact_id }}>
                {t("Sentences and sources")}
              </LinkButton>
            </p>
          </>
        ) : (
          <p className="soft small">{t("What is underlined rests on a fact. Choose it to see which.")}</p>
        )}
        <Summaries concept={concept} />
      </aside>
    </div>
  );
}

const plain = (text: string) => text.replace(/\[[^\]]*\]\((fact|concept):[^)]*\)/g, "").replace(/\[(fact|concept):[^\]]*\]/g, "");

function Summaries({ concept }: { concept: Concept }) {
  const slug = useRepo();
  const summaries = useQuery({
    queryKey: ["concept", slug, concept.id, "summaries"],
    queryFn: ({ signal }) => ok(api.GET(`${R}/concepts/{conceptID}/summaries`, { params: { path: { repoID: slug, conceptID: concept.id }, query: { limit: 50 } }, signal })),
  });
  const failed = summaries.data?.data.filter((one) => one.failure) ?? [];
  if (!summaries.data || (summaries.data.data.every((one) => one.method === "extractive") && failed.length === 0)) return null;
  return (
    <section className="stack tight">
      <h3>{t("Made of")}</h3>
      <p className="small soft">{tn(summaries.data.data.length, "{n} summary of its facts", "{n} summaries of its facts")}</p>
      {failed.map((one) => (
        <p key={one.slice_number} className="note warn small">
          {one.failure}
        </p>
      ))}
    </section>
  );
}

function Facts({ concept }: { concept: Concept }) {
  const slug = useRepo();
  const can = useCan();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [splitting, setSplitting] = useState(false);
  const undo = useUndo(concept.id);
  const pages = usePages<Schemas["FactSummary"]>(["concept", slug, concept.id, "facts"], (cursor, signal) => ok(api.GET(`${R}/concepts/{conceptID}/facts`, { params: { path: { repoID: slug, conceptID: concept.id }, query: { cursor, limit: 100 } }, signal })));
  const remove = useAct((factID: string) => ok(api.DELETE(`${R}/facts/{factID}/concepts/{conceptID}`, { params: { path: { repoID: slug, factID, conceptID: concept.id } } })), {
    stale: [["concept", slug, concept.id]],
    done: (step) => say(t("The fact no longer belongs to this concept"), undo(step?.curation_id)),
  });
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  return (
    <div className="stack tight">
      {chosen.size > 0 && (
        <div className="row">
          <Badge tone="accent">{t("{n} selected", { n: chosen.size })}</Badge>
          <Button small onPress={() => setSplitting(true)}>
            {t("Split them off …")}
          </Button>
          <Button small quiet onPress={() => setChosen(new Set())}>
            {t("Select none")}
          </Button>
        </div>
      )}
      <LongList
        pages={pages}
        id={(one) => one.id}
        label={t("Facts")}
        height={72}
        empty={<Empty title={t("No facts speak of it any more")} />}
        row={(one) =>
          can("concept:update") ? (
            <div className="with-check">
              <Checkbox checked={chosen.has(one.id)} onChange={() => toggle(one.id)} label={t("Select {title}", { title: one.text })} />
              <FactRow fact={one} />
              <Menu label={t("More for {title}", { title: one.text })}>
                <MenuItem onAction={() => remove.mutate(one.id)}>{t("It does not speak of this")}</MenuItem>
              </Menu>
            </div>
          ) : (
            <FactRow fact={one} />
          )
        }
      />
      {splitting && (
        <SplitConcept
          concept={concept}
          facts={[...chosen]}
          onClose={() => {
            setSplitting(false);
            setChosen(new Set());
          }}
        />
      )}
    </div>
  );
}

function Timeline({ concept }: { concept: Concept }) {
  const slug = useRepo();
  const pages = usePages<Schemas["TimelineEntry"], Schemas["TimelinePage"]>(["concept", slug, concept.id, "timeline"], (cursor, signal) => ok(api.GET(`${R}/concepts/{conceptID}/timeline`, { params: { path: { repoID: slug, conceptID: concept.id }, query: { cursor, limit: 100 } }, signal })));
  return (
    <div className="stack tight">
      <p className="soft small">{t("By the date of their sources, not of what they tell.")}</p>
      {pages.first && !pages.first.complete && <p className="note small">{t("Only the newest 10,000 facts are read for this list.")}</p>}
      <LongList
        pages={pages}
        id={(one) => `${one.fact.id} ${one.source_id}`}
        label={t("By time")}
        height={72}
        empty={<Empty title={t("No facts speak of it any more")} />}
        row={(one, n) => {
          const year = one.date.slice(0, 4);
          const before = n > 0 ? pages.rows[n - 1]?.date.slice(0, 4) : undefined;
          return (
            <div className="time">
              <time dateTime={one.date} className={year === before ? "time-year same" : "time-year"}>
                {year}
              </time>
              <article className="item">
                <Link to="/r/$slug/sources/$id" params={{ slug, id: one.source_id }} search={{ fact: one.fact.id }} className="item-main serif" data-main>
                  {one.fact.text}
                </Link>
                <div className="item-more">
                  <span>
                    {one.date_kind === "published" ? t("published") : t("fetched")} {day(one.date)}
                  </span>
                  <FactMarks fact={one.fact} />
                </div>
              </article>
            </div>
          );
        }}
      />
    </div>
  );
}

function Relations({ concept }: { concept: Concept }) {
  const slug = useRepo();
  const [all, setAll] = useState(false);
  const pages = usePages<Schemas["ConceptRelation"], Schemas["RelationPage"]>(["concept", slug, concept.id, "relations", all], (cursor, signal) =>
    ok(api.GET(`${R}/concepts/{conceptID}/relations`, { params: { path: { repoID: slug, conceptID: concept.id }, query: { show_insignificant: all || undefined, show_small: all || undefined, cursor, limit: 100 } }, signal })),
  );
  const [open, setOpen] = useState<string | null>(null);
  const strongest = pages.rows[0]?.shared_fact_count ?? 1;
  const words = { stable: t("stable"), weak: t("weak"), insignificant: t("few facts") };
  return (
    <div className="stack tight">
      <Checkbox checked={all} onChange={setAll}>
        {t("Also weak ones")}
      </Checkbox>
      <LongList
        pages={pages}
        id={(one) => one.concept_id}
        label={t("Relations")}
        height={60}
        empty={<Empty title={t("It shares no facts with others")} />}
        row={(one) => (
          <article className="item">
            <div className="row nowrap">
              <Link to="/r/$slug/concepts/$id" params={{ slug, id: one.concept_id }} className="item-main grow" data-main>
                <strong>{one.canonical_name}</strong> <span className="soft small">{one.context}</span>
              </Link>
              <Button small quiet aria-expanded={open === one.concept_id} onPress={() => setOpen(open === one.concept_id ? null : one.concept_id)}>
                {tn(one.shared_fact_count, "{n} shared fact", "{n} shared facts")}
              </Button>
            </div>
            <div className="row nowrap">
              <span className="meter" aria-hidden>
                <span style={{ width: `${(100 * one.shared_fact_count) / strongest}%` }} />
              </span>
              <span className="soft small">{words[one.strength]}</span>
            </div>
            {open === one.concept_id && <Shared from={concept.id} to={one.concept_id} />}
          </article>
        )}
      />
    </div>
  );
}

export function Shared({ from, to }: { from: string; to: string }) {
  const slug = useRepo();
  const shared = useQuery({
    queryKey: ["relation", slug, from, to],
    queryFn: ({ signal }) => ok(api.GET(`${R}/concepts/{conceptID}/relations/{otherID}`, { params: { path: { repoID: slug, conceptID: from, otherID: to }, query: { limit: 20 } }, signal })),
  });
  if (shared.isPending) return <Skeleton rows={2} height={40} />;
  if (shared.error) return <Failure error={shared.error} />;
  return (
    <ul className="shared">
      {shared.data.data.map((fact) => (
        <li key={fact.id}>
          <FactRow fact={fact} />
        </li>
      ))}
      {shared.data.next_cursor && <li className="soft small">{t("The first {n} are shown.", { n: shared.data.data.length })}</li>}
    </ul>
  );
}

function Sources({ concept }: { concept: Concept }) {
  const slug = useRepo();
  const pages = usePages<Schemas["ConceptSource"], Schemas["ConceptSourcePage"]>(["concept", slug, concept.id, "sources"], (cursor, signal) => ok(api.GET(`${R}/concepts/{conceptID}/sources`, { params: { path: { repoID: slug, conceptID: concept.id }, query: { cursor, limit: 100 } }, signal })));
  return (
    <LongList
      pages={pages}
      id={(one) => one.source_id}
      label={t("Sources")}
      height={58}
      empty={<Empty title={t("No source speaks of it")} />}
      row={(one) => (
        <article className="item">
          <Link to="/r/$slug/sources/$id" params={{ slug, id: one.source_id }} className="item-main" data-main>
            {one.title || one.url}
          </Link>
          <div className="item-more">
            <span>{t("{n} of its facts", { n: count(one.fact_count) })}</span>
            {one.published_at && <span>{one.published_at.slice(0, 4)}</span>}
            {one.mark && <Badge tone="wrong">{one.mark.kind === "retracted" ? t("retracted") : t("superseded")}</Badge>}
          </div>
        </article>
      )}
    />
  );
}
