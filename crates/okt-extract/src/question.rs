//! What goes out to a model.

use okt_model::ContentHash;
use sha2::{Digest, Sha256};

/// Room for an answer.
const MAX_TOKENS: u32 = 4_096;

/// A question to a model, and the two hashes under which its answer is found again.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub system: String,
    pub user: String,
    /// The JSON schema of the answer, strict. As it is written: a server that follows it has the model write the properties in
    /// this order, and a model that names its sentences before it has said anything names all of them.
    pub schema: &'static str,
    pub max_tokens: u32,
    /// How long the model may think, where that can be said.
    pub thinking: Option<&'static str>,
    /// Of an answer that is truncated, what is complete may be read.
    pub divisible: bool,
    /// Covers what is the same for all questions of a phase: `system`, `schema`, `max_tokens`, `thinking`.
    pub prompt_hash: [u8; 32],
    /// Covers `user`.
    pub input_hash: [u8; 32],
}

/// What is the same for all questions of a phase.
pub(crate) struct Prompt<'p> {
    system: &'p str,
    form: &'static Form,
    max_tokens: u32,
    hash: [u8; 32],
}

impl<'p> Prompt<'p> {
    pub(crate) fn new(system: &'p str, form: &'static Form) -> Self {
        Self::with_max_tokens(system, form, MAX_TOKENS)
    }

    pub(crate) fn with_max_tokens(system: &'p str, form: &'static Form, max_tokens: u32) -> Self {
        let mut hash = Sha256::new();
        for part in [system, form.schema, &max_tokens.to_string()] {
            hash.update(part);
            hash.update([0]);
        }
        Self { system, form, max_tokens, hash: hash.finalize().into() }
    }

    pub(crate) fn ask(&self, user: String) -> Question {
        Question {
            system: self.system.to_owned(),
            schema: self.form.schema,
            max_tokens: self.max_tokens,
            thinking: None,
            divisible: self.form.divisible,
            prompt_hash: self.hash,
            input_hash: Sha256::digest(&user).into(),
            user,
        }
    }
}

impl Question {
    /// What it is about is not all in the text: an image, by its hash.
    #[must_use]
    pub fn about(mut self, image: [u8; 32]) -> Self {
        self.input_hash = Sha256::new().chain_update(self.input_hash).chain_update(image).finalize().into();
        self
    }

    /// How long the model may think; another time to think is another question.
    #[must_use]
    pub fn thinking(mut self, level: &'static str) -> Self {
        self.thinking = Some(level);
        self.prompt_hash = Sha256::new().chain_update(self.prompt_hash).chain_update(level).finalize().into();
        self
    }

    /// Under which the answer of a model is kept, so that nobody asks it twice.
    pub fn key(&self, model: &str) -> ContentHash {
        let hash = Sha256::new().chain_update(model).chain_update([0]);
        ContentHash(hash.chain_update(self.prompt_hash).chain_update(self.input_hash).finalize().into())
    }
}

/// What an answer has to look like.
pub struct Form {
    schema: &'static str,
    /// For a model that has to be told again.
    pub example: &'static str,
    /// It is a list of which each entry can be checked by itself, and a part is better than nothing.
    divisible: bool,
}

/// Facts with the sentences on which they rest.
pub static FACTS: Form =
    Form { schema: FACTS_SCHEMA, example: r#"{"facts":[{"text":"…","sentences":[12]}]}"#, divisible: true };

/// Facts that rest on an image.
pub static IMAGE_FACTS: Form =
    Form { schema: IMAGE_FACTS_SCHEMA, example: r#"{"facts":[{"text":"…"}]}"#, divisible: false };

/// Whether the statements of pairs say the same.
pub static VERDICTS: Form = Form {
    schema: VERDICTS_SCHEMA,
    example: r#"{"pairs":[{"pair":1,"verdict":"different"}]}"#,
    divisible: false,
};

/// How the facts of pairs stand to the statements.
pub static POSTURES: Form = Form {
    schema: POSTURES_SCHEMA,
    example: r#"{"pairs":[{"pair":1,"same_subject":true,"posture":"supports","confidence":80}]}"#,
    divisible: false,
};

/// Whether the concepts of pairs are one thing.
pub static TWINS: Form = Form {
    schema: TWINS_SCHEMA,
    example: r#"{"pairs":[{"pair":1,"verdict":"different","reason":"…"}]}"#,
    divisible: false,
};

/// What facts are about.
pub static CONCEPTS: Form = Form {
    schema: CONCEPTS_SCHEMA,
    example: r#"{"concepts":[{"name":"…","context":"…","aliases":[],"facts":[1]}]}"#,
    divisible: false,
};

/// A text, sentence by sentence, each with the facts on which it rests.
pub static SENTENCES: Form = Form {
    schema: SENTENCES_SCHEMA,
    example: r#"{"sentences":[{"text":"…","facts":[1,4]}]}"#,
    divisible: true,
};

/// A text with images.
pub static ILLUSTRATED: Form = Form {
    schema: ILLUSTRATED_SCHEMA,
    example: r#"{"sentences":[{"text":"…","facts":[1,4],"image":0}]}"#,
    divisible: true,
};

/// Which images are picked.
pub static PICKED: Form = Form { schema: PICKED_SCHEMA, example: r#"{"images":[3,1]}"#, divisible: false };

/// An answer, sentence by sentence, each with the keys of what it rests on; then what is missing.
pub static ANSWER: Form = Form {
    schema: ANSWER_SCHEMA,
    example: r#"{"sentences":[{"s":"…","f":["kqzb"]}],"missing":""}"#,
    divisible: true,
};

/// Sentences that are said otherwise, by their numbers.
pub static REPAIRED: Form = Form {
    schema: REPAIRED_SCHEMA,
    example: r#"{"sentences":[{"n":1,"s":"…","f":["kqzb"]}]}"#,
    divisible: false,
};

/// How much facts help.
pub static SCORES: Form =
    Form { schema: SCORES_SCHEMA, example: r#"{"scores":[{"k":"kqzb","n":7}]}"#, divisible: false };

const FACTS_SCHEMA: &str = r#"{"type":"object","properties":{"facts":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"sentences":{"type":"array","items":{"type":"integer"}}},"required":["text","sentences"],"additionalProperties":false}}},"required":["facts"],"additionalProperties":false}"#;

const IMAGE_FACTS_SCHEMA: &str = r#"{"type":"object","properties":{"facts":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}}},"required":["facts"],"additionalProperties":false}"#;

const VERDICTS_SCHEMA: &str = r#"{"type":"object","properties":{"pairs":{"type":"array","items":{"type":"object","properties":{"pair":{"type":"integer"},"verdict":{"type":"string","enum":["same","different"]}},"required":["pair","verdict"],"additionalProperties":false}}},"required":["pairs"],"additionalProperties":false}"#;

const POSTURES_SCHEMA: &str = r#"{"type":"object","properties":{"pairs":{"type":"array","items":{"type":"object","properties":{"pair":{"type":"integer"},"same_subject":{"type":"boolean"},"posture":{"type":"string","enum":["supports","contradicts","related","irrelevant"]},"confidence":{"type":"integer"}},"required":["pair","same_subject","posture","confidence"],"additionalProperties":false}}},"required":["pairs"],"additionalProperties":false}"#;

const TWINS_SCHEMA: &str = r#"{"type":"object","properties":{"pairs":{"type":"array","items":{"type":"object","properties":{"pair":{"type":"integer"},"verdict":{"type":"string","enum":["same","different","unsure"]},"reason":{"type":"string"}},"required":["pair","verdict","reason"],"additionalProperties":false}}},"required":["pairs"],"additionalProperties":false}"#;

const CONCEPTS_SCHEMA: &str = r#"{"type":"object","properties":{"concepts":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"context":{"type":"string"},"aliases":{"type":"array","items":{"type":"string"}},"facts":{"type":"array","items":{"type":"integer"}}},"required":["name","context","aliases","facts"],"additionalProperties":false}}},"required":["concepts"],"additionalProperties":false}"#;

const SENTENCES_SCHEMA: &str = r#"{"type":"object","properties":{"sentences":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"facts":{"type":"array","items":{"type":"integer"}}},"required":["text","facts"],"additionalProperties":false}}},"required":["sentences"],"additionalProperties":false}"#;

const ILLUSTRATED_SCHEMA: &str = r#"{"type":"object","properties":{"sentences":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"facts":{"type":"array","items":{"type":"integer"}},"image":{"type":"integer"}},"required":["text","facts","image"],"additionalProperties":false}}},"required":["sentences"],"additionalProperties":false}"#;

const PICKED_SCHEMA: &str = r#"{"type":"object","properties":{"images":{"type":"array","items":{"type":"integer"}}},"required":["images"],"additionalProperties":false}"#;

const ANSWER_SCHEMA: &str = r#"{"type":"object","properties":{"sentences":{"type":"array","items":{"type":"object","properties":{"s":{"type":"string"},"f":{"type":"array","items":{"type":"string"}}},"required":["s","f"],"additionalProperties":false}},"missing":{"type":"string"}},"required":["sentences","missing"],"additionalProperties":false}"#;

const REPAIRED_SCHEMA: &str = r#"{"type":"object","properties":{"sentences":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"},"f":{"type":"array","items":{"type":"string"}}},"required":["n","s","f"],"additionalProperties":false}}},"required":["sentences"],"additionalProperties":false}"#;

const SCORES_SCHEMA: &str = r#"{"type":"object","properties":{"scores":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"},"n":{"type":"integer"}},"required":["k","n"],"additionalProperties":false}}},"required":["scores"],"additionalProperties":false}"#;
