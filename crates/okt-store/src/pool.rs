//! Connections that are kept open, for one place and one purpose.
//!
//! A connection whose user says that it is done goes straight back. One that is merely dropped may have a transaction
//! open, an answer half read, or a server that went away: it is tested first, in the background, and closed when it
//! fails. That test is a round trip; a pool that makes it after every use costs a busy service a third of its time.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use deadpool::managed::{self, Metrics, Object, PoolError, QueueMode, RecycleResult, TimeoutType, Timeouts};
use okt_model::Result;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection as _, Executor as _, PgConnection, SqlStr};

use crate::error::from_sqlx;

/// A connection that was used this recently is taken to be alive.
const FRESH: Duration = Duration::from_secs(1);
const TEST_TIMEOUT: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_mins(10);
const LIFETIME: Duration = Duration::from_mins(30);

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Pool(managed::Pool<Opener>);

/// A connection of a pool.
pub struct Pooled {
    object: Option<Object<Opener>>,
    in_transaction: bool,
    /// Whether it may be left in a state that no test puts right.
    delicate: bool,
}

/// A transaction; rolled back unless it is committed.
pub struct Tx(Pooled);

/// Connections of one pool.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub open: u32,
    pub idle: u32,
    pub limit: u32,
}

impl Pool {
    /// Connects when it is first used. `role` is worked as where the login could pass row-level security.
    pub(crate) fn new(
        options: PgConnectOptions,
        role: &'static str,
        limit: u32,
        patience: Duration,
    ) -> sqlx::Result<Self> {
        let timeouts = Timeouts { wait: Some(patience), create: Some(patience), recycle: Some(TEST_TIMEOUT) };
        managed::Pool::builder(Opener { options, role })
            .max_size(usize::try_from(limit).unwrap_or(usize::MAX))
            .runtime(deadpool::Runtime::Tokio1)
            .timeouts(timeouts)
            // What was used last is the least likely to be dead, and what is not needed grows old and is closed.
            .queue_mode(QueueMode::Lifo)
            .build()
            .map(Self)
            .map_err(|error| sqlx::Error::Configuration(error.into()))
    }

    pub(crate) async fn acquire(&self) -> sqlx::Result<Pooled> {
        // For all of it: several connections in a row may turn out to be dead, each after a while.
        let patience = self.0.timeouts().wait.unwrap_or(TEST_TIMEOUT);
        let Ok(got) = tokio::time::timeout(patience, self.0.get()).await else {
            return Err(sqlx::Error::PoolTimedOut);
        };
        match got {
            Ok(object) => Ok(Pooled { object: Some(object), in_transaction: false, delicate: false }),
            Err(PoolError::Timeout(TimeoutType::Wait)) => Err(sqlx::Error::PoolTimedOut),
            Err(PoolError::Timeout(_)) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
            Err(PoolError::Closed) => Err(sqlx::Error::PoolClosed),
            Err(PoolError::Backend(error)) => Err(error),
            Err(error) => Err(sqlx::Error::Configuration(error.into())),
        }
    }

    pub(crate) async fn begin(&self, statement: SqlStr) -> sqlx::Result<Tx> {
        let mut conn = self.acquire().await?;
        conn.in_transaction = true;
        conn.execute(statement).await?;
        Ok(Tx(conn))
    }

    /// How it connects, for a connection outside of the pool.
    pub(crate) fn options(&self) -> &PgConnectOptions {
        &self.0.manager().options
    }

    pub(crate) fn usage(&self) -> Usage {
        let status = self.0.status();
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Usage { open: number(status.size), idle: number(status.available), limit: number(status.max_size) }
    }

    /// Closes what nobody has needed for a while.
    pub(crate) async fn close_idle(&self) {
        close(self.0.retain(|_, metrics| metrics.last_used() < IDLE).removed).await;
    }

    /// Gives out nothing any more. What is still in use is closed when it comes back.
    pub(crate) async fn close(&self) {
        let idle = self.0.retain(|_, _| false).removed;
        self.0.close();
        close(idle).await;
    }
}

impl Pooled {
    /// Gives the connection back at once. To be called when every answer has been read and no transaction is open.
    pub fn done(mut self) {
        drop(self.object.take());
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else { return };
        if self.delicate {
            return drop(Object::take(object));
        }
        let (mut untested, in_transaction) = (Untested(Some(object)), self.in_transaction);
        let test = async move {
            let Some(conn) = untested.0.as_deref_mut() else { return };
            // Either one reads a half-read answer to its end first.
            let answer = async {
                if in_transaction { conn.execute("ROLLBACK").await.map(drop) } else { conn.ping().await }
            };
            if matches!(tokio::time::timeout(TEST_TIMEOUT, answer).await, Ok(Ok(()))) {
                drop(untested.0.take());
            }
        };
        // Where there is no runtime, or none any more, the test is dropped and the connection closed.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn(test));
        }
    }
}

/// A connection that goes back only when it is taken out; otherwise it is closed, and the server ends what it had begun.
struct Untested(Option<Object<Opener>>);

impl Drop for Untested {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            drop(Object::take(object));
        }
    }
}

impl Deref for Pooled {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.object.as_deref().expect(HELD)
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.object.as_deref_mut().expect(HELD)
    }
}

impl Tx {
    /// Rows will be copied through the connection: cut off in the middle of that, it is closed and not tested.
    pub(crate) const fn handle_with_care(&mut self) {
        self.0.delicate = true;
    }

    pub async fn commit(mut self) -> Result<()> {
        self.0.execute("COMMIT").await.map_err(from_sqlx)?;
        self.0.done();
        Ok(())
    }
}

impl Deref for Tx {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.0
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.0
    }
}

/// Only what consumes the guard takes its connection.
const HELD: &str = "a guard holds its connection";

struct Opener {
    options: PgConnectOptions,
    role: &'static str,
}

impl managed::Manager for Opener {
    type Type = PgConnection;
    type Error = sqlx::Error;

    /// In a box of its own: connecting takes kilobytes of state, and who finds a connection should not carry them.
    async fn create(&self) -> sqlx::Result<PgConnection> {
        Box::pin(self.connect()).await
    }

    async fn recycle(&self, conn: &mut PgConnection, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        if metrics.age() > LIFETIME {
            return Err(managed::RecycleError::message("old"));
        }
        if metrics.last_used() > FRESH {
            Box::pin(conn.ping()).await?;
        }
        Ok(())
    }
}

impl Opener {
    async fn connect(&self) -> sqlx::Result<PgConnection> {
        let mut conn = self.options.connect().await?;
        sqlx::query!(
            "SELECT set_config('role', $1, false) FROM pg_roles
              WHERE rolname = session_user AND (rolsuper OR rolbypassrls)",
            self.role,
        )
        .fetch_optional(&mut conn)
        .await?;
        Ok(conn)
    }
}

async fn close(connections: Vec<PgConnection>) {
    for conn in connections {
        // It is being closed either way; a server that is gone can't be told.
        drop(tokio::time::timeout(TEST_TIMEOUT, conn.close()).await);
    }
}
