//! `okt bundle`: from a terminal.

use okt_testkit::accounts::api_key_in;
use okt_testkit::app::TestApp;
use okt_testkit::jobs::program;
use tokio::process::Command;

use super::{TEXT, app};

#[tokio::test]
async fn a_bundle_is_exported_checked_compared_and_imported() {
    let (one, other) = (app(false).await, app(false).await);
    let source = one.add_text("bees.txt", TEXT).await;
    one.settled(&source).await;
    one.quiet().await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (file, copy) = (path("bees.okt.json.gz"), path("copy.okt.json.gz"));
    let run = async |app: &TestApp, arguments: &[&str]| {
        let permissions = ["graph:export", "graph:write", "job:read"];
        let (_, key) = api_key_in(&app.service, &app.owner, &permissions, app.repository.uuid()).await;
        let mut command = Command::new(program());
        command.arg("bundle").args(arguments);
        let done = command.env_clear().env("OKT_URL", &app.service.url).env("OKT_API_KEY", &key).output();
        let done = done.await.unwrap();
        let said = [done.stdout, done.stderr].concat();
        (done.status.code(), String::from_utf8(said).unwrap())
    };
    let (mine, theirs) = (one.repository.to_string(), other.repository.to_string());
    let (code, said) = run(&one, &["export", &file, "--repository", &mine, "--name", "Bees"]).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&one, &["verify", &file]).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&one, &["show", &file]).await;
    assert!(code == Some(0) && said.contains("\"name\": \"Bees\""), "{said}");
    let (code, said) = run(&other, &["import", &file, "--repository", &theirs, "--dry-run", "--json"]).await;
    assert!(code == Some(0) && said.contains("\"dry_run\": true"), "{said}");
    let (code, said) = run(&other, &["import", &file, "--repository", &theirs]).await;
    assert!(code == Some(0) && said.contains("added: 1 source, "), "{said}");
    let (code, said) = run(&other, &["import", &file, "--repository", &theirs]).await;
    assert!(code == Some(0) && said.contains("nothing, all of it is here"), "{said}");
    other.quiet().await;
    let (code, said) = run(&other, &["export", &copy, "--repository", &theirs, "--name", "Bees"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(run(&one, &["diff", &file, &copy]).await.0, Some(0));
    let more = other
        .add_text("more.txt", "Varroa mites killed 25 percent of all honey bee colonies in Sweden in 2009.")
        .await;
    other.settled(&more).await;
    other.quiet().await;
    run(&other, &["export", &copy, "--repository", &theirs, "--name", "Bees"]).await;
    let (code, said) = run(&one, &["diff", &file, &copy]).await;
    assert!(code == Some(1) && said.contains("+ facts: Varroa mites killed 25 percent"), "{said}");
    std::fs::write(&copy, b"not a bundle").unwrap();
    assert_eq!(run(&one, &["verify", &copy]).await.0, Some(1));
    assert_eq!(run(&one, &["verify", &path("none")]).await.0, Some(3));
    let (code, said) = run(&other, &["import", &copy, "--repository", &theirs]).await;
    assert!(code == Some(3) && said.contains("gzip"), "{said}");
}

#[tokio::test]
async fn the_sample_shows_all_that_a_repository_can_hold() {
    let app = app(false).await;
    let (_, key) =
        api_key_in(&app.service, &app.owner, &["graph:write", "job:read"], app.repository.uuid()).await;
    let mut command = Command::new(program());
    command.args(["bundle", "import", "--sample", "--repository", &app.repository.to_string()]);
    let done = command.env_clear().env("OKT_URL", &app.service.url).env("OKT_API_KEY", &key).output();
    let done = done.await.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let rows = async |path: &str| app.read(path).await["data"].as_array().unwrap().clone();
    for path in ["/facts", "/concepts", "/sources", "/investigations", "/contradictions"] {
        assert!(!rows(path).await.is_empty(), "{path}");
    }
    let report = rows("/reports").await[0]["id"].as_str().unwrap().to_owned();
    let found = rows(&format!("/reports/{report}/annotations")).await;
    for posture in ["supports", "contradicts", "related"] {
        assert!(found.iter().any(|row| row["posture"] == posture), "{posture}: {found:#?}");
    }
    let concepts = rows("/concepts?q=Marholm").await;
    let concept = app.read(&format!("/concepts/{}/definition", concepts[0]["id"].as_str().unwrap())).await;
    assert!(concept["content"].as_str().is_some_and(|text| text.contains("(<fact:")), "{concept:#}");
}
