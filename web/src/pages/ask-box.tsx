//! The box in which one asks: the question, what it is narrowed to, how it is answered and what that may cost.

import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Filter, X } from "lucide-react";
import { type KeyboardEvent, useId, useRef, useState } from "react";
import { ApiError, api, ok, R, type Schemas } from "../api/client";
import { reason, useAct, useRepo } from "../app/queries";
import { Button } from "../parts/button";
import { sourceTitle } from "../parts/fact";
import { Form, Select } from "../parts/form";
import { dollars, t, tn } from "../words";
import { Narrow } from "./ask-narrow";
import { begin } from "./ask-stream";
import "./ask.css";

/** What a question is narrowed to: any of the sources, all of the concepts. */
export type Filters = { sources: string[]; concepts: string[]; context?: string; from?: number; to?: number };
export const NO_FILTERS: Filters = { sources: [], concepts: [] };
const SHORTEST = 3;
const LONGEST = 2_000;
/** `randomUUID` is only there over HTTPS. */
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

export function AskBox({ question, onQuestion, filters, onFilters, conversation, follows }: { question: string; onQuestion: (text: string) => void; filters: Filters; onFilters: (filters: Filters) => void; conversation?: string; follows?: boolean }) {
  const repoID = useRepo();
  const client = useQueryClient();
  const navigate = useNavigate();
  const id = useId();
  const [mode, setMode] = useState<Schemas["AnswerMode"]>("auto");
  const attempt = useRef<{ about: string; key: string; within?: string } | null>(null);
  const [narrowing, setNarrowing] = useState(false);
  const estimate = useQuery({
    queryKey: ["ask-estimate", repoID, mode],
    staleTime: 60_000,
    queryFn: ({ signal }) => ok(api.POST(`${R}/ask/estimate`, { params: { path: { repoID } }, body: { mode }, signal })),
  });
  const ask = useAct(
    async (text: string) => {
      const asked = { question: text, mode, filters: { source_ids: filters.sources, concept_ids: filters.concepts, context: filters.context ?? null, published_from: filters.from ?? null, published_to: filters.to ?? null } };
      const about = JSON.stringify([asked, conversation]);
      // What got lost on its way and is asked once more is one question, and is paid once.
      if (attempt.current?.about !== about) attempt.current = { about, key: newKey(), within: conversation };
      const one = attempt.current;
      // So that a question may follow.
      one.within ??= (await ok(api.POST(`${R}/conversations`, { params: { path: { repoID } }, body: {} }))).id;
      const id = await begin(client, repoID, { ...asked, conversation_id: one.within }, one.key);
      attempt.current = null;
      return id;
    },
    { quiet: true, stale: [["conversation", repoID]], done: (answer) => void navigate({ to: "/r/$slug/answers/$id", params: { slug: repoID, id: answer } }) },
  );
  const text = question.trim();
  const submit = () => {
    if (text.length >= SHORTEST && !ask.isPending) ask.mutate(text);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || !(event.metaKey || event.ctrlKey)) return;
    event.preventDefault();
    submit();
  };
  const error = ask.error instanceof ApiError ? ask.error : null;
  const said = error?.field("question") ?? error?.fields[0]?.message;
  return (
    <div className="ask-box card">
      <Form onSubmit={submit} error={ask.error} label={t("Ask")}>
        <textarea className="input ask-question" rows={follows ? 1 : 2} maxLength={LONGEST} aria-label={follows ? t("A question that follows") : t("Your question")} placeholder={follows ? t("A question that follows") : t("What do you want to know?")} value={question} onChange={(event) => onQuestion(event.target.value)} onKeyDown={press} aria-describedby={id} aria-invalid={said !== undefined} />
        {said && <p className="field-error" role="alert">{said}</p>}
        <div className="row ask-tools">
          <Chips filters={filters} onFilters={onFilters} />
          <Button small onPress={() => setNarrowing(true)}>
            <Filter aria-hidden /> {t("Narrow …")}
          </Button>
          <Select
            small
            hideLabel
            label={t("How it is answered")}
            value={mode}
            onChange={setMode}
            options={[
              ["auto", t("A written answer")],
              ["extractive", t("Only the facts")],
            ]}
          />
          <span className="grow" />
          <Button type="submit" primary busy={ask.isPending} isDisabled={text.length < SHORTEST}>
            {t("Ask")} <kbd aria-hidden>{/Mac/.test(navigator.platform) ? "⌘⏎" : "Ctrl ⏎"}</kbd>
          </Button>
        </div>
        <p id={id} className="soft small">
          {estimate.error ? reason(estimate.error) : estimate.data ? <Price estimate={estimate.data} /> : t("Asking what it may cost …")}
        </p>
      </Form>
      {narrowing && <Narrow filters={filters} onChange={onFilters} onClose={() => setNarrowing(false)} />}
    </div>
  );
}

function Price({ estimate }: { estimate: Schemas["AskEstimate"] }) {
  if (estimate.mode === "extractive") {
    const why = {
      asked: t("The facts nearest to the question, in the words of the sources. It costs nothing."),
      no_model: t("No model is set up: the facts nearest to the question are shown, in the words of the sources. It costs nothing."),
      not_permitted: t("A model is asked only for those who may write reports here. The facts nearest to the question are shown, which costs nothing."),
      daily_limit: t("What one person may spend on questions in a day is used up. The facts nearest to the question are shown, which costs nothing."),
      over_budget: t("The budget of this repository is used up. The facts nearest to the question are shown, which costs nothing."),
      max_cost: t("The facts nearest to the question, in the words of the sources. It costs nothing."),
      model_failed: t("The facts nearest to the question, in the words of the sources. It costs nothing."),
    };
    return why[estimate.extractive_reason ?? "asked"];
  }
  const parts = [
    estimate.usd === null
      ? t("{model} writes, and every sentence is checked. At most {most}.", { model: estimate.model ?? "", most: dollars(estimate.max_cost_usd) })
      : t("{model} writes, and every sentence is checked. About {usd}, at most {most}.", { model: estimate.model ?? "", usd: dollars(estimate.usd), most: dollars(estimate.max_cost_usd) }),
    estimate.calls === null ? "" : tn(Math.round(estimate.calls), "{n} call.", "{n} calls."),
    estimate.left_today_usd === null ? "" : t("{usd} left for you today.", { usd: dollars(estimate.left_today_usd) }),
  ];
  return parts.filter(Boolean).join(" ");
}

/** The names of what is chosen by its id. */
export function useNames(filters: Filters): { id: string; name: string; kind: "source" | "concept" }[] {
  const repoID = useRepo();
  const sources = useQueries({
    queries: filters.sources.map((sourceID) => ({
      queryKey: ["source", repoID, sourceID],
      staleTime: 300_000,
      retry: false,
      queryFn: ({ signal }: { signal: AbortSignal }) => ok(api.GET(`${R}/sources/{sourceID}`, { params: { path: { repoID, sourceID }, query: { include: "" } }, signal })),
    })),
  });
  const concepts = useQueries({
    queries: filters.concepts.map((conceptID) => ({
      queryKey: ["concept", repoID, conceptID],
      staleTime: 300_000,
      retry: false,
      queryFn: ({ signal }: { signal: AbortSignal }) => ok(api.GET(`${R}/concepts/{conceptID}`, { params: { path: { repoID, conceptID } }, signal })),
    })),
  });
  return [
    ...filters.concepts.map((id, n) => ({ id, name: concepts[n]?.data?.canonical_name ?? id.slice(0, 8), kind: "concept" as const })),
    ...filters.sources.map((id, n) => ({ id, name: sources[n]?.data ? sourceTitle(sources[n].data) : id.slice(0, 8), kind: "source" as const })),
  ];
}

export function Chips({ filters, onFilters }: { filters: Filters; onFilters?: (filters: Filters) => void }) {
  const names = useNames(filters);
  const chips = [
    ...names.map(({ id, name, kind }) => ({
      key: id,
      text: name,
      less: (): Filters => (kind === "source" ? { ...filters, sources: filters.sources.filter((one) => one !== id) } : { ...filters, concepts: filters.concepts.filter((one) => one !== id) }),
    })),
    ...(filters.context ? [{ key: "context", text: filters.context, less: (): Filters => ({ ...filters, context: undefined }) }] : []),
    ...(filters.from || filters.to ? [{ key: "years", text: `${filters.from ?? "…"}–${filters.to ?? "…"}`, less: (): Filters => ({ ...filters, from: undefined, to: undefined }) }] : []),
  ];
  return chips.map(({ key, text, less }) => (
    <span key={key} className="chip ask-chip">
      <span className="clip" title={text}>
        {text}
      </span>
      {onFilters && (
        <Button small quiet aria-label={t("Not narrowed to {name}", { name: text })} onPress={() => onFilters(less())}>
          <X aria-hidden />
        </Button>
      )}
    </span>
  ));
}
