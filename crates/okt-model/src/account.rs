//! Accounts: who uses the service.

use chrono::{DateTime, Utc};
use unicode_normalization::UnicodeNormalization;

use crate::{ApiKeyId, Error, RepositoryId, Result, SessionId, UserId, is_hidden};

/// A person with an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub email: String,
    pub name: String,
    pub created_at: DateTime<Utc>,
    /// Since when nobody can use the account.
    pub disabled_at: Option<DateTime<Utc>>,
}

/// Somebody's being signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub id: SessionId,
    pub created_at: DateTime<Utc>,
    /// To a few minutes.
    pub last_used_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// Where they signed in from.
    pub address: Option<String>,
    /// What the program there calls itself.
    pub agent: Option<String>,
}

/// An e-mail address: as typed for showing, folded for finding.
#[derive(Clone, PartialEq, Eq)]
pub struct Email(String);

impl Email {
    /// Trims; asks for one `@` with something on both sides and a length that mail allows. Whether mail arrives is
    /// only known when some did. What looks like another address is refused: characters that are not seen, and those
    /// that stand for others, such as full-width letters, and letters of several alphabets in one part.
    pub fn parse(text: &str) -> Result<Self> {
        let text: String = text.trim().nfc().collect();
        if text.chars().any(is_hidden) {
            return Err(Error::invalid("email", "has characters that can't be seen; type it anew"));
        }
        if text.nfkc().ne(text.chars()) {
            let message =
                "has characters that look like others, such as full-width letters; write those instead";
            return Err(Error::invalid("email", message));
        }
        if text.split(['@', '.']).any(mixes_scripts) {
            let message =
                "mixes Latin letters with Cyrillic or Greek ones that look the same; use one alphabet";
            return Err(Error::invalid("email", message));
        }
        let sound = text.len() <= 254
            && text.split_once('@').is_some_and(|(local, host)| {
                !local.is_empty() && local.len() <= 64 && !host.is_empty() && !host.contains('@')
            })
            && !text.contains(char::is_whitespace);
        if sound { Ok(Self(text)) } else { Err(Error::invalid("email", "is not an e-mail address")) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What makes two addresses the same.
    pub fn key(&self) -> String {
        self.0.to_lowercase().nfc().collect()
    }
}

/// Whether a part of an address has letters of several of the alphabets that share their shapes.
fn mixes_scripts(part: &str) -> bool {
    let of = |c: char| match u32::from(c) {
        0x41..=0x5A | 0x61..=0x7A | 0xC0..=0x24F => Some(0),
        0x370..=0x3FF => Some(1),
        0x400..=0x52F => Some(2),
        _ => None,
    };
    let mut scripts = part.chars().filter_map(of);
    scripts.next().is_some_and(|first| scripts.any(|other| other != first))
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
        for (text, key) in [
            (" Ada@Example.org ", "ada@example.org"),
            ("a@b", "a@b"),
            ("ÄDA@x.org", "äda@x.org"),
            ("анна@x.org", "анна@x.org"),
        ] {
            assert_eq!(Email::parse(text).unwrap().key(), key);
        }
        assert_eq!(
            Email::parse("e\u{301}@x.org").unwrap().key(),
            "\u{e9}@x.org",
            "one way to write an accent"
        );
        let long = format!("{}@x.org", "a".repeat(65));
        for text in ["", "ada", "@x", "a@", "a@b@c", "a b@c", "a@b\nc", long.as_str()] {
            assert!(Email::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_looks_like_another_address_is_refused() {
        for (text, reason) in [
            ("al@x.org\u{200b}", "can't be seen"),
            ("a\u{ad}l@x.org", "can't be seen"),
            ("al\u{202e}@x.org", "can't be seen"),
            ("al@x\u{2060}.org", "can't be seen"),
            ("a\nl@x.org", "can't be seen"),
            ("al\u{fe0f}@x.org", "can't be seen"),
            ("\u{ff41}l@x.org", "look like others"),
            ("al\u{ff20}x.org", "look like others"),
            ("al@x\u{ff0e}org", "look like others"),
            ("\u{1d41a}l@x.org", "look like others"),
            ("ﬁ@x.org", "look like others"),
            ("\u{430}dm@x.org", "one alphabet"),
            ("adm@x\u{3bf}x.org", "one alphabet"),
            ("al@x.org\u{1d173}", "can't be seen"),
        ] {
            let Err(Error::Invalid(errors)) = Email::parse(text) else { panic!("{text:?} was accepted") };
            assert!(errors[0].field == "email" && errors[0].message.contains(reason), "{text:?}: {errors:?}");
        }
        for text in ["jürgen@bücher.example", "用户@例子.中国", "дмитрий@пример.рф"] {
            assert!(Email::parse(text).is_ok(), "{text}");
        }
    }
}
