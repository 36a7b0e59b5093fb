//! Connections that are kept open, for one place and one purpose.
//!
//! A connection whose user says that it is done goes straight back. One that is merely dropped may have a transaction
//! open, an answer half read, or a server that went away: it is tested first, in the background, and closed when it
//! fails. That test is a round trip; a pool that makes it after every use costs a busy service a third of its time.
//!
//! A socket belongs to the runtime that opened it. Used in another, every answer wakes a thread of the first one, which
//! wakes the one that waits. So whoever asks gets a connection of its own runtime, as long as the limit leaves room for
//! one; after that any is better than none.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use okt_model::Result;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection as _, Executor as _, PgConnection, SqlStr};
use tokio::runtime::{self, Handle};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::error::from_sqlx;

/// A connection that was used this recently is taken to be alive.
const FRESH: Duration = Duration::from_secs(1);
const TEST_TIMEOUT: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_mins(10);
const LIFETIME: Duration = Duration::from_mins(30);

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Shared>);

/// A connection of a pool.
pub struct Pooled {
    out: Option<Out>,
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
    pub(crate) fn new(options: PgConnectOptions, role: &'static str, limit: u32, patience: Duration) -> Self {
        Self(Arc::new(Shared {
            options,
            role,
            limit,
            patience,
            users: Semaphore::new(usize::try_from(limit).unwrap_or(Semaphore::MAX_PERMITS)),
            connections: Mutex::default(),
        }))
    }

    pub(crate) async fn acquire(&self) -> sqlx::Result<Pooled> {
        // For all of it: several connections in a row may turn out to be dead, each after a while.
        let Ok(out) = timeout(self.0.patience, Out::get(&self.0)).await else {
            return Err(sqlx::Error::PoolTimedOut);
        };
        Ok(Pooled { out: Some(out?), in_transaction: false, delicate: false })
    }

    pub(crate) async fn begin(&self, statement: SqlStr) -> sqlx::Result<Tx> {
        let mut conn = self.acquire().await?;
        conn.in_transaction = true;
        conn.execute(statement).await?;
        Ok(Tx(conn))
    }

    /// How it connects, for a connection outside of the pool.
    pub(crate) fn options(&self) -> &PgConnectOptions {
        &self.0.options
    }

    pub(crate) fn usage(&self) -> Usage {
        let connections = self.0.connections();
        let idle = u32::try_from(connections.idle.len()).unwrap_or(u32::MAX);
        Usage { open: connections.open, idle, limit: self.0.limit }
    }

    /// Closes what nobody has needed for a while.
    pub(crate) async fn close_idle(&self) {
        self.0.close(|idle| idle.used.elapsed() >= IDLE).await;
    }

    /// Gives out nothing any more. What is still in use is closed when it comes back.
    pub(crate) async fn close(&self) {
        self.0.users.close();
        self.0.close(|_| true).await;
    }
}

impl Pooled {
    /// Gives the connection back at once. To be called when every answer has been read and no transaction is open.
    pub fn done(mut self) {
        if let Some(out) = self.out.take() {
            out.give_back();
        }
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let Some(mut out) = self.out.take() else { return };
        if self.delicate {
            return;
        }
        let in_transaction = self.in_transaction;
        let test = async move {
            // Either one reads a half-read answer to its end first.
            let conn = &mut out.connection.conn;
            let answer = async {
                if in_transaction { conn.execute("ROLLBACK").await.map(drop) } else { conn.ping().await }
            };
            if matches!(timeout(TEST_TIMEOUT, answer).await, Ok(Ok(()))) {
                out.give_back();
            }
        };
        // Where there is no runtime, or none any more, the test is dropped and the connection closed.
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn(test));
        }
    }
}

impl Deref for Pooled {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.out.as_ref().expect(HELD).connection.conn
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.out.as_mut().expect(HELD).connection.conn
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

/// What the clones of a pool share.
struct Shared {
    options: PgConnectOptions,
    role: &'static str,
    limit: u32,
    patience: Duration,
    /// As many as there may be connections; whoever has a permit finds one, or room for one.
    users: Semaphore,
    connections: Mutex<Connections>,
}

#[derive(Default)]
struct Connections {
    /// In use, being opened, and idle.
    open: u32,
    /// What was used last is last: it is the least likely to be dead, and what is not needed grows old and is closed.
    idle: Vec<Kept>,
}

struct Kept {
    conn: PgConnection,
    /// Where it was opened.
    runtime: runtime::Id,
    opened: Instant,
    used: Instant,
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

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

    /// Closes those idle ones of which this is true.
    async fn close(&self, ripe: impl Fn(&Kept) -> bool) {
        let closing: Vec<Kept> = {
            let mut connections = self.connections();
            let (closing, idle) = std::mem::take(&mut connections.idle).into_iter().partition(ripe);
            connections.idle = idle;
            connections.open -= u32::try_from(Vec::len(&closing)).unwrap_or(0);
            closing
        };
        for Kept { conn, .. } in closing {
            // It is being closed either way; a server that is gone can't be told.
            drop(timeout(TEST_TIMEOUT, conn.close()).await);
        }
    }
}

/// A connection in somebody's hands; closed when it is dropped, unless it was given back.
struct Out {
    connection: Kept,
    seat: Seat,
}

impl Out {
    async fn get(pool: &Arc<Shared>) -> sqlx::Result<Self> {
        let mut seat = Seat::take(pool).await?;
        let runtime = Handle::current().id();
        while let Some(connection) = seat.find(runtime) {
            match Self::test(connection, seat).await {
                Ok(out) => return Ok(out),
                Err(left) => seat = left,
            }
        }
        // In a box of its own: connecting takes kilobytes of state, and who finds a connection should not carry them.
        match Box::pin(pool.connect()).await {
            Ok(conn) => {
                let now = Instant::now();
                Ok(Self { connection: Kept { conn, runtime, opened: now, used: now }, seat })
            }
            // The server may have no more to give, and another runtime one to lend.
            Err(error) => {
                seat.count_out();
                while let Some(connection) = seat.borrow() {
                    match Self::test(connection, seat).await {
                        Ok(out) => return Ok(out),
                        Err(left) => seat = left,
                    }
                }
                Err(error)
            }
        }
    }

    /// The connection if it is alive; else it is closed, and the seat is left for another one.
    async fn test(connection: Kept, seat: Seat) -> std::result::Result<Self, Seat> {
        let mut out = Self { connection, seat };
        let Kept { conn, opened, used, .. } = &mut out.connection;
        let alive = opened.elapsed() <= LIFETIME
            && (used.elapsed() <= FRESH
                || matches!(timeout(TEST_TIMEOUT, Box::pin(conn.ping())).await, Ok(Ok(()))));
        if alive {
            return Ok(out);
        }
        let Self { connection, mut seat } = out;
        drop(connection);
        seat.count_out();
        Err(seat)
    }

    fn give_back(self) {
        let Self { mut connection, mut seat } = self;
        connection.used = Instant::now();
        seat.give_back(connection);
    }
}

/// A seat among the users of a pool; given back when it is dropped.
struct Seat {
    pool: Arc<Shared>,
    /// Whether a connection of this seat is among the open ones.
    counted: bool,
}

impl Seat {
    async fn take(pool: &Arc<Shared>) -> sqlx::Result<Self> {
        pool.users.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?.forget();
        Ok(Self { pool: Arc::clone(pool), counted: false })
    }

    /// An idle connection: one of this runtime, or any if no other may be opened. Without one there is room for another.
    fn find(&mut self, runtime: runtime::Id) -> Option<Kept> {
        let mut connections = self.pool.connections();
        let own = connections.idle.iter().rposition(|kept| kept.runtime == runtime);
        let kept = match own {
            Some(at) => Some(connections.idle.remove(at)),
            None if connections.open < self.pool.limit => {
                connections.open += 1;
                None
            }
            None => {
                debug_assert!(
                    !connections.idle.is_empty(),
                    "who has a seat finds a connection, or room for one"
                );
                connections.idle.pop()
            }
        };
        self.counted = true;
        kept
    }

    /// An idle connection of whatever runtime.
    fn borrow(&mut self) -> Option<Kept> {
        let kept = self.pool.connections().idle.pop();
        self.counted = kept.is_some();
        kept
    }

    fn give_back(&mut self, kept: Kept) {
        let mut connections = self.pool.connections();
        if !self.pool.users.is_closed() {
            self.counted = false;
            connections.idle.push(kept);
        }
    }

    fn count_out(&mut self) {
        if std::mem::take(&mut self.counted) {
            self.pool.connections().open -= 1;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.count_out();
        self.pool.users.add_permits(1);
    }
}
