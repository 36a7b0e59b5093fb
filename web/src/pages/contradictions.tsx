//! Pairs of facts that may contradict each other, side by side.

import { Link, useSearch } from "@tanstack/react-router";
import { Scale } from "lucide-react";
import { useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { usePages, useRepo, useRepository } from "../app/queries";
import { EXACTLY } from "../app/links";
import { useTitle } from "../app/title";
import { Badge, FactMarks, When } from "../parts/badges";
import { LongList } from "../parts/list";
import { Empty } from "../parts/states";
import { percent, t, tn } from "../words";
import { DecideButtons, differenceWord, stateWord } from "./contradiction-parts";
import "../parts/form.css";
import "./fact.css";
import "./sources.css";

type Pair = Schemas["Contradiction"];
const STATES = ["open", "real", "scope_differs", "not_a_contradiction"] as const;

export default function Contradictions() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Contradictions"), repository?.name);
  const search = useSearch({ from: "/r/$slug/contradictions" });
  const state = STATES.find((one) => one === search.state) ?? "open";
  const pages = usePages<Pair>(["contradictions", repoID, state], (cursor, signal) => ok(api.GET(`${R}/contradictions`, { params: { path: { repoID }, query: { state, cursor, limit: 50 } }, signal })) as Promise<{ data: Pair[]; next_cursor: string | null }>);
  return (
    <div className="page">
      <header>
        <h1>{t("Contradictions")}</h1>
      </header>
      <nav className="tablist" aria-label={t("What was decided")}>
        {STATES.map((one) => (
          <Link key={one} to="/r/$slug/contradictions" params={{ slug: repoID }} search={{ state: one === "open" ? undefined : one }} className="tab" aria-current={one === state ? "page" : undefined} activeOptions={EXACTLY}>
            {stateWord(one)}
          </Link>
        ))}
      </nav>
      <LongList
        pages={pages}
        id={(pair) => pair.id}
        label={t("Contradictions")}
        height={190}
        empty={
          <Empty icon={<Scale aria-hidden />} title={state === "open" ? t("No open contradictions") : t("None of these")}>
            {state === "open" && t("Facts are compared when they are nearer than the threshold of the settings. Facts that contradict each other in very different words are not found.")}
          </Empty>
        }
        row={(pair) => <PairRow pair={pair} />}
      />
    </div>
  );
}

function PairRow({ pair }: { pair: Pair }) {
  const [note, setNote] = useState(pair.note ?? "");
  return (
    <article className="item pair">
      <div className="against">
        {pair.facts.map((side) => (
          <Side key={side.id} side={side} />
        ))}
      </div>
      <div className="item-more">
        <Badge tone="warn">{differenceWord(pair.difference)}</Badge>
        <span>{t("near by {share}", { share: percent(pair.cosine) })}</span>
        {pair.judged_by && (
          <span>
            {t("judged by {model}", { model: pair.judged_by })}
            {pair.confidence !== null && ` (${percent(pair.confidence)})`}
          </span>
        )}
        {pair.decided_at && (
          <span>
            {t("decided")} <When at={pair.decided_at} />
          </span>
        )}
        <span className="grow" />
        <label className="row tight nowrap">
          <span className="unseen">{t("Note")}</span>
          <input className="input pair-note" placeholder={t("Note")} maxLength={1000} value={note} onChange={(event) => setNote(event.target.value)} />
        </label>
        <DecideButtons id={pair.id} state={pair.state} note={note} />
      </div>
    </article>
  );
}

function Side({ side }: { side: Pair["facts"][number] }) {
  const slug = useRepo();
  return (
    <div className="stack tight">
      <p className="serif">
        <Link to="/r/$slug/facts/$id" params={{ slug, id: side.id }} className="item-main" data-main>
          {side.text}
        </Link>
      </p>
      <div className="item-more">
        <FactMarks fact={side} />
        {side.first_published && (
          <span>
            {side.first_published.slice(0, 4)}
            {side.last_published && side.last_published.slice(0, 4) !== side.first_published.slice(0, 4) ? `–${side.last_published.slice(0, 4)}` : ""}
          </span>
        )}
      </div>
      <ul className="small stack pair-sources">
        {side.sources.map((source) => (
          <li key={source.id}>
            <Link to="/r/$slug/sources/$id" params={{ slug, id: source.id }} search={{ fact: side.id }}>
              {source.title || t("without a title")}
            </Link>{" "}
            {source.published_at && <span className="soft">{source.published_at.slice(0, 4)}</span>}
          </li>
        ))}
        {side.all_sources > side.sources.length && <li className="soft">{tn(side.all_sources - side.sources.length, "and {n} more", "and {n} more")}</li>}
      </ul>
    </div>
  );
}
