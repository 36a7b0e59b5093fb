//! A registry in the test's own process, and one that hands out what a test puts there, for tests of whoever asks one.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use http::Method;
use okt_http::Edge;
use okt_interchange::origin::SigningKey;
use okt_model::content_hash;
use okt_registry::{NewKey, Registry};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

use crate::app::count;
use crate::client::{self, Answer};
use crate::db::TestDatabase;
use crate::served::SECRET;
use crate::web::{Page, Web};

/// The registry, behind a real listener, with a database and files of its own.
pub struct TestRegistry {
    pub url: String,
    pub registry: Registry,
    pub database: Arc<TestDatabase>,
    folder: std::path::PathBuf,
    client: reqwest::Client,
    stop: CancellationToken,
}

impl TestRegistry {
    pub async fn start(settings: &[(&str, &str)]) -> Self {
        Self::start_on(Arc::new(TestDatabase::empty().await), settings).await
    }

    /// With what another one has left.
    pub async fn start_on(database: Arc<TestDatabase>, settings: &[(&str, &str)]) -> Self {
        Self::start_with(database, settings, SECRET).await
    }

    /// As [`Self::start_on`], with another signing secret.
    pub async fn start_with(database: Arc<TestDatabase>, settings: &[(&str, &str)], secret: &[u8]) -> Self {
        let [.., (_, files), _] = database.settings();
        let folder = std::path::Path::new(files).join("registry");
        let files = folder.display().to_string();
        let mut all =
            vec![("SVC__REGISTRY__STORAGE__ROOT", &*files), ("SVC__RATE_LIMITS__API_PER_MINUTE", "0")];
        all.extend_from_slice(settings);
        let config = database.config(&all);
        let registry =
            Registry::open(&config, secret, Box::new(String::new)).await.expect("the registry opens");
        let edge = Edge::new(&config, secret);
        let routes = registry.table(&edge).expect("the routes are sound").into_service();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let stop = CancellationToken::new();
        tokio::spawn(okt_http::serve(listener, routes, edge, stop.clone()));
        Self { url, registry, database, folder, client: client::client(), stop }
    }

    /// How many files there are in one of its folders.
    pub fn files(&self, folder: &str) -> usize {
        fn below(folder: &std::path::Path) -> usize {
            let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
            let paths = entries.map(|entry| entry.expect("a folder").path());
            paths.map(|path| if path.is_dir() { below(&path) } else { 1 }).sum()
        }
        below(&self.folder.join(folder))
    }

    /// Leaves a file in its folders, as somebody does who is killed.
    pub fn leave(&self, path: &str) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, "x").expect("a file");
    }

    /// The number that a statement yields.
    pub async fn count(&self, statement: &str) -> i64 {
        count(&mut self.database.connect().await, statement).await
    }

    /// A new key, whole.
    pub async fn key(&self, may_write: bool, daily_pushes: Option<u32>) -> String {
        let new = NewKey { name: "somebody".to_owned(), may_write, daily_pushes, days: None };
        self.registry.create_key(&new).await.expect("a key").expose().to_owned()
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub async fn get(&self, key: &str, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path).bearer_auth(key)).await
    }

    pub async fn post(&self, key: &str, path: &str, body: &Value) -> Answer {
        let body = self.request(Method::POST, path).bearer_auth(key).json(body);
        Answer::of(body).await
    }

    /// Makes a source known; its id.
    pub async fn source(&self, key: &str, url: &str) -> String {
        let made = self
            .post(key, "/api/v1/sources", &json!({"url": url, "title": "On gulls", "kind": "html"}))
            .await;
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["source_id"].as_str().expect("an id").to_owned()
    }
}

impl Drop for TestRegistry {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub struct StandIn {
    pub web: Web,
}

impl StandIn {
    pub async fn start() -> Self {
        Self { web: Web::start().await }
    }

    pub fn url(&self) -> String {
        self.web.url("/")
    }

    /// The path of a look-up of a source.
    pub fn search_path(url: &str) -> String {
        let mut search = Url::parse("http://x/api/v1/search").expect("a URL");
        search.query_pairs_mut().append_pair("url", url);
        format!("/api/v1/search?{}", search.query().expect("a query"))
    }

    /// From now on packages of this model are taken.
    pub fn take(&self, model: &str) {
        let made = json!({"source_id": "s1", "facts_new": 1, "facts_linked": 0}).to_string();
        for path in ["/api/v1/sources".to_owned(), format!("/api/v1/sources/s1/decompositions/{model}")] {
            self.web.page(&path, Page::new("application/json", made.clone()).status(201));
        }
    }

    /// The sources and packages that were pushed, in their order.
    pub fn pushed(&self) -> Vec<(Value, Value)> {
        let sent = self.web.sent().into_iter().map(|(_, body)| serde_json::from_slice(&body).expect("JSON"));
        let sent: Vec<Value> = sent.collect();
        sent.chunks(2).filter_map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone()))).collect()
    }

    /// From now on a source is found, with this package.
    pub fn offer(&self, url: &str, package: &Value) {
        self.offer_bytes(url, package, package.to_string().into_bytes(), None);
    }

    /// As [`Self::offer`], signed by this key, for this source.
    pub fn offer_signed(&self, url: &str, package: &Value, key: &SigningKey) {
        self.offer_signed_for(url, url, package, key);
    }

    /// As [`Self::offer_signed`], of a package that was signed for the source of another address.
    pub fn offer_signed_for(&self, url: &str, signed: &str, package: &Value, key: &SigningKey) {
        let mut package = package.clone();
        package["source"] = json!({ "url": signed });
        let bytes = package.to_string().into_bytes();
        let signature = key.sign(&Sha256::digest(&bytes).into());
        self.offer_bytes(url, &package, bytes, Some((key.id(), &signature)));
    }

    /// As [`Self::offer`], as one of many sources.
    pub fn offer_as(&self, url: &str, package: &Value, bytes: Vec<u8>, number: usize) {
        self.offer_from(url, package, bytes, None, &format!("s{number}"));
    }

    /// A package and what is said of it: other bytes, or another signature.
    pub fn offer_bytes(&self, url: &str, package: &Value, bytes: Vec<u8>, signed: Option<(&str, &str)>) {
        self.offer_from(url, package, bytes, signed, "s1");
    }

    fn offer_from(
        &self,
        url: &str,
        package: &Value,
        bytes: Vec<u8>,
        signed: Option<(&str, &str)>,
        source: &str,
    ) {
        let (model, hash) = (&package["model_id"], &package["promptset_hash"]);
        let found = json!({
            "found": true,
            "source": {"source_id": source, "url": url, "title": "On gulls", "kind": "html"},
            "decompositions": [{"model_id": model, "promptset_hash": hash, "fact_count": 1,
                                "embedding_model": package["embeddings"]["model"], "decomposed_at": package["decomposed_at"],
                                "pushed_by": "okg_somebody", "signed": signed.is_some(), "key_id": signed.map(|(key, _)| key)}],
        });
        self.web.page(&Self::search_path(url), Page::new("application/json", found.to_string()));
        let path = format!("/api/v1/sources/{source}/decompositions/{}", model.as_str().expect("a model"));
        let mut page = Page::new("application/json", bytes);
        if let Some((_, signature)) = signed {
            page = page.header("x-okt-signature", signature);
        }
        self.web.page(&path, page);
    }
}

/// Another file of the same graph: the hash of a graph leaves out when it was exported.
pub fn rewritten(bundle: &[u8]) -> Vec<u8> {
    let mut document = String::new();
    MultiGzDecoder::new(bundle).read_to_string(&mut document).expect("a gzipped document");
    let (before, after) = document.split_once("\"exported_at\":\"2").expect("a time");
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    write!(out, "{before}\"exported_at\":\"1{after}").expect("memory");
    out.finish().expect("memory")
}

/// A package with these facts, each about gulls, and a summary of the first.
pub fn package(facts: &[&str]) -> Value {
    let concept = Uuid::from_u128(0xc0);
    let ids: Vec<Uuid> = (1_u128..).take(facts.len()).map(Uuid::from_u128).collect();
    let rows = facts.iter().zip(&ids).map(|(text, id)| {
        json!({"id": id, "content": text, "content_hash": content_hash(text).to_string(),
               "source_text": format!("As they say: {text}"), "concept_ids": [concept]})
    });
    json!({
        "schema_version": 1,
        "model_id": "far-model",
        "decomposed_by": "somebody",
        "decomposed_at": "2026-01-02T03:04:05Z",
        "promptset_hash": "9".repeat(64),
        "facts": rows.collect::<Vec<_>>(),
        "concepts": [{"id": concept, "canonical_name": "Gull", "context": "Animal", "aliases": ["Seagull"]}],
        "summaries": [{"id": Uuid::from_u128(0xa0), "concept_id": concept, "slice_number": 1, "is_open": true,
                       "content": format!("[So it is.](<fact:{}>)", ids[0]), "fact_ids": [ids[0]]}],
    })
}
