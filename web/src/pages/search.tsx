//! One box over facts, concepts, sources and passages.

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { BookOpenText, Boxes, FileText, Lightbulb, Search as SearchIcon, TextQuote } from "lucide-react";
import { type ReactNode, useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { useCan, usePages, useRepo, useRepository } from "../app/queries";
import { useTitle } from "../app/title";
import { useTyped } from "../app/typed";
import { Badge } from "../parts/badges";
import { Button, LinkButton } from "../parts/button";
import { Checkbox, Select } from "../parts/form";
import { highlightSpans } from "../parts/highlight";
import { LongList } from "../parts/list";
import { Dialog } from "../parts/overlay";
import { Empty } from "../parts/states";
import { count, t } from "../words";
import { degradedWord } from "./degraded";
import { NewReport } from "./reports";
import "./search.css";

type Hit = Schemas["SearchResult"];
const TYPES = ["facts", "concepts", "sources", "reports", "passages"] as const;
const MODES = ["auto", "lexical", "vector", "hybrid", "deep"] as const;
const FIELDS = ["context", "concept", "source", "language", "year", "kind"] as const;
type Page = Schemas["SearchPage"];

export default function Search() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  const search = useSearch({ from: "/r/$slug/search" });
  const navigate = useNavigate({ from: "/r/$slug/search" });
  const can = useCan();
  const asked = search.q ?? "";
  const [typed, setTyped] = useTyped(asked, (words) => void navigate({ search: (old) => ({ ...old, q: words || undefined }), replace: true }));
  useTitle(asked || t("Search"), repository?.name);
  const type = TYPES.find((one) => one === search.types);
  const mode = MODES.find((one) => one === search.mode) ?? "auto";
  const explain = search.explain === "1";
  const [chosen, setChosen] = useState<ReadonlyMap<string, Hit>>(new Map());
  const [reporting, setReporting] = useState(false);
  const pages = usePages<Hit, Page>(
    ["search", repoID, asked, type ?? "", mode, explain],
    (cursor, signal) =>
      ok(api.GET(`${R}/search`, { params: { path: { repoID }, query: { q: asked, types: type, mode, explain: explain || undefined, cursor, limit: 50 } }, signal })) as Promise<Page>,
    { enabled: asked !== "", keep: true },
  );
  const facets = useQuery({
    queryKey: ["search", repoID, asked, "facets", mode],
    enabled: asked !== "",
    queryFn: ({ signal }) => ok(api.GET(`${R}/search`, { params: { path: { repoID }, query: { q: asked, mode: mode === "auto" ? "lexical" : mode, facets: true, limit: 1 } }, signal })),
  });
  const said = pages.first;
  const narrow = (field: string, value: string) => setTyped(`${typed.trim()} ${field}:${/\s/.test(value) ? `"${value}"` : value}`);
  const toggle = (hit: Hit) => {
    const next = new Map(chosen);
    if (!next.delete(hit.id)) next.set(hit.id, hit);
    setChosen(next);
  };
  return (
    <div className="page search">
      <h1 className="unseen">{t("Search")}</h1>
      <div className="bar">
        <input className="input search-box" type="search" autoFocus aria-label={t("Search")} placeholder={t("A question, words, or a claim")} value={typed} onChange={(event) => setTyped(event.target.value)} />
        <Select
          small
          hideLabel
          label={t("What is found")}
          value={type ?? ""}
          onChange={(next) => void navigate({ search: (old) => ({ ...old, types: next || undefined }) })}
          options={[
            ["", t("Facts, concepts, sources")],
            ["facts", t("Facts")],
            ["concepts", t("Concepts")],
            ["sources", t("Sources")],
            ["reports", t("Reports")],
            ["passages", t("Passages")],
          ]}
        />
        <Select
          small
          hideLabel
          label={t("How")}
          value={mode}
          onChange={(next) => void navigate({ search: (old) => ({ ...old, mode: next === "auto" ? undefined : next }) })}
          options={[
            ["auto", t("By words and meaning")],
            ["lexical", t("By words")],
            ["vector", t("By meaning")],
            ["deep", t("Over shared names")],
          ]}
        />
        <Checkbox checked={explain} onChange={(on) => void navigate({ search: (old) => ({ ...old, explain: on ? "1" : undefined }) })}>
          {t("Why found")}
        </Checkbox>
      </div>
      {asked === "" ? (
        <Empty icon={<SearchIcon aria-hidden />} title={t("Search this repository")}>
          {t("“Words in quotes” stand together, -word must not occur, and year:2019..2021, concept:, source:, language: and kind: narrow what is found.")}
        </Empty>
      ) : (
        <div className="search-columns">
          <div className="stack tight">
            {said && (
              <div className="row small soft">
                <span>{modeWord(said.search_mode)}</span>
                {said.degraded_reason && <Badge tone="warn">{degradedWord(said.degraded_reason)}</Badge>}
                {chosen.size > 0 && (
                  <span className="row">
                    <Badge tone="accent">{t("{n} selected", { n: chosen.size })}</Badge>
                    {can("report:write") && (
                      <Button small onPress={() => setReporting(true)}>
                        {t("Begin a report with them")}
                      </Button>
                    )}
                    <Button small quiet onPress={() => setChosen(new Map())}>
                      {t("Select none")}
                    </Button>
                  </span>
                )}
              </div>
            )}
            <LongList
              pages={pages}
              id={(hit) => `${hit.type} ${hit.id} ${hit.text.slice(0, 40)}`}
              label={t("What is found")}
              height={84}
              empty={
                <Empty icon={<SearchIcon aria-hidden />} title={t("Nothing is found")} action={can("source:write") ? <LinkButton to="/r/$slug/sources" params={{ slug: repoID }} search={{ add: "1" }}>{t("Add sources")}</LinkButton> : undefined}>
                  {t("Other words may help, or a source that says something about it.")}
                </Empty>
              }
              row={(hit) => <HitRow hit={hit} chosen={chosen.has(hit.id)} onChoose={hit.type === "facts" ? () => toggle(hit) : undefined} />}
            />
          </div>
          {facets.data?.facets && <Facets facets={facets.data.facets} narrow={narrow} />}
        </div>
      )}
      {reporting && (
        <Dialog title={t("New report")} open onClose={() => setReporting(false)} wide>
          <NewReport text={[...chosen.values()].map((hit) => `- ${hit.text}`).join("\n")} onClose={() => setReporting(false)} />
        </Dialog>
      )}
    </div>
  );
}

const modeWord = (mode: Schemas["SearchMode"]) => ({ auto: "", lexical: t("Found by words"), vector: t("Found by meaning"), hybrid: t("Found by words and meaning"), deep: t("Found by words, meaning and shared names") })[mode];

function highlighted(text: string, spans: readonly (readonly number[])[]): ReactNode[] {
  return highlightSpans(text, spans).map((part, n) => (part.marked ? <mark key={n}>{part.text}</mark> : part.text));
}

function HitRow({ hit, chosen, onChoose }: { hit: Hit; chosen: boolean; onChoose?: () => void }) {
  const slug = useRepo();
  const icons: Record<string, ReactNode> = { facts: <Lightbulb size={16} />, concepts: <Boxes size={16} />, sources: <FileText size={16} />, passages: <TextQuote size={16} />, reports: <BookOpenText size={16} /> };
  const kinds: Record<string, string> = { facts: t("Fact"), concepts: t("Concept"), sources: t("Source"), passages: t("Passage"), reports: t("Report") };
  const text = <span className="serif">{highlighted(hit.text, hit.highlights)}</span>;
  const params = { slug, id: hit.id };
  const first = hit.source_ids[0];
  return (
    <div className="with-check">
      {onChoose ? <Checkbox checked={chosen} onChange={onChoose} label={t("Select {title}", { title: hit.text })} /> : <span className="hit-space" />}
      <article className="item">
        {hit.type === "concepts" ? (
          <Link to="/r/$slug/concepts/$id" params={params} className="item-main" data-main>
            {highlighted(hit.text, hit.highlights)}
          </Link>
        ) : hit.type === "facts" ? (
          <Link to="/r/$slug/facts/$id" params={params} className="item-main" data-main>
            {text}
          </Link>
        ) : (
          <>
            <Link to={hit.type === "reports" ? "/r/$slug/reports/$id" : "/r/$slug/sources/$id"} params={params} className="item-main" data-main>
              <strong>{hit.title || t("without a title")}</strong>
            </Link>
            <p>{text}</p>
          </>
        )}
        <div className="item-more">
          <span className="row tight">
            <span aria-hidden className="hit-icon">{icons[hit.type]}</span>
            {kinds[hit.type] ?? hit.type}
          </span>
          {hit.type === "facts" && first && (
            <Link to="/r/$slug/sources/$id" params={{ slug, id: first }} search={{ fact: hit.id }} className="clip hit-source">
              {hit.title || t("Source")}
            </Link>
          )}
          {hit.source_ids.length > 1 && <span>+{hit.source_ids.length - 1}</span>}
          {hit.retracted && <Badge tone="wrong">{t("retracted")}</Badge>}
          {hit.found_by.includes("hop") && hit.via_name && <Badge>{t("over {name}", { name: hit.via_name })}</Badge>}
          {hit.explain && (
            <span className="soft">
              {[
                hit.explain.lexical && t("by words: place {n}", { n: hit.explain.lexical.rank }),
                hit.explain.vector && t("by meaning: place {n} ({score})", { n: hit.explain.vector.rank, score: hit.explain.vector.score.toFixed(3) }),
                hit.explain.rerank && t("before the second look: place {n}", { n: hit.explain.rerank.rank_before }),
                hit.found_by.join(", "),
              ]
                .filter(Boolean)
                .join(" · ")}
            </span>
          )}
        </div>
      </article>
    </div>
  );
}

function Facets({ facets, narrow }: { facets: Schemas["SearchFacets"]; narrow: (field: string, value: string) => void }) {
  const names: Record<(typeof FIELDS)[number], string> = { context: t("Context"), concept: t("Concept"), source: t("Source"), language: t("Language"), year: t("Year"), kind: t("Kind") };
  return (
    <aside className="facets" aria-label={t("Narrow what is found")}>
      {FIELDS.filter((field) => facets[field].length > 1).map((field) => (
        <section key={field} className="stack tight">
          <h2>{names[field]}</h2>
          <ul>
            {facets[field].slice(0, 8).map((one) => (
              <li key={one.value}>
                <button type="button" className="facet" onClick={() => narrow(field, field === "concept" && one.label ? one.label : one.value)}>
                  <span className="clip">{one.label ?? one.value}</span>
                  <span className="soft num">{count(one.count)}</span>
                </button>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </aside>
  );
}
