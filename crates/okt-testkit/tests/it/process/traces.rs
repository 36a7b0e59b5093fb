use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use okt_testkit::client::{Answer, client};
use okt_testkit::db::TestDatabase;
use okt_testkit::process::Process;

use super::OKT;

/// Takes OTLP over HTTP, as a collector would, and keeps what it got.
pub struct Collector {
    pub url: String,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    pub async fn start() -> Self {
        let received = Arc::<Mutex<Vec<u8>>>::default();
        let take = async |State(received): State<Arc<Mutex<Vec<u8>>>>, body: Bytes| {
            received.lock().unwrap().extend_from_slice(&body);
        };
        let router = axum::Router::new()
            .nest("/v1/traces", axum::Router::new().fallback(take))
            .with_state(Arc::clone(&received));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        #[expect(clippy::disallowed_methods, reason = "somebody else's service")]
        let served = axum::serve(listener, router);
        tokio::spawn(async move { served.await });
        Self { url, received }
    }

    /// Protobuf carries its strings as they are, so they can be looked for.
    pub fn received(&self) -> String {
        String::from_utf8_lossy(&self.received.lock().unwrap()).into_owned()
    }
}

// On two threads, because the collector has to answer while the process is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_arrive_as_spans_with_their_id_and_route() {
    let (database, collector) = (TestDatabase::migrated().await, Collector::start().await);
    let mut process = Process::serve(
        &*OKT,
        &[
            ("SVC__DATABASES__DEFAULT__URL", database.url()),
            ("SVC__TELEMETRY__OTLP_ENDPOINT", &collector.url),
            ("SVC__TELEMETRY__SERVICE_NAME", "okt-under-test"),
            ("SVC__SERVER__DRAIN_DELAY", "10ms"),
        ],
    );
    let request = client().get(format!("{}/api/v1/repositories/presets", process.url));
    assert_eq!(Answer::of(request.header("x-request-id", "follow-me")).await.status, 200);
    process.terminate();
    assert!(process.wait().success());
    let traces = collector.received();
    for expected in ["okt-under-test", "follow-me", "/api/v1/repositories/presets"] {
        assert!(traces.contains(expected), "{expected}");
    }
}

#[tokio::test]
async fn a_collector_that_is_away_stops_nothing() {
    let database = TestDatabase::migrated().await;
    let nowhere = format!("http://127.0.0.1:{}", okt_testkit::cluster::free_port());
    let settings = [
        ("SVC__DATABASES__DEFAULT__URL", database.url()),
        ("SVC__TELEMETRY__OTLP_ENDPOINT", nowhere.as_str()),
        ("SVC__SERVER__DRAIN_DELAY", "10ms"),
    ];
    let mut process = Process::serve(&*OKT, &settings);
    assert_eq!(Answer::of(client().get(format!("{}/healthz", process.url))).await.status, 200);
    process.terminate();
    assert!(process.wait().success());
}
