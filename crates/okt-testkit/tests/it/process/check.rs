//! `okt config check` says whether the service would start, and with `--online` whether what it leans on answers.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::get;
use axum::{Json, Router};
use okt_testkit::db::TestDatabase;
use okt_testkit::process::Process;
use serde_json::json;

use super::OKT;

const PDFIUM: &str = "SVC__PROVIDERS__PARSING__PDFIUM";
const DATABASE: &str = "SVC__DATABASES__DEFAULT__URL";

fn check(folder: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(&*OKT);
    command.args(["config", "check"]).args(arguments).arg("--config").arg(folder);
    let Output { status, stdout, stderr } =
        command.env_clear().envs(settings.iter().copied()).current_dir(folder).output().unwrap();
    (status.success(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
}

#[tokio::test]
async fn a_library_for_pdfs_that_can_not_be_used_fails_the_check_and_the_start() {
    let (folder, database) = (tempfile::tempdir().unwrap(), TestDatabase::empty().await);
    let nonsense = folder.path().join("libpdfium.so");
    fs::write(&nonsense, "not a library").unwrap();
    for library in ["/nonexistent.so", nonsense.to_str().unwrap()] {
        let (sound, said) = check(folder.path(), &[], &[(PDFIUM, library)]);
        assert!(!sound && said.contains("providers.parsing.pdfium") && said.contains(library), "{said}");

        let mut process = Process::spawn(&*OKT, &[(PDFIUM, library), (DATABASE, database.url())]);
        assert_eq!(process.wait().code(), Some(1));
        let log = process.log();
        assert!(log.contains("providers.parsing.pdfium") && log.contains(library), "{log}");
        assert!(!log.contains("listening"), "it says so before anybody is served: {log}");
    }
}

#[test]
fn a_folder_that_can_not_be_written_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("taken");
    fs::write(&file, "").unwrap();
    let root = file.join("files");
    let (sound, said) =
        check(folder.path(), &[], &[("SVC__PROVIDERS__STORAGE__ROOT", root.to_str().unwrap())]);
    assert!(!sound && said.contains("providers.storage.root"), "{said}");
    let (sound, said) = check(folder.path(), &[], &[]);
    assert!(sound, "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "it leaves nothing behind but the defaults");
}

#[test]
fn a_key_that_is_missing_is_named_with_its_variable() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("okt.toml"), model("cloud")).unwrap();
    let (sound, said) = check(folder.path(), &[], &[]);
    assert!(sound, "the service starts: {said}");
    assert!(said.contains("warning: ") && said.contains("LLM_CLOUD_API_KEY"), "{said}");
    let (_, said) = check(folder.path(), &[], &[("LLM_CLOUD_API_KEY", "planted-key")]);
    assert!(!said.contains("LLM_CLOUD_API_KEY") && !said.contains("planted-key"), "{said}");
}

fn model(provider: &str) -> String {
    format!(
        "providers.decomposition.fact_extraction.model = \"m\"\n[[providers.ai.models]]\nid = \"m\"\nprovider = \"{provider}\"\n"
    )
}

/// Somebody who serves models to whoever has the key.
async fn model_server() -> String {
    let list = async |headers: HeaderMap| {
        let known = headers.get(header::AUTHORIZATION).is_some_and(|key| key == "Bearer planted-key");
        if known {
            (StatusCode::OK, Json(json!({"object": "list", "data": [{"id": "m"}, {"id": "n"}]})))
        } else {
            (
                StatusCode::UNAUTHORIZED,
                Json(json!({"error": {"message": "Incorrect API key: planted-wrong"}})),
            )
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "somebody else's service")]
    let served = axum::serve(listener, Router::new().route("/v1/models", get(list)));
    tokio::spawn(async move { served.await });
    url
}

// On two threads, because the server has to answer while the process is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn online_the_databases_and_the_servers_of_models_in_use_are_asked() {
    let (folder, database, url) =
        (tempfile::tempdir().unwrap(), TestDatabase::empty().await, model_server().await);
    fs::write(folder.path().join("okt.toml"), model("cloud")).unwrap();
    let ask = |key: &str| {
        let settings = [
            (DATABASE, database.url()),
            ("SVC__PROVIDERS__AI__CLOUD__BASE_URL", url.as_str()),
            ("LLM_CLOUD_API_KEY", key),
        ];
        check(folder.path(), &["--online"], &settings)
    };
    let (sound, said) = ask("planted-key");
    assert!(sound, "{said}");
    assert!(said.contains("ok: databases.default: PostgreSQL 1") && said.contains("pgvector"), "{said}");
    assert!(said.contains("migrations to be applied"), "{said}");
    assert!(said.contains("ok: m (providers.decomposition.fact_extraction.model) is served"), "{said}");

    let (sound, said) = ask("planted-wrong");
    assert!(!sound && said.contains("401") && said.contains("providers.ai.cloud.api_key"), "{said}");
    assert!(!said.contains("planted"), "{said}");
    let applied: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'okt%'")
        .fetch_one(&mut database.connect().await)
        .await
        .unwrap();
    assert_eq!(applied, 0, "nothing was changed");
}
