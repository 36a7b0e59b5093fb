//! What the OpenAPI document will have. Written by hand, and to be replaced by the generated types: `soon` by `api`, and each
//! type by that of `Schemas`.

import type { Client } from "openapi-fetch";
import { api, type Schemas } from "./client";

// Ask.
export type EvidenceFact = {
  key: string;
  kind: "fact" | "passage";
  id: string | null;
  text: string;
  quote: string | null;
  source: { id: string; title: string | null; year: number | null; page: number | null; url: string };
  score: number;
  found_by: ("lexical" | "vector" | "anchor" | "hop")[];
  via: { concept_id: string | null; name: string } | null;
  url: string;
  retracted: boolean;
  superseded: boolean;
};
export type AnswerSentence = {
  index: number;
  text: string;
  fact_ids: string[];
  keys: string[];
  verdict: "supported" | "contradicted" | "unverified";
  confidence: number;
  method: "model" | "rule";
  group: { concept_id: string; name: string } | null;
};
export type DroppedSentence = { text: string; reason: string; code: string };
export type DisagreeingFact = EvidenceFact & { against: string; confidence: number; judged_by: string };
export type ExtractiveReason = "asked" | "no_model" | "not_permitted" | "daily_limit" | "over_budget" | "max_cost" | "model_failed";
export type AnswerStatus = "running" | "answered" | "partly" | "abstained" | "extractive" | "cancelled" | "failed";
export type AnswerFilters = { source_ids: string[]; concept_ids: string[]; context: string | null; published_from: number | null; published_to: number | null };
export type Answer = {
  id: string;
  question: string;
  question_as_searched: string | null;
  status: AnswerStatus;
  mode: "extractive" | "model";
  mode_asked: AskMode;
  extractive_reason: ExtractiveReason | null;
  model: string | null;
  check_model: string | null;
  conversation_id: string | null;
  is_own: boolean;
  shared: boolean;
  concepts: { id: string; name: string }[];
  filters: AnswerFilters;
  facts: EvidenceFact[];
  near_only: boolean;
  degraded_reason: string | null;
  sentences: AnswerSentence[];
  dropped: DroppedSentence[];
  disagreeing: { index: number; facts: DisagreeingFact[] }[];
  missing: string | null;
  coverage: { written: number; shown: number; supported: number; contradicted: number; unverified: number; dropped: number } | null;
  cost: { usd: number; tokens_in: number; tokens_out: number; calls: number };
  cached: boolean;
  took_ms: number | null;
  evidence_changed: { fact_id: string; change: "rejected" | "removed" | "merged" | "retracted" | "contradicted" }[];
  feedback: { sentence: number | null; verdict: FeedbackVerdict; note: string | null }[];
  problem: { title: string; detail?: string | null; code: string } | null;
  created_at: string;
  finished_at: string | null;
};
export type AnswerRow = { id: string; question: string; status: AnswerStatus; mode: "extractive" | "model"; conversation_id: string | null; is_own: boolean; shared: boolean; sentence_count: number; evidence_changed: boolean; cost_usd: number; created_at: string; finished_at: string | null };
export type AskMode = "auto" | "extractive" | "model";
export type FeedbackVerdict = "right" | "wrong" | "missing";
export type AskBody = { question: string; mode?: AskMode; conversation_id?: string; filters?: Partial<AnswerFilters>; max_cost_usd?: number; shared?: boolean };
export type AskEstimate = { mode: "extractive" | "model"; extractive_reason: ExtractiveReason | null; model: string | null; calls: number | null; usd: number | null; usd_most: number | null; based_on: number; max_cost_usd: number; left_today_usd: number | null };
export type Conversation = { id: string; title: string | null; answer_count: number; created_at: string; updated_at: string };

// Webhooks.
export type WebhookEvent = "source.processed" | "source.failed" | "report.health_changed" | "graph.exported";
export type Webhook = {
  id: string;
  url: string;
  description: string;
  events: WebhookEvent[];
  enabled: boolean;
  disabled: { at: string; code: "gone" | "failing" | "person"; message: string } | null;
  failing_since: string | null;
  previous_secret_expires_at: string | null;
  created_at: string;
};
export type WebhookDelivery = {
  id: string;
  event: WebhookEvent | "webhook.test";
  data: Record<string, unknown>;
  state: "waiting" | "delivered" | "failed";
  created_at: string;
  next_attempt_at: string | null;
  attempts: { at: string; ms: number; status: number | null; error: string | null; response: string | null }[];
};

// Registries.
export type Origin = { kind: "package" | "bundle"; registry: string | null; key_id: string | null; pushed_by: string | null; sha256: string; imported_at: string; withdrawn: { at: string; reason: string | null } | null };
export type RegistrySettings = Schemas["RepositoryRegistry"] & {
  trust: "anyone" | "signed" | "listed";
  trusted_keys: string[];
  available: { id: string; url: string; auth_mode: "none" | "bearer" | "hmac"; allowed_models: string[] }[];
  signing_key_id: string | null;
};
export type RegistryGraph = { graph_id: string; name: string; description: string | null; tags: string[]; sha256: string; source_count: number; fact_count: number; concept_count: number; bytes: number; owner: string | null; signed: boolean; created_at: string | null };
export type Saved = { sources: number; calls: number; tokens_in: number; tokens_out: number; usd: number };
export type Settings = Omit<Schemas["RepositorySettings"], "registry"> & { registry: RegistrySettings; ask: { viewers: boolean; per_person_per_day_usd: number | null } };

type Page<T> = { data: T[]; next_cursor: string | null };
type Answered<T> = { headers: Record<string, unknown>; content: { "application/json": T } };
type Empty = { headers: Record<string, unknown>; content?: never };
type Given<Path, Query = never> = { query?: Query; header?: never; path: { repoID: string } & Path; cookie?: never };
type Reads<Path, T, Query = never> = { parameters: Given<Path, Query>; requestBody?: never; responses: { 200: Answered<T> } };
type Does<Path, T> = { parameters: Given<Path>; requestBody?: never; responses: { 200: Answered<T> } };
type Ends<Path> = { parameters: Given<Path>; requestBody?: never; responses: { 204: Empty } };
type Takes<Path, Body, T> = { parameters: Given<Path>; requestBody: { content: { "application/json": Body } }; responses: { 200: Answered<T> } };
type At<Path, Methods> = { parameters: Given<Path> } & Methods;
type Nothing = Record<never, never>;
type AnswerPath = { answerID: string };
type HookPath = { webhookID: string };
type Cursor = { cursor?: string; limit?: number };

interface Paths {
  "/api/v1/repositories/{repoID}/ask/estimate": At<Nothing, { post: Takes<Nothing, { mode?: AskMode }, AskEstimate> }>;
  "/api/v1/repositories/{repoID}/answers": At<Nothing, { get: Reads<Nothing, Page<AnswerRow>, Cursor & { conversation_id?: string; shared?: boolean }> }>;
  "/api/v1/repositories/{repoID}/answers/{answerID}": At<AnswerPath, { get: Reads<AnswerPath, Answer, { explain?: boolean }>; put: Takes<AnswerPath, { shared: boolean }, Answer>; delete: Ends<AnswerPath> }>;
  "/api/v1/repositories/{repoID}/answers/{answerID}/cancel": At<AnswerPath, { post: Does<AnswerPath, Answer> }>;
  "/api/v1/repositories/{repoID}/answers/{answerID}/report": At<AnswerPath, { post: Takes<AnswerPath, { title?: string; topic?: string }, Schemas["Report"]> }>;
  "/api/v1/repositories/{repoID}/answers/{answerID}/feedback": At<AnswerPath, { post: Takes<AnswerPath, { sentence?: number; verdict: FeedbackVerdict; note?: string }, undefined> }>;
  "/api/v1/repositories/{repoID}/conversations": At<Nothing, { post: Takes<Nothing, { title?: string }, Conversation> }>;
  "/api/v1/repositories/{repoID}/conversations/{conversationID}": At<{ conversationID: string }, { get: Reads<{ conversationID: string }, Conversation & { answers: AnswerRow[] }> }>;
  "/api/v1/repositories/{repoID}/settings/ask": At<Nothing, { put: Takes<Nothing, { viewers?: boolean; per_person_per_day_usd?: number | null }, Settings> }>;
  "/api/v1/repositories/{repoID}/webhooks": At<Nothing, { get: Reads<Nothing, Page<Webhook>, Cursor>; post: Takes<Nothing, { url: string; events: WebhookEvent[]; description?: string }, Webhook & { secret: string }> }>;
  "/api/v1/repositories/{repoID}/webhooks/{webhookID}": At<HookPath, { put: Takes<HookPath, { url?: string; events?: WebhookEvent[]; description?: string; enabled?: boolean }, Webhook>; delete: Ends<HookPath> }>;
  "/api/v1/repositories/{repoID}/webhooks/{webhookID}/rotate": At<HookPath, { post: Does<HookPath, { secret: string; previous_secret_expires_at: string }> }>;
  "/api/v1/repositories/{repoID}/webhooks/{webhookID}/test": At<HookPath, { post: Does<HookPath, { delivery_id: string }> }>;
  "/api/v1/repositories/{repoID}/webhooks/{webhookID}/deliveries": At<HookPath, { get: Reads<HookPath, Page<WebhookDelivery>, Cursor & { state?: WebhookDelivery["state"] }> }>;
  "/api/v1/repositories/{repoID}/registry/graphs": At<Nothing, { get: Reads<Nothing, Page<RegistryGraph>, { cursor?: string; q?: string; tag?: string }> }>;
}

export const soon = api as unknown as Client<Paths>;
