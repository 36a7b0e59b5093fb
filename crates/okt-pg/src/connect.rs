//! Connecting: where to, with which limits, and for how long to try.

use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use tracing::log::LevelFilter;

use crate::error::{Error, Result};
use crate::unreachable::Unreachable;

/// A host that swallows packets must not hold up a start for as long as the kernel would.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How to reach a database, without the limits of a pool. `None` where the text is no address of PostgreSQL: the parser's
/// own message may repeat it, and with it the password.
pub fn options(
    url: &str,
    application: &str,
    ssl_mode: PgSslMode,
    ssl_root_cert: Option<&Path>,
) -> Option<PgConnectOptions> {
    let options = PgConnectOptions::from_str(url)
        .ok()?
        .application_name(application)
        // `IF NOT EXISTS` says so at every start, and nobody needs to know.
        .options([("client_min_messages", "warning")])
        .ssl_mode(ssl_mode)
        .log_slow_statements(LevelFilter::Warn, Duration::from_secs(1));
    Some(match ssl_root_cert {
        Some(path) => options.ssl_root_cert(path),
        None => options,
    })
}

/// What the server ends by itself.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub statement: Duration,
    /// Waiting for a lock.
    pub lock: Duration,
    pub idle_in_transaction: Duration,
}

/// The same address for sessions of a service: with its limits, and quick to notice that the other end is gone.
pub fn session(options: &PgConnectOptions, limits: &Limits) -> PgConnectOptions {
    let milliseconds = |limit: Duration| limit.as_millis().to_string();
    options.clone().options([
        ("statement_timeout", milliseconds(limits.statement)),
        ("lock_timeout", milliseconds(limits.lock)),
        ("idle_in_transaction_session_timeout", milliseconds(limits.idle_in_transaction)),
        // A statement whose caller left, and whose connection was given up, ends soon after.
        ("client_connection_check_interval", "2s".to_owned()),
        // The server notices within half a minute that a machine is gone, and lets go of what it held.
        ("tcp_keepalives_idle", "10".to_owned()),
        ("tcp_keepalives_interval", "5".to_owned()),
        ("tcp_keepalives_count", "3".to_owned()),
        // It pays where a statement takes seconds; ours take milliseconds, and compiling one takes fifty.
        ("jit", "off".to_owned()),
    ])
}

/// Connects; the error says where to, why not, and what to do. `limit` is for somebody who waits at a keyboard.
pub async fn connect(options: &PgConnectOptions, limit: Option<Duration>) -> Result<PgConnection> {
    match tokio::time::timeout(limit.unwrap_or(CONNECT_TIMEOUT), options.connect()).await {
        Ok(connected) => connected.map_err(|error| Unreachable::error(options, &error)),
        Err(_) => Err(Unreachable::timed_out(options)),
    }
}

/// Waits as long as `patience` for a server that is still starting, as it does when everything boots at once. What is in
/// the way is logged at once, in the words of `explain`, and then again after twice the time each.
pub async fn await_server(
    name: &str,
    options: &PgConnectOptions,
    patience: Duration,
    explain: impl Fn(Error) -> Error,
) -> Result<()> {
    let (begun, mut say_at) = (Instant::now(), Duration::ZERO);
    loop {
        let error = match connect(options, None).await {
            Ok(conn) => return Ok(conn.close().await?),
            Err(error) => error,
        };
        let waited = begun.elapsed();
        let passes = error.retryable() && waited < patience;
        let error = explain(error);
        if !passes {
            return Err(error);
        }
        if waited >= say_at {
            tracing::warn!(database = name, cause = %error, "the database does not answer yet, trying again");
            say_at = (waited * 2).max(Duration::from_secs(1));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
