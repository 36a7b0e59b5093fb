//! A connection that hears what others say, and whose end others notice.

use std::time::Duration;

use okt_model::Error;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};

use crate::error::Result;

const PATIENCE: Duration = Duration::from_secs(5);

/// Hears the notifications of some channels. It does not connect anew by itself, because whoever missed something has
/// to look around first.
pub struct Listener(PgListener);

impl Listener {
    pub async fn open(options: &PgConnectOptions, channels: &[&str]) -> Result<Self> {
        let opened = async {
            // The library asks for a pool; this one never holds a second connection, and ends with the listener.
            let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(options.clone());
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.ignore_pool_close_event(true);
            listener.eager_reconnect(false);
            listener.listen_all(channels.iter().copied()).await?;
            Ok(Self(listener))
        };
        match tokio::time::timeout(PATIENCE, opened).await {
            Ok(opened) => opened,
            Err(elapsed) => Err(late(elapsed)),
        }
    }

    /// The next notification, as channel and payload; an error when the connection is gone.
    pub async fn hear(&mut self) -> Result<(String, String)> {
        match self.0.try_recv().await? {
            Some(heard) => Ok((heard.channel().to_owned(), heard.payload().to_owned())),
            None => Err(Error::Unavailable {
                service: "the database",
                cause: "the connection to listen on is gone".into(),
            }
            .into()),
        }
    }

    /// Takes a lock that lasts as long as this connection. Waits for whoever is just looking whether it is free.
    pub async fn lock(&mut self, key: i64) -> Result<()> {
        sqlx::query!("SELECT pg_advisory_lock($1)", key).execute(&mut self.0).await?;
        Ok(())
    }

    /// As [`Self::lock`], but does not wait; says whether it has the lock.
    pub async fn try_lock(&mut self, key: i64) -> Result<bool> {
        let taken = sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "taken!""#, key);
        Ok(taken.fetch_one(&mut self.0).await?)
    }

    /// Whether the other end is still there: a connection that is only listened to may be dead without a sound.
    pub async fn ping(&mut self) -> Result<()> {
        let asked = sqlx::query_scalar!("SELECT 1").fetch_one(&mut self.0);
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(answered) => Ok(answered.map(drop)?),
            Err(elapsed) => Err(late(elapsed)),
        }
    }
}

fn late(elapsed: tokio::time::error::Elapsed) -> crate::Error {
    Error::Unavailable { service: "the database", cause: Box::new(elapsed) }.into()
}
