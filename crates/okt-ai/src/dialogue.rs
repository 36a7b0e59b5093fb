//! A question to a model and, where the answer does not fit, the one complaint about it; whoever sends it.

use okt_extract::{Misfit, Question};
use okt_model::CallOutcome;
use okt_providers::ai::{Again, Chat, End, Part, Reply, Schema};

use crate::call::Ended;

/// What is sent next.
pub struct Dialogue {
    chat: Chat,
    complained: bool,
}

/// What a reply comes to.
pub enum Turn<T> {
    Done(T),
    /// The model is to be told what was wrong.
    Again {
        code: &'static str,
    },
    Unusable {
        code: &'static str,
        message: String,
    },
}

impl Dialogue {
    pub fn new(question: &Question, image: Option<Part>) -> Self {
        let mut user = vec![Part::Text(question.user.clone())];
        user.extend(image);
        let chat = Chat {
            system: question.system.clone(),
            user,
            again: None,
            schema: Some(Schema { name: "answer", schema: question.schema }),
            max_tokens: question.max_tokens,
        };
        Self { chat, complained: false }
    }

    pub const fn chat(&self) -> &Chat {
        &self.chat
    }

    /// Takes the reply to [`Dialogue::chat`] as `read` understands it.
    pub fn take<T>(&mut self, reply: &Reply, read: impl Fn(&str) -> Result<T, Misfit>) -> (Ended, Turn<T>) {
        let (outcome, value) = match (reply.end, read(&reply.text)) {
            (End::Stop, Ok(value)) => (CallOutcome::Ok, Ok(value)),
            (End::Stop, Err(misfit)) => (CallOutcome::Misfit, Err((misfit.code(), misfit.to_string()))),
            (End::Length, _) => (CallOutcome::Truncated, Err(("truncated", "it was truncated".to_owned()))),
            (End::Filtered, _) => {
                let refused = "the model refused to answer (content filter)".to_owned();
                (CallOutcome::Filtered, Err(("filtered", refused)))
            }
        };
        // What is too coarse is worth knowing, too: nobody asks for all of it at once again.
        let worth_keeping = matches!(value, Ok(_) | Err((Misfit::COARSE, _)));
        let turn = match value {
            Ok(value) => Turn::Done(value),
            Err((code, complaint)) if self.complained || outcome == CallOutcome::Filtered => {
                Turn::Unusable { code, message: format!("the model's answer could not be used: {complaint}") }
            }
            Err((code, complaint)) => {
                if outcome == CallOutcome::Truncated {
                    self.chat.max_tokens = self.chat.max_tokens.saturating_mul(2);
                } else {
                    self.chat.again = Some(Again { answer: reply.text.clone(), complaint });
                }
                self.complained = true;
                Turn::Again { code }
            }
        };
        (Ended { outcome, worth_keeping }, turn)
    }
}
