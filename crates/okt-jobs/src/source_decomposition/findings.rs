//! What was found in a source, and what was not.

use std::collections::BTreeMap;

use okt_ai::Unanswered;
use okt_extract::{Extracted, Grounded};
use okt_model::{
    ChunkFailure, ContentHash, Extraction, FactKind, ImageId, NewFact, NoFacts, SourceFailure, SourceStage,
};

use super::cited;
use crate::asking::Stopped;

/// Failures that a source tells of one by one.
const TOLD: usize = 20;

/// A part of a source that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Chunk { no: u32, first: u32, last: u32 },
    Image(ImageId),
}

#[derive(Debug, Default)]
pub(super) struct Findings {
    facts: BTreeMap<ContentHash, NewFact>,
    dropped: BTreeMap<String, u32>,
    chunks: u32,
    images: u32,
    failures: Vec<ChunkFailure>,
    /// Those that may be answered another time.
    unanswered: Vec<Part>,
    pub stopped: Option<Stopped>,
    /// Why it failed as a whole.
    failure: Option<SourceFailure>,
}

impl Findings {
    /// Parts that were asked about.
    pub(super) fn answered(&self) -> u64 {
        let unanswered = u32::try_from(self.unanswered.len()).unwrap_or(u32::MAX);
        (self.chunks + self.images).saturating_sub(unanswered).into()
    }

    /// `None` where it was not asked about because of what another part met.
    pub(super) fn take(&mut self, part: Part, model: &str, ended: Option<Result<Extracted, Unanswered>>) {
        match part {
            Part::Chunk { .. } => self.chunks += 1,
            Part::Image(_) => self.images += 1,
        }
        let Some(ended) = ended else { return self.unanswered.push(part) };
        match ended {
            Ok(extracted) => self.take_extracted(Some(part), model, extracted),
            Err(unanswered) => match Stopped::keep(&mut self.stopped, unanswered) {
                Some((code, message)) => self.fail(part, code, &message),
                None => self.unanswered.push(part),
            },
        }
    }

    /// Facts, and what did not become one.
    pub(super) fn take_extracted(&mut self, part: Option<Part>, model: &str, extracted: Extracted) {
        for dropped in extracted.dropped {
            let count = u32::try_from(dropped.count).unwrap_or(u32::MAX);
            *self.dropped.entry(dropped.reason.as_str().to_owned()).or_default() += count;
        }
        self.take_facts(part, model, extracted.facts);
    }

    fn take_facts(&mut self, part: Option<Part>, model: &str, facts: Vec<Grounded>) {
        let (chunk, image) = match part {
            Some(Part::Chunk { no, .. }) => (i32::try_from(no).ok(), None),
            Some(Part::Image(id)) => (None, Some(id)),
            None => (None, None),
        };
        for Grounded { text, hash, sentences } in facts {
            let kind = if image.is_some() { FactKind::Image } else { FactKind::Text };
            let (model, sentences_so_far) = (model.to_owned(), Vec::new());
            let new = NewFact { text, hash, kind, model, chunk, sentences: sentences_so_far, image };
            let fact = self.facts.entry(hash).or_insert(new);
            // What is said twice in a source is one fact that rests on both places.
            fact.sentences.extend(sentences);
            fact.sentences.sort_unstable();
            fact.sentences.dedup();
        }
    }

    /// Gives up what was not answered.
    pub(super) fn fail_unanswered(&mut self, code: &str, message: &str) {
        for part in std::mem::take(&mut self.unanswered) {
            self.fail(part, code, message);
        }
    }

    /// Gives up the source, for a reason that is no part's own.
    pub(super) fn give_up(&mut self, code: &str, message: &str, retryable: bool) {
        self.fail_unanswered(code, message);
        self.failure = Some(SourceFailure::new(SourceStage::Decomposition, code, message, retryable));
    }

    fn fail(&mut self, part: Part, code: &str, message: &str) {
        let (code, message) = (code.to_owned(), message.to_owned());
        self.failures.push(match part {
            Part::Chunk { no, first, last } => ChunkFailure {
                chunk: Some(no),
                image: None,
                first_sentence: Some(first),
                last_sentence: Some(last),
                code,
                message,
            },
            Part::Image(id) => ChunkFailure {
                chunk: None,
                image: Some(id),
                first_sentence: None,
                last_sentence: None,
                code,
                message,
            },
        });
    }

    pub(super) fn facts(&self) -> Vec<NewFact> {
        self.facts.values().cloned().collect()
    }

    /// Why the source fails, if it does.
    pub(super) fn failure(&self) -> Option<SourceFailure> {
        if let Some(failure) = &self.failure {
            return Some(failure.clone());
        }
        let first = self.failures.first()?;
        let (failed, all) = (self.failures.len(), self.chunks + self.images);
        let message =
            format!("{failed} of {all} parts gave no usable answer, the first because: {}", first.message);
        Some(SourceFailure::new(SourceStage::Decomposition, "chunks_failed", message, true))
    }

    /// Why there are no facts, where nothing failed.
    pub(super) fn why_nothing(&self) -> NoFacts {
        if self.chunks + self.images == 0 {
            NoFacts::new("no_sentences", "There are no sentences in it, and no images that were looked at.")
        } else if self.dropped.is_empty() {
            NoFacts::new("nothing_found", "The model read all of it and found nothing that is a fact.")
        } else {
            NoFacts::new(
                "nothing_grounded",
                "The model named facts, but the text bears out none of them; `dropped` counts why.",
            )
        }
    }

    pub(super) fn extraction(&self, sentences: usize) -> Extraction {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Extraction {
            chunks: self.chunks,
            images: self.images,
            failed: count(self.failures.len()),
            failures: self.failures.iter().take(TOLD).cloned().collect(),
            dropped: self.dropped.clone(),
            sentences: count(sentences),
            cited_sentences: count(cited(self.facts.values()).len()),
            ..Extraction::default()
        }
    }
}
