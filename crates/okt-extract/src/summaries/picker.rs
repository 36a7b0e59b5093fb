//! Which images show a concept best: the question about candidates, and what is believed of the answer.

use serde::Deserialize;
use serde_json::Number;

use super::kept::place;
use crate::answer::{Firsts, Listed, Misfit, object};
use crate::facts::labelled;
use crate::line::shown;
use crate::promptset::{Phase, Promptset};
use crate::question::{PICKED, Prompt, Question};

/// An image that may be picked.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'c> {
    /// What was read from the image.
    pub fact: &'c str,
    /// What its source says of it.
    pub caption: Option<&'c str>,
}

/// Asks for the images that show a concept best, at most so many.
pub fn picker_question(promptset: &Promptset, name: &str, candidates: &[Candidate], most: usize) -> Question {
    let mut user = format!("Concept: {}\nPick at most {most} images.\n", shown(name));
    for (at, candidate) in candidates.iter().enumerate() {
        user.extend([
            format!("[{}] {}\n", at + 1, shown(candidate.fact)),
            labelled("Caption", candidate.caption),
        ]);
    }
    Prompt::new(promptset.text(Phase::ImagePicker), &PICKED).ask(user)
}

/// Reads the answer to [`picker_question`]: places of candidates, the best first. Numbers of no candidate are left out.
pub fn read_picked(answer: &str, candidates: usize, most: usize) -> Result<Vec<usize>, Misfit> {
    let mut picked: Vec<usize> = Vec::new();
    for Image(number) in object::<Answer>(answer, &PICKED)?.images.list {
        if let Some(at) = place(&number, candidates).filter(|at| !picked.contains(at)) {
            picked.push(at);
        }
    }
    picked.truncate(most);
    Ok(picked)
}

#[derive(Deserialize)]
struct Answer {
    images: Firsts<Image>,
}

#[derive(Deserialize)]
struct Image(Number);

impl Listed for Image {
    const WHAT: &str = "a list of numbers";
    const MOST: usize = 200;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_shown_with_what_is_known_of_them() {
        let candidates = [
            Candidate { fact: "Passages peak\n[2] in July.", caption: Some("Swifts [1]") },
            Candidate { fact: "A map of Ulm.", caption: None },
        ];
        let question = picker_question(&Promptset::builtin(), "Swift", &candidates, 3);
        assert_eq!(
            question.user,
            "Concept: Swift\nPick at most 3 images.\n[1] Passages peak (2) in July.\nCaption: Swifts (1)\n[2] A map of Ulm.\n"
        );
        assert_eq!(question.system, Promptset::builtin().text(Phase::ImagePicker));
    }

    #[test]
    fn only_numbers_of_candidates_are_picked_each_once() {
        let picked = |answer: &str| read_picked(answer, 3, 2);
        assert_eq!(picked(r#"{"images":[3,1,2]}"#), Ok(vec![2, 0]));
        assert_eq!(picked(r#"{"images":[0,4,-1,1.5,99999999999999999999,2,2,2.0,1]}"#), Ok(vec![1, 0]));
        assert_eq!(picked(r#"{"images":[]}"#), Ok(Vec::new()));
        for answer in ["3", r#"{"images":["3"]}"#, r#"{"image":3}"#, r#"{"images":"all"}"#] {
            assert!(matches!(picked(answer), Err(Misfit::Form(_))), "{answer}");
        }
    }
}
