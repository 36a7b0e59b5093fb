//! What a repository takes from a registry, and why not.

use okt_interchange::package::{Accepted, is_allowed_model};
use okt_model::{RepositorySettings, Trust};

use super::{Decomposition, Found, Registry};

/// What a repository takes.
#[derive(Clone, Copy, Debug)]
pub struct Admission<'a> {
    /// The models that the installation takes from the registry.
    pub models: &'a [String],
    pub settings: &'a RepositorySettings,
    /// The registry hash of the built-in promptset.
    pub default: &'a str,
    /// Keys whose packages and bundles nobody here takes any more.
    pub revoked: &'a [String],
}

impl<'a> Admission<'a> {
    pub fn new(
        registry: &'a Registry,
        settings: &'a RepositorySettings,
        default: &'a str,
        revoked: &'a [String],
    ) -> Self {
        Self { models: registry.allowed_models(), settings, default, revoked }
    }

    /// Why a package of this model and promptset is not taken.
    pub fn refuses(self, model: &str, promptset_hash: &str) -> Option<&'static str> {
        let accepted = Accepted { default: self.default, listed: &self.settings.accepted_promptset_hashes };
        if !is_allowed_model(model, self.models)
            || self.settings.allowed_models.as_ref().is_some_and(|models| !is_allowed_model(model, models))
        {
            Some("its model is not one of the allowed models")
        } else if accepted.admits(promptset_hash) {
            None
        } else {
            Some("its promptset is not one of the accepted promptsets")
        }
    }

    /// Why what this key signed, or nobody, is not taken; with who gave it to the registry.
    pub fn refuses_origin(self, key: Option<&str>, pushed_by: Option<&str>) -> Option<&'static str> {
        let is_revoked = |id: &str| self.revoked.iter().any(|revoked| revoked == id);
        if key.is_some_and(is_revoked) || pushed_by.is_some_and(is_revoked) {
            return Some("its origin was revoked");
        }
        match (self.settings.trust, key) {
            (Trust::Anyone, _) | (Trust::Signed, Some(_)) => None,
            (Trust::Signed | Trust::Listed, None) => Some("it is not signed"),
            (Trust::Listed, Some(key)) if self.settings.trusted_keys.iter().any(|trusted| trusted == key) => {
                None
            }
            (Trust::Listed, Some(_)) => Some("the key that signed it is not one of the trusted keys"),
        }
    }

    /// Why one of a list is not worth downloading, as far as the list tells. Which key signed it is known when it is here.
    pub fn refuses_listed(self, listed: &Decomposition) -> Option<&'static str> {
        let hash = listed.promptset_hash.as_deref().unwrap_or_default();
        self.refuses(&listed.model_id, hash).or_else(|| {
            let pushed_by = listed.pushed_by.as_deref();
            if pushed_by.is_some_and(|id| self.revoked.iter().any(|revoked| revoked == id)) {
                Some("its origin was revoked")
            } else if self.settings.trust != Trust::Anyone && !listed.signed {
                Some("it is not signed")
            } else {
                // What the registry says of it can only be a reason against it.
                let key = listed.key_id.as_deref()?;
                self.refuses_origin(Some(key), None)
            }
        })
    }

    /// Of those that are admitted one with vectors that can be used here, and of these the latest.
    pub fn choose<'f>(self, found: &'f Found, embedding: Option<&str>) -> Option<&'f Decomposition> {
        let admitted = found.decompositions.iter().filter(|one| self.refuses_listed(one).is_none());
        let has_vectors =
            |one: &Decomposition| embedding.is_some() && one.embedding_model.as_deref() == embedding;
        admitted.max_by_key(|one| (has_vectors(one), one.decomposed_at.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_says_whose_signature_is_needed() {
        let (all, revoked) = (["*".to_owned()], ["okp_bad".to_owned(), "okg_bad".to_owned()]);
        let refused = |trust, key, pushed_by| {
            let trusted_keys = vec!["okp_good".to_owned(), "okp_bad".to_owned()];
            let settings = RepositorySettings { trust, trusted_keys, ..RepositorySettings::default() };
            let admission = Admission { models: &all, settings: &settings, default: "", revoked: &revoked };
            admission.refuses_origin(key, pushed_by).is_some()
        };
        let keys = [None, Some("okp_other"), Some("okp_good"), Some("okp_bad")];
        for (trust, expected) in [
            (Trust::Anyone, [false, false, false, true]),
            (Trust::Signed, [true, false, false, true]),
            (Trust::Listed, [true, true, false, true]),
        ] {
            assert_eq!(keys.map(|key| refused(trust, key, Some("okg_1"))), expected, "{trust:?}");
        }
        assert!(refused(Trust::Anyone, Some("okp_good"), Some("okg_bad")));
    }

    #[test]
    fn of_those_that_are_admitted_one_with_usable_vectors_is_chosen_and_of_these_the_latest() {
        let one = |model: &str, vectors: Option<&str>, at: &str, signed| Decomposition {
            model_id: model.to_owned(),
            embedding_model: vectors.map(str::to_owned),
            decomposed_at: Some(at.to_owned()),
            signed,
            ..Decomposition::default()
        };
        let found = Found {
            decompositions: vec![
                one("old", Some("e"), "2026-01-01", true),
                one("new", Some("e"), "2026-01-02", false),
                one("newest", None, "2026-01-03", true),
            ],
            ..Found::default()
        };
        let models = ["old".to_owned(), "new".to_owned(), "newest".to_owned()];
        let chosen = |trust, embedding, models: &[String]| {
            let settings = RepositorySettings { trust, ..RepositorySettings::default() };
            let admission = Admission { models, settings: &settings, default: "", revoked: &[] };
            admission.choose(&found, embedding).map(|one| one.model_id.clone())
        };
        assert_eq!(chosen(Trust::Anyone, Some("e"), &models).as_deref(), Some("new"));
        assert_eq!(chosen(Trust::Signed, Some("e"), &models).as_deref(), Some("old"));
        assert_eq!(chosen(Trust::Anyone, None, &models).as_deref(), Some("newest"));
        assert_eq!(chosen(Trust::Anyone, Some("e"), &[]), None);
    }
}
