//! `okt report check`: a text is checked from a terminal or a build.

use okt_testkit::accounts::api_key_in;
use okt_testkit::jobs::program;
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
    let (code, said, _) = check(SUN, &[]).await;
    assert_eq!(code, Some(0), "{said}");
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
