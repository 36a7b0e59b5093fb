//! Beside a document: the fact that was chosen, all facts of the source, what no fact rests on, and how the source was read.

import { Link } from "@tanstack/react-router";
import { ChevronLeft, ChevronRight, Copy, TriangleAlert } from "lucide-react";
import { api, ok, R, type Schemas } from "../api/client";
import { usePages, useRepo } from "../app/queries";
import { Badge, FactMarks, When } from "../parts/badges";
import { Button } from "../parts/button";
import { LongList } from "../parts/list";
import { OriginNote } from "../parts/origin";
import { Empty } from "../parts/states";
import { count, dollars, percent, t, tn } from "../words";
import { droppedWord } from "./dropped-words";

type Source = Schemas["Source"];
export type Quote = { index: number; page: number | null; text: string };

export function ChosenFact({ fact, quote, at, of, step, copy, close }: { fact: Schemas["Fact"]; quote: Quote | undefined; at: number; of: number; step: (by: number) => void; copy: () => void; close: () => void }) {
  const slug = useRepo();
  return (
    <article className="stack tight" aria-live="polite">
      <p className="serif break">
        <Link to="/r/$slug/facts/$id" params={{ slug, id: fact.id }} className="item-main">
          {fact.text}
        </Link>
      </p>
      {quote && quote.text !== fact.text && <blockquote className="quote serif">{quote.text}</blockquote>}
      <div className="item-more">
        <FactMarks fact={fact} />
        {quote?.page && <span>{t("p. {n}", { n: quote.page })}</span>}
        {fact.source_count > 1 && <span>{tn(fact.source_count, "{n} source", "{n} sources")}</span>}
        {fact.candidate_contradictions.length > 0 && (
          <Link to="/r/$slug/facts/$id" params={{ slug, id: fact.id }}>
            <Badge tone="wrong" icon={<TriangleAlert size={14} aria-hidden />}>
              {tn(fact.candidate_contradictions.length, "{n} contradiction?", "{n} contradictions?")}
            </Badge>
          </Link>
        )}
        <span className="grow" />
        {of > 1 && (
          <span className="row tight nowrap">
            <Button small quiet onPress={() => step(-1)} aria-label={t("Previous sentence of the fact")}>
              <ChevronLeft aria-hidden />
            </Button>
            {at + 1}/{of}
            <Button small quiet onPress={() => step(1)} aria-label={t("Next sentence of the fact")}>
              <ChevronRight aria-hidden />
            </Button>
          </span>
        )}
        <Button small quiet onPress={copy} aria-label={t("Copy the quote with its source")}>
          <Copy aria-hidden />
        </Button>
        <Button small quiet onPress={close} aria-label={t("Choose no fact")}>
          ×
        </Button>
      </div>
    </article>
  );
}

export function FactsPane({ source, chosen, choose, view, setView, onSentence }: { source: Source; chosen: string | undefined; choose: (fact: string | undefined) => void; view: string; setView: (view: string) => void; onSentence: (sentence: number, page: number | null) => void }) {
  const tabs: [string, string][] = [
    ["facts", tn(source.fact_count, "{n} fact", "{n} facts")],
    ["uncited", t("Not cited")],
    ["about", t("About")],
  ];
  return (
    <>
      <div className="tablist reader-tabs" role="tablist" aria-label={t("What was found")}>
        {tabs.map(([id, name]) => (
          <button key={id} type="button" role="tab" aria-selected={view === id} data-selected={view === id || undefined} className="tab reader-tab" onClick={() => setView(id)}>
            {name}
          </button>
        ))}
      </div>
      <div className="reader-scroll" role="tabpanel" aria-label={tabs.find(([id]) => id === view)?.[1]}>
        {view === "uncited" ? <Uncited source={source} onSentence={onSentence} /> : view === "about" ? <About source={source} /> : <Facts source={source} chosen={chosen} choose={choose} />}
      </div>
    </>
  );
}

function Facts({ source, chosen, choose }: { source: Source; chosen: string | undefined; choose: (fact: string | undefined) => void }) {
  const repoID = useRepo();
  const pages = usePages<Schemas["FactSummary"]>(["source-facts", repoID, source.id, "list"], (cursor, signal) =>
    ok(api.GET(`${R}/sources/{sourceID}/facts`, { params: { path: { repoID, sourceID: source.id }, query: { cursor, limit: 100 } }, signal })),
  );
  const working = source.status !== "processed" && source.status !== "failed";
  return (
    <LongList
      still
      plain
      pages={pages}
      id={(fact) => fact.id}
      label={t("Facts of this source")}
      height={70}
      empty={
        working ? (
          <Empty title={t("Facts are being found")}>{t("They appear here as parts of the text are read.")}</Empty>
        ) : (
          <Empty title={t("No facts were found")}>{source.extraction?.reason?.message ?? t("The tab “About” says what became of the text.")}</Empty>
        )
      }
      row={(fact) => (
        <button type="button" className="reader-fact" aria-pressed={fact.id === chosen} onClick={() => choose(fact.id === chosen ? undefined : fact.id)} data-main>
          <span className="serif">{fact.text}</span>
          <span className="item-more">
            <FactMarks fact={fact} />
            {fact.source_count > 1 && <span>{tn(fact.source_count, "{n} source", "{n} sources")}</span>}
          </span>
        </button>
      )}
    />
  );
}

function Uncited({ source, onSentence }: { source: Source; onSentence: (sentence: number, page: number | null) => void }) {
  const repoID = useRepo();
  const pages = usePages<Schemas["Reference"]>(["source-facts", repoID, source.id, "uncited"], (cursor, signal) =>
    ok(api.GET(`${R}/sources/{sourceID}/references`, { params: { path: { repoID, sourceID: source.id }, query: { cited: false, cursor, limit: 100 } }, signal })),
  );
  return (
    <LongList
      still
      plain
      pages={pages}
      id={(one) => String(one.sentence_index)}
      label={t("Sentences that no fact rests on")}
      empty={<Empty title={t("Every sentence is cited")} />}
      row={(one) => (
        <button type="button" className="reader-fact" onClick={() => onSentence(one.sentence_index, one.page ?? null)} data-main>
          <span className="serif">{one.text}</span>
          {one.page && <span className="item-more">{t("p. {n}", { n: one.page })}</span>}
        </button>
      )}
    />
  );
}

function About({ source }: { source: Source }) {
  const { extraction, origin } = source;
  const lines: [string, React.ReactNode][] = [
    [t("Added"), <When key="a" at={source.created_at} />],
    [t("Address"), source.url.startsWith("http") ? <a key="u" href={source.url} target="_blank" rel="noreferrer noopener" className="break">{source.url}</a> : (source.file_name ?? "—")],
    [t("DOI"), source.doi],
    [t("Author"), source.author],
    [t("Published"), source.published_at?.slice(0, 10)],
    [t("Language"), source.language],
    [t("License"), source.license],
    [t("Pages"), source.pages.length > 0 ? count(source.pages.length) : null],
    [t("Read by"), extraction?.model.startsWith("builtin-") ? t("no model: the sentences as they stand") : extraction?.model],
    [t("Sentences cited"), extraction ? `${count(extraction.cited_sentences)} / ${count(extraction.sentences)} (${percent(extraction.coverage)})` : null],
    [t("Spent on models"), dollars(source.cost.usd)],
    [t("At most"), source.max_cost_usd === null ? null : dollars(source.max_cost_usd)],
  ];
  const dropped = Object.entries((extraction?.dropped ?? {}) as Record<string, number>).sort((a, b) => b[1] - a[1]);
  return (
    <div className="stack">
      <dl className="about">
        {lines
          .filter(([, value]) => value)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd className="break">{value}</dd>
            </div>
          ))}
      </dl>
      {origin && (
        <section className="stack tight">
          <h2>{t("Origin")}</h2>
          <OriginNote origin={origin} />
        </section>
      )}
      {source.mark && (
        <p className="note wrong">
          {source.mark.kind === "retracted" ? t("retracted") : t("superseded")}: {source.mark.reason ?? "—"} <When at={source.mark.marked_at} />
        </p>
      )}
      {extraction && extraction.failed > 0 && (
        <section className="stack tight">
          <h2>{tn(extraction.failed, "{n} part was not read", "{n} parts were not read")}</h2>
          <ul className="stack tight">
            {extraction.failures.map((one, n) => (
              <li key={n} className="small break">
                <code>{one.code}</code> {one.message}
              </li>
            ))}
          </ul>
        </section>
      )}
      {dropped.length > 0 && (
        <section className="stack tight">
          <h2>{t("What did not become a fact")}</h2>
          <dl className="about">
            {dropped.map(([why, n]) => (
              <div key={why}>
                <dt>{droppedWord(why)}</dt>
                <dd className="num">{count(n)}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {source.fetch_attempts.length > 0 && (
        <section className="stack tight">
          <h2>{t("How it was fetched")}</h2>
          <ul className="stack tight">
            {source.fetch_attempts.map((one, n) => (
              <li key={n} className="small break">
                {one.provider}: {one.outcome}
                {one.status ? ` (HTTP ${one.status})` : ""}, {one.ms} ms
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}
