//! Jobs without the service around them: a worker, and jobs that wait for one.

use okt_config::Config;
use okt_model::{JobId, NewJob, Payload, RepositoryId};
use okt_queue::{Kinds, Periodic, Settings, Worker};
use okt_store::{Databases, Purpose};

/// A worker for these kinds, on pools of its own, with its settings changed.
pub async fn worker(
    config: &Config,
    kinds: Kinds,
    periodic: Vec<Periodic>,
    change: impl FnOnce(&mut Settings),
) -> Worker {
    let pools =
        Databases::open(config, &[Purpose::Worker, Purpose::Keeper]).await.expect("the databases open");
    let [worker, keeper] = <[Databases; 2]>::try_from(pools).ok().expect("a set of pools for each purpose");
    let mut settings = Settings::of(config, &kinds);
    change(&mut settings);
    Worker::start(settings, keeper, worker, kinds, periodic).expect("a worker starts")
}

/// A job for the queue itself, without a note: it runs, and has no effect.
pub fn waiting<P: Payload>(repository: RepositoryId, payload: &P) -> NewJob {
    let job = NewJob::of_the_system(JobId::mint(), payload).expect("plain data");
    NewJob { repository: Some(repository), database: Some("default".to_owned()), ..job }
}
