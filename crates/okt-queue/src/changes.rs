//! Who wants to hear that a job has changed. What is said between processes is only where to look; the truth is read
//! from the table, so a message that gets lost costs a moment and no more.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use okt_model::{JobId, RepositoryId};
use okt_store::Databases;
use tokio::sync::{Notify, broadcast};
use uuid::Uuid;

/// Where changes are told.
pub(crate) const CHANNEL: &str = "okt_jobs_changed";

/// A notification holds less than 8,000 bytes.
const LONGEST: usize = 7_000;
/// How many changes may wait for a slow listener before it is told to look at everything.
const PATIENCE: usize = 16;
const RECONNECT: Duration = Duration::from_millis(500);
/// How long a silent connection is trusted.
const SILENCE: Duration = Duration::from_secs(20);

/// Something happened to jobs of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Jobs(Arc<[JobId]>),
    /// To more of them than can be named, or something may have been missed.
    Many,
}

/// The subscriptions of this process. Cheap to clone.
#[derive(Clone, Default)]
pub struct Changes(Arc<Shared>);

#[derive(Default)]
struct Shared {
    subscribers: Mutex<HashMap<Uuid, broadcast::Sender<Change>>>,
    wanted: Notify,
}

/// Hears of the changes to the jobs of one repository.
pub struct Subscription {
    repository: Uuid,
    receiver: broadcast::Receiver<Change>,
    changes: Changes,
}

impl Changes {
    /// Hears what all processes tell, until dropped. Holds a connection only while somebody wants to know.
    pub async fn listen(&self, databases: &Databases) {
        loop {
            while self.subscribers().is_empty() {
                self.0.wanted.notified().await;
            }
            if let Ok(mut listener) = databases.listen_to_tasks(&[CHANNEL]).await {
                // Between two connections anything may have happened.
                self.tell_everybody();
                loop {
                    tokio::select! {
                        heard = listener.hear() => match heard {
                            Ok((_, message)) => self.tell(&message),
                            Err(_) => break,
                        },
                        // A connection that is only listened to may be dead without a sound.
                        () = tokio::time::sleep(SILENCE) => {
                            if self.subscribers().is_empty() || listener.ping().await.is_err() {
                                break;
                            }
                        }
                    }
                }
            }
            tokio::time::sleep(RECONNECT).await;
        }
    }

    pub fn subscribe(&self, repository: RepositoryId) -> Subscription {
        let repository = repository.uuid();
        let receiver = {
            let mut subscribers = self.subscribers();
            subscribers.entry(repository).or_insert_with(|| broadcast::channel(PATIENCE).0).subscribe()
        };
        self.0.wanted.notify_one();
        Subscription { repository, receiver, changes: self.clone() }
    }

    fn tell(&self, message: &str) {
        if message == "*" {
            self.tell_everybody();
            return;
        }
        let subscribers = self.subscribers();
        if subscribers.is_empty() {
            return;
        }
        for part in message.split(';') {
            let Some((repository, jobs)) = part.split_once(':') else { continue };
            let Some(sender) = repository.parse().ok().and_then(|id: Uuid| subscribers.get(&id)) else {
                continue;
            };
            let jobs: Result<Vec<JobId>, _> = jobs.split(',').map(str::parse).collect();
            // Nobody may be left to hear it; then nobody misses it.
            drop(sender.send(jobs.map_or(Change::Many, |jobs| Change::Jobs(jobs.into()))));
        }
    }

    fn tell_everybody(&self) {
        for sender in self.subscribers().values() {
            drop(sender.send(Change::Many));
        }
    }

    fn subscribers(&self) -> std::sync::MutexGuard<'_, HashMap<Uuid, broadcast::Sender<Change>>> {
        self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    /// Waits for the next change.
    pub async fn next(&mut self) -> Change {
        match self.receiver.recv().await {
            Ok(change) => change,
            Err(broadcast::error::RecvError::Lagged(_)) => Change::Many,
            // The sender lives in the map for as long as there is a subscription.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut subscribers = self.changes.subscribers();
        // This one still counts.
        if subscribers.get(&self.repository).is_some_and(|sender| sender.receiver_count() <= 1) {
            subscribers.remove(&self.repository);
        }
    }
}

/// What to tell of these changes: `repository:job,job;repository:job`, or less exactly where they are many.
pub(crate) fn message(changes: impl Iterator<Item = (Option<RepositoryId>, JobId)>) -> String {
    let mut by_repository: BTreeMap<Uuid, Vec<JobId>> = BTreeMap::new();
    for (repository, job) in changes {
        // Nobody can subscribe to the installation's own.
        let Some(repository) = repository else { continue };
        by_repository.entry(repository.uuid()).or_default().push(job);
    }
    let exact = by_repository.iter().map(|(repository, jobs)| {
        let jobs: Vec<_> = jobs.iter().map(|job| job.uuid().simple().to_string()).collect();
        format!("{}:{}", repository.simple(), jobs.join(","))
    });
    let exact = exact.collect::<Vec<_>>().join(";");
    if exact.len() <= LONGEST {
        return exact;
    }
    let rough: Vec<_> = by_repository.keys().map(|repository| format!("{}:*", repository.simple())).collect();
    let rough = rough.join(";");
    if rough.len() <= LONGEST { rough } else { "*".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn heard(subscription: &mut Subscription) -> Option<Change> {
        tokio::time::timeout(Duration::from_millis(20), subscription.next()).await.ok()
    }

    #[tokio::test]
    async fn only_the_repository_that_changed_hears_of_it() {
        let changes = Changes::default();
        let (ours, theirs, job) = (RepositoryId::mint(), RepositoryId::mint(), JobId::mint());
        let (mut we, mut they) = (changes.subscribe(ours), changes.subscribe(theirs));
        changes.tell(&message([(Some(ours), job), (None, JobId::mint())].into_iter()));
        assert_eq!(heard(&mut we).await, Some(Change::Jobs([job].into())));
        assert_eq!(heard(&mut they).await, None);
        drop((we, they));
        assert!(changes.subscribers().is_empty());
    }

    #[tokio::test]
    async fn too_many_changes_are_told_roughly_and_never_lost() {
        let changes = Changes::default();
        let (ours, theirs) = (RepositoryId::mint(), RepositoryId::mint());
        let mut we = changes.subscribe(ours);
        let many = message((0..1000).map(|_| (Some(ours), JobId::mint())));
        assert!(many.len() <= LONGEST);
        changes.tell(&many);
        assert_eq!(heard(&mut we).await, Some(Change::Many));
        let more = message((0..1000).map(|_| (Some(RepositoryId::mint()), JobId::mint())));
        assert_eq!(more, "*");
        changes.tell(&more);
        assert_eq!(heard(&mut we).await, Some(Change::Many));
        for _ in 0..100 {
            changes.tell(&message(std::iter::once((Some(ours), JobId::mint()))));
            changes.tell(&message(std::iter::once((Some(theirs), JobId::mint()))));
        }
        assert_eq!(heard(&mut we).await, Some(Change::Many));
    }
}
