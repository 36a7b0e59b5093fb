//! A client of server-sent events that reads as the standard says.

use std::time::Duration;

use http::Method;
use okt_model::JobId;
use okt_testkit::served::TestService;
use serde_json::Value;

use crate::jobs::tenants::id;

pub struct Listener {
    response: reqwest::Response,
    text: String,
    /// What a browser would send as `Last-Event-ID`.
    pub last: Option<String>,
}

#[derive(Debug)]
pub enum Heard {
    Job(Value),
    Comment(String),
    /// Only a place to go on from.
    Place,
}

impl Listener {
    pub async fn open(service: &TestService, token: &str, path: &str, last: Option<&str>) -> Self {
        let response = ask(service, token, path, last).await;
        assert_eq!(response.status(), 200, "{path}");
        Self { response, text: String::new(), last: last.map(str::to_owned) }
    }

    pub fn header(&self, name: &str) -> &str {
        self.response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The next thing that was said; `None` at the end.
    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(self.heard(&block));
            }
            let chunk = self.response.chunk().await.expect("the stream ends in peace")?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    fn heard(&mut self, block: &str) -> Heard {
        let (mut event, mut data) = (None, None);
        for line in block.lines() {
            match line.split_once(": ").unwrap() {
                ("", comment) => return Heard::Comment(comment.to_owned()),
                ("id", id) => self.last = Some(id.to_owned()),
                ("event", name) => event = Some(name.to_owned()),
                ("data", text) => data = Some(serde_json::from_str(text).unwrap()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(event.as_deref(), data.is_some().then_some("job"));
        data.map_or(Heard::Place, Heard::Job)
    }

    /// The next job that was told; `None` at the end.
    pub async fn job(&mut self) -> Option<Value> {
        loop {
            if let Heard::Job(job) = self.next().await? {
                return Some(job);
            }
        }
    }

    /// The next job that was told, as id and state.
    pub async fn told(&mut self) -> (JobId, String) {
        let job = tokio::time::timeout(Duration::from_secs(20), self.job()).await.expect("to hear of a job");
        let job = job.expect("the stream goes on");
        (id(&job), job["state"].as_str().unwrap().to_owned())
    }

    /// The jobs that are told until nothing is for a while.
    pub async fn all(&mut self) -> Vec<(JobId, String)> {
        let mut all = Vec::new();
        while let Ok(Some(job)) = tokio::time::timeout(Duration::from_millis(700), self.job()).await {
            all.push((id(&job), job["state"].as_str().unwrap().to_owned()));
        }
        all
    }
}

pub async fn ask(service: &TestService, token: &str, path: &str, last: Option<&str>) -> reqwest::Response {
    let mut request = service.request(Method::GET, path).bearer_auth(token);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    request.send().await.unwrap()
}
