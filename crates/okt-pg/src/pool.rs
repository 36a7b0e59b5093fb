//! Connections that are kept open, for one database and one purpose.
//!
//! A connection comes back when it is dropped, and in no other way. One that has nothing to say any more goes straight to
//! the next user. One with a transaction open or an answer half read is put right or tested first, in the background, and
//! closed when that fails. A pool that makes this test after every use costs a busy service a third of its time.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection as _, Executor as _, PgConnection, SqlStr};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::Result;

/// A connection that was used this recently is taken to be alive.
const FRESH: Duration = Duration::from_secs(1);
const TEST_TIMEOUT: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_mins(10);
const LIFETIME: Duration = Duration::from_mins(30);
/// For so long notifications are gathered.
const GATHER: Duration = Duration::from_millis(10);

/// Cheap to clone.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

/// A connection of a pool; given back when it is dropped.
pub struct Pooled {
    /// Until it is dropped.
    out: Option<Out>,
    in_transaction: bool,
    /// Whether it may be left in a state that no test puts right.
    delicate: bool,
}

/// A transaction; rolled back unless it is committed.
pub struct Tx {
    conn: Pooled,
    /// Whom to notify when it is.
    notifies: Option<(Pool, &'static str)>,
}

/// Connections of one pool.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub open: u32,
    pub idle: u32,
    pub limit: u32,
}

impl Pool {
    /// Connects when it is first used. `role` is worked as where the login could pass row-level security.
    pub fn new(
        options: PgConnectOptions,
        role: Option<&'static str>,
        limit: u32,
        patience: Duration,
    ) -> Self {
        Self(Arc::new(Shared {
            options,
            role,
            limit,
            patience,
            users: Arc::new(Semaphore::new(usize::try_from(limit).unwrap_or(Semaphore::MAX_PERMITS))),
            open: Arc::default(),
            idle: Mutex::default(),
            notifying: Mutex::default(),
        }))
    }

    pub async fn acquire(&self) -> sqlx::Result<Pooled> {
        // For all of it: several connections in a row may turn out to be dead, each after a while.
        let Ok(out) = timeout(self.0.patience, Out::get(&self.0)).await else {
            return Err(sqlx::Error::PoolTimedOut);
        };
        Ok(Pooled { out: Some(out?), in_transaction: false, delicate: false })
    }

    /// `statement` begins with BEGIN; what else has to be said goes along in the same round trip.
    pub async fn begin(&self, statement: SqlStr) -> sqlx::Result<Tx> {
        let mut conn = self.acquire().await?;
        conn.in_transaction = true;
        conn.execute(statement).await?;
        Ok(Tx { conn, notifies: None })
    }

    /// As [`Self::begin`], and whoever listens to `channel` is notified after the commit.
    pub async fn begin_and_notify(&self, statement: SqlStr, channel: &'static str) -> sqlx::Result<Tx> {
        let begun = self.begin(statement).await?;
        Ok(Tx { notifies: Some((self.clone(), channel)), ..begun })
    }

    /// Notifies once for all who wish it in a while. Not in the transaction that wrote: one that notifies commits alone, so
    /// that all others wait for its flush.
    fn notify(self, channel: &'static str) {
        if !self.0.notifying().insert(channel) {
            return;
        }
        // Also where the runtime ends before it could be done: the pool may be used by another.
        let notifying = Notifying(Arc::clone(&self.0), channel);
        let notify = async move {
            tokio::time::sleep(GATHER).await;
            // First of all: whoever commits from now on is not sure to be heard.
            drop(notifying);
            // It may be lost. Whoever listens looks by itself now and then.
            if let Ok(mut conn) = self.acquire().await {
                drop(sqlx::query("SELECT pg_notify($1, '')").bind(channel).execute(&mut *conn).await);
            }
        };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(notify)),
            Err(_) => drop(notify),
        }
    }

    /// How it connects, for a connection outside of the pool.
    pub fn options(&self) -> &PgConnectOptions {
        &self.0.options
    }

    pub fn usage(&self) -> Usage {
        let idle = u32::try_from(self.0.idle().len()).unwrap_or(u32::MAX);
        Usage { open: self.0.open.load(Ordering::Relaxed), idle, limit: self.0.limit }
    }

    /// Closes what nobody has needed for a while.
    pub async fn close_idle(&self) {
        self.0.close(|idle| idle.used.elapsed() >= IDLE).await;
    }

    /// Gives out nothing any more. What is still in use is closed when it comes back.
    pub async fn close(&self) {
        self.0.users.close();
        self.0.close(|_| true).await;
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let Some(mut out) = self.out.take() else { return };
        if self.delicate {
            return;
        }
        let in_transaction = self.in_transaction;
        if !in_transaction {
            // Sends what is not sent yet and reads what was asked for, as far as that is possible without waiting: where
            // every answer has been read, it is ready without touching the socket.
            match out.kept.conn.flush().now_or_never() {
                Some(Ok(())) => return out.give_back(),
                Some(Err(_)) => return,
                None => {}
            }
        }
        let test = async move {
            // Either one reads a half-read answer to its end first.
            let conn = &mut out.kept.conn;
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
        &self.out.as_ref().expect(HELD).kept.conn
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.out.as_mut().expect(HELD).kept.conn
    }
}

impl Tx {
    /// Rows will be copied through the connection: cut off in the middle of that, it is closed and not tested.
    pub const fn handle_with_care(&mut self) {
        self.conn.delicate = true;
    }

    /// An error where a statement of the transaction has failed, whatever became of that error: PostgreSQL answers such a
    /// COMMIT by a rollback and calls it a success. The empty statement before it, in the same round trip, does fail.
    pub async fn commit(mut self) -> Result<()> {
        self.conn.execute("SELECT; COMMIT").await?;
        (self.conn.in_transaction, self.conn.delicate) = (false, false);
        if let Some((pool, channel)) = self.notifies {
            pool.notify(channel);
        }
        Ok(())
    }
}

impl Deref for Tx {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.conn
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.conn
    }
}

/// Somebody is about to notify this channel, for as long as this is there.
struct Notifying(Arc<Shared>, &'static str);

impl Drop for Notifying {
    fn drop(&mut self) {
        self.0.notifying().remove(self.1);
    }
}

const HELD: &str = "a guard holds its connection until it is dropped";

/// What the clones of a pool share.
struct Shared {
    options: PgConnectOptions,
    role: Option<&'static str>,
    limit: u32,
    patience: Duration,
    /// As many as there may be connections. Whoever has a permit takes an idle one, and opens another only where there is
    /// none; so there are never more connections than permits.
    users: Arc<Semaphore>,
    /// Connections in use and idle.
    open: Arc<AtomicU32>,
    /// What was used last is last: it is the least likely to be dead, and what is not needed grows old and is closed.
    idle: Mutex<Vec<Kept>>,
    /// Channels that somebody is about to notify.
    notifying: Mutex<BTreeSet<&'static str>>,
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notifying(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.notifying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_idle(&self) -> Option<Kept> {
        self.idle().pop()
    }

    async fn connect(&self) -> sqlx::Result<Kept> {
        let mut conn = self.options.connect().await?;
        if let Some(role) = self.role {
            sqlx::query!(
                "SELECT set_config('role', $1, false) FROM pg_roles
              WHERE rolname = session_user AND (rolsuper OR rolbypassrls)",
                role,
            )
            .fetch_optional(&mut conn)
            .await?;
        }
        let now = Instant::now();
        Ok(Kept { conn, opened: now, used: now, _counted: Counted::new(&self.open) })
    }

    /// Closes those idle ones of which this is true.
    async fn close(&self, ripe: impl Fn(&Kept) -> bool) {
        let closing: Vec<Kept> = {
            let mut idle = self.idle();
            let (closing, rest) = std::mem::take(&mut *idle).into_iter().partition(ripe);
            *idle = rest;
            closing
        };
        for Kept { conn, .. } in closing {
            // It is being closed either way; a server that is gone can't be told.
            drop(timeout(TEST_TIMEOUT, conn.close()).await);
        }
    }
}

/// An open connection.
struct Kept {
    conn: PgConnection,
    opened: Instant,
    used: Instant,
    _counted: Counted,
}

impl Kept {
    async fn is_alive(&mut self) -> bool {
        self.opened.elapsed() <= LIFETIME
            && (self.used.elapsed() <= FRESH
                || matches!(timeout(TEST_TIMEOUT, Box::pin(self.conn.ping())).await, Ok(Ok(()))))
    }
}

/// One of the open connections, for as long as it lives.
struct Counted(Arc<AtomicU32>);

impl Counted {
    fn new(open: &Arc<AtomicU32>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection in somebody's hands; closed when it is dropped, unless it was given back. The permit goes last.
struct Out {
    kept: Kept,
    pool: Arc<Shared>,
    _permit: OwnedSemaphorePermit,
}

impl Out {
    async fn get(pool: &Arc<Shared>) -> sqlx::Result<Self> {
        let permit = Arc::clone(&pool.users).acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let pool = Arc::clone(pool);
        while let Some(mut kept) = pool.take_idle() {
            if kept.is_alive().await {
                return Ok(Self { kept, pool, _permit: permit });
            }
        }
        // In a box of its own: connecting takes kilobytes of state, and who finds a connection should not carry them.
        let kept = Box::pin(pool.connect()).await?;
        Ok(Self { kept, pool, _permit: permit })
    }

    fn give_back(self) {
        let Self { mut kept, pool, _permit } = self;
        kept.used = Instant::now();
        // One that has read a large row would keep the room for another.
        kept.conn.shrink_buffers();
        let mut idle = pool.idle();
        // With the lock held, or one could be put there after the last was closed.
        if !pool.users.is_closed() {
            idle.push(kept);
        }
    }
}
