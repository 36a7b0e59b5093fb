//! A question to a model and, where the answer does not fit, the one complaint about it; whoever sends it.

use okt_extract::{Closed, Misfit, Question};
use okt_model::CallOutcome;
use okt_providers::ai::{Again, Chat, End, Part, Reply, Schema};

use crate::call::Ended;

/// What is sent next.
pub struct Dialogue {
    chat: Chat,
    /// Of a truncated answer, what is complete may be read.
    divisible: bool,
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
            thinking: question.thinking,
        };
        Self { chat, divisible: question.divisible, complained: false }
    }

    pub const fn chat(&self) -> &Chat {
        &self.chat
    }

    /// Takes the reply to [`Dialogue::chat`] as `read` understands it.
    ///
    /// A truncated answer is asked for again, with twice the room. If that one is truncated, too, or if the model repeats
    /// itself, the complete part of it is taken.
    pub fn take<T>(&mut self, reply: &Reply, read: impl Fn(&str) -> Result<T, Misfit>) -> (Ended, Turn<T>) {
        let refused = |code, complaint: &str| Err((code, complaint.to_owned()));
        let misfit = |misfit: Misfit| (misfit.code(), misfit.to_string());
        let mut last = self.complained;
        let (outcome, answer, value) = match reply.end {
            End::Stop => {
                let value = read(&reply.text).map_err(misfit);
                let outcome = if value.is_ok() { CallOutcome::Ok } else { CallOutcome::Misfit };
                (outcome, reply.text.clone(), value)
            }
            End::Length => {
                let closed = Some(&reply.text).filter(|_| self.divisible).and_then(|text| Closed::of(text));
                last |= closed.as_ref().is_some_and(|closed| closed.loops);
                let answer = closed.filter(|_| last).map(|closed| closed.answer);
                let value = match answer.as_deref().map(read) {
                    Some(Ok(value)) => Ok(value),
                    // Smaller pieces have shorter answers.
                    Some(Err(coarse @ Misfit::Coarse(_))) => Err(misfit(coarse)),
                    Some(Err(_)) | None => refused("truncated", "it was truncated"),
                };
                (CallOutcome::Truncated, answer.unwrap_or_default(), value)
            }
            End::Filtered => {
                last = true;
                let value = refused("filtered", "the model refused to answer (content filter)");
                (CallOutcome::Filtered, String::new(), value)
            }
        };
        // What is too coarse is worth knowing, too: nobody asks for all of it at once again.
        let keep = matches!(value, Ok(_) | Err((Misfit::COARSE, _))).then_some(answer);
        let turn = match value {
            Ok(value) => Turn::Done(value),
            Err((code, complaint)) if last => {
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
        (Ended { outcome, keep }, turn)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use okt_extract::{Chunk, Coarse, Extracted, Promptset, Reason, Text, fact_questions, read_facts};
    use okt_providers::ai::Usage;

    use super::*;

    const TEXT: &str = "Gulls nest on Skomer. Gulls left Skokholm.";
    const OFFSETS: [(i32, i32); 2] = [(0, 21), (22, 42)];
    const SKOMER: &str = r#"{"text":"Gulls nest on Skomer.","sentences":[0]}"#;
    const SKOKHOLM: &str = r#"{"text":"Gulls left Skokholm.","sentences":[1]}"#;
    const INVENTED: &str = r#"{"text":"Puffins breed near Tromsø.","sentences":[1]}"#;

    fn chunk() -> Chunk {
        Chunk { no: 0, sentences: 0..2, context: 0..0 }
    }

    fn dialogue() -> Dialogue {
        let (promptset, text, chunk) = (Promptset::builtin(), Text::new(TEXT, &OFFSETS), [chunk()]);
        let question = fact_questions(&promptset, None, &text, &chunk).next().unwrap();
        Dialogue::new(&question, None)
    }

    fn read(answer: &str) -> Result<Extracted, Misfit> {
        read_facts(answer, None, &Text::new(TEXT, &OFFSETS), &chunk(), Coarse::Refused)
    }

    fn said(end: End, facts: &[&str]) -> Reply {
        let text = format!(r#"{{"facts":[{},{{"text":"Gul"#, facts.join(","));
        Reply { text, end, usage: Usage::default(), latency: Duration::ZERO, retries: 0 }
    }

    fn texts(extracted: &Extracted) -> Vec<&str> {
        extracted.facts.iter().map(|fact| fact.text.as_str()).collect()
    }

    #[test]
    fn an_answer_that_is_truncated_twice_keeps_its_complete_facts() {
        let mut dialogue = dialogue();
        let truncated = said(End::Length, &[SKOMER, INVENTED]);
        let (ended, turn) = dialogue.take(&truncated, read);
        assert!(matches!(turn, Turn::Again { code: "truncated" }));
        assert_eq!(
            (ended.outcome, ended.keep, dialogue.chat().max_tokens),
            (CallOutcome::Truncated, None, 8_192)
        );

        let (ended, turn) = dialogue.take(&truncated, read);
        let Turn::Done(extracted) = turn else { panic!("its facts are taken") };
        assert_eq!(
            (ended.outcome, texts(&extracted)),
            (CallOutcome::Truncated, vec!["Gulls nest on Skomer."])
        );
        let reasons: Vec<Reason> = extracted.dropped.iter().map(|dropped| dropped.reason).collect();
        assert_eq!(reasons, [Reason::NotInText, Reason::Truncated]);
        assert_eq!(read(&ended.keep.unwrap()), Ok(extracted), "what is kept reads the same");
    }

    #[test]
    fn an_answer_that_repeats_itself_is_not_asked_for_again() {
        let (ended, turn) =
            dialogue().take(&said(End::Length, &[SKOMER, SKOKHOLM, SKOMER, SKOKHOLM, SKOMER]), read);
        let Turn::Done(extracted) = turn else { panic!("its facts are taken") };
        assert_eq!(texts(&extracted), ["Gulls nest on Skomer.", "Gulls left Skokholm."]);
        assert_eq!((ended.outcome, read(&ended.keep.unwrap())), (CallOutcome::Truncated, Ok(extracted)));

        let (ended, turn) = dialogue().take(&said(End::Length, &[INVENTED; 3]), read);
        assert!(matches!(turn, Turn::Unusable { code: "truncated", .. }) && ended.keep.is_none());
        let long = format!(r#"{{"text":"{}","sentences":[0]}}"#, TEXT.repeat(20));
        let (ended, turn) = dialogue().take(&said(End::Length, &[long.as_str(); 3]), read);
        assert!(
            matches!(turn, Turn::Unusable { code: Misfit::COARSE, .. }),
            "smaller pieces are asked about"
        );
        assert!(matches!(read(&ended.keep.unwrap()), Err(Misfit::Coarse(_))), "and the next run knows it");
    }

    #[test]
    fn only_what_is_truncated_is_read_in_part() {
        // It ended by itself, and is no JSON.
        let mut dialogue = dialogue();
        let (ended, turn) = dialogue.take(&said(End::Stop, &[SKOMER; 3]), read);
        assert!(matches!(turn, Turn::Again { code: "misfit" }) && ended.keep.is_none());
        let (ended, turn) = dialogue.take(&said(End::Stop, &[SKOMER; 3]), read);
        assert!(matches!(turn, Turn::Unusable { code: "misfit", .. }) && ended.keep.is_none());

        // Nothing but the whole answer is of use.
        let question = okt_extract::same_question(&[("Gulls nest.", "Gulls breed.")]);
        let mut dialogue = Dialogue::new(&question, None);
        for _ in 0..2 {
            let (ended, turn) = dialogue.take(&said(End::Length, &[SKOMER; 3]), read);
            assert!(!matches!(turn, Turn::Done(_)) && ended.keep.is_none());
        }
    }
}
