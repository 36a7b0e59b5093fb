//! `okt ask` and `okt eval ask`.

use std::process::Command;

use okt_testkit::accounts::api_key_in;
use okt_testkit::jobs::program;
use serde_json::Value;

use super::{COPPER, OPENED, RANCE, SIHWA, TURBINES, extractive};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_asked_at_a_terminal() {
    let app = extractive(&[RANCE, OPENED]).await;
    let (_, key) = api_key_in(&app.service, &app.owner, &["fact:read"], app.repository.uuid()).await;
    let (url, repository) = (app.service.url.clone(), app.repository.to_string());
    let run = |question: &str, json: bool| {
        let mut command = Command::new(program());
        command.args(["ask", question, "--repository", &repository, "--url", &url, "--key", &key]);
        if json {
            command.arg("--json");
        }
        // It asks the service that runs in this process.
        tokio::task::block_in_place(|| command.env_clear().output().unwrap())
    };
    let said = run(TURBINES, false);
    let text = String::from_utf8(said.stdout).unwrap();
    assert_eq!(said.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&said.stderr));
    assert!(text.contains(&format!("{RANCE} [1]")) && text.contains("[1] \""), "{text}");
    let nothing = run(COPPER, true);
    assert_eq!(nothing.status.code(), Some(1));
    let answer: Value = serde_json::from_slice(&nothing.stdout).unwrap();
    assert_eq!(answer["status"], "abstained");
    let nobody = Command::new(program())
        .args(["ask", TURBINES, "--repository", &repository, "--url", "http://127.0.0.1:9", "--key", "x"])
        .output()
        .unwrap();
    assert_eq!(nobody.status.code(), Some(3));
}

#[test]
fn what_the_check_lets_through_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("fever_symmetric");
    std::fs::create_dir_all(&set).unwrap();
    let line = |claim: &str, text: &str, gold: &str| {
        serde_json::json!({ "claim": claim, "evidence": text, "gold_label": gold, "id": 1 }).to_string()
    };
    let measured = |lines: &[String]| {
        std::fs::write(set.join("v0.2_fever_symmetric_test.jsonl"), lines.join("\n")).unwrap();
        let ran =
            Command::new(program()).args(["eval", "ask", "--check"]).arg(folder.path()).output().unwrap();
        let text = String::from_utf8(ran.stdout).unwrap();
        (ran.status.code(), format!("{text}{}", String::from_utf8_lossy(&ran.stderr)))
    };
    let lines = [
        line("The Rance tidal power station has 24 turbines.", RANCE, "SUPPORTS"),
        line("The Rance tidal power station has 25 turbines.", RANCE, "REFUTES"),
        line("The Rance tidal power station was opened in 1966.", OPENED, "SUPPORTS"),
        line("The Sihwa tidal power station has 24 turbines.", SIHWA, "REFUTES"),
    ];
    let (code, text) = measured(&lines);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("FEVER-Symmetric test") && text.contains("join"), "{text}");
    // Where nothing could be swapped nothing was shown.
    let (code, text) = measured(&lines[..1]);
    assert_eq!(code, Some(1), "{text}");
}
