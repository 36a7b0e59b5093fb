//! Words of jobs.

import type { Schemas } from "../api/client";
import { t } from "../words";

export const JOB_STATES = ["running", "available", "scheduled", "retryable", "discarded", "cancelled", "completed"] as const;

export const jobStates = (): Record<Schemas["JobState"], string> => ({
  running: t("running"),
  available: t("waiting"),
  scheduled: t("for later"),
  retryable: t("tries again"),
  discarded: t("given up"),
  cancelled: t("cancelled"),
  completed: t("done"),
});

export function jobKind(kind: string): string {
  const kinds: Record<string, string> = {
    retrieve_source: t("Fetch and read a source"),
    source_decomposition: t("Find facts"),
    embed_facts: t("Make vectors of facts"),
    deduplicate_facts: t("Compare facts"),
    extract_concepts: t("Find concepts"),
    export_graph: t("Write a bundle"),
    import_graph: t("Take in a bundle"),
    answer_question: t("Answer a question"),
    deliver_webhook: t("Tell a webhook"),
    contribute_source: t("Give sources to the registry"),
    pull_all_from_registry: t("Take sources from the registry"),
    read_withdrawals: t("Look what registries have withdrawn"),
    migrate_context: t("Merge a context"),
    cleanup_repository: t("Delete the data of a repository"),
    cleanup_facts: t("Delete facts that nothing supports"),
    cleanup_files: t("Delete files that nothing needs"),
    cleanup_expired: t("Delete what has expired"),
    cleanup_audit: t("Delete old entries of the audit"),
    check_reports: t("Look for reports to check again"),
    refill_vectors: t("Make missing vectors"),
    settle_sources: t("Finish sources that were left"),
    sweep_concept_relations: t("Count relations anew"),
    sweep_search: t("Make missing sources searchable"),
    embed_concepts: t("Make vectors of concepts"),
    embed_passages: t("Make vectors of passages"),
    index_source: t("Make a source searchable"),
    annotate_report: t("Check a report"),
    check_contradictions: t("Look for contradictions"),
    refine_concepts: t("Look for concepts that are one"),
    summarize_concepts: t("Summarize concepts"),
    synthesize_concept: t("Write a definition"),
    refresh_concept_relations: t("Count relations"),
  };
  return kinds[kind] ?? kind.replaceAll("_", " ");
}

/** What a job is about while it runs. */
export function stageWord(stage: string): string {
  const stages: Record<string, string> = {
    fetch: t("fetching"),
    parse: t("reading"),
    reading: t("reading"),
    verifying: t("checking"),
    registry: t("asking the registry"),
    pull: t("taking from the registry"),
    push: t("giving to the registry"),
    synthesis: t("writing"),
    rows: t("rows"),
    bytes: t("bytes"),
    files: t("files"),
    sources: t("sources"),
    passages: t("passages"),
    sentences: t("sentences"),
    facts: t("facts"),
    concepts: t("concepts"),
    relations: t("relations"),
    summaries: t("summaries"),
    vectors: t("vectors"),
  };
  return stages[stage] ?? stage.replaceAll("_", " ");
}

/** What failures have in common: their message without ids, numbers and addresses. */
export function likeness(message: string): string {
  return message
    .replace(/https?:\/\/\S+/g, "…")
    .replace(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/gi, "…")
    .replace(/\b[0-9a-f]{16,}\b/gi, "…")
    .replace(/\d+/g, "0");
}
