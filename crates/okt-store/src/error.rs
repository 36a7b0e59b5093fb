//! What a database error means to a caller: try again, or a fault of ours.

use okt_model::Error;

/// A database that is away, full or in the middle of a restart is `Unavailable`; anything else is our fault.
pub fn from_sqlx(error: sqlx::Error) -> Error {
    if is_transient(&error) {
        Error::Unavailable { service: "the database", cause: Box::new(error) }
    } else {
        Error::Internal(Box::new(error))
    }
}

fn is_transient(error: &sqlx::Error) -> bool {
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
