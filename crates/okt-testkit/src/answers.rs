//! Answers of models, for tests of what keeps them.

use okt_model::{
    CallId, CallOutcome, ContentHash, JobId, ModelCall, Money, Operation, RepositoryId, SourceId,
};
use okt_store::model_answers::ModelAnswer;

/// An answer about a source, under this key, with a call of its own.
pub fn answer(repository: RepositoryId, source: SourceId, key: ContentHash) -> ModelAnswer {
    let call = ModelCall {
        id: CallId::mint(),
        repository,
        subject: Some(source.into()),
        job: Some(JobId::mint()),
        operation: Operation::FactExtraction,
        model: "model".to_owned(),
        outcome: CallOutcome::Ok,
        tokens_in: 1,
        tokens_out: 1,
        usd: Money::ZERO,
        latency_ms: 1,
        retries: 0,
        characters: 4,
    };
    ModelAnswer { key, answer: "{}".to_owned(), call }
}
