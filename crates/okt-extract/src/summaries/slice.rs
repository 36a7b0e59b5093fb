//! A short text about some facts of a concept: the question, and what is kept of the answer.

use super::kept::{Given, read};
use super::{Attempt, Known, Written};
use crate::answer::Misfit;
use crate::line::shown;
use crate::promptset::{Phase, Promptset};
use crate::question::{Prompt, Question, SENTENCES};

/// Tokens that a sentence takes with its facts, and so how many are asked for.
pub(super) const TOKENS_PER_SENTENCE: u32 = 60;
const MOST_SENTENCES: u32 = 12;

/// What a slice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic<'t> {
    pub name: &'t str,
    /// The label of its context.
    pub context: &'t str,
}

/// Asks for a text about a concept from the facts of a slice. Each line begins with words of ours: the concept, or the number
/// of a fact in brackets. Texts of others have no line breaks left and no numbers in brackets.
pub fn slice_question(promptset: &Promptset, topic: &Topic, facts: &[Known], max_tokens: u32) -> Question {
    let mut user = format!("Concept: {} ({})\nFacts:\n", shown(topic.name), shown(topic.context));
    user.extend(facts.iter().enumerate().map(|(at, fact)| line(at, fact)));
    // Fewer than facts, or they are copied one by one; but small models that are only told the most write one.
    let fewer = u32::try_from(facts.len() * 2 / 3).unwrap_or(MOST_SENTENCES).clamp(1, MOST_SENTENCES);
    let most = (max_tokens / TOKENS_PER_SENTENCE).clamp(1, fewer);
    user.extend([format!("Write {} to {most} sentences.\n", most.div_ceil(2))]);
    Prompt::with_max_tokens(promptset.text(Phase::Summarization), &SENTENCES, max_tokens).ask(user)
}

/// A fact with its number and, where several sources state it, how many.
pub(super) fn line(at: usize, fact: &Known) -> String {
    let sources = if fact.sources > 1 { format!("({} sources) ", fact.sources) } else { String::new() };
    format!("[{}] {sources}{}\n", at + 1, shown(fact.text))
}

/// Reads the answer to [`slice_question`]. A sentence is kept if it cites facts of the slice, and these have its numbers and
/// names.
pub fn read_slice(answer: &str, topic: &Topic, facts: &[Known], attempt: Attempt) -> Result<Written, Misfit> {
    read(answer, &SENTENCES, &Given { facts, about: &[topic.name, topic.context], images: &[] }, attempt)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FACTS, id, known};
    use super::*;

    const TOPIC: Topic = Topic { name: "Harbour\nBridge [7]", context: "Bridge" };

    #[test]
    fn facts_are_shown_with_numbers_that_no_text_can_pass_for() {
        let mut facts = known();
        facts[1].text = "Piers\n[9] moved [3].";
        let question = slice_question(&Promptset::builtin(), &TOPIC, &facts[..3], 600);
        assert_eq!(
            question.user,
            format!(
                "Concept: Harbour Bridge (7) (Bridge)\nFacts:\n[1] {}\n[2] Piers (9) moved (3).\n[3] (3 sources) {}\nWrite 1 \
                 to 2 sentences.\n",
                FACTS[0], FACTS[2]
            )
        );
        assert!(!question.user.contains(&id(0).to_string()), "a model sees no ids");
        assert_eq!((question.max_tokens, question.divisible), (600, true));
        let asked = |facts: usize, max_tokens| {
            let many: Vec<Known> = known().into_iter().cycle().take(facts).collect();
            slice_question(&Promptset::builtin(), &TOPIC, &many, max_tokens)
        };
        let expected = [
            (1, 600, "1 to 1"),
            (20, 600, "5 to 10"),
            (20, 6_000, "6 to 12"),
            (6, 6_000, "2 to 4"),
            (20, 1, "1 to 1"),
        ];
        for (facts, max_tokens, sentences) in expected {
            let ends = format!("Write {sentences} sentences.\n");
            assert!(asked(facts, max_tokens).user.ends_with(&ends), "{facts} {max_tokens}");
        }
        let more = asked(20, 6_000);
        assert_ne!(more.prompt_hash, question.prompt_hash, "another room is another question");
    }

    #[test]
    fn sentences_are_written_with_the_facts_that_they_cite() {
        let answer = r#"{"sentences":[
            {"text":"Two piers of the bridge have moved by\n almost four centimetres [2].","facts":[2]},
            {"text":"It is closed for eighteen months [1, 3] and costs 41 million.","facts":[3,1,3.0]}]}"#;
        let written = read_slice(answer, &TOPIC, &known(), Attempt::First).unwrap();
        assert_eq!(
            written.content,
            format!(
                "[Two piers of the bridge have moved by almost four centimetres.](<fact:{}>) [It is closed for eighteen months \
                 and costs 41 million.](<fact:{}>)[²](<fact:{}>)",
                id(1),
                id(0),
                id(2)
            )
        );
        assert_eq!(
            written,
            Written { content: written.content.clone(), cited: vec![0, 1, 2], ..Written::default() }
        );
        for attempt in [Attempt::First, Attempt::Last] {
            let nothing = read_slice(r#"{"sentences":[]}"#, &TOPIC, &known(), attempt);
            assert!(matches!(nothing, Err(Misfit::Ground(_))), "{nothing:?}");
        }
    }

    #[test]
    fn what_does_not_resolve_is_complained_about_and_then_left_out() {
        let answer = r#"{"sentences":[{"text":"Two piers have moved.","facts":[2,12]},{"text":"It is closed.","facts":[]},
            {"text":"It is the Harbour Bridge.","facts":[]},{"text":"The Harbour Bridge is closed to cars, see https://evil.example.","facts":[1]},
            {"text":"It is closed to cars.","facts":[1]},{"text":"It costs 42 million.","facts":[3]}]}"#;
        let read = |answer: &str, attempt| read_slice(answer, &TOPIC, &known(), attempt);
        let Err(Misfit::Ground(complaint)) = read(answer, Attempt::First) else { panic!("12 is no fact") };
        assert!(complaint.starts_with("1 of the numbers") && complaint.contains("1 to 6"), "{complaint}");
        let written = read(answer, Attempt::Last).unwrap();
        assert_eq!((written.dropped_citations, written.dropped_sentences, written.cited), (1, 4, vec![0, 1]));

        // Less than half can be used.
        let answer = r#"{"sentences":[{"text":"It is closed.","facts":[1]},{"text":"It is old.","facts":[]},{"text":"It is red.","facts":[]}]}"#;
        assert!(matches!(read(answer, Attempt::First), Err(Misfit::Ground(_))));
        assert_eq!(read(answer, Attempt::Last).unwrap().dropped_sentences, 2);
        // Nothing can.
        let answer = r#"{"sentences":[{"text":"It is closed.","facts":[9]}]}"#;
        assert!(matches!(read(answer, Attempt::Last), Err(Misfit::Ground(_))));
        assert!(matches!(read("It is closed [1].", Attempt::Last), Err(Misfit::Form(_))));
    }

    #[test]
    fn a_paragraph_that_cites_all_facts_is_cut_and_each_sentence_cites_what_it_tells() {
        let answer = r#"{"sentences":[{"text":"The Harbour Bridge is closed to cars for eighteen months. Buses may still cross on one lane. The mayor is sorry.","facts":[1,2,3,4,5,6]}]}"#;
        let written = read_slice(answer, &TOPIC, &known(), Attempt::First).unwrap();
        assert_eq!(
            written.content,
            format!(
                "[The Harbour Bridge is closed to cars for eighteen months.](<fact:{}>) [Buses may still cross on one \
                 lane.](<fact:{}>)",
                id(0),
                id(3)
            )
        );
        assert_eq!(written.dropped_sentences, 1);
        // One sentence of many facts keeps those that it tells, or all if it needs them.
        let one = r#"{"sentences":[{"text":"The Harbour Bridge is closed to cars for eighteen months.","facts":[1,2,3,4,5]}]}"#;
        assert_eq!(read_slice(one, &TOPIC, &known(), Attempt::First).unwrap().cited, [0]);
        let joined = r#"{"sentences":[{"text":"The Harbour Bridge is closed to cars, and costs are 41 million or 55 million.","facts":[1,3,5,6]}]}"#;
        assert_eq!(read_slice(joined, &TOPIC, &known(), Attempt::First).unwrap().cited, [0, 2, 4]);
        let needed = r#"{"sentences":[{"text":"The Harbour Bridge is closed to cars and 33 percent drive.","facts":[1,2,3,6]}]}"#;
        assert_eq!(read_slice(needed, &TOPIC, &known(), Attempt::First).unwrap().cited, [0, 1, 2, 5]);
        let many: Vec<Known> = known().into_iter().cycle().take(9).collect();
        let all = r#"{"sentences":[{"text":"The Harbour Bridge is closed and 33 percent drive.","facts":[1,2,3,4,5,6,7,8,9]}]}"#;
        assert!(read_slice(all, &TOPIC, &many, Attempt::Last).is_err());
    }

    #[test]
    fn of_a_truncated_answer_the_complete_sentences_are_kept() {
        let cut = r#"{"sentences":[{"text":"It is closed.","facts":[1]},{"text":"Two piers have mo"#;
        let closed = crate::Closed::of(cut).unwrap();
        let written = read_slice(&closed.answer, &TOPIC, &known(), Attempt::Last).unwrap();
        assert_eq!((written.cited, written.truncated, written.dropped_sentences), (vec![0], true, 0));
        // One that repeats itself is not asked for again, so it is not complained about.
        let cut = r#"{"sentences":[{"text":"It is closed.","facts":[1,77]},{"text":"Two piers have mo"#;
        let closed = crate::Closed::of(cut).unwrap();
        let written = read_slice(&closed.answer, &TOPIC, &known(), Attempt::First).unwrap();
        assert_eq!((written.cited, written.dropped_citations), (vec![0], 1));
    }
}
