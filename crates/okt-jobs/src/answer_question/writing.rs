//! A model writes, and each sentence is checked while it writes the next.

use std::collections::HashSet;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};

use okt_ai::{Heard, Unanswered};
use okt_extract::answers::{
    Asked, Flawed, Line, Lines, Written, read_answer, read_repaired, read_scores, repair_question,
    scores_question, write_question,
};
use okt_model::{
    AnswerEvent, AnswerSentence, DropReason, DroppedSentence, Evidence, FactId, Operation, WhyExtractive,
};
use okt_providers::ai::Model;
use okt_queue::JobError;
use tokio::sync::mpsc;

use super::checking::{Found, Verdicts};
use super::settled::Ending;
use super::{Answering, Stop, given, why};

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
        Ok(Ending { missing: written.missing, why_extractive: None, by_model: true, abstain: false })
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
            return Ok(Ending { missing: None, why_extractive: None, by_model: true, abstain: false });
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
        match self.ask(model, Operation::EvidenceScoring, &question, None, read).await {
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
        let writing = self.ask(model, Operation::AnswerWriting, &question, Some(&heard), read_answer);
        tokio::pin!(writing);
        let mut taken = Taken::of(&self.written.lock().await);
        let mut failed = Vec::new();
        let written = loop {
            tokio::select! {
                biased;
                written = &mut writing => break written,
                Some(line) = complete.recv() => self.take(line, &mut taken, &mut failed).await?,
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

    /// Checks a line, and tells it if it holds.
    async fn take(&self, line: Line, taken: &mut Taken, failed: &mut Vec<Failed>) -> Result<(), Stop> {
        if !taken.is_new(&line) {
            return Ok(());
        }
        if taken.shown >= self.tools.config().ask.max_sentences {
            let reason = "an answer has no more sentences".to_owned();
            return self
                .drop_one(Failed { line, code: DropReason::TooMany, reason, cited: Vec::new() })
                .await;
        }
        match self.check(&line.text, &line.keys).await? {
            Verdicts::Shown(found) => {
                self.show(line, found, taken.shown).await?;
                taken.shown += 1;
            }
            Verdicts::Failed { code, reason, cited } => failed.push(Failed { line, code, reason, cited }),
        }
        Ok(())
    }

    async fn show(&self, line: Line, found: Found, index: u32) -> Result<(), Stop> {
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
        };
        self.tell(AnswerEvent::Sentence(sentence)).await
    }

    /// One more call for all that did not hold; what does not hold then is not shown.
    async fn repair(&self, model: &Model, failed: Vec<Failed>) -> Result<(), Stop> {
        let (open, hopeless): (Vec<Failed>, Vec<Failed>) =
            failed.into_iter().partition(|one| !one.cited.is_empty());
        self.drop_all(hopeless).await?;
        if open.is_empty() {
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
        let repaired = match self.ask(model, Operation::AnswerRepair, &question, None, read).await {
            Ok(repaired) => repaired,
            // It is no reason to write the answer anew, nor to wait.
            Err(unanswered) => {
                tracing::debug!(?unanswered, "sentences were not repaired");
                Vec::new()
            }
        };
        let mut taken = Taken::of(&self.written.lock().await);
        for (at, one) in open.into_iter().enumerate() {
            let again = repaired.iter().find(|(of, _)| *of == at).map(|(_, line)| line);
            let again = again.filter(|line| !taken.texts.contains(&line.text));
            if let Some(again) = again
                && taken.shown < self.tools.config().ask.max_sentences
                && let Verdicts::Shown(found) = self.check(&again.text, &again.keys).await?
            {
                let line = Line { number: one.line.number, ..again.clone() };
                taken.texts.insert(line.text.clone());
                self.show(line, found, taken.shown).await?;
                taken.shown += 1;
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
        let Failed { line, code, reason, .. } = one;
        let dropped = DroppedSentence { line: line.number, text: line.text, code, reason };
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
}

/// What was said before, by this run or an earlier one.
struct Taken {
    lines: HashSet<u32>,
    texts: HashSet<String>,
    shown: u32,
}

impl Taken {
    fn of(events: &[AnswerEvent]) -> Self {
        let mut taken = Self { lines: HashSet::new(), texts: HashSet::new(), shown: 0 };
        for event in events {
            let (line, text) = match event {
                AnswerEvent::Sentence(sentence) => {
                    taken.shown += 1;
                    (sentence.line, &sentence.text)
                }
                AnswerEvent::Dropped(dropped) => (dropped.line, &dropped.text),
                _ => continue,
            };
            taken.lines.insert(line);
            taken.texts.insert(text.clone());
        }
        taken
    }

    /// Each line once, also where a model says the same in another request, and nothing twice.
    fn is_new(&mut self, line: &Line) -> bool {
        self.lines.insert(line.number) && self.texts.insert(line.text.clone())
    }
}
