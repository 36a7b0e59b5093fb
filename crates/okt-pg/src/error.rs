//! What a database error means to a caller: try again, or a fault of ours.

use sqlx::postgres::PgDatabaseError;

/// What a function with SQL in it returns. It is the one error type, which `?` makes of an error of sqlx here and nowhere
/// else; above the functions with SQL, `?` takes it out again.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] pub okt_model::Error);

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether doing the same thing again later may succeed.
    pub const fn retryable(&self) -> bool {
        self.0.retryable()
    }

    /// What the server said, if it is the server that has refused.
    pub fn said(&self) -> Option<&PgDatabaseError> {
        let (okt_model::Error::Unavailable { cause, .. } | okt_model::Error::Internal(cause)) = &self.0
        else {
            return None;
        };
        cause.downcast_ref::<sqlx::Error>()?.as_database_error()?.try_downcast_ref()
    }
}

impl From<Error> for okt_model::Error {
    fn from(Error(error): Error) -> Self {
        error
    }
}

/// A database that is away, full or in the middle of a restart is `Unavailable`; anything else is our fault.
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self(if is_transient(&error) {
            okt_model::Error::Unavailable { service: "the database", cause: Box::new(error) }
        } else {
            okt_model::Error::Internal(Box::new(error))
        })
    }
}

pub(crate) fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        // A certificate that does not fit arrives as an I/O error too, and will not fit the next time either.
        sqlx::Error::Io(error) => error.kind() != std::io::ErrorKind::InvalidData,
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            // Connection lost, server stopping or starting, too many clients, out of disk or memory, I/O, serialisation,
            // deadlock, read-only standby, lock or statement timeout, a transaction that did nothing for too long.
            code.starts_with("08")
                || code.starts_with("53")
                || code.starts_with("58")
                || matches!(
                    &*code,
                    "57P01" | "57P02" | "57P03" | "40001" | "40P01" | "25006" | "25P03" | "55P03" | "57014"
                )
        }),
        _ => false,
    }
}
