//! PostgreSQL without any table: connecting, a pool, a migrator, a listener, and what errors mean.
//!
//! It must not know a table, a schema or a setting of anybody. A service with a database of its own needs this crate, a
//! folder of migrations and its queries, and not `okt-store`:
//!
//! ```ignore
//! let options = okt_pg::options(url, "registry", PgSslMode::Require, None).ok_or_else(…)?;
//! let schema = Schema::new("registry", sqlx::migrate!("migrations"));
//! Migrator::lock(&options, "okt registry migrate").await?.run(&[schema], None).await?;
//! let pool = Pool::new(okt_pg::session(&options, &limits), None, 10, Duration::from_secs(5));
//! let mut tx = pool.begin("BEGIN".into_sql_str()).await?;
//! ```
//!
//! A function belongs here when two services with different tables would write it in the same words.

mod connect;
mod error;
mod listener;
mod migrate;
mod plans;
mod pool;
mod role;
mod server;
mod unreachable;

pub use connect::{Limits, await_server, connect, options, session};
pub use error::{Error, Result};
pub use listener::Listener;
pub use migrate::{Migrator, Report, Schema};
pub use plans::planned_anew;
pub use pool::{Pool, Pooled, Tx, Usage};
pub use server::{Identity, identity, ordinary_connections};
pub use unreachable::Why;
