//! Holds sentences against the facts of a repository: the sentences of a report (`cut`), which facts are near a sentence (`near`), and how
//! each of them stands to it (`judge`).
//!
//! Used by jobs and by use cases alike: it keeps nothing, and must not know HTTP, nor what a job is. Whether a fact is near a
//! sentence depends on the two alone, so that what was checked before need not be checked again when another fact comes.

mod cut;
mod judge;
mod near;
mod words;

use std::sync::Arc;

use okt_model::{Error, Result};
use tokio::sync::Semaphore;

pub use cut::Cut;
pub use judge::{Judge, Judgements, Judging, Pair, Said};
pub use near::{Candidates, Neighbour, Searching, Sentence, embedded, is_near};
pub use words::{Shared, SharedWords, lexemes, share};

/// Does what keeps a core busy on a thread of its own, when it is its turn if turns are taken, so that others do not wait for it.
async fn turn<T: Send + 'static>(
    turns: Option<&Arc<Semaphore>>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let turn = match turns {
        Some(turns) => Some(Arc::clone(turns).acquire_owned().await.map_err(Error::internal)?),
        None => None,
    };
    let work = move || {
        let done = work();
        drop(turn);
        done
    };
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}
