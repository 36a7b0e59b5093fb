//! Accounts: who uses the service.

use chrono::{DateTime, Utc};

use crate::{ApiKeyId, Error, RepositoryId, Result, UserId};

/// A person with an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub email: String,
    pub name: String,
    pub created_at: DateTime<Utc>,
}

/// An e-mail address: as typed for showing, folded for finding.
#[derive(Clone, PartialEq, Eq)]
pub struct Email(String);

impl Email {
    /// Trims; asks for one `@` with something on both sides and a length that mail allows. Whether mail arrives is
    /// only known when some did.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let sound = text.len() <= 254
            && text.split_once('@').is_some_and(|(local, host)| {
                !local.is_empty() && local.len() <= 64 && !host.is_empty() && !host.contains('@')
            })
            && !text.chars().any(|c| c.is_whitespace() || c.is_control());
        if sound {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::invalid("email", "is not an e-mail address"))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What makes two addresses the same.
    pub fn key(&self) -> String {
        self.0.to_lowercase()
    }
}

/// A personal API key, without its secret.
#[derive(Clone, Debug)]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub name: String,
    /// The first characters, to know it by.
    pub prefix: String,
    /// `object:action`.
    pub permissions: Vec<String>,
    pub repository_id: Option<RepositoryId>,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_trimmed_folded_and_checked_for_their_shape() {
        for (text, key) in
            [(" Ada@Example.org ", "ada@example.org"), ("a@b", "a@b"), ("ÄDA@x.org", "äda@x.org")]
        {
            assert_eq!(Email::parse(text).unwrap().key(), key);
        }
        let long = format!("{}@x.org", "a".repeat(65));
        for text in ["", "ada", "@x", "a@", "a@b@c", "a b@c", "a@b\nc", long.as_str()] {
            assert!(Email::parse(text).is_err(), "{text:?}");
        }
    }
}
