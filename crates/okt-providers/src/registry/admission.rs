//! What a repository takes from a registry, and why not.

use okt_interchange::package::{Accepted, Package, SourceData, is_allowed_model};
use okt_model::{RepositorySettings, Trust};

use super::{Decomposition, Found, Names, Registry};

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
    fn refuses(self, model: &str, promptset_hash: &str) -> Option<&'static str> {
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

    /// Why a package that says it is of this source is not taken for the one of these names: a registry can hand out what was made of
    /// another one, and where a signature counts, it has to be for the source that is asked about.
    fn refuses_source(self, told: Option<&SourceData>, names: &Names) -> Option<&'static str> {
        match told {
            None if self.settings.trust == Trust::Anyone => None,
            None => Some("it does not say of which source it is"),
            Some(told) if told.is(names.url.as_deref(), names.doi.as_deref()) => None,
            Some(_) => Some("it is of another source"),
        }
    }

    /// Why a package that is here is not taken for the source of these names. What a list says of it need not be what it says itself.
    pub fn refuses_package(
        self,
        package: &Package,
        names: &Names,
        (key, pushed_by): (Option<&str>, Option<&str>),
    ) -> Option<&'static str> {
        self.refuses_origin(key, pushed_by)
            .or_else(|| self.refuses(&package.model_id, &package.promptset_hash))
            .or_else(|| self.refuses_source(package.source.as_ref(), names))
    }

    /// Why one of a list is not worth downloading, as far as the list tells. Which key signed it is known when it is here.
    pub fn refuses_listed(self, listed: &Decomposition) -> Option<&'static str> {
        // One without facts saves nobody anything.
        if listed.fact_count == Some(0) {
            return Some("it has no facts");
        }
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

    /// Those that are admitted: first those with vectors that can be used here, and of these the latest.
    pub fn ranked<'f>(self, found: &'f Found, embedding: Option<&str>) -> Vec<&'f Decomposition> {
        let admitted = found.decompositions.iter().filter(|one| self.refuses_listed(one).is_none());
        let has_vectors =
            |one: &Decomposition| embedding.is_some() && one.embedding_model.as_deref() == embedding;
        let mut ranked: Vec<&Decomposition> = admitted.collect();
        ranked.sort_by(|a, b| (has_vectors(b), &b.decomposed_at).cmp(&(has_vectors(a), &a.decomposed_at)));
        ranked
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
    fn what_says_that_it_is_of_another_source_is_refused_and_what_has_to_be_signed_has_to_say_of_which_it_is()
    {
        let names = |url: &str| Names { url: Some(url.to_owned()), ..Names::default() };
        let told = SourceData { url: Some("https://example.org/gulls".to_owned()), doi: None };
        for (trust, expected) in [
            (Trust::Anyone, [false, true, false]),
            (Trust::Signed, [false, true, true]),
            (Trust::Listed, [false, true, true]),
        ] {
            let settings = RepositorySettings { trust, ..RepositorySettings::default() };
            let admission = Admission { models: &[], settings: &settings, default: "", revoked: &[] };
            let refused = [
                admission.refuses_source(Some(&told), &names("https://example.org/gulls")),
                admission.refuses_source(Some(&told), &names("https://example.org/terns")),
                admission.refuses_source(None, &names("https://example.org/gulls")),
            ];
            assert_eq!(refused.map(|reason| reason.is_some()), expected, "{trust:?}");
        }
    }

    #[test]
    fn of_those_that_are_admitted_those_with_usable_vectors_come_first_and_of_these_the_latest() {
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
                Decomposition { fact_count: Some(0), ..one("newest", Some("e"), "9999-01-01", true) },
            ],
            ..Found::default()
        };
        let models = ["old".to_owned(), "new".to_owned(), "newest".to_owned()];
        let ranked = |trust, embedding, models: &[String]| -> Vec<String> {
            let settings = RepositorySettings { trust, ..RepositorySettings::default() };
            let admission = Admission { models, settings: &settings, default: "", revoked: &[] };
            admission.ranked(&found, embedding).into_iter().map(|one| one.model_id.clone()).collect()
        };
        assert_eq!(ranked(Trust::Anyone, Some("e"), &models), ["new", "old", "newest"]);
        assert_eq!(ranked(Trust::Signed, Some("e"), &models), ["old", "newest"]);
        assert_eq!(ranked(Trust::Anyone, None, &models), ["newest", "new", "old"]);
        assert_eq!(ranked(Trust::Anyone, Some("e"), &[]), [""; 0]);
    }
}
