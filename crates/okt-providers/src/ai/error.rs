//! Why there is no answer of a model.

use std::time::Duration;

use okt_model::{Cause, Error};

#[derive(Debug, thiserror::Error)]
pub enum AiError {
    #[error("{0}")]
    NotConfigured(&'static str),

    /// After the last attempt, or because it asks for more time than a call waits.
    #[error("{service} limits the rate of requests; try again later")]
    RateLimited { service: &'static str, retry_after: Option<Duration> },

    /// Asking the same again will not help. `message` is what the service says, made plain.
    #[error("{service} rejected the request with {status}{}{message}; {remedy}", colon(.message))]
    Refused { service: &'static str, status: u16, message: String, remedy: &'static str },

    #[error("{service} did not answer within {limit:?}; try again later")]
    TimedOut { service: &'static str, limit: Duration },

    #[error("{service} did not answer; try again later")]
    Unavailable {
        service: &'static str,
        #[source]
        cause: Cause,
    },

    /// It answered, but not as a model does.
    #[error("{service} returned an invalid response: {what}")]
    NotAModel { service: &'static str, what: String },

    /// Vectors of another length than those that are kept.
    #[error(
        "the vectors of {service} have {got} dimensions, but providers.embedding.dimensions is {wanted}; \
         an operator has to set the number that its model has, or name another model"
    )]
    Dimensions { service: &'static str, got: usize, wanted: usize },

    /// The call did not get its turn.
    #[error("the call was cancelled before it was sent")]
    Turn(#[source] Error),
}

impl AiError {
    /// Whether the same call may succeed later.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::NotConfigured(_) | Self::Refused { .. } | Self::Dimensions { .. } => false,
            Self::RateLimited { .. }
            | Self::TimedOut { .. }
            | Self::Unavailable { .. }
            | Self::NotAModel { .. } => true,
            Self::Turn(error) => error.retryable(),
        }
    }

    /// How long the service wants to be left alone, if it says so.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl From<AiError> for Error {
    fn from(error: AiError) -> Self {
        let words = error.to_string();
        match error {
            AiError::NotConfigured(words) => Self::NotConfigured(words),
            AiError::RateLimited { .. } => {
                Self::Overloaded("the model service limits the rate of requests; try again later")
            }
            AiError::Refused { status: 401..=403, .. } => Self::NotConfigured(
                "the model service rejected the request; an operator has to check its key under providers.ai",
            ),
            AiError::Refused { .. } | AiError::Dimensions { .. } => Self::Operator(words),
            AiError::Unavailable { service, cause } => Self::Unavailable { service, cause },
            AiError::TimedOut { service, .. } | AiError::NotAModel { service, .. } => {
                Self::Unavailable { service, cause: words.into() }
            }
            AiError::Turn(error) => error,
        }
    }
}

const fn colon(message: &str) -> &'static str {
    if message.is_empty() { "" } else { ": " }
}
