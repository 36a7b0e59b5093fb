//! The one error type, in words a caller can act on.
//!
//! `Display` never repeats its source: whoever logs an error prints the chain of causes.

use std::borrow::Cow;

/// What lies behind an error; shown to operators, never to callers.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0} not found")]
    NotFound(&'static str),

    #[error("{0} already exists")]
    AlreadyExists(&'static str),

    /// The state of things does not allow it; says what would.
    #[error("{0}")]
    Conflict(&'static str),

    /// Others still need it.
    #[error("{count} {by} still use it; {remedy}")]
    InUse { count: i64, by: &'static str, remedy: &'static str },

    #[error("{0}")]
    Unauthenticated(&'static str),

    #[error("{0}")]
    Forbidden(&'static str),

    #[error("the request failed validation")]
    Invalid(Vec<FieldError>),

    /// There is no room for it right now; nothing was done.
    #[error("{0}")]
    Overloaded(&'static str),

    /// Nobody may write to the repository for a while; it can still be read.
    #[error("the repository is being moved to another database and can only be read; try again in a minute")]
    Moving,

    /// No file could be kept; nothing was left behind.
    #[error("there is no room left for files")]
    StorageFull,

    /// This installation has not been told how.
    #[error("{0}")]
    NotConfigured(&'static str),

    /// Something we lean on did not answer; the same request may succeed in a moment.
    #[error("{service} did not answer")]
    Unavailable {
        service: &'static str,
        #[source]
        cause: Cause,
    },

    /// Something that the operator has to put right, in words for them; callers hear of an internal error.
    #[error("{0}")]
    Operator(String),

    #[error("internal error")]
    Internal(#[source] Cause),
}

/// One field of a request that can't be accepted, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub field: Cow<'static, str>,
    pub message: Cow<'static, str>,
}

impl Error {
    pub fn invalid(field: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(vec![FieldError { field: field.into(), message: message.into() }])
    }

    pub fn internal(cause: impl Into<Cause>) -> Self {
        Self::Internal(cause.into())
    }

    /// Whether doing the same thing again later may succeed.
    pub const fn retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Overloaded(_) | Self::Moving | Self::StorageFull)
    }
}
