//! A service with a worker, a small web, and a repository with somebody who may add to it.

use std::time::{Duration, Instant};

use http::Method;
use okt_testkit::accounts::{Person, register, send};
use okt_testkit::client::Answer;
use okt_testkit::jobs::Hired;
use okt_testkit::served::TestService;
use okt_testkit::web::Web;
use serde_json::{Value, json};

pub(crate) struct Library {
    /// Works for as long as it is there, and no longer than the rest.
    worker: Option<Hired>,
    pub service: TestService,
    pub web: Web,
    pub owner: Person,
    pub repository: String,
}

impl Library {
    /// Short waits, no manners: the web is our own.
    pub(crate) const SETTINGS: [(&str, &str); 7] = [
        ("SVC__PROVIDERS__RESOLUTION__FETCH__RETRY__BASE_DELAY", "10ms"),
        ("SVC__PROVIDERS__RESOLUTION__FETCH__RETRY__MAX_DELAY", "50ms"),
        ("SVC__PROVIDERS__RESOLUTION__FETCH__TIMEOUT", "5s"),
        ("SVC__PROVIDERS__RESOLUTION__PER_HOST_DELAY", "0s"),
        ("SVC__RATE_LIMITS__API_PER_MINUTE", "0"),
        ("SVC__TASK__QUEUES__RETRIEVE_SOURCE", "4"),
        ("SVC__BOOTSTRAP__DEFAULT_REPOSITORY", "false"),
    ];

    pub(crate) async fn open(settings: &[(&str, &str)]) -> Self {
        let web = Web::start().await;
        let allowed = web.allowed();
        let mut all = Self::SETTINGS.to_vec();
        all.push(("SVC__PROVIDERS__RESOLUTION__FETCH__ALLOW_PRIVATE", &allowed));
        all.extend_from_slice(settings);
        let service = TestService::product(&all).await;
        let owner = register(&service, "owner").await;
        let name = json!({"name": "Bees"});
        let made = send(&service, &owner.token, Method::POST, "/api/v1/repositories", &name).await;
        let repository = made.json()["id"].as_str().unwrap().to_owned();
        Self { service, web, owner, repository, worker: None }
    }

    /// Runs jobs from now on.
    pub(crate) async fn work(&mut self) {
        let config = self.service.api.app.config();
        let periodic = vec![
            okt_queue::Periodic::new(&okt_jobs::SettleSources {}, Duration::from_secs(1))
                .expect("plain data"),
        ];
        self.worker = Some(Hired::start(config, periodic).await);
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/v1/repositories/{}/sources{rest}", self.repository)
    }

    pub(crate) async fn ask(&self, method: Method, rest: &str, body: &Value) -> Answer {
        send(&self.service, &self.owner.token, method, &self.path(rest), body).await
    }

    pub(crate) async fn get(&self, rest: &str) -> Answer {
        let request = self.service.request(Method::GET, &self.path(rest));
        Answer::of(request.bearer_auth(&self.owner.token)).await
    }

    /// Adds a page of the small web; returns the id of its source.
    pub(crate) async fn add(&self, path: &str) -> String {
        let added = self.ask(Method::POST, "", &json!({"url": self.web.url(path)})).await;
        assert_eq!(added.status, 202, "{added:?}");
        added.json()["source_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn upload(&self, name: &str, content_type: &str, bytes: &[u8]) -> Answer {
        let form = form(&[], name, content_type, bytes);
        self.upload_form(form).await
    }

    pub(crate) async fn upload_form(&self, form: Vec<u8>) -> Answer {
        let request =
            self.service.request(Method::POST, &self.path("/upload")).bearer_auth(&self.owner.token);
        let request = request.header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
        Answer::of(request.body(form)).await
    }

    /// Waits for a source to go no further.
    pub(crate) async fn settled(&self, source: &str) -> Value {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let seen = self.get(&format!("/{source}")).await.json();
            if ["processed", "failed"].iter().any(|end| seen["status"] == *end) {
                return seen;
            }
            assert!(Instant::now() < deadline, "it is stuck: {seen}");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }
}

pub(crate) const BOUNDARY: &str = "a-line-between";

/// A form with these texts and a file.
pub(crate) fn form(texts: &[(&str, &str)], name: &str, content_type: &str, bytes: &[u8]) -> Vec<u8> {
    let mut form = Vec::new();
    for (field, text) in texts {
        let part =
            format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{field}\"\r\n\r\n{text}\r\n");
        form.extend_from_slice(part.as_bytes());
    }
    let head = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         content-type: {content_type}\r\n\r\n"
    );
    form.extend_from_slice(head.as_bytes());
    form.extend_from_slice(bytes);
    form.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    form
}
