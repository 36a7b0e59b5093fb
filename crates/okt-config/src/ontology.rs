//! The built-in contexts, which a repository's contexts are chosen from.

/// A class of the ontology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// What people and the model call it. Compared without regard to case.
    pub label: &'static str,
    /// The class with its prefix: `dbo:Disease`.
    pub identifier: &'static str,
    /// What belongs in it, in words for the model.
    pub description: &'static str,
}

/// All classes, in the order of their labels.
pub fn classes() -> impl Iterator<Item = Class> {
    lines().filter_map(|line| {
        let mut fields = line.split('\t');
        Some(Class { label: fields.next()?, identifier: fields.next()?, description: fields.next()? })
    })
}

/// The class of that label, in whatever case it is written.
pub fn find(label: &str) -> Option<Class> {
    classes().find(|class| class.label.eq_ignore_ascii_case(label))
}

fn lines() -> impl Iterator<Item = &'static str> {
    include_str!("../ontology.tsv").lines().filter(|line| !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_about_a_hundred_classes() {
        let count = classes().count();
        assert!((90..=110).contains(&count), "{count}");
    }

    #[test]
    fn every_line_has_three_fields_that_say_something() {
        for line in lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields.len(), 3, "{line:?}");
            assert!(fields.iter().all(|field| !field.is_empty() && field.trim() == *field), "{line:?}");
        }
    }

    #[test]
    fn no_field_is_longer_than_a_model_needs() {
        for class in classes() {
            assert!((1..=100).contains(&class.label.chars().count()), "{class:?}");
            assert!((1..=100).contains(&class.description.chars().count()), "{class:?}");
        }
    }

    #[test]
    fn labels_are_sorted_and_none_is_there_twice() {
        let labels: Vec<String> = classes().map(|class| class.label.to_lowercase()).collect();
        for pair in labels.windows(2) {
            assert!(pair[0] < pair[1], "{pair:?}");
        }
    }

    #[test]
    fn labels_are_written_in_sentence_case_and_plain_letters() {
        for class in classes() {
            let mut letters = class.label.chars();
            assert!(letters.next().is_some_and(|first| first.is_ascii_uppercase()), "{class:?}");
            assert!(letters.all(|rest| rest.is_ascii_lowercase() || " -".contains(rest)), "{class:?}");
        }
    }

    #[test]
    fn no_identifier_is_there_twice() {
        let mut seen = BTreeSet::new();
        for class in classes() {
            assert!(seen.insert(class.identifier), "{class:?}");
        }
    }

    #[test]
    fn only_the_catch_all_is_no_class_of_dbpedia() {
        let others: Vec<&str> = classes()
            .filter(|class| !class.identifier.starts_with("dbo:"))
            .map(|class| class.identifier)
            .collect();
        assert_eq!(others, ["owl:Thing"]);
        assert_eq!(find("Concept").unwrap().identifier, "owl:Thing");
    }

    #[test]
    fn a_class_is_found_in_whatever_case_its_label_is_written() {
        for label in ["Chemical substance", "chemical substance", "CHEMICAL Substance"] {
            assert_eq!(find(label).unwrap().identifier, "dbo:ChemicalSubstance", "{label}");
        }
        for label in ["", "#", "Chemical", "dbo:ChemicalSubstance", "Chemical substance "] {
            assert_eq!(find(label), None, "{label:?}");
        }
    }
}
