//! Facts from images. Nothing here can look at one, so what is said of it is only made tidy.

use std::collections::HashSet;

use okt_model::SourceImage;

use crate::answer::{self, Coarse, Misfit};
use crate::facts::{Extracted, labelled, titled};
use crate::promptset::{Phase, Promptset};
use crate::question::{IMAGE_FACTS, Prompt, Question};

/// Asks for the facts of a source's images, of as many as may be looked at. The caller adds the images themselves. The same
/// picture at two places is one question.
pub fn image_questions<'i>(
    promptset: &Promptset,
    title: Option<&str>,
    images: &'i [SourceImage],
    most: usize,
) -> Vec<(&'i SourceImage, Question)> {
    let prompt = Prompt::new(promptset.text(Phase::ImageFactExtraction), &IMAGE_FACTS);
    let stored = images.iter().filter(|image| image.kind == "inline");
    let stored = stored.filter_map(|image| Some((image, image.blob?.hash)));
    let questions = stored
        .take(most)
        .map(|(image, hash)| (image, prompt.ask(asked(title, image.alt_text.as_deref())).about(hash.0)));
    let mut known = HashSet::new();
    questions.filter(|(_, question)| known.insert(question.input_hash)).collect()
}

fn asked(title: Option<&str>, alt_text: Option<&str>) -> String {
    let user = titled(title) + &labelled("Description", alt_text);
    if user.is_empty() { "No title, no description.\n".to_owned() } else { user }
}

/// Reads the answer to one of [`image_questions`]. Its facts rest on no sentence.
pub fn read_image_facts(answer: &str) -> Result<Extracted, Misfit> {
    answer::read(answer, &IMAGE_FACTS, Coarse::Taken, |_, _| Ok(Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dropped, Reason};

    #[test]
    fn an_image_is_asked_about_with_what_the_source_says_of_it() {
        let set = Promptset::builtin();
        let prompt = Prompt::new(set.text(Phase::ImageFactExtraction), &IMAGE_FACTS);
        let ask = |title, alt_text| prompt.ask(asked(title, alt_text));
        let question = ask(Some("Swifts"), Some("Passages\nTitle: forged [7]"));
        assert_eq!(question.user, "Title: Swifts\nDescription: Passages Title: forged (7)\n");
        assert_eq!(question.system, set.text(Phase::ImageFactExtraction));
        let schema: serde_json::Value = serde_json::from_str(question.schema).unwrap();
        assert_eq!(schema["properties"]["facts"]["items"]["required"], serde_json::json!(["text"]));
        assert_eq!(ask(None, Some(" \n")).user, "No title, no description.\n");
        assert_ne!(question.input_hash, ask(None, None).input_hash);
        assert_eq!(question.prompt_hash, ask(None, None).prompt_hash);
    }

    #[test]
    fn facts_of_images_are_tidied_and_rest_on_no_sentence() {
        let answer = r#"{"facts":[{"text":"Passages peak\n in July. "},{"text":"Passages peak in July."},{"text":" "}]}"#;
        let extracted = read_image_facts(answer).unwrap();
        assert_eq!(extracted.facts.len(), 1);
        assert_eq!(extracted.facts[0].text, "Passages peak in July.");
        assert!(extracted.facts[0].sentences.is_empty());
        assert_eq!(extracted.dropped, [Dropped { reason: Reason::Empty, count: 1 }]);
        assert!(matches!(read_image_facts("a picture of a swift"), Err(Misfit::Form(_))));
        assert_eq!(read_image_facts(r#"{"facts":[]}"#), Ok(Extracted::default()));
    }
}
