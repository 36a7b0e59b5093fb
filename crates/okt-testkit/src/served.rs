//! A service inside of the test's own process, behind a real listener.

use std::sync::{Arc, Mutex};

use metrics_exporter_prometheus::PrometheusBuilder;
use okt_api::Api;
use okt_app::App;
use okt_config::Config;
use okt_http::{Edge, Served};
use okt_store::{Blobs, Databases, Purpose};
use okt_vectors::Vectors;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::client::{self, Answer};
use crate::db::{TestDatabase, run};
use crate::notes;

/// What sessions are signed with; another process on the same database has to know it.
pub(crate) const SECRET: &[u8] = b"a secret that is long enough for tests";

pub struct TestService {
    pub url: String,
    pub api: Api,
    pub database: Arc<TestDatabase>,
    client: reqwest::Client,
    stop: CancellationToken,
    served: Mutex<Option<JoinHandle<()>>>,
    /// A thread of its own for what is heard of jobs. Tests often end on the only thread of theirs, where nobody would
    /// close a connection that is just being made; the database could not be dropped for a minute.
    hearing: Option<Runtime>,
}

impl TestService {
    /// The notes service on a database of its own, with these settings.
    pub async fn notes(settings: &[(&str, &str)]) -> Self {
        Self::start(settings, notes::service).await
    }

    /// The product on a database of its own, with these settings.
    pub async fn product(settings: &[(&str, &str)]) -> Self {
        Self::start(settings, okt_cli::serve::service).await
    }

    async fn start(settings: &[(&str, &str)], service: fn(&Api) -> anyhow::Result<Served>) -> Self {
        let database = Arc::new(TestDatabase::migrated().await);
        run(&mut database.connect().await, notes::TABLE).await;
        let config = database.config(settings);
        Self::serve(database, config, service).await
    }

    /// The product once more on the same database, as another process would be: they share nothing else.
    pub async fn beside(&self) -> Self {
        let config = self.api.app.config().clone();
        Self::serve(Arc::clone(&self.database), config, okt_cli::serve::service).await
    }

    async fn serve(
        database: Arc<TestDatabase>,
        config: Config,
        service: fn(&Api) -> anyhow::Result<Served>,
    ) -> Self {
        let databases = Databases::open(&config, &[Purpose::Api]).await.expect("the databases open");
        let edge = Edge::new(&config, SECRET);
        let metrics = PrometheusBuilder::new().build_recorder().handle();
        let blobs = Blobs::open(&config.providers.storage).expect("files can be kept");
        let vectors = Vectors::open(&config, &databases[0]).await.expect("a store of vectors");
        let app = App::new(config, databases[0].clone(), blobs, vectors, SECRET);
        let api = Api::new(app, Arc::clone(&edge), metrics, &databases);
        let service = service(&api).expect("the routes are sound");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let stop = CancellationToken::new();
        let served = okt_http::serve(listener, service, edge, stop.clone());
        let served = Mutex::new(Some(tokio::spawn(served)));
        let app = api.app.clone();
        let hearing = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread");
        hearing.spawn(async move { app.hear_of_jobs().await });
        let hearing = Some(hearing);
        Self { url, api, database, client: client::client(), stop, served, hearing }
    }

    pub fn request(&self, method: http::Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(http::Method::GET, path)).await
    }

    /// As a caller of this name.
    pub async fn get_as(&self, name: &str, path: &str) -> Answer {
        Answer::of(self.request(http::Method::GET, path).bearer_auth(name)).await
    }

    /// Stops as a process would at SIGTERM, and waits for the drain to end.
    pub async fn stop_and_wait(&self) {
        self.stop.cancel();
        let served = self.served.lock().expect("nobody panics with it").take();
        served.expect("it is stopped once").await.expect("the server ends in peace");
    }
}

impl Drop for TestService {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(hearing) = self.hearing.take() {
            hearing.shutdown_background();
        }
    }
}
