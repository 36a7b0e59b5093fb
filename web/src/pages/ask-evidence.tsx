//! What an answer rests on: each piece with its words in the source, and the way to where they stand.

import { Link } from "@tanstack/react-router";
import { Lightbulb, TextQuote } from "lucide-react";
import type { Schemas } from "../api/client";
import { useRepo } from "../app/queries";
import { Badge } from "../parts/badges";
import { t, tn } from "../words";
import { sourceLine, Where, wordsOf } from "./ask-where";
import type { Answer } from "./ask-events";

export function Evidence({ answer, lit, onLit }: { answer: Answer; lit: ReadonlySet<string>; onLit: (keys: ReadonlySet<string>) => void }) {
  const cited = new Set(answer.sentences.flatMap((one) => one.keys));
  const { facts } = answer;
  return (
    <aside className="answer-side" aria-label={t("Evidence")}>
      <h2>{answer.near_only || answer.status === "abstained" ? t("Near, but no answer") : facts.length > 0 ? tn(facts.length, "{n} piece of evidence", "{n} pieces of evidence") : t("Evidence")}</h2>
      {facts.length === 0 ? (
        <p className="soft small">{answer.status === "running" ? t("It comes in a moment.") : t("Nothing was found.")}</p>
      ) : (
        <ol className="answer-evidence">
          {facts.map((fact, n) => (
            <Piece key={fact.key} fact={fact} n={n + 1} isLit={lit.has(fact.key)} isCited={cited.has(fact.key)} onLit={onLit} />
          ))}
        </ol>
      )}
    </aside>
  );
}

function Piece({ fact, n, isLit, isCited, onLit }: { fact: Schemas["AnswerEvidence"]; n: number; isLit: boolean; isCited: boolean; onLit: (keys: ReadonlySet<string>) => void }) {
  const slug = useRepo();
  const enter = () => onLit(new Set([fact.key]));
  const leave = () => onLit(new Set());
  const differs = fact.quote !== null && fact.quote.trim() !== fact.text.trim();
  return (
    <li className={`answer-piece${isLit ? " lit" : ""}`} onMouseEnter={enter} onMouseLeave={leave} onFocus={enter} onBlur={leave}>
      <span className="answer-number" aria-hidden>
        {n}
      </span>
      <div className="stack tight grow">
        <Where fact={fact} className="item-main serif">
          {wordsOf(fact)}
        </Where>
        {differs && <blockquote className="quote small">{fact.quote}</blockquote>}
        <div className="item-more">
          <span className="clip hit-source">{sourceLine(fact)}</span>
          {isCited && <Badge tone="accent">{t("cited")}</Badge>}
          {fact.retracted && <Badge tone="wrong">{t("retracted")}</Badge>}
          {fact.superseded && <Badge tone="warn">{t("superseded")}</Badge>}
          {fact.found_by.includes("hop") && fact.via && <Badge>{t("over {name}", { name: fact.via.name })}</Badge>}
          {fact.kind === "passage" && (
            <Badge icon={<TextQuote size={14} aria-hidden />} title={t("No fact rests on it; it is the text of the source.")}>
              {t("Passage")}
            </Badge>
          )}
          {fact.id && fact.text && (
            <Link to="/r/$slug/facts/$id" params={{ slug, id: fact.id }} className="row tight nowrap">
              <Lightbulb size={13} aria-hidden /> {t("the fact")}
            </Link>
          )}
        </div>
      </div>
    </li>
  );
}
