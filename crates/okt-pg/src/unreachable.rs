//! Why a database can't be connected to, in words for whoever has to put it right. A password is in none of them.

use std::fmt;
use std::io;

use sqlx::postgres::PgConnectOptions;

use crate::error::{Error, is_transient};

/// A connection that could not be made: where it was to lead, why it failed, what to do.
#[derive(Debug)]
pub(crate) struct Unreachable {
    address: String,
    why: Why,
}

/// What stood in the way.
#[derive(Debug)]
pub struct Why {
    /// The same few words for everybody, which name no host, user or database.
    pub brief: &'static str,
    /// What the server or the system said, where that is more.
    said: Option<String>,
    remedy: Option<String>,
}

impl Unreachable {
    /// The error of an attempt to connect.
    pub(crate) fn error(options: &PgConnectOptions, error: &sqlx::Error) -> Error {
        let why = Why::of(error, options.get_database());
        Self::with(options, why, is_transient(error))
    }

    pub(crate) fn timed_out(options: &PgConnectOptions) -> Error {
        Self::with(options, Why::timed_out(), true)
    }

    fn with(options: &PgConnectOptions, why: Why, transient: bool) -> Error {
        let cause = Box::new(Self { address: address(options), why });
        Error(if transient {
            okt_model::Error::Unavailable { service: "the database", cause }
        } else {
            okt_model::Error::Internal(cause)
        })
    }
}

impl std::error::Error for Unreachable {}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "can't connect to {}: {}", self.address, self.why)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.said.as_deref().unwrap_or(self.brief))?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

impl Why {
    pub fn of(error: &sqlx::Error, database: Option<&str>) -> Self {
        match error {
            sqlx::Error::Io(error) => Self::of_io(error),
            sqlx::Error::Tls(error) => Self::tls(error),
            sqlx::Error::PoolTimedOut => Self::timed_out(),
            sqlx::Error::Database(error) => {
                let said = error.message().to_owned();
                let (brief, remedy) = match error.code().as_deref().unwrap_or_default() {
                    "28P01" | "28000" => (
                        "authentication failed",
                        Some("check the user and the password in the address".to_owned()),
                    ),
                    "3D000" => {
                        let create =
                            database.map(|name| format!("create it: CREATE DATABASE {}", quoted(name)));
                        ("the database does not exist", create)
                    }
                    "53300" => ("the server has no connection left", None),
                    "57P03" => ("the server is starting or stopping", None),
                    _ => ("the server refused", None),
                };
                Self { brief, said: Some(said), remedy }
            }
            error => Self { brief: "it does not answer", said: Some(error.to_string()), remedy: None },
        }
    }

    fn of_io(error: &io::Error) -> Self {
        let why = |brief, remedy: &str| Self { brief, said: None, remedy: Some(remedy.to_owned()) };
        match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                why("connection refused", "nothing listens there: start PostgreSQL, or correct the address")
            }
            io::ErrorKind::TimedOut => Self::timed_out(),
            // A certificate that does not fit.
            io::ErrorKind::InvalidData => Self::tls(error),
            io::ErrorKind::NotFound => {
                why("there is no such socket", "start PostgreSQL, or correct the address")
            }
            // The resolver's errors have no kind of their own.
            _ if error.to_string().contains("lookup address") => why(
                "no such host",
                "the name can't be resolved: correct the address, or the DNS of this machine",
            ),
            _ => Self { brief: "the connection failed", said: Some(error.to_string()), remedy: None },
        }
    }

    pub fn timed_out() -> Self {
        let remedy = "a firewall may be in the way, or the address wrong";
        Self { brief: "no answer in time", said: None, remedy: Some(remedy.to_owned()) }
    }

    /// For a database that is not required to start: tries go on in the background.
    pub fn not_opened() -> Self {
        Self { brief: "it has not been opened since this process started", said: None, remedy: None }
    }

    fn tls(said: &dyn fmt::Display) -> Self {
        let remedy = "check ssl_mode and ssl_root_cert beside the address";
        Self {
            brief: "TLS failed",
            said: Some(format!("TLS failed: {said}")),
            remedy: Some(remedy.to_owned()),
        }
    }
}

fn address(options: &PgConnectOptions) -> String {
    let place = match options.get_socket() {
        Some(socket) => format!("the socket {}", socket.display()),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    format!("database {} at {place} as user {}", quoted(database), quoted(options.get_username()))
}

/// As SQL would have it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
