//! An answer: its sentences with their marks as they come, the evidence beside them, and what speaks against it.

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { CircleStop, Copy, FileText, RotateCcw, TriangleAlert } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { useKeys } from "../app/keys";
import { useAct, useCan, useRepo } from "../app/queries";
import { complain, say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Badge, When } from "../parts/badges";
import { Button, LinkButton } from "../parts/button";
import { Confirm, Menu, MenuItem } from "../parts/overlay";
import { Failure, Skeleton } from "../parts/states";
import { dollars, t, tn } from "../words";
import { AskBox, Chips, type Filters } from "./ask-box";
import type { Answer } from "./ask-events";
import { Evidence } from "./ask-evidence";
import { Feedback } from "./ask-feedback";
import { type Line, useAnswer } from "./ask-stream";
import { goTo, nameOf, sourceLine, Where, wordsOf } from "./ask-where";
import { AnswerStatus, changeWord, extractiveWord, footnoted, leftOutWord, missingWord, verdict } from "./ask-words";
import { degradedWord } from "./degraded";
import "../parts/list.css";
import "./fact.css";
import "./report.css";

/** After so long without a further sentence it is said that the model is still writing. */
const SLOW = 8_000;
/** A question longer than this is written smaller. */
const LONG = 120;
/** Evidence that can be opened by a digit. */
const DIGITS = 9;
/** A question is understood by so many before it. */
const UNDERSTOOD_BY = 3;

type EvidenceFact = Schemas["AnswerEvidence"];
type AnswerSentence = Schemas["AnswerSentence"];

const filtersOf = ({ filters }: Answer): Filters => ({ sources: filters.source_ids, concepts: filters.concept_ids, context: filters.context ?? undefined, from: filters.published_from ?? undefined, to: filters.published_to ?? undefined });

export default function AnswerPage() {
  const { id } = useParams({ from: "/r/$slug/answers/$id" });
  const answer = useAnswer(id);
  useTitle(answer.data?.question.slice(0, 80));
  if (answer.isPending) return <div className="page"><Skeleton rows={8} /></div>;
  if (answer.error && !answer.data) return <div className="page"><Failure whole error={answer.error} retry={() => void answer.refetch()} /></div>;
  return <Shown answer={answer.data} line={answer.line} key={id} />;
}

function Shown({ answer, line }: { answer: Answer; line: Line }) {
  const slug = useRepo();
  const can = useCan();
  const navigate = useNavigate();
  const [lit, setLit] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState<"feedback" | "delete" | "forget" | null>(null);
  const [next, setNext] = useState("");
  const [narrowed, setNarrowed] = useState<Filters>(() => filtersOf(answer));
  const path = { repoID: slug, answerID: answer.id };
  const stale = [["answer", slug, answer.id], ["answers", slug]];
  const running = answer.status === "running";
  const stop = useAct(() => ok(api.POST(`${R}/answers/{answerID}/cancel`, { params: { path } })), { stale });
  const share = useAct((shared: boolean) => ok(api.PUT(`${R}/answers/{answerID}`, { params: { path }, body: { shared } })), {
    stale,
    done: (_, shared) => say(shared ? t("Everybody who may read this repository sees it now") : t("Only you see it now")),
  });
  const remove = useAct(() => ok(api.DELETE(`${R}/answers/{answerID}`, { params: { path } })), { stale: [["answers", slug]], done: () => void navigate({ to: "/r/$slug/ask", params: { slug } }) });
  const forget = useAct(() => ok(api.DELETE(`${R}/conversations/{conversationID}`, { params: { path: { repoID: slug, conversationID: answer.conversation_id ?? "" } } })), { stale: [["answers", slug]], done: () => void navigate({ to: "/r/$slug/ask", params: { slug } }) });
  const report = useAct(() => ok(api.POST(`${R}/answers/{answerID}/report`, { params: { path }, body: {} })), {
    stale: [["reports", slug]],
    done: (made) => void navigate({ to: "/r/$slug/reports/$id", params: { slug, id: made.id } }),
  });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(footnoted(answer));
      say(t("The answer is copied with its footnotes"));
    } catch {
      complain(t("The browser does not let this page copy."));
    }
  };
  const facts = new Map(answer.facts.map((fact) => [fact.key, fact]));
  useKeys({
    Escape: running && answer.is_own ? () => stop.mutate(undefined) : undefined,
    ...Object.fromEntries(answer.facts.slice(0, DIGITS).map((fact, n) => [String(n + 1), () => goTo(navigate, slug, fact)])),
  });
  const again = { q: answer.question, sources: answer.filters.source_ids.join(",") || undefined, concepts: answer.filters.concept_ids.join(",") || undefined, context: answer.filters.context ?? undefined, from: answer.filters.published_from ?? undefined, to: answer.filters.published_to ?? undefined };
  const askAgain = (
    <LinkButton to="/r/$slug/ask" params={{ slug }} search={again}>
      <RotateCcw aria-hidden /> {t("Ask again …")}
    </LinkButton>
  );
  const slow = useSlow(running && answer.facts.length > 0, answer.sentences.length + answer.dropped.length);
  return (
    <div className="page answer">
      <header>
        <div className="stack tight">
          <h1 className={answer.question.length > LONG ? "answer-long" : undefined}>{answer.question}</h1>
          <div className="item-more">
            <AnswerStatus answer={answer} />
            {answer.cached && <Badge title={t("The same question was answered before, and nothing has changed since.")}>{t("from before, at no cost")}</Badge>}
            {answer.shared && <Badge>{answer.is_own ? t("shared by you") : t("shared by somebody")}</Badge>}
            {answer.model && answer.mode === "model" && <span>{answer.model}</span>}
            {answer.cost.usd > 0 && <span>{dollars(answer.cost.usd)}</span>}
            <When at={answer.created_at} />
          </div>
        </div>
        {running && answer.is_own && (
          <Button onPress={() => stop.mutate(undefined)} busy={stop.isPending}>
            <CircleStop aria-hidden /> {t("Stop")} <kbd aria-hidden>Esc</kbd>
          </Button>
        )}
        {!running && (
          <Menu label={t("More for {title}", { title: answer.question })} quiet={false}>
            <MenuItem onAction={() => void navigate({ to: "/r/$slug/ask", params: { slug }, search: again })}>{t("Ask again …")}</MenuItem>
            <MenuItem onAction={() => setOpen("feedback")}>{t("Say whether it is right …")}</MenuItem>
            {answer.is_own && <MenuItem onAction={() => share.mutate(!answer.shared)}>{answer.shared ? t("Show it to nobody else") : t("Show it to all who read here")}</MenuItem>}
            {answer.is_own && (
              <MenuItem danger onAction={() => setOpen("delete")}>
                {t("Delete …")}
              </MenuItem>
            )}
            {answer.is_own && answer.conversation_id && (
              <MenuItem danger onAction={() => setOpen("forget")}>
                {t("Delete the conversation …")}
              </MenuItem>
            )}
          </Menu>
        )}
      </header>
      {line !== "live" && running && <p className="note warn small answer-changed" role="status">{line === "lost" ? t("The connection is lost. What is here stays, and the rest comes as soon as the service answers again.") : t("No live news: asking every few seconds")}</p>}
      {answer.evidence_changed.length > 0 && <Changed answer={answer}>{askAgain}</Changed>}
      <div className="answer-columns">
        <div className="stack answer-main">
          <Understood answer={answer} />
          {answer.mode === "extractive" && answer.status !== "abstained" && <p className="note">{extractiveWord(answer.extractive_reason)}{answer.extractive_reason === "over_budget" && can("repository:manage") && <> <Link to="/r/$slug/cost" params={{ slug }}>{t("To the budget")}</Link></>}{(answer.extractive_reason === "daily_limit" || answer.extractive_reason === "not_permitted") && can("repository:manage") && <> <Link to="/r/$slug/settings" params={{ slug }} search={{ tab: "ask" }}>{t("To the settings")}</Link></>}</p>}
          {answer.status === "failed" && <p className="note wrong break" role="alert">{answer.problem && answer.problem.code !== "internal" ? answer.problem.detail || answer.problem.title : t("It could not be written to its end.")} {t("What was shown stays.")}</p>}
          {answer.status === "abstained" && <Abstained answer={answer} />}
          <Sentences answer={answer} facts={facts} lit={lit} onLit={setLit} />
          {running && (
            <p className="soft answer-now" role="status">
              <span className="pulse on" aria-hidden /> {answer.facts.length === 0 ? t("Looking for evidence …") : slow ? t("Still writing. The evidence is here already.") : answer.mode === "extractive" ? t("Choosing the facts …") : t("Writing, and checking each sentence …")}
            </p>
          )}
          {answer.status === "cancelled" && <p className="soft">{t("It was stopped here.")}</p>}
          {!running && answer.sentences.length > 0 && (
            <div className="row" role="group" aria-label={t("What can be done with it")}>
              <Button small onPress={() => void copy()}>
                <Copy aria-hidden /> {t("Copy with footnotes")}
              </Button>
              {can("report:write") && (
                <Button small onPress={() => report.mutate(undefined)} busy={report.isPending}>
                  <FileText aria-hidden /> {t("Save as a report")}
                </Button>
              )}
              <Button small quiet onPress={() => setOpen("feedback")}>
                {answer.feedback.length > 0 ? t("You said what you think of it. Change it …") : t("Is it right? Say so …")}
              </Button>
            </div>
          )}
          <Disagreeing answer={answer} />
          <LeftOut answer={answer} />
          {answer.status !== "abstained" && answer.missing && <Missing text={answer.missing} />}
        </div>
        <Evidence answer={answer} lit={lit} onLit={setLit} />
        {!running && answer.is_own && (
          <div className="answer-next">
            <AskBox follows question={next} onQuestion={setNext} filters={narrowed} onFilters={setNarrowed} conversation={answer.conversation_id ?? undefined} />
          </div>
        )}
      </div>
      {open === "feedback" && <Feedback answer={answer} onClose={() => setOpen(null)} />}
      {open === "forget" && (
        <Confirm title={t("Delete this conversation?")} open onClose={() => setOpen(null)} onConfirm={() => forget.mutate(undefined)} action={t("Delete")} busy={forget.isPending}>
          <p>{t("All its questions and answers go. The facts stay. This can't be undone.")}</p>
        </Confirm>
      )}
      {open === "delete" && (
        <Confirm title={t("Delete this answer?")} open onClose={() => setOpen(null)} onConfirm={() => remove.mutate(undefined)} action={t("Delete")} busy={remove.isPending}>
          <p>{t("The facts stay. This can't be undone.")}</p>
        </Confirm>
      )}
    </div>
  );
}

/** Whether nothing has changed for a while. */
function useSlow(active: boolean, stamp: number): boolean {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    setSlow(false);
    if (!active) return;
    const timer = setTimeout(() => setSlow(true), SLOW);
    return () => clearTimeout(timer);
  }, [active, stamp]);
  return slow;
}

/** How the question was taken, and what went before it. */
function Understood({ answer }: { answer: Answer }) {
  const slug = useRepo();
  const before = useQuery({
    queryKey: ["conversation", slug, answer.conversation_id],
    enabled: answer.conversation_id !== null && answer.is_own,
    staleTime: 60_000,
    retry: false,
    queryFn: ({ signal }) => ok(api.GET(`${R}/conversations/{conversationID}`, { params: { path: { repoID: slug, conversationID: answer.conversation_id ?? "" } }, signal })),
  });
  const earlier = (before.data?.answers ?? []).filter((one) => one.id !== answer.id && one.created_at < answer.created_at).slice(-UNDERSTOOD_BY);
  const otherwise = answer.question_as_searched && answer.question_as_searched !== answer.question ? answer.question_as_searched : null;
  const filters = filtersOf(answer);
  const narrowed = filters.sources.length + filters.concepts.length > 0 || filters.context || filters.from || filters.to;
  if (earlier.length === 0 && !otherwise && answer.concepts.length === 0 && !narrowed && !answer.degraded_reason) return null;
  return (
    <div className="stack tight small answer-understood">
      {earlier.length > 0 && (
        <p className="soft">
          {t("It follows on:")}{" "}
          {earlier.map((one, n) => (
            <span key={one.id}>
              {n > 0 && " · "}
              <Link to="/r/$slug/answers/$id" params={{ slug, id: one.id }}>
                {one.question}
              </Link>
            </span>
          ))}
        </p>
      )}
      {otherwise && <p className="soft break">{t("Searched as: {question}", { question: otherwise })}</p>}
      {narrowed && (
        <p className="row tight">
          <span className="soft">{t("Only from:")}</span> <Chips filters={filters} />
        </p>
      )}
      {answer.concepts.length > 0 && (
        <p className="row tight">
          <span className="soft">{t("It speaks of:")}</span>
          {answer.concepts.map((one) => (
            <Link key={one.id} to="/r/$slug/concepts/$id" params={{ slug, id: one.id }} className="chip">
              {one.name}
            </Link>
          ))}
        </p>
      )}
      {answer.degraded_reason && (
        <p>
          <Badge tone="warn">{degradedWord(answer.degraded_reason)}</Badge>
        </p>
      )}
    </div>
  );
}

function Sentences({ answer, facts, lit, onLit }: { answer: Answer; facts: ReadonlyMap<string, EvidenceFact>; lit: ReadonlySet<string>; onLit: (keys: ReadonlySet<string>) => void }) {
  const place = new Map(answer.facts.map((fact, n) => [fact.key, n + 1]));
  const extractive = answer.mode === "extractive";
  // Before the first one comes, so that it is read out as well.
  return (
    <ol className="answer-sentences serif" aria-live="polite" aria-relevant="additions" aria-label={t("Answer")}>
      {answer.sentences.map((one, n) => (
        <li key={one.index}>
          {extractive && one.group && one.group.concept_id !== answer.sentences[n - 1]?.group?.concept_id && <h2 className="answer-group">{one.group.name}</h2>}
          <Sentence sentence={one} facts={facts} place={place} marked={!extractive} isLit={one.keys.some((key) => lit.has(key))} onLit={onLit} />
        </li>
      ))}
    </ol>
  );
}

function Sentence({ sentence, facts, place, marked, isLit, onLit }: { sentence: AnswerSentence; facts: ReadonlyMap<string, EvidenceFact>; place: ReadonlyMap<string, number>; marked: boolean; isLit: boolean; onLit: (keys: ReadonlySet<string>) => void }) {
  const [tone, icon, word] = verdict(sentence.verdict);
  const cited = sentence.keys.flatMap((key) => facts.get(key) ?? []);
  // Of what rests on passages alone, whoever may not read sources is not given the words.
  const text = sentence.text || t("You may not read what this rests on.");
  const first = cited[0];
  const enter = () => onLit(new Set(sentence.keys));
  const leave = () => onLit(new Set());
  return (
    <span className={`answer-sentence${isLit ? " lit" : ""}`} onMouseEnter={enter} onMouseLeave={leave} onFocus={enter} onBlur={leave} data-sentence={sentence.index}>
      {first ? (
        <Where fact={first} className={marked ? `claim ${tone}` : "item-main"}>
          {text}
        </Where>
      ) : (
        <span className={marked ? `claim ${tone}` : undefined}>{text}</span>
      )}{" "}
      {marked && (
        <span className={`answer-sign ${tone}`}>
          {icon}
          {word}
        </span>
      )}
      {cited.map((fact) => (
        <Where key={fact.key} fact={fact} className="answer-note" aria-label={t("Evidence {n}: {text}", { n: place.get(fact.key) ?? 0, text: nameOf(fact) })}>
          {place.get(fact.key)}
        </Where>
      ))}
    </span>
  );
}

function Abstained({ answer }: { answer: Answer }) {
  return (
    <div className="note stack tight">
      <h2>{t("The facts here do not answer this")}</h2>
      {answer.missing && missingWord(answer.missing) !== t("None of the facts that were found answers the question.") && <p className="break">{missingWord(answer.missing)}</p>}
      <p className="soft">{answer.facts.length > 0 ? t("What is nearest to the question stands beside it. It is no answer.") : t("Nothing comes near to the question, either.")}</p>
      <LookFor />
    </div>
  );
}

function Missing({ text }: { text: string }) {
  return (
    <section className="note stack tight" aria-label={t("What is missing")}>
      <h2>{t("What is missing")}</h2>
      <p className="break">{missingWord(text)}</p>
      <LookFor />
    </section>
  );
}

function LookFor() {
  const slug = useRepo();
  const can = useCan();
  if (!can("source:write")) return null;
  return (
    <div>
      <LinkButton small to="/r/$slug/sources" params={{ slug }} search={{ add: "1" }}>
        {t("Look for sources")}
      </LinkButton>
    </div>
  );
}

function Changed({ answer, children }: { answer: Answer; children: ReactNode }) {
  const slug = useRepo();
  const text = (one: Schemas["ChangedEvidence"]) => answer.facts.find((fact) => (one.fact_id ? fact.id === one.fact_id : fact.key === one.key))?.text || (one.change === "removed" ? t("Words of a source that was deleted") : t("You may not read what this rests on."));
  return (
    <section className="note warn stack tight answer-changed" aria-label={t("The evidence has changed since")}>
      <h2>
        <TriangleAlert aria-hidden size={16} /> {t("The evidence has changed since")}
      </h2>
      <ul className="stack tight">
        {answer.evidence_changed.map((one) => (
          <li key={`${one.fact_id ?? one.key} ${one.change}`} className="break">
            {one.change === "removed" || !one.fact_id ? (
              <span>{text(one)}</span>
            ) : (
              <Link to="/r/$slug/facts/$id" params={{ slug, id: one.fact_id }}>
                {text(one)}
              </Link>
            )}{" "}
            {changeWord(one.change)}
          </li>
        ))}
      </ul>
      <div>{children}</div>
    </section>
  );
}

function Disagreeing({ answer }: { answer: Answer }) {
  const rows = answer.disagreeing.filter((one) => one.facts.length > 0);
  if (rows.length === 0) return null;
  return (
    <section className="stack tight answer-against" aria-label={t("What speaks against it")}>
      <h2>{t("What speaks against it")}</h2>
      {rows.map(({ index, facts }) => (
        <div key={index} className="stack tight">
          {answer.sentences.some((one) => one.index === index) && <p className="soft small break">{t("Against: {text}", { text: answer.sentences.find((one) => one.index === index)?.text ?? "" })}</p>}
          <ul className="stack tight">
            {facts.map((fact) => (
              <li key={fact.key} className="answer-contra">
                <Where fact={fact} className="item-main serif">
                  {wordsOf(fact)}
                </Where>
                <div className="item-more">
                  <Badge tone="wrong">{t("contradicts")}</Badge>
                  <span className="clip hit-source">{sourceLine(fact)}</span>
                </div>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </section>
  );
}

function LeftOut({ answer }: { answer: Answer }) {
  const can = useCan();
  if (answer.dropped.length === 0) return null;
  return (
    <details>
      <summary>{tn(answer.dropped.length, "{n} sentence did not hold, and is left out", "{n} sentences did not hold, and are left out")}</summary>
      <ul className="stack tight answer-dropped">
        {answer.dropped.map((one, n) => (
          <li key={n} className="break">
            <p>{one.text ?? <span className="soft">{can("source:read") ? t("It speaks of something else than the question, so it is not shown.") : t("You may not read what this rests on.")}</span>}</p>
            <p className="row tight small">
              <Badge tone="warn">{leftOutWord(one.code)}</Badge>
              {one.reason && <span className="soft" lang="en">{one.reason}</span>}
            </p>
          </li>
        ))}
      </ul>
    </details>
  );
}
