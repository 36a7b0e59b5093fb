//! Repositories: the boundary between tenants, and what a tenant may set.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use uuid::Uuid;

use crate::permission::words;
use crate::{Error, InvitationId, Money, Payload, RepositoryId, Result, UserId};

/// A repository as people see it.
#[derive(Clone, Debug)]
pub struct Repository {
    pub id: RepositoryId,
    pub name: String,
    pub slug: String,
    pub description: String,
    /// The named database that it lives in.
    pub database: String,
    pub tier: Tier,
    pub preset: String,
    pub owner: Option<UserId>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

words! {
    /// How its owner wants a repository kept. Where it is kept is up to its database.
    Tier {
        Shared = "shared",
        Isolated = "isolated",
        Sovereign = "sovereign",
    }
}

impl Tier {
    pub fn parse(text: &str) -> Result<Self> {
        text.parse().map_err(|_| Error::invalid("tier", "must be shared, isolated or sovereign"))
    }
}

/// The name of a repository in addresses: `[a-z0-9-]{1,64}`. Never one that reads as an id, nor one that is an address
/// of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slug(String);

impl Slug {
    pub const LENGTH: usize = 64;

    pub fn parse(text: &str) -> Result<Self> {
        let sound = (1..=Self::LENGTH).contains(&text.len())
            && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if !sound {
            return Err(Error::invalid("slug", "must be 1 to 64 of the characters a-z, 0-9 and -"));
        }
        if is_taken_by_us(text) {
            return Err(Error::invalid("slug", "means something else in an address; choose another one"));
        }
        Ok(Self(text.to_owned()))
    }

    /// Made from a name: letters without their marks, and hyphens for what lies between them.
    pub fn of_name(name: &str) -> Self {
        let mut slug = String::new();
        for c in name.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
            if slug.len() == Self::LENGTH {
                break;
            }
            if c.is_ascii_alphanumeric() {
                slug.push(c);
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
        slug.truncate(slug.trim_end_matches('-').len());
        if slug.is_empty() || is_taken_by_us(&slug) {
            return Self("repository".to_owned());
        }
        Self(slug)
    }

    /// Another one for the same name, for where the first is taken.
    #[must_use]
    pub fn told_apart(&self, id: RepositoryId) -> Self {
        // The end of an id is its random part.
        let id = id.uuid().simple().to_string();
        let (_, tail) = id.split_at(id.len() - 8);
        let head: String = self.0.chars().take(Self::LENGTH - 1 - tail.len()).collect();
        Self(format!("{head}-{tail}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_taken_by_us(text: &str) -> bool {
    text == "presets" || text.parse::<Uuid>().is_ok()
}

/// What a repository does with its sources. `None` is what the installation does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RepositorySettings {
    /// Which providers are switched on.
    pub search: Vec<String>,
    pub resolution: Vec<String>,
    pub auto_contribute: bool,
    pub registry_id: Option<String>,
    pub push_level: PushLevel,
    pub allowed_models: Option<Vec<String>>,
    /// Whose packages are taken from a registry.
    pub trust: crate::Trust,
    /// Where only those of some are: their public keys, in the form of key ids.
    pub trusted_keys: Vec<String>,
    /// Empty accepts all.
    pub accepted_promptset_hashes: Vec<String>,
    /// `None` is the built-in one.
    pub promptset_hash: Option<crate::ContentHash>,
    /// `None` is what the installation gives a repository that chose nothing.
    pub monthly_usd: Option<Money>,
    pub stages: Stages,
    pub unmapped_contexts: UnmappedContexts,
    pub ask: AskSettings,
}

/// Who may have a model answer questions, and what that may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskSettings {
    /// Also whoever may only read facts.
    pub viewers: bool,
    /// `None` is what the installation gives each person.
    pub per_person_per_day: Option<Money>,
}

words! {
    /// What becomes of a concept whose context the repository does not have.
    #[derive(Default)]
    UnmappedContexts {
        /// It is filed under the catch-all context.
        #[default]
        CatchAll = "catch_all",
        /// The context is added.
        Add = "add",
        Skip = "skip",
    }
}

words! {
    /// How much of a source's decomposition is given to a registry.
    #[derive(Default)]
    PushLevel {
        Facts = "facts",
        #[default]
        Concepts = "concepts",
    }
}

/// Which optional stages the sources of a repository go through; `None` where it does as the installation does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages<T = Option<bool>> {
    pub refinement: T,
    pub summarization: T,
    pub synthesis: T,
    pub image_extraction: T,
}

/// As many contexts as a model can still choose from.
pub const MOST_CONTEXTS: i64 = 1_000;

/// What concepts may be filed under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    pub label: String,
    pub description: String,
    /// The identifier of the class; `None` for a repository's own.
    pub ontology_class: Option<String>,
    pub concept_count: i64,
    /// The context whose part it is becoming.
    pub merging_into: Option<String>,
}

/// How much there is in a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub sources: i64,
    pub facts: i64,
    pub concepts: i64,
    pub reports: i64,
    pub investigations: i64,
}

/// Somebody with roles in a repository.
#[derive(Clone, Debug)]
pub struct Member {
    pub user: UserId,
    pub name: String,
    pub roles: Vec<crate::Role>,
    pub since: DateTime<Utc>,
}

/// Somebody who was asked to join a repository, without the secret.
#[derive(Clone, Debug)]
pub struct Invitation {
    pub id: InvitationId,
    /// Whom its author means.
    pub email: String,
    pub role: crate::Role,
    pub invited_by: UserId,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

/// Removes what lies of a repository where it does not live: everywhere, if it was deleted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CleanupRepository {
    pub repository: RepositoryId,
}

impl Payload for CleanupRepository {
    const KIND: &'static str = "cleanup_repository";
    const INTERNAL: bool = true;

    fn unique_key(&self) -> Option<String> {
        Some(self.repository.to_string())
    }
}

/// Makes one context a part of another.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MigrateContext {
    pub source: i64,
    pub target: i64,
}

impl Payload for MigrateContext {
    const KIND: &'static str = "migrate_context";

    fn unique_key(&self) -> Option<String> {
        Some(self.source.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_made_of_letters_digits_and_single_hyphens() {
        for (name, slug) in [
            ("Bees", "bees"),
            ("  Über die Bienen!  ", "uber-die-bienen"),
            ("A -- B", "a-b"),
            ("北京", "repository"),
            ("", "repository"),
            ("---", "repository"),
            ("presets", "repository"),
            ("018f3e60-0000-7000-8000-000000000000", "repository"),
            ("ﬁnance №1", "finance-no1"),
        ] {
            assert_eq!(Slug::of_name(name).as_str(), slug, "{name}");
        }
        let long = Slug::of_name(&"ab ".repeat(60));
        assert!(long.as_str().len() <= Slug::LENGTH && !long.as_str().ends_with('-'), "{long:?}");
    }

    #[test]
    fn a_slug_that_is_told_apart_is_still_one() {
        let id = RepositoryId::mint();
        for name in ["a", &"a".repeat(64)] {
            let slug = Slug::of_name(name).told_apart(id);
            assert_eq!(Slug::parse(slug.as_str()).unwrap(), slug);
            assert!(id.to_string().ends_with(slug.as_str().rsplit('-').next().unwrap()));
        }
    }

    #[test]
    fn what_is_no_slug_is_refused() {
        for text in [
            "",
            "A",
            "a_b",
            "a b",
            "ä",
            "presets",
            "018f3e60-0000-7000-8000-000000000000",
            "018f3e60000070008000000000000000",
        ] {
            assert!(Slug::parse(text).is_err(), "{text}");
        }
        assert!(Slug::parse(&"a".repeat(65)).is_err());
        assert!(Slug::parse("a-1").is_ok());
    }
}
