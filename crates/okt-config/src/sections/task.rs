//! Background jobs.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::period::Period;

/// Every kind of job that has a queue.
pub const JOB_KINDS: [&str; 32] = [
    "retrieve_source",
    "source_decomposition",
    "embed_facts",
    "deduplicate_facts",
    "extract_concepts",
    "refine_concepts",
    "embed_concepts",
    "cleanup_facts",
    "index_source",
    "embed_passages",
    "summarize_concepts",
    "synthesize_concept",
    "refresh_concept_relations",
    "annotate_report",
    "check_reports",
    "check_contradictions",
    "answer_question",
    "migrate_context",
    "contribute_source",
    "pull_all_from_registry",
    "export_graph",
    "import_graph",
    "deliver_webhook",
    "cleanup_audit",
    "cleanup_expired",
    "cleanup_files",
    "cleanup_repository",
    "refill_vectors",
    "settle_sources",
    "sweep_concept_relations",
    "sweep_search",
    "read_withdrawals",
];

/// The kinds that wait for a chat model, and so must outlive its retries.
pub const LLM_JOB_KINDS: [&str; 8] = [
    "source_decomposition",
    "extract_concepts",
    "refine_concepts",
    "summarize_concepts",
    "synthesize_concept",
    "annotate_report",
    "check_contradictions",
    "answer_question",
];

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The named database that holds the queue.
    #[schemars(length(min = 1))]
    pub database: String,
    /// How long a job may run; `0s` for no limit.
    pub job_timeout: Period,
    /// Limits for single kinds of job in place of `job_timeout`, such as `synthesize_concept = "1h"`.
    #[schemars(schema_with = "timeouts")]
    pub timeouts: BTreeMap<String, Period>,
    /// Interval between the heartbeats of a running job.
    #[schemars(extend("x-positive" = true))]
    pub heartbeat_interval: Period,
    /// A job without a heartbeat for longer than this counts as dead and is queued again.
    #[schemars(extend("x-positive" = true))]
    pub heartbeat_timeout: Period,
    /// Whether jobs orphaned by a crash are queued again at start-up.
    pub rescue_on_startup: bool,
    /// How often concept relations are recounted.
    #[schemars(extend("x-positive" = true))]
    pub refresh_concept_relations_interval: Period,
    /// Jobs of each kind that this process runs at once, plus one for a repository that has none running; 0 runs none here.
    #[schemars(schema_with = "queues")]
    pub queues: BTreeMap<String, u32>,
}

impl Task {
    /// How long a job of this kind may run; `None` for no limit.
    pub fn timeout(&self, kind: &str) -> Option<Period> {
        let period = *self.timeouts.get(kind).unwrap_or(&self.job_timeout);
        Some(period).filter(|period| !period.is_zero())
    }
}

fn queues(generator: &mut SchemaGenerator) -> Schema {
    let properties: Map<String, Value> = JOB_KINDS
        .iter()
        .map(|kind| {
            let mut schema = generator.subschema_for::<u32>();
            schema.insert("description".into(), format!("`{kind}` jobs run at once.").into());
            schema.insert("maximum".into(), 10_000.into());
            ((*kind).to_owned(), schema.to_value())
        })
        .collect();
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn timeouts(generator: &mut SchemaGenerator) -> Schema {
    let mut limit = generator.subschema_for::<Period>();
    limit.insert("description".into(), "How long a job of this kind may run; `0s` for no limit.".into());
    json_schema!({
        "type": "object",
        "propertyNames": { "enum": JOB_KINDS },
        "additionalProperties": limit,
    })
}
