//! API processes die while an agent waits: whoever asks again gets the same source.

use std::time::Duration;

use okt_testkit::app::TestApp;
use okt_testkit::client::{Answer, client};
use okt_testkit::jobs::program;
use okt_testkit::process::Process;
use okt_testkit::web::Page;
use serde_json::{Value, json};

use super::{ACCEPT, MCP, agent, calling, events};

fn add(api: &Process, key: &str, arguments: &Value) -> reqwest::RequestBuilder {
    let request = client().post(format!("{}{MCP}", api.url)).bearer_auth(key).header("accept", ACCEPT);
    request.timeout(Duration::from_secs(90)).json(&calling("add_source", arguments))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_is_added_while_the_process_is_killed_is_there_once() {
    let app = TestApp::start().await;
    let key = agent(&app.service, &app.owner).await;
    let settings = app.process_settings();
    let _worker = Process::serve_as(program(), &["--role", "worker"], &settings);
    // Before it is there, while it is added, and while the agent waits for its facts.
    for after in [0, 5, 30, 200, 1_500] {
        let path = format!("/bees-{after}");
        app.web.page(&path, Page::article("Bees").waits(Duration::from_secs(1)));
        let arguments = json!({"url": app.web.url(&path), "wait_s": 50});
        let api = Process::serve_as(program(), &["--role", "api"], &settings);
        api.await_ready().await;
        let asked = tokio::spawn(add(&api, &key, &arguments).send());
        tokio::time::sleep(Duration::from_millis(after)).await;
        drop(api);
        let _ = asked.await.unwrap();

        let api = Process::serve_as(program(), &["--role", "api"], &settings);
        api.await_ready().await;
        let said = events(&Answer::of(add(&api, &key, &arguments)).await);
        let added = &said.last().unwrap()["result"]["structuredContent"];
        assert_eq!(added["progress"]["state"], "done", "{after} ms: {said:#?}");
        let source = app.source(added["source_id"].as_str().unwrap()).await;
        assert_eq!(source["status"], "processed", "{after} ms: {source:#}");
        let same = format!("SELECT count(*) FROM okt_repository.sources WHERE url LIKE '%{path}'");
        assert_eq!(app.count(&same).await, 1, "{after} ms");
    }
}
