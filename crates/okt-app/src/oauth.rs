//! The authorization server: clients, what people let them do, and the tokens that come of it.

mod authorize;
mod clients;
mod documents;
mod grants;
mod tokens;

use std::borrow::Cow;

use okt_model::Error;

pub use authorize::{Answer, Asking, Choice, PATIENCE, Param, Params, Question, Unanswerable};
pub use clients::{ClientCredentials, Registered};
pub use tokens::{CodeExchange, IssuedTokens};

/// A refusal in the words of OAuth, or an internal failure.
#[derive(Debug)]
pub enum Refusal {
    Protocol { error: &'static str, description: Cow<'static, str> },
    Failed(Error),
}

impl Refusal {
    pub(crate) fn new(error: &'static str, description: impl Into<Cow<'static, str>>) -> Self {
        Self::Protocol { error, description: description.into() }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<okt_store::Error> for Refusal {
    fn from(error: okt_store::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// A description without the characters that the standard does not allow in one.
pub fn plain(description: &str) -> String {
    description.chars().filter(|c| matches!(c, ' '..='!' | '#'..='[' | ']'..='~')).collect()
}

/// What tokens can be for (RFC 8707): the service itself, which is what they are for unless something else is asked
/// for, and its MCP endpoint.
pub fn resources(issuer: &str) -> [String; 2] {
    [issuer.to_owned(), format!("{issuer}/mcp")]
}

/// Whether tokens for it are for the MCP endpoint.
fn is_mcp(issuer: &str, resource: &str) -> bool {
    resources(issuer)[1] == resource
}

/// The resource that was asked for, if it is one of ours.
fn resource(issuer: &str, asked: &[String]) -> Result<String, Refusal> {
    let [service, mcp] = resources(issuer);
    match asked {
        [] => Ok(service),
        // People write the address of a host with and without its slash.
        [one] if *one == service || one.strip_suffix('/') == Some(service.as_str()) => Ok(service),
        [one] if *one == mcp => Ok(mcp),
        [_] => Err(Refusal::new("invalid_target", "resource: this server gives out no tokens for it")),
        _ => Err(Refusal::new("invalid_target", "resource: ask for one at a time")),
    }
}
