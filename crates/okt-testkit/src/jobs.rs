//! Jobs without the service around them: a worker, and jobs that wait for one.

use std::path::PathBuf;

use okt_config::Config;
use okt_jobs::{Ocr, Parser, Tools};
use okt_model::{JobId, NewJob, Payload, RepositoryId};
use okt_queue::{Kinds, Periodic, Settings, Worker};
use okt_store::outbox::{self, When};
use okt_store::{Blobs, Databases, Purpose};
use okt_vectors::Vectors;
use tokio::runtime::{Builder, Runtime};

use crate::served::SECRET;

/// A worker for these kinds, on pools of its own, with its settings changed.
pub async fn worker(
    config: &Config,
    kinds: Kinds,
    periodic: Vec<Periodic>,
    change: impl FnOnce(&mut Settings),
) -> Worker {
    let pools =
        Databases::open(config, &[Purpose::Worker, Purpose::Queue]).await.expect("the databases open");
    let [worker, keeper] = <[Databases; 2]>::try_from(pools).ok().expect("a set of pools for each purpose");
    let mut settings = Settings::of(config, &kinds);
    change(&mut settings);
    Worker::start(settings, keeper, worker, kinds, periodic).expect("a worker starts")
}

/// A worker for everything that the product does, on a thread of its own. Tests often end on the only thread of theirs, where
/// nobody would close a connection that is just being made, and the database could not be dropped for a minute.
pub struct TestWorker(Option<Runtime>);

impl TestWorker {
    pub async fn start(config: &Config, periodic: Vec<Periodic>) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread");
        let ours = config.clone();
        let started = runtime.spawn(async move {
            let databases = Databases::open(&ours, &[Purpose::Worker]).await.expect("the databases open");
            let tools = tools(&ours, &databases[0]).await;
            okt_jobs::spaces::start(&databases[0], &tools).await.expect("vectors are sound");
            let kinds = okt_jobs::kinds(&tools);
            let worker = worker(&ours, kinds, periodic, |_| {}).await;
            // For as long as the thread is there.
            tokio::spawn(async move {
                let _worker = worker;
                std::future::pending::<()>().await;
            });
        });
        started.await.expect("a worker starts");
        Self(Some(runtime))
    }
}

impl Drop for TestWorker {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Everything that the product does but comparing facts, with its own program to read files and pools of its own for models.
pub async fn kinds(config: &Config) -> Kinds {
    let databases = Databases::open(config, &[Purpose::Worker]).await.expect("the databases open");
    okt_jobs::kinds(&tools_with(config, &databases[0], None))
}

/// What jobs need, with the store of vectors that the settings name.
pub async fn tools(config: &Config, databases: &Databases) -> Tools {
    tools_with(config, databases, Vectors::open(config, databases).await.expect("a store of vectors"))
}

fn tools_with(config: &Config, databases: &Databases, vectors: Option<Vectors>) -> Tools {
    let blobs = Blobs::open(&config.providers.storage).expect("files can be kept");
    let parser = Parser::new(program(), pdfium(), ocr(config));
    Tools::new(config, databases, blobs, vectors, parser, SECRET).expect("the settings are sound")
}

/// The program under test, beside the one that runs the test.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    let folder = test.ancestors().find(|folder| folder.join("okt").is_file());
    folder.expect("the program is built: run tests with --workspace").join("okt")
}

/// The library that reads PDFs.
pub fn pdfium() -> Option<PathBuf> {
    std::env::var_os("OKT_PDFIUM").map(PathBuf::from)
}

/// Tesseract, if the settings want text recognised.
fn ocr(config: &Config) -> Option<Ocr> {
    let program =
        std::env::var_os("OKT_TESSERACT").map_or_else(|| "/usr/bin/tesseract".into(), PathBuf::from);
    let languages = config.providers.parsing.ocr_languages.clone();
    (config.providers.parsing.ocr && program.is_file()).then_some(Ocr { program, languages })
}

/// Asks for a job as a request would; it is promised when this returns.
pub async fn push<P: Payload>(
    databases: &Databases,
    repository: RepositoryId,
    payload: &P,
    when: When,
) -> JobId {
    let id = JobId::mint();
    let mut tx = databases.begin("default", repository).await.expect("a transaction");
    outbox::push(&mut tx, repository, id, payload, when).await.expect("a job is asked for");
    tx.commit().await.expect("it is promised");
    id
}

/// A job for the queue itself, without an outbox entry: it runs, and has no effect.
pub fn waiting<P: Payload>(repository: RepositoryId, payload: &P) -> NewJob {
    let job = NewJob::of_the_system(JobId::mint(), payload).expect("plain data");
    NewJob { repository: Some(repository), database: Some("default".to_owned()), ..job }
}
