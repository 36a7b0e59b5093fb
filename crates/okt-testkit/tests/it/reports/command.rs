//! `okt report check`: a text is checked from a terminal or a build.

use okt_testkit::accounts::api_key_in;
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::jobs::program;
use okt_testkit::llm::{Behaviour, Faults};
use serde_json::json;
use tokio::process::Command;

use super::{MITE, SUN, source, started};

#[tokio::test]
async fn a_build_fails_on_what_facts_contradict() {
    let app = started().await;
    source(&app, "bees.txt", &format!("{SUN} {MITE}")).await;

    let (_, key) = api_key_in(&app.service, &app.owner, &["fact:read"], app.repository.uuid()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.md");
    let repository = app.repository.to_string();
    let check = async |text: &str, more: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(program());
        command.args(["report", "check"]).arg(&file).args(["--repository", &repository]).args(more);
        let done = command.env_clear().env("OKT_URL", &app.service.url).env("OKT_API_KEY", &key).output();
        let done = done.await.unwrap();
        (done.status.code(), String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, said, told) = check(SUN, &[]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(told.contains("judged by rules"), "{told}");
    assert!(said.contains("supported") && said.contains("supports: Honey bees"), "{said}");
    let wrong = "Varroa mites killed 70 percent of all honey bee colonies in Norway in 2006.";
    let (code, said, _) = check(wrong, &[]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("contradicts: Varroa mites killed 40 percent"), "{said}");
    assert_eq!(check(wrong, &["--fail-on", "never"]).await.0, Some(0));
    let unknown = "Nothing is known here of the price of copper on the markets of Zurich in 1911.";
    assert_eq!(check(unknown, &[]).await.0, Some(0));
    assert_eq!(check(unknown, &["--fail-on", "unsupported"]).await.0, Some(1));
    let (code, said, _) = check(unknown, &["--json"]).await;
    let row: serde_json::Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!((code, &row["state"]), (Some(0), &json!("unsupported")));
    assert_eq!(check(SUN, &["--bad"]).await.0, Some(2));
    let lines = format!("{}\r\n\r\n{wrong}\r\n", "Honey bees fly to the flowers.\r\n\r\n".repeat(250));
    assert_eq!(
        check(&lines, &[]).await.0,
        Some(1),
        "more than is checked at once, as some editors end lines"
    );
    let missing = folder.path().join("none.md");
    let mut command = Command::new(program());
    command.args(["report", "check"]).arg(&missing).args(["--repository", &repository]).env_clear();
    let nowhere = command.output().await.unwrap();
    assert_eq!(nowhere.status.code(), Some(2), "nobody is named: {nowhere:?}");
    command.env("OKT_URL", &app.service.url).env("OKT_API_KEY", &key);
    let unread = command.output().await.unwrap();
    assert_eq!(unread.status.code(), Some(2), "there is no such file: {unread:?}");
    let (code, _, said) = check(SUN, &["--key", "okt_wrong"]).await;
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("API key"), "{said}");
}

#[tokio::test]
async fn nothing_passes_because_the_model_that_judges_is_away() {
    let settings = [
        ("SVC__PROVIDERS__REPORTS__POSTURE__MODEL", MODEL),
        ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", okt_model::EXTRACTIVE_MODEL),
    ];
    let behaviour = Behaviour { posture: |_, _| "supports", ..Behaviour::default() };
    let mut app =
        TestApp::builder().vectors().models(behaviour.clone(), "").settings(&settings).start().await;
    app.work().await;
    source(&app, "bees.txt", &format!("{SUN} {MITE}")).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.md");
    let check = async |text: &str, permissions: &[&str], more: &[&str]| {
        let (_, key) = api_key_in(&app.service, &app.owner, permissions, app.repository.uuid()).await;
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(program());
        command.args(["report", "check"]).arg(&file).args(["--repository", &app.repository.to_string()]);
        command.args(more).env_clear().env("OKT_URL", &app.service.url).env("OKT_API_KEY", &key);
        let done = command.output().await.unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let both = ["fact:read", "report:write"];
    let (code, told) = check(SUN, &both, &[]).await;
    assert_eq!(code, Some(0), "{told}");
    assert!(!told.contains("rules"), "{told}");

    app.models.behave(Behaviour { faults: Faults { error: 1.0, ..Faults::default() }, ..behaviour });
    let (code, told) = check(MITE, &both, &[]).await;
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("model_away"), "{told}");
    let (code, told) = check(MITE, &both, &["--fail-on", "never"]).await;
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("model_away"), "{told}");
    let found = app.post("/evidence", &json!({"claim": MITE})).await.json();
    assert_eq!(found["degraded_reason"], "model_away", "{found:#}");
    // For those who may not spend, rules judge by choice.
    let (code, told) = check(MITE, &["fact:read"], &[]).await;
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("judged by rules") && !told.contains("model_away"), "{told}");
}
