//! Whose vectors say something. A model puts sentences of a language that it was not made for side by side, whatever they say.

use okt_store::fact_merges::Comparable;

/// The languages that a model was made for; all if there are none.
pub(crate) struct Languages(Vec<String>);

impl Languages {
    pub(crate) fn new(codes: Vec<String>) -> Self {
        Self(codes)
    }

    /// Whether a fact can be compared by its vector. It has the language of its source, unless that is written in other letters;
    /// where the source has none, what can be told from the fact alone.
    pub(crate) fn know(&self, fact: &Comparable) -> bool {
        if self.0.is_empty() {
            return true;
        }
        match &fact.language {
            Some(language) => self.0.contains(language) && okt_parse::is_written_in(&fact.text, language),
            None => {
                okt_parse::language_of(&fact.text, None).is_some_and(|language| self.0.contains(&language))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use okt_model::{FactId, FactKind, FactStatus};

    use super::*;

    fn fact(text: &str, language: Option<&str>) -> Comparable {
        Comparable {
            id: FactId::mint(),
            no: 1,
            text: text.to_owned(),
            kind: FactKind::Text,
            status: FactStatus::New,
            language: language.map(str::to_owned),
            similar_to: None,
        }
    }

    #[test]
    fn a_model_knows_what_it_was_made_for() {
        let english = Languages::new(vec!["en".to_owned()]);
        let (river, fluss) =
            ("The Aare flows through the city of Bern.", "Die Aare fließt durch die Stadt Bern.");
        assert!(english.know(&fact(river, Some("en"))));
        assert!(!english.know(&fact(fluss, Some("de"))));
        assert!(english.know(&fact(river, None)), "told from the text");
        assert!(!english.know(&fact(fluss, None)));
        assert!(!english.know(&fact("아레강은 베른을 지나 흐른다.", Some("en"))), "not in these letters");
        assert!(!english.know(&fact("아레강은 베른을 지나 흐른다.", None)));
        assert!(
            Languages::new(Vec::new()).know(&fact("아레강은 베른을 지나 흐른다.", Some("ko"))),
            "it knows all"
        );
    }
}
