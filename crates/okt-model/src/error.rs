//! The one error type, in words a caller can act on.
//!
//! `Display` never repeats its source: whoever logs an error prints the chain of causes.

use std::borrow::Cow;

use crate::CurationId;

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

    /// Later steps of curation stand on what is to be undone.
    #[error("later steps stand on it; undo these first, in this order: {}", listed(.0))]
    UndoFirst(Vec<CurationId>),

    /// Others still need it.
    #[error("{count} {by} still use it; {remedy}")]
    InUse { count: i64, by: &'static str, remedy: &'static str },

    /// The operator lets nobody have more.
    #[error(
        "{who} {used} {what} and asked for {wanted} more; {setting} allows {limit}. Delete some, or ask the operator of \
         this installation for more"
    )]
    QuotaExceeded {
        /// "you have", "the repository has".
        who: &'static str,
        what: &'static str,
        used: u64,
        wanted: u64,
        limit: u64,
        setting: &'static str,
    },

    #[error("{0}")]
    Unauthenticated(&'static str),

    #[error("{0}")]
    Forbidden(&'static str),

    /// This installation makes no account for just anybody; says for whom it does.
    #[error("{0}")]
    RegistrationClosed(&'static str),

    /// The first account of an installation is made by whoever can read its log.
    #[error("{0}")]
    SetupCodeNeeded(&'static str),

    #[error("{}", first_of(.0))]
    Invalid(Vec<FieldError>),

    /// There is no room for it right now; nothing was done.
    #[error("{0}")]
    Overloaded(&'static str),

    /// As many answers are on their way as there may be.
    #[error("{0}")]
    TooManyAnswers(String),

    /// The caller has spent on answers what they may today.
    #[error("{0}")]
    AskLimit(String),

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

fn listed(steps: &[CurationId]) -> String {
    steps.iter().map(CurationId::to_string).collect::<Vec<_>>().join(", ")
}

/// The first in words, and how many more there are.
fn first_of(errors: &[FieldError]) -> String {
    let Some((first, more)) = errors.split_first() else { return "the request failed validation".to_owned() };
    let more = if more.is_empty() { String::new() } else { format!(" (and {} more)", more.len()) };
    format!("{}: {}{more}", first.field, first.message)
}

impl Error {
    pub fn invalid(field: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(vec![FieldError { field: field.into(), message: message.into() }])
    }

    pub fn internal(cause: impl Into<Cause>) -> Self {
        Self::Internal(cause.into())
    }

    /// Refuses what would be more than a limit allows; 0 is no limit.
    pub fn check_quota(
        (who, what): (&'static str, &'static str),
        (used, wanted): (u64, u64),
        (setting, limit): (&'static str, u64),
    ) -> Result<()> {
        if limit > 0 && used.saturating_add(wanted) > limit {
            return Err(Self::QuotaExceeded { who, what, used, wanted, limit, setting });
        }
        Ok(())
    }

    /// Whether doing the same thing again later may succeed.
    pub const fn retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Overloaded(_) | Self::Moving | Self::StorageFull)
    }
}
