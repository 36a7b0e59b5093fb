//! The threads that serve connections, each with a runtime of its own.
//!
//! A request waits for PostgreSQL at least twice. Threads that share a runtime wake each other for every answer, which was a
//! fifth of what the service took for a request. A connection stays where it was put, and so do, as long as there is room,
//! the connections to PostgreSQL that its requests use; the pool sees to that. The price: a handler that computes for long
//! holds up its neighbours, so what may take more than a few milliseconds belongs into `spawn_blocking`.

use std::future::Future;
use std::io;
use std::sync::{Arc, mpsc};

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// Threads of its own end when it is dropped, and whatever still runs on them with them.
pub struct Threads {
    threads: Vec<Thread>,
    end: CancellationToken,
}

struct Thread {
    runtime: Handle,
    /// With a clone for each connection.
    connections: Arc<()>,
}

impl Threads {
    /// Threads of their own.
    pub fn start(count: usize) -> io::Result<Self> {
        let mut started = Self { threads: Vec::new(), end: CancellationToken::new() };
        for no in 0..count.max(1) {
            let (end, (tell, told)) = (started.end.clone(), mpsc::sync_channel(1));
            // A runtime may not be dropped inside of another, so it is never there.
            std::thread::Builder::new().name(format!("http-{no}")).spawn(move || {
                let runtime = match Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime,
                    Err(error) => return drop(tell.send(Err(error))),
                };
                drop(tell.send(Ok(runtime.handle().clone())));
                runtime.block_on(end.cancelled());
                // Its end has been waited for already, as long as anybody may.
                runtime.shutdown_background();
            })?;
            started.threads.push(Thread::on(told.recv().map_err(io::Error::other)??));
        }
        Ok(started)
    }

    /// The runtime that asks, for who serves little.
    pub fn here() -> Self {
        Self { threads: vec![Thread::on(Handle::current())], end: CancellationToken::new() }
    }

    /// Runs a connection where the fewest are.
    pub(crate) fn run(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let Some(thread) = self.threads.iter().min_by_key(|thread| Arc::strong_count(&thread.connections))
        else {
            return;
        };
        let counted = Arc::clone(&thread.connections);
        thread.runtime.spawn(async move {
            connection.await;
            drop(counted);
        });
    }
}

impl Thread {
    fn on(runtime: Handle) -> Self {
        Self { runtime, connections: Arc::default() }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_are_spread_and_a_place_that_is_left_is_taken_again() {
        let threads = Threads::start(3).unwrap();
        let (tell, heard) = mpsc::channel();
        let run = || {
            let (tell, over) = (tell.clone(), CancellationToken::new());
            let wait = over.clone();
            threads.run(async move {
                let name = std::thread::current().name().unwrap_or_default().to_owned();
                tell.send(name).unwrap();
                wait.cancelled().await;
            });
            (heard.recv().unwrap(), over)
        };
        let mut first: Vec<_> = (0..3).map(|_| run()).collect();
        first.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(
            first.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["http-0", "http-1", "http-2"]
        );
        let (left, over) = first.swap_remove(1);
        over.cancel();
        let thread = &threads.threads[1];
        while Arc::strong_count(&thread.connections) > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(run().0, left);
    }

    #[tokio::test]
    async fn what_runs_ends_with_the_threads() {
        let threads = Threads::start(1).unwrap();
        let (tell, heard) = tokio::sync::oneshot::channel::<()>();
        threads.run(async move {
            let _tell = tell;
            std::future::pending::<()>().await;
        });
        drop(threads);
        let ended = tokio::time::timeout(std::time::Duration::from_secs(10), heard).await;
        assert!(ended.expect("it ends").is_err());
    }
}
