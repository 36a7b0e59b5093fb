//! The end of an answer.

use okt_model::{
    AnswerEvent, AnswerMode, AnswerStatus, Coverage, FactId, Subject, SubjectKind, WhyExtractive,
};
use okt_queue::{Finished, JobError};
use okt_store::answers::{self, AnswerEnd};
use okt_store::{ai_calls, answer_events, repositories};

use super::Answering;

/// How an answer ends.
pub(super) struct Ending {
    /// What the question asks for and the facts do not say.
    pub missing: Option<String>,
    pub why_extractive: Option<WhyExtractive>,
    pub by_model: bool,
    /// Nothing that was found helps.
    pub abstain: bool,
    /// The model stopped before its end.
    pub broken: bool,
}

impl Ending {
    pub(super) const fn nothing() -> Self {
        Self { missing: None, why_extractive: None, by_model: true, abstain: true, broken: false }
    }
}

const NOTHING: &str = "none of the facts that were found answers the question";
const BROKEN: &str = "the model stopped before its answer was complete";

impl Answering<'_> {
    /// The transaction that ends an answer: its last events, what it cites, and its status.
    pub(super) async fn end(self, ending: Ending) -> Result<Finished, JobError> {
        let repository = self.ctx.repository();
        let subject = Subject::new(SubjectKind::Question, self.answer.id.uuid());
        let mut conn = self.ctx.databases().acquire_system().await?;
        let (cost, calls) = ai_calls::cost_and_calls_of(&mut conn, repository, subject).await?;
        drop(conn);
        let events = self.written.into_inner();
        let coverage = Coverage::of(&events);
        let status = status(&ending, coverage);
        let (cited, beside) = facts_of(&events, self.found);
        // Where a model was to write or check and did not, another time may bring more.
        let turned = events.iter().any(|event| matches!(event, AnswerEvent::Turned { .. }));
        let whole = !(ending.broken || turned || self.silent.into_inner());
        let mut tx = self.ctx.begin().await?;
        let Some(answer) = answers::hold_running(&mut tx, repository, self.answer.id).await? else {
            return tx.commit(None).await;
        };
        // Another run goes on with it, which this one knows nothing of.
        let place = answer_events::last_place(&mut tx, repository, answer.no).await?;
        if usize::try_from(place) != Ok(events.len()) {
            return tx.commit(None).await;
        }
        let missing = match status {
            AnswerStatus::Abstained => ending.missing.or_else(|| Some(NOTHING.to_owned())),
            _ if ending.broken => Some(BROKEN.to_owned()),
            _ => ending.missing,
        };
        let took = chrono::Duration::zero().max(repositories::now(&mut tx).await? - answer.created_at);
        let last = [
            AnswerEvent::Cost { cost, calls },
            AnswerEvent::Done {
                status,
                coverage,
                missing,
                model: answer.model.clone().filter(|_| ending.by_model),
                cached: false,
                took_ms: u64::try_from(took.num_milliseconds()).unwrap_or(0),
                why_extractive: ending.why_extractive,
            },
        ];
        answer_events::append(&mut tx, repository, answer.no, &last).await?;
        answers::add_facts(&mut tx, repository, answer.no, &cited, true).await?;
        answers::add_facts(&mut tx, repository, answer.no, &beside, false).await?;
        let end = AnswerEnd {
            status,
            mode: if ending.by_model { AnswerMode::Model } else { AnswerMode::Extractive },
            why_extractive: ending.why_extractive,
            cached: false,
            cost,
            calls,
            sentences: coverage.shown,
            whole,
        };
        answers::end(&mut tx, repository, answer.no, &end).await?;
        let output = serde_json::json!({ "status": status.as_str(), "sentences": coverage.shown, "dropped": coverage.dropped });
        tx.commit(Some(output)).await
    }
}

/// It is never `answered` without a sentence, nor where anything was left out.
fn status(ending: &Ending, coverage: Coverage) -> AnswerStatus {
    match (ending.by_model, coverage) {
        // What an earlier run has shown stays, whatever this one thought of it.
        (_, Coverage { shown: 1.., .. }) if ending.abstain => AnswerStatus::Partly,
        _ if ending.abstain => AnswerStatus::Abstained,
        // All that was written had no evidence: nothing is known, as far as can be said.
        (_, Coverage { shown: 0, .. }) => AnswerStatus::Abstained,
        (false, _) => AnswerStatus::Extractive,
        (true, Coverage { shown, supported, dropped: 0, .. }) if shown == supported && !ending.broken => {
            AnswerStatus::Answered
        }
        (true, _) => AnswerStatus::Partly,
    }
}

type Numbered = Vec<(i64, FactId)>;

/// The facts that sentences cite, and those that are shown because they say otherwise.
fn facts_of(events: &[AnswerEvent], evidence: &[okt_model::Evidence]) -> (Numbered, Numbered) {
    let (mut cited, mut beside) = (Numbered::new(), Numbered::new());
    for event in events {
        match event {
            AnswerEvent::Sentence(sentence) => {
                let of = evidence.iter().filter(|one| sentence.keys.contains(&one.key));
                cited.extend(of.filter_map(|one| one.fact_no.zip(one.fact)));
            }
            AnswerEvent::Disagreeing { facts, .. } => {
                beside.extend(facts.iter().filter_map(|one| one.evidence.fact_no.zip(one.evidence.fact)));
            }
            _ => {}
        }
    }
    (cited, beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_called_what_it_is() {
        let ending = |by_model| Ending {
            missing: None,
            why_extractive: None,
            by_model,
            abstain: false,
            broken: false,
        };
        let coverage = |shown, supported, dropped| Coverage {
            written: shown + dropped,
            shown,
            supported,
            dropped,
            ..Coverage::default()
        };
        for (by_model, of, expected) in [
            (true, coverage(2, 2, 0), AnswerStatus::Answered),
            (true, coverage(2, 2, 1), AnswerStatus::Partly),
            (true, coverage(2, 1, 0), AnswerStatus::Partly),
            (true, coverage(0, 0, 3), AnswerStatus::Abstained),
            (true, coverage(0, 0, 0), AnswerStatus::Abstained),
            (false, coverage(2, 2, 0), AnswerStatus::Extractive),
            (false, coverage(0, 0, 0), AnswerStatus::Abstained),
        ] {
            assert_eq!(status(&ending(by_model), of), expected, "{by_model} {of:?}");
        }
        assert_eq!(status(&Ending::nothing(), coverage(0, 0, 0)), AnswerStatus::Abstained);
        assert_eq!(status(&Ending::nothing(), coverage(2, 2, 0)), AnswerStatus::Partly, "two are shown");
        let broken = Ending { broken: true, ..ending(true) };
        assert_eq!(status(&broken, coverage(2, 2, 0)), AnswerStatus::Partly, "there is more to be said");
    }
}
