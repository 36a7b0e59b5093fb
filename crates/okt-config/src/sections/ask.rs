//! Answers to questions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::period::Period;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Id of the chat model in `providers.ai.models` that writes answers; empty for none: answers are then the facts nearest to the
    /// question.
    pub model: String,
    /// Id of the model that checks each sentence against what it cites; empty for `model`. `builtin-posture-1` asks no model: by rules
    /// alone fewer sentences are certain.
    pub check_model: String,
    /// How many pieces of evidence are shown, and given to the model at most.
    #[schemars(range(min = 4, max = 60))]
    pub evidence: u32,
    /// Whether the model first says how much each piece of evidence helps, and is given only those that do.
    pub choose: bool,
    /// How many sentences an answer has at most.
    #[schemars(range(min = 1, max = 30))]
    pub max_sentences: u32,
    /// How long a model may take to score the evidence, to begin an answer, or to check a sentence; all together take at most three times
    /// as long. Then the facts are shown. Longer for a model that is slow.
    pub patience: Period,
    /// What an answer may cost unless its question says otherwise, in US dollars.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub max_cost_usd: f64,
    /// What each person may spend on answers in a repository and a day (UTC) unless the repository says otherwise, in US dollars; 0 for
    /// no limit.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub per_person_per_day_usd: f64,
    /// How many answers may be on their way for one person in a repository.
    #[schemars(range(min = 1, max = 1000))]
    pub running_per_person: u32,
    /// How many answers may be on their way in a repository.
    #[schemars(range(min = 1, max = 10_000))]
    pub running_per_repository: u32,
    /// How many answers of a day (UTC) each person may have in a repository, also those that cost nothing; 0 for no limit.
    pub answers_per_person_per_day: u32,
}

impl Ask {
    /// Who checks sentences.
    pub fn checker(&self) -> &str {
        if self.check_model.is_empty() { &self.model } else { &self.check_model }
    }
}
