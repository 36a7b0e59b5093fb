//! A model writes, and each sentence is checked while it writes the next.

use std::collections::HashSet;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};

use okt_ai::{Heard, Unanswered};
use okt_extract::answers::{
    Asked, Flawed, Line, Lines, Written, is_about, is_missing, read_answer, read_repaired, read_scores,
    repair_question, scores_question, write_question,
};
use okt_model::{
    AnswerEvent, AnswerSentence, DropReason, DroppedSentence, Evidence, FactId, Operation, WhyExtractive,
};
use okt_providers::ai::Model;
use okt_queue::JobError;
use tokio::sync::mpsc;

use super::checking::{Found, Verdicts};
use super::settled::Ending;
use super::{Answering, Stop, given, slow, why};

/// In place of a model's words for what is missing, where they say more than what was asked.
const MISSING: &str = "the facts do not say all that was asked";
/// A fact that scores less does not help.
const HELPFUL: u8 = 4;

impl Answering<'_> {
    pub(super) async fn by_model(&self) -> Result<Ending, Stop> {
        let model = self.answer.model.as_deref().map(|model| self.tools.ai().model(model));
        // The settings may have been changed meanwhile.
        let Some(Ok(model)) = model else { return self.turn(WhyExtractive::NoModel).await };
        let chosen = match self.choose(&model).await {
            Ok(chosen) => chosen,
            Err(unanswered) => return self.not_written(unanswered).await,
        };
        if chosen.is_empty() {
            return Ok(Ending::nothing());
        }
        let (written, failed) = match self.write(&model, &chosen).await? {
            Ok(written) => written,
            Err(unanswered) => return self.not_written(unanswered).await,
        };
        self.repair(&model, failed).await?;
        self.disagreeing().await?;
        let missing = written.missing.map(|missing| {
            if is_missing(&missing, &self.answer.question) { missing } else { MISSING.to_owned() }
        });
        Ok(Ending { missing, why_extractive: None, by_model: true, abstain: false, broken: false })
    }

    /// A model that was to write did not. What was shown stays; where nothing was, the facts are.
    async fn not_written(&self, unanswered: Unanswered) -> Result<Ending, Stop> {
        let shown = self.written.lock().await.iter().any(|event| matches!(event, AnswerEvent::Sentence(_)));
        match unanswered {
            // It may pass: the next run asks again, and goes on where this one was.
            Unanswered::Retryable(error) if error.retryable() && self.patient => {
                return Err(Stop::Job(JobError::Failed(error)));
            }
            // Somebody waits, so no job does: a budget does not come back in a moment.
            Unanswered::Wait { budget: None, why, delay } if self.patient && delay.as_secs() <= 10 => {
                return Err(Stop::Job(JobError::Waits { why, delay }));
            }
            _ => {}
        }
        let why = why(&unanswered);
        tracing::warn!(answer.id = %self.answer.id, ?unanswered, "no model has written an answer");
        if shown {
            self.disagreeing().await?;
            return Ok(Ending {
                missing: None,
                why_extractive: None,
                by_model: true,
                abstain: false,
                broken: true,
            });
        }
        self.turn(why).await
    }

    async fn turn(&self, why: WhyExtractive) -> Result<Ending, Stop> {
        self.tell(AnswerEvent::Turned { why }).await?;
        self.extractive(Some(why)).await
    }

    /// The evidence that helps, as the model says; all of it where it does not say so, or is not to be asked.
    async fn choose(&self, model: &Model) -> Result<Vec<&Evidence>, Unanswered> {
        let all: Vec<&Evidence> = self.evidence.iter().collect();
        if !self.tools.config().ask.choose || all.len() < 4 {
            return Ok(all);
        }
        let given = self.given();
        let earlier: Vec<&str> = self.earlier.iter().map(String::as_str).collect();
        let question = scores_question(&self.asked(&earlier), &given);
        let read = |answer: &str| read_scores(answer, &given);
        match self.ask(model, Operation::EvidenceScoring, &question, None, self.soon(), read).await {
            Ok(scores) => {
                let mut chosen: Vec<(&Evidence, u8)> = all
                    .into_iter()
                    // What it says nothing of may help.
                    .map(|one| (one, scores.get(&one.key).copied().unwrap_or(HELPFUL)))
                    .filter(|(_, score)| *score >= HELPFUL)
                    .collect();
                chosen.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
                Ok(chosen.into_iter().map(|(one, _)| one).collect())
            }
            Err(Unanswered::Unusable { .. }) => Ok(all),
            Err(other) => Err(other),
        }
    }

    fn asked<'q>(&'q self, earlier: &'q [&'q str]) -> Asked<'q> {
        Asked { question: &self.answer.question, earlier, language: self.answer.language.as_deref() }
    }

    /// Has it written; what is complete is checked and told meanwhile. Returns what did not hold, to be said otherwise.
    async fn write(
        &self,
        model: &Model,
        chosen: &[&Evidence],
    ) -> Result<Result<(Written, Vec<Failed>), Unanswered>, Stop> {
        let earlier: Vec<&str> = self.earlier.iter().map(String::as_str).collect();
        let facts: Vec<_> = chosen.iter().map(|one| given(one)).collect();
        let question = write_question(&self.asked(&earlier), &facts, self.tools.config().ask.max_sentences);
        let (lines, mut complete) = mpsc::unbounded_channel::<Line>();
        let reading = SyncMutex::new(Lines::default());
        let heard: Heard = {
            let lines = lines.clone();
            Arc::new(move |so_far: &str| {
                let found = reading.lock().unwrap_or_else(PoisonError::into_inner).read(so_far);
                for line in found {
                    // Whoever reads them may have stopped.
                    let _ = lines.send(line);
                }
            })
        };
        let writing =
            self.ask(model, Operation::AnswerWriting, &question, Some(&heard), self.last, read_answer);
        tokio::pin!(writing);
        // One that writes is heard out; one that has not begun is not waited for.
        let quiet = tokio::time::sleep_until(self.soon());
        tokio::pin!(quiet);
        let mut begun = false;
        let mut taken = Taken::of(&self.written.lock().await);
        let mut failed = Vec::new();
        let written = loop {
            tokio::select! {
                biased;
                written = &mut writing => break written,
                Some(line) = complete.recv() => {
                    begun = true;
                    self.take(line, &mut taken, &mut failed).await?;
                }
                () = &mut quiet, if !begun => break Err(slow()),
            }
        };
        let written = match written {
            Ok(written) => written,
            Err(unanswered) => {
                // What was complete before it broke off was checked, or is now.
                while let Ok(line) = complete.try_recv() {
                    self.take(line, &mut taken, &mut failed).await?;
                }
                // What did not hold may hold when it is asked again.
                if !self.patient || !matches!(unanswered, Unanswered::Retryable(_)) {
                    self.drop_all(failed).await?;
                }
                return Ok(Err(unanswered));
            }
        };
        // What counts is the answer as a whole; what was heard of an earlier request is in it, or was said already.
        for line in written.lines.clone() {
            self.take(line, &mut taken, &mut failed).await?;
        }
        Ok(Ok((written, failed)))
    }

    /// Checks a line, and tells it if it holds. What an earlier run has said or left out is known by its words: a model that is asked again
    /// may write other lines under the same numbers.
    async fn take(&self, line: Line, taken: &mut Taken, failed: &mut Vec<Failed>) -> Result<(), Stop> {
        if !taken.seen.insert(line.text.clone()) {
            return Ok(());
        }
        if taken.shown.contains(&line.text) {
            taken.held += 1;
            return Ok(());
        }
        let most = self.tools.config().ask.max_sentences;
        let settled = taken.settled.contains(&line.text);
        let too_many = |line| {
            let reason = "an answer has no more sentences".to_owned();
            Failed { line, code: DropReason::TooMany, reason, cited: Vec::new(), settled }
        };
        if taken.held >= most {
            return self.drop_one(too_many(line)).await;
        }
        match self.check(&line.text, &line.keys).await? {
            Verdicts::Failed { code, reason, cited } => {
                failed.push(Failed { line, code, reason, cited, settled });
            }
            Verdicts::Shown(_) if settled || taken.next >= most => {
                self.drop_one(too_many(line)).await?;
            }
            Verdicts::Shown(found) => {
                taken.shown.insert(line.text.clone());
                self.show(line, found, taken.next, None).await?;
                (taken.held, taken.next) = (taken.held + 1, taken.next + 1);
            }
        }
        Ok(())
    }

    async fn show(
        &self,
        line: Line,
        found: Found,
        index: u32,
        instead_of: Option<String>,
    ) -> Result<(), Stop> {
        let Found { keys, verdict, confidence, method } = found;
        let facts: Vec<FactId> =
            keys.iter().filter_map(|key| self.find(key)).filter_map(|one| one.fact).collect();
        let sentence = AnswerSentence {
            index,
            line: line.number,
            text: line.text,
            keys,
            facts,
            verdict,
            confidence,
            method,
            group: None,
            instead_of,
        };
        self.tell(AnswerEvent::Sentence(sentence)).await
    }

    /// One more call for all that did not hold; what does not hold then is not shown. A run that comes after one that died asks the same,
    /// also for what that one has settled already, so it is not paid twice.
    async fn repair(&self, model: &Model, failed: Vec<Failed>) -> Result<(), Stop> {
        let (open, hopeless): (Vec<Failed>, Vec<Failed>) =
            failed.into_iter().partition(|one| !one.cited.is_empty());
        self.drop_all(hopeless).await?;
        if open.iter().all(|one| one.settled) {
            return Ok(());
        }
        let flawed: Vec<Flawed<'_>> = open
            .iter()
            .map(|one| Flawed {
                text: &one.line.text,
                reason: &one.reason,
                facts: one.cited.iter().filter_map(|key| self.find(key)).map(given).collect(),
            })
            .collect();
        let question = repair_question(&flawed);
        let count = open.len();
        let read = |answer: &str| read_repaired(answer, count);
        let repaired =
            match self.ask(model, Operation::AnswerRepair, &question, None, self.soon(), read).await {
                Ok(repaired) => repaired,
                // It is no reason to write the answer anew, nor to wait.
                Err(unanswered) => {
                    tracing::debug!(?unanswered, "sentences were not repaired");
                    Vec::new()
                }
            };
        let mut taken = Taken::of(&self.written.lock().await);
        for (at, one) in open.into_iter().enumerate().filter(|(_, one)| !one.settled) {
            let again = repaired.iter().find(|(of, _)| *of == at).map(|(_, line)| line);
            let again = again.filter(|line| !taken.shown.contains(&line.text));
            if let Some(again) = again
                && taken.next < self.tools.config().ask.max_sentences
                && let Verdicts::Shown(found) = self.check(&again.text, &again.keys).await?
            {
                let line = Line { number: one.line.number, ..again.clone() };
                taken.shown.insert(line.text.clone());
                self.show(line, found, taken.next, Some(one.line.text)).await?;
                taken.next += 1;
                continue;
            }
            self.drop_one(one).await?;
        }
        Ok(())
    }

    async fn drop_all(&self, failed: Vec<Failed>) -> Result<(), Stop> {
        for one in failed {
            self.drop_one(one).await?;
        }
        Ok(())
    }

    async fn drop_one(&self, one: Failed) -> Result<(), Stop> {
        let Failed { line, code, reason, settled, .. } = one;
        if settled {
            return Ok(());
        }
        let is_shown = is_about(&line.text, &self.answer.question, &self.given());
        let dropped = DroppedSentence { line: line.number, text: line.text, code, reason, is_shown };
        self.tell(AnswerEvent::Dropped(dropped)).await
    }
}

/// A sentence that did not hold.
pub(super) struct Failed {
    line: Line,
    code: DropReason,
    reason: String,
    /// The keys of what it cites.
    cited: Vec<String>,
    /// An earlier run has left it out, or said it otherwise.
    settled: bool,
}

/// What was said before, by this run or an earlier one.
#[derive(Default)]
struct Taken {
    /// The words of what is shown.
    shown: HashSet<String>,
    /// The words of what was left out, or said otherwise.
    settled: HashSet<String>,
    /// What this run has looked at, and how many of these are shown.
    seen: HashSet<String>,
    held: u32,
    /// The index of the next sentence.
    next: u32,
}

impl Taken {
    fn of(events: &[AnswerEvent]) -> Self {
        let mut taken = Self::default();
        for event in events {
            match event {
                AnswerEvent::Sentence(sentence) => {
                    taken.next += 1;
                    taken.shown.insert(sentence.text.clone());
                    taken.settled.extend(sentence.instead_of.clone());
                }
                AnswerEvent::Dropped(dropped) => {
                    taken.settled.insert(dropped.text.clone());
                }
                _ => {}
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use okt_model::{CheckMethod, Verdict};

    use super::*;

    #[test]
    fn what_was_said_left_out_or_said_otherwise_is_known_by_its_words() {
        let sentence = AnswerSentence {
            index: 0,
            line: 0,
            text: "Gulls nest.".to_owned(),
            keys: Vec::new(),
            facts: Vec::new(),
            verdict: Verdict::Supported,
            confidence: 1.0,
            method: CheckMethod::Rule,
            group: None,
            instead_of: Some("Gulls always nest.".to_owned()),
        };
        let dropped = DroppedSentence {
            line: 1,
            text: "Terns nest.".to_owned(),
            code: DropReason::Name,
            reason: String::new(),
            is_shown: true,
        };
        let taken = Taken::of(&[AnswerEvent::Sentence(sentence), AnswerEvent::Dropped(dropped)]);
        assert_eq!((taken.next, taken.held), (1, 0));
        assert!(taken.shown.contains("Gulls nest.") && taken.seen.is_empty());
        assert!(["Gulls always nest.", "Terns nest."].iter().all(|text| taken.settled.contains(*text)));
    }
}
