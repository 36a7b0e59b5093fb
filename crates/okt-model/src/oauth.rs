//! OAuth: what a client is, what it may be given, and how that is written.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};

use crate::permission::{Action, Object};
use crate::{GrantId, Permission, PermissionSet, RepositoryId};

/// A program that acts for people who let it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthClient {
    /// `client_…` for one that registered itself; an https address for one that is described by a document there.
    pub id: String,
    pub name: String,
    pub uri: Option<String>,
    pub redirect_uris: Vec<String>,
    pub grant_types: Vec<String>,
    /// What it may ask for at most.
    pub scope: Option<Scope>,
    /// `none`, `client_secret_basic` or `client_secret_post`.
    pub auth_method: String,
    pub created_at: DateTime<Utc>,
}

/// What a person gave to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthGrant {
    pub id: GrantId,
    pub client_id: String,
    pub client_name: String,
    pub scope: Vec<String>,
    pub resource: String,
    /// `None` is all repositories.
    pub repositories: Option<Vec<RepositoryId>>,
    pub created_at: DateTime<Utc>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub expires_at: DateTime<Utc>,
}

/// What a token may be used for: permission pairs, `read` for reading everything, and `mcp`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope(BTreeSet<Word>);

/// The text names something that is no scope.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a scope; write read, mcp, or object:action such as source:read")]
pub struct UnknownScope;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Read,
    Mcp,
    Permission(Permission),
}

impl Scope {
    /// What a client gets that does not say what it wants.
    pub fn usual() -> Self {
        Self([Word::Read].into())
    }

    /// What a client of the MCP endpoint gets that does not say what it wants.
    pub fn usual_of_mcp() -> Self {
        Self([Word::Read, Word::Mcp].into())
    }

    /// Words separated by spaces, in any order, as often as one likes.
    pub fn parse(text: &str) -> Result<Self, UnknownScope> {
        Self::of(text.split(' ').filter(|word| !word.is_empty()))
    }

    /// As clients ask for it: words of `OpenID` Connect, which some add by habit, are passed over.
    pub fn asked(text: &str) -> Result<Self, UnknownScope> {
        const HABITS: [&str; 4] = ["openid", "profile", "email", "offline_access"];
        Self::of(text.split(' ').filter(|word| !word.is_empty() && !HABITS.contains(word)))
    }

    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownScope> {
        words.into_iter().map(word).collect::<Result<_, _>>().map(Self)
    }

    /// As it was kept. With a word that no release of ours knows any more it allows nothing.
    pub fn kept(words: &[String]) -> Self {
        Self::of(words.iter().map(String::as_str)).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of it is in `whole`, however that is written.
    pub fn is_within(&self, whole: &Self) -> bool {
        let held = whole.permissions();
        self.permissions().iter().all(|permission| held.contains(permission))
            && (whole.reaches_mcp() || !self.reaches_mcp())
    }

    pub fn permissions(&self) -> PermissionSet {
        let each = self.0.iter().map(|word| match word {
            Word::Read => reads(),
            Word::Mcp => PermissionSet::EMPTY,
            Word::Permission(permission) => PermissionSet::EMPTY.with(*permission),
        });
        each.fold(PermissionSet::EMPTY, PermissionSet::union)
    }

    pub fn reaches_mcp(&self) -> bool {
        self.0.contains(&Word::Mcp)
    }

    pub fn words(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// For people, one line a word.
    pub fn in_plain_words(&self) -> Vec<String> {
        self.0.iter().map(|word| word.in_plain_words()).collect()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join(" "))
    }
}

impl Word {
    fn in_plain_words(self) -> String {
        match self {
            Self::Read => {
                "See everything that you can see, but webhooks: sources, facts, concepts, reports and settings".to_owned()
            }
            Self::Mcp => "Use this service as a tool (MCP), within what else is allowed here".to_owned(),
            Self::Permission(Permission { object, action }) => format!("{} {}", verb(action), things(object)),
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read => f.write_str("read"),
            Self::Mcp => f.write_str("mcp"),
            Self::Permission(permission) => permission.fmt(f),
        }
    }
}

fn word(text: &str) -> Result<Word, UnknownScope> {
    match text {
        "read" => Ok(Word::Read),
        "mcp" => Ok(Word::Mcp),
        _ => text.parse().map(Word::Permission).map_err(|_| UnknownScope),
    }
}

/// Not webhooks: their addresses are often secrets, so a client has to name them, and its person is asked.
fn reads() -> PermissionSet {
    let objects = Object::ALL.iter().filter(|object| **object != Object::Webhook);
    objects.map(|object| Permission::new(*object, Action::Read)).collect()
}

const fn verb(action: Action) -> &'static str {
    match action {
        Action::Cancel => "Cancel",
        Action::Delete => "Delete",
        Action::Execute => "Run",
        Action::Export => "Export",
        Action::Manage => "Manage",
        Action::Read => "See",
        Action::Update => "Change",
        Action::Write => "Add and change",
    }
}

const fn things(object: Object) -> &'static str {
    match object {
        Object::AiUsage => "what AI models were used for and what they cost",
        Object::Audit => "the record of who did what",
        Object::Concept => "concepts",
        Object::Database => "databases of the installation",
        Object::Decomposition => "the work that turns sources into facts",
        Object::Fact => "facts",
        Object::Graph => "whole knowledge graphs",
        Object::Investigation => "investigations",
        Object::Job => "background jobs",
        Object::Member => "who belongs to a repository",
        Object::Promptset => "the instructions that AI models get",
        Object::Remote => "connections to other installations",
        Object::Report => "reports",
        Object::Repository => "repositories and their settings",
        Object::Role => "who may do what",
        Object::Source => "sources",
        Object::SourceProvider => "where sources are searched and fetched",
        Object::User => "accounts of people",
        Object::Webhook => "messages that are sent to other services",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_read_in_any_order_and_written_in_one() {
        let scope = Scope::parse("source:write  mcp read source:write").unwrap();
        assert_eq!(scope.to_string(), "read mcp source:write");
        assert_eq!(Scope::parse(&scope.to_string()).unwrap(), scope);
        for unknown in ["write", "source", "source:fly", "openid", "read,mcp", "READ", "*"] {
            assert_eq!(Scope::parse(unknown), Err(UnknownScope), "{unknown}");
        }
    }

    #[test]
    fn words_of_openid_connect_are_passed_over_where_a_client_asks() {
        let asked = |text| Scope::asked(text).map(|scope| scope.to_string());
        assert_eq!(asked("openid mcp profile email offline_access read"), Ok("read mcp".to_owned()));
        assert_eq!(asked("openid"), Ok(String::new()));
        assert_eq!(asked("openid fly"), Err(UnknownScope));
    }

    #[test]
    fn within_goes_by_what_is_meant() {
        let scope = |text| Scope::parse(text).unwrap();
        for (part, whole, expected) in [
            ("fact:read", "read", true),
            ("fact:read source:read", "read", true),
            ("read", "fact:read", false),
            ("fact:write", "read", false),
            ("mcp", "read", false),
            ("mcp read", "read mcp", true),
            ("", "read", true),
        ] {
            assert_eq!(scope(part).is_within(&scope(whole)), expected, "{part:?} in {whole:?}");
        }
    }

    #[test]
    fn read_reads_everything_but_webhooks_and_changes_nothing() {
        let held = Scope::usual().permissions();
        for permission in PermissionSet::ALL.iter() {
            let is_read = permission.action == Action::Read && permission.object != Object::Webhook;
            assert_eq!(held.contains(permission), is_read, "{permission}");
        }
        assert_eq!(Scope::parse("mcp").unwrap().permissions(), PermissionSet::EMPTY);
    }

    #[test]
    fn every_scope_has_words_of_its_own() {
        let all = PermissionSet::ALL.iter().map(|permission| permission.to_string());
        let scope =
            Scope::parse(&all.chain(["read".to_owned(), "mcp".to_owned()]).collect::<Vec<_>>().join(" "));
        let words = scope.unwrap().in_plain_words();
        let distinct: BTreeSet<_> = words.iter().collect();
        assert_eq!(distinct.len(), words.len());
    }
}
