//! What models were used for, and what it cost.

use chrono::NaiveDate;

use crate::permission::words;
use crate::{CallId, JobId, Money, RepositoryId, Subject};

words! {
    /// What a model is asked for.
    Operation {
        FactExtraction = "fact_extraction",
        ImageFactExtraction = "image_fact_extraction",
        FactEmbedding = "fact_embedding",
        /// Whether two facts say the same.
        FactComparison = "fact_comparison",
        ConceptExtraction = "concept_extraction",
        ConceptEmbedding = "concept_embedding",
        /// Whether two concepts are one thing.
        ConceptRefinement = "concept_refinement",
        /// What some facts of a concept say.
        ConceptSummary = "concept_summary",
        /// What a name means.
        ConceptSynthesis = "concept_synthesis",
        /// Which images show it.
        ImagePicking = "image_picking",
        /// Of stretches of sources.
        PassageEmbedding = "passage_embedding",
        /// Of sentences of reports.
        SentenceEmbedding = "sentence_embedding",
        /// How facts stand to sentences of reports.
        PostureClassification = "posture_classification",
        /// What somebody looks for.
        QuestionEmbedding = "question_embedding",
        /// How well texts answer what somebody looks for.
        QuestionReranking = "question_reranking",
        /// Which facts an answer is written from.
        EvidenceScoring = "evidence_scoring",
        /// An answer, sentence by sentence.
        AnswerWriting = "answer_writing",
        /// Sentences of an answer that did not hold.
        AnswerRepair = "answer_repair",
    }
}

words! {
    /// What came of a call that was answered.
    CallOutcome {
        Ok = "ok",
        /// It was not what had been asked for.
        Misfit = "misfit",
        /// It was cut off.
        Truncated = "truncated",
        /// The model did not want to.
        Filtered = "filtered",
        /// Whoever had asked was not there any more.
        Unread = "unread",
    }
}

/// A call that was answered, and so paid for.
#[derive(Clone, Debug)]
pub struct ModelCall {
    pub id: CallId,
    pub repository: RepositoryId,
    pub subject: Option<Subject>,
    /// Missing where somebody waits for the answer.
    pub job: Option<JobId>,
    pub operation: Operation,
    pub model: String,
    pub outcome: CallOutcome,
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub usd: Money,
    pub latency_ms: u64,
    pub retries: u32,
    /// What was sent.
    pub characters: u64,
}

words! {
    /// By what usage is summed up.
    UsageGroup {
        Day = "day",
        Model = "model",
        Operation = "operation",
        Source = "source",
    }
}

/// A sum of calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// The day, model, operation or source.
    pub key: String,
    pub calls: i64,
    pub tokens_in: i64,
    pub tokens_out: i64,
    pub usd: Money,
    /// Of all calls together.
    pub latency_ms: i64,
    pub retries: i64,
    pub characters: i64,
}

/// Which calls are asked for: from this day to that one, both included.
#[derive(Clone, Copy, Debug)]
pub struct UsageFilter {
    pub group: UsageGroup,
    pub from: NaiveDate,
    pub to: NaiveDate,
}

/// What imports from registries have saved: sources, and what their producers say that it was paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Savings {
    pub sources: i64,
    pub calls: i64,
    pub tokens_in: i64,
    pub tokens_out: i64,
    pub usd: Money,
}
