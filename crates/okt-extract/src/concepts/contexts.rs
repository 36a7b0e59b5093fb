//! Which of a repository's contexts a concept belongs to.

use std::collections::HashMap;
use std::sync::LazyLock;

use okt_model::{CATCH_ALL_CONTEXT, Context};

/// Where a concept belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The label of a context of the repository, as it is written there.
    Context(String),
    /// A label that the repository does not have: its setting says what becomes of the concept.
    Unmapped(String),
}

impl Place {
    pub fn label(&self) -> &str {
        match self {
            Self::Context(label) | Self::Unmapped(label) => label,
        }
    }
}

/// The contexts of a repository by label and by class.
pub struct Contexts<'c> {
    labels: HashMap<String, &'c str>,
    classes: HashMap<&'c str, &'c str>,
}

impl<'c> Contexts<'c> {
    pub fn of(contexts: &'c [Context]) -> Self {
        let labels = contexts.iter().map(|context| (context.label.to_lowercase(), context.label.as_str()));
        let class = |context: &'c Context| Some((context.ontology_class.as_deref()?, context.label.as_str()));
        Self { labels: labels.collect(), classes: contexts.iter().filter_map(class).collect() }
    }

    /// As the repository writes a label, in whatever case it was given.
    pub fn find(&self, label: &str) -> Option<&'c str> {
        self.labels.get(&label.trim().to_lowercase()).copied()
    }

    /// The context for a built-in label: its own, by class or by name, or the nearest wider one that the repository has.
    pub fn place(&self, label: Option<&str>) -> Place {
        let mut next = label;
        while let Some(label) = next {
            let builtin = CLASSES.get(label);
            let by_class = builtin.and_then(|(class, _)| self.classes.get(class));
            if let Some(found) = by_class.copied().or_else(|| self.find(label)) {
                return Place::Context(found.to_owned());
            }
            next = builtin.and_then(|(_, wider)| *wider);
        }
        let catch_all = self.classes.get("owl:Thing").copied().or_else(|| self.find(CATCH_ALL_CONTEXT));
        catch_all.map_or_else(
            || Place::Unmapped(CATCH_ALL_CONTEXT.to_owned()),
            |found| Place::Context(found.to_owned()),
        )
    }
}

/// The widest context above a built-in label.
pub fn widest(label: &'static str) -> &'static str {
    let mut widest = label;
    while let Some(wider) = CLASSES.get(widest).and_then(|(_, wider)| *wider) {
        widest = wider;
    }
    widest
}

/// The built-in contexts: their class, and the wider one.
static CLASSES: LazyLock<HashMap<&'static str, (&'static str, Option<&'static str>)>> = LazyLock::new(|| {
    let lines = include_str!("../../nouns/classes.txt").lines().filter(|line| !line.starts_with('#'));
    let fields = |line: &'static str| {
        let mut fields = line.split('\t');
        Some((fields.next()?, (fields.next()?, fields.next())))
    };
    lines.filter_map(fields).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    fn context(label: &str, class: Option<&str>) -> Context {
        Context {
            label: label.to_owned(),
            description: String::new(),
            ontology_class: class.map(str::to_owned),
            concept_count: 0,
            merging_into: None,
        }
    }

    #[test]
    fn every_wider_context_is_listed_and_none_is_its_own() {
        for (label, (class, wider)) in &*CLASSES {
            assert!(class.starts_with("dbo:") || *class == "owl:Thing", "{label}");
            let mut seen = vec![*label];
            let mut next = *wider;
            while let Some(wider) = next {
                assert!(!seen.contains(&wider), "{label}");
                seen.push(wider);
                next = CLASSES[wider].1;
            }
        }
        assert!((90..=110).contains(&CLASSES.len()));
    }

    #[test]
    fn a_concept_goes_to_the_nearest_context_there_is() {
        let contexts = [
            context("Concept", Some("owl:Thing")),
            context("Orgs", Some("dbo:Organisation")),
            context("DISEASE", None),
        ];
        let contexts = Contexts::of(&contexts);
        let place = |label| contexts.place(label);
        assert_eq!(place(Some("Disease")), Place::Context("DISEASE".to_owned()));
        assert_eq!(place(Some("Company")), Place::Context("Orgs".to_owned()));
        assert_eq!(place(Some("Planet")), Place::Context("Concept".to_owned()));
        assert_eq!(place(None), Place::Context("Concept".to_owned()));
        let own = [context("Product", None)];
        assert_eq!(Contexts::of(&own).place(Some("Planet")), Place::Unmapped("Concept".to_owned()));
    }
}
