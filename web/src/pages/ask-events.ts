//! The events of an answer, one after the other, become the answer that a page shows.

import type { Schemas } from "../api/client";

export type Answer = Schemas["Answer"];
export type AskBody = Omit<Schemas["AskRequest"], "filters"> & { filters: Schemas["AskFilters"] };

/** Of which nothing is known yet. */
export const blank = (id: string, body: AskBody): Answer => ({
  id,
  question: body.question,
  question_as_searched: body.question,
  status: "running",
  mode: body.mode === "extractive" ? "extractive" : "model",
  mode_asked: body.mode ?? "auto",
  extractive_reason: null,
  model: null,
  check_model: null,
  ask_version: 0,
  asked_by: "",
  conversation_id: body.conversation_id ?? null,
  is_own: true,
  shared: body.shared ?? false,
  concepts: [],
  filters: body.filters,
  facts: [],
  near_only: false,
  degraded_reason: null,
  sentences: [],
  dropped: [],
  disagreeing: [],
  missing: null,
  coverage: { written: 0, shown: 0, supported: 0, contradicted: 0, unverified: 0, dropped: 0 },
  cost: { usd: 0, tokens_in: 0, tokens_out: 0, calls: 0 },
  cached: false,
  took_ms: null,
  evidence_changed: [],
  feedback: [],
  problem: null,
  job_id: null,
  url: "",
  created_at: new Date().toISOString(),
  finished_at: null,
});

/** What one event makes of an answer. The same event twice makes nothing else: a stream may begin anew. */
export function after(answer: Answer, event: string, data: unknown): Answer {
  switch (event) {
    case "understood":
    case "turned":
      return { ...answer, ...(data as Partial<Answer>) };
    case "evidence": {
      const { facts, near_only, degraded_reason } = data as Pick<Answer, "facts" | "near_only" | "degraded_reason">;
      return { ...answer, facts, near_only, degraded_reason };
    }
    case "sentence": {
      const sentence = data as Schemas["AnswerSentence"];
      return { ...answer, sentences: [...answer.sentences.filter((one) => one.index !== sentence.index), sentence].sort((a, b) => a.index - b.index) };
    }
    case "dropped": {
      // Those without a text look the same; the answer as it is kept has them all.
      const dropped = data as Schemas["DroppedSentence"];
      return { ...answer, dropped: [...answer.dropped.filter((one) => one.text !== dropped.text || one.reason !== dropped.reason), dropped] };
    }
    case "disagreeing": {
      const against = data as Schemas["DisagreeingFacts"];
      return { ...answer, disagreeing: [...answer.disagreeing.filter((one) => one.index !== against.index), against] };
    }
    case "cost":
      return { ...answer, cost: data as Answer["cost"] };
    case "done":
      return { ...answer, ...(data as Partial<Answer>) };
    case "error":
      return { ...answer, status: "failed", problem: data as Answer["problem"] };
    default:
      return answer;
  }
}

/** What was asked for while the stream goes on may be older than what the stream has told. */
export function merged(old: Answer | undefined, next: Answer): Answer {
  if (!old || old.status !== "running" || next.status !== "running") return next;
  const longer = <T>(a: T[], b: T[]) => (a.length > b.length ? a : b);
  return { ...next, facts: longer(old.facts, next.facts), sentences: longer(old.sentences, next.sentences), dropped: longer(old.dropped, next.dropped), disagreeing: longer(old.disagreeing, next.disagreeing) };
}
