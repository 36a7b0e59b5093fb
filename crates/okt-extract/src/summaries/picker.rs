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
