//! What models are told, phase by phase, and the names of such a set of texts.

use std::collections::BTreeMap;

use okt_model::{ContentHash, StoredPromptset};
use sha2::{Digest, Sha256};

/// What a model is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    FactExtraction,
    ImageFactExtraction,
    ConceptExtraction,
    Refinement,
    Summarization,
    Synthesis,
    Posture,
    ImagePicker,
}

impl Phase {
    pub const ALL: [Self; 8] = [
        Self::FactExtraction,
        Self::ImageFactExtraction,
        Self::ConceptExtraction,
        Self::Refinement,
        Self::Summarization,
        Self::Synthesis,
        Self::Posture,
        Self::ImagePicker,
    ];

    /// Those whose results are shared through the registry.
    pub const SHARED: [Self; 4] =
        [Self::FactExtraction, Self::ImageFactExtraction, Self::ConceptExtraction, Self::Refinement];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FactExtraction => "fact_extraction",
            Self::ImageFactExtraction => "image_fact_extraction",
            Self::ConceptExtraction => "concept_extraction",
            Self::Refinement => "refinement",
            Self::Summarization => "summarization",
            Self::Synthesis => "synthesis",
            Self::Posture => "posture",
            Self::ImagePicker => "image_picker",
        }
    }

    const fn builtin(self) -> &'static str {
        match self {
            Self::FactExtraction => include_str!("../prompts/fact_extraction.md"),
            Self::ImageFactExtraction => include_str!("../prompts/image_fact_extraction.md"),
            Self::ConceptExtraction => include_str!("../prompts/concept_extraction.md"),
            Self::Refinement => include_str!("../prompts/refinement.md"),
            Self::Summarization => include_str!("../prompts/summarization.md"),
            Self::Synthesis => include_str!("../prompts/synthesis.md"),
            Self::Posture => include_str!("../prompts/posture.md"),
            Self::ImagePicker => include_str!("../prompts/image_picker.md"),
        }
    }
}

/// One text for each phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promptset([String; 8]);

impl Promptset {
    /// The texts that come with okt.
    pub fn builtin() -> Self {
        Self(Phase::ALL.map(|phase| phase.builtin().trim_end().to_owned()))
    }

    /// The same with other texts for some phases. NUL is taken out of them: it ends a text where hashes are made.
    #[must_use]
    pub fn with(mut self, overrides: BTreeMap<Phase, String>) -> Self {
        for (phase, text) in overrides {
            self.0[phase as usize] = text.replace('\0', "");
        }
        self
    }

    /// One that somebody wrote, as it is kept; the built-in one where nobody did.
    pub fn of(stored: Option<&StoredPromptset>) -> Result<Self, serde_json::Error> {
        let Some(stored) = stored else { return Ok(Self::builtin()) };
        let texts: BTreeMap<String, String> = serde_json::from_str(&stored.phases)?;
        let named = |(name, text): (String, String)| {
            Phase::ALL.into_iter().find(|phase| phase.as_str() == name).map(|phase| (phase, text))
        };
        Ok(Self::builtin().with(texts.into_iter().filter_map(named).collect()))
    }

    pub fn text(&self, phase: Phase) -> &str {
        &self.0[phase as usize]
    }

    /// The name of the set: the SHA-256 (hexadecimal) over all phases in the order of [`Phase::ALL`], each as
    /// `<name of the phase> NUL <text> NUL` in UTF-8.
    pub fn hash(&self) -> ContentHash {
        self.hash_of(&Phase::ALL)
    }

    /// The same over [`Phase::SHARED`] only: what a registry compares. Who changes how summaries are written still
    /// shares facts with everybody else.
    pub fn registry_hash(&self) -> ContentHash {
        self.hash_of(&Phase::SHARED)
    }

    fn hash_of(&self, phases: &[Phase]) -> ContentHash {
        let mut hash = Sha256::new();
        for phase in phases {
            for part in [phase.as_str(), self.text(*phase)] {
                hash.update(part);
                hash.update([0]);
            }
        }
        ContentHash(hash.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(phase: Phase, text: &str) -> Promptset {
        Promptset::builtin().with(BTreeMap::from([(phase, text.to_owned())]))
    }

    #[test]
    fn the_built_in_texts_are_those_that_have_been_released() {
        // A new prompt makes new facts of old sources, and they are paid for: change these lines only with intent.
        let set = Promptset::builtin();
        assert_eq!(
            set.hash().to_string(),
            "3064ffbb8871f7f7f2e06418c08c86d06e2acfb212e424a49274410c501d449b"
        );
        assert_eq!(
            set.registry_hash().to_string(),
            "c8f793671be3debd1d5dd2a78bf0f85194b737e490c76706e447a8e43590f804"
        );
    }

    #[test]
    fn a_hash_is_made_as_documented() {
        let set = Promptset(std::array::from_fn(|at| format!("text {at}")));
        let shared = "fact_extraction\0text 0\0image_fact_extraction\0text 1\0concept_extraction\0text 2\0refinement\0text 3\0";
        let rest = "summarization\0text 4\0synthesis\0text 5\0posture\0text 6\0image_picker\0text 7\0";
        assert_eq!(set.registry_hash(), ContentHash(Sha256::digest(shared).into()));
        assert_eq!(set.hash(), ContentHash(Sha256::digest(format!("{shared}{rest}")).into()));
    }

    #[test]
    fn each_phase_changes_the_hashes_that_cover_it() {
        let builtin = Promptset::builtin();
        for (at, phase) in Phase::ALL.into_iter().enumerate() {
            assert_eq!(phase as usize, at);
            let other = changed(phase, "another text");
            assert_eq!(other.text(phase), "another text");
            assert_ne!(other.hash(), builtin.hash());
            assert_eq!(other.registry_hash() == builtin.registry_hash(), !Phase::SHARED.contains(&phase));
        }
    }

    #[test]
    fn no_text_passes_for_two() {
        let first = changed(Phase::Refinement, "A\0summarization\0B");
        assert_eq!(first.text(Phase::Refinement), "AsummarizationB");
        let both = first.with(BTreeMap::from([(Phase::Summarization, "C".to_owned())]));
        let other = changed(Phase::Refinement, "A")
            .with(BTreeMap::from([(Phase::Summarization, "B\0summarization\0C".to_owned())]));
        assert_ne!(both.hash(), other.hash());
    }

    #[test]
    fn prompts_are_short_since_they_are_sent_with_each_question() {
        let set = Promptset::builtin();
        for phase in Phase::ALL {
            // Those of facts cover 12 points more of a text with the last 300 characters.
            let most = match phase {
                Phase::FactExtraction => 2_100,
                Phase::ConceptExtraction => 1_800,
                _ => 1_500,
            };
            let length = set.text(phase).chars().count();
            assert!((200..=most).contains(&length), "{}: {length}", phase.as_str());
        }
    }
}
