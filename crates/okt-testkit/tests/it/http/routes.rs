use std::path::PathBuf;
use std::process::Command;

use http::Method;
use okt_testkit::client::Answer;
use okt_testkit::golden;
use okt_testkit::served::TestService;

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// The table as a committed file: a change of a guard is seen in review.
#[tokio::test]
async fn the_table_is_as_committed() {
    let service = TestService::product(&[]).await;
    let routes = okt_api::table(&service.api);
    let mut lines: Vec<_> = routes.lines().iter().map(|line| format!("{line}\n")).collect();
    lines.sort();
    golden::check("crates/okt-api/routes.txt", &lines.concat());
}

#[tokio::test]
async fn every_line_answers_with_and_without_a_trailing_slash() {
    let service = TestService::product(&[]).await;
    for line in okt_api::table(&service.api).lines() {
        // There is nothing at these in a service without a path of its own.
        if line.path.ends_with("/{rest}") || line.path.ends_with("oauth-authorization-server/{path}") {
            continue;
        }
        let path = ["{userID}", "{keyID}", "{grantID}", "{clientID}", "{repoID}", "{jobID}"]
            .iter()
            .fold(line.path.replace("{path}", "mcp"), |path, name| path.replace(name, NOBODY));
        let method = line.method.clone().unwrap_or(Method::POST);
        let status = async |path: &str| Answer::of(service.request(method.clone(), path)).await.status;
        let plain = status(&path).await;
        assert!(plain != 404 && plain != 405, "{method} {path}: {plain}");
        assert_eq!(status(&format!("{path}/")).await, plain, "{method} {path}/");
    }
}

const START: &str = "
    use okt_http::{Edge, Gate, Guard, Principal, Problem, Routes, route};
    #[derive(Clone)] struct G;
    impl Gate for G {
        async fn admit(&self, _: Guard, _: &mut http::request::Parts) -> Result<Option<Principal>, Problem> { Ok(None) }
    }
    #[utoipa::path(get, path = \"/x\", responses((status = 200)))]
    async fn handler() {}
";

/// The crates that a table is made with, as files.
type Crates = Vec<(&'static str, PathBuf)>;

/// Compiles against these crates.
fn compile(crates: &Crates, body: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("planted.rs");
    std::fs::write(&source, format!("{START}\n{body}\n")).unwrap();
    let mut command = Command::new("rustc");
    command
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata"])
        .arg("-o")
        .arg(folder.path().join("out"));
    command.arg("-L").arg(format!("dependency={}", deps().display()));
    for (name, file) in crates {
        command.arg("--extern").arg(format!("{name}={}", file.display()));
    }
    let output = command.arg(source).output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn deps() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// The crates that fit together: where a part of the workspace was built by itself, there are several of a name.
fn crates(body: &str) -> Crates {
    let mut all: Vec<Crates> = vec![Vec::new()];
    for name in ["okt_http", "utoipa", "utoipa_axum", "axum", "http"] {
        let files = newest_first(name);
        let with = |chosen: &Crates| {
            let add = |file: &PathBuf| chosen.iter().cloned().chain([(name, file.clone())]).collect();
            files.iter().map(add).collect::<Vec<Crates>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    let mut error = String::new();
    for crates in all {
        match compile(&crates, body) {
            Ok(()) => return crates,
            Err(message) => error = message,
        }
    }
    panic!("{error}");
}

fn newest_first(name: &str) -> Vec<PathBuf> {
    let prefix = format!("lib{name}-");
    let files = std::fs::read_dir(deps()).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|file| {
        let file = file.file_name().unwrap().to_string_lossy().into_owned();
        file.starts_with(&prefix) && file.split('.').next_back() == Some("rlib")
    });
    let mut files: Vec<PathBuf> = files.collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.metadata().unwrap().modified().unwrap()));
    files
}

#[test]
fn a_route_without_a_guard_does_not_compile() {
    let with_guard = "pub fn table(r: Routes<G>) -> Routes<G> { r.at(Guard::Public, route!(handler)) }";
    let crates = crates(with_guard);

    let without_guard = "pub fn table(r: Routes<G>) -> Routes<G> { r.at(route!(handler)) }";
    let error = compile(&crates, without_guard).unwrap_err();
    assert!(error.contains("this method takes 2 arguments but 1 argument was supplied"), "{error}");

    // Nor can a router of one's own be served in place of the table.
    let table = "pub async fn serve(r: Routes<G>, e: std::sync::Arc<Edge>) {
        okt_http::serve(todo!(), r.into_service(), e, todo!()).await
    }";
    compile(&crates, table).unwrap();
    let router = "pub async fn serve(r: axum::Router, e: std::sync::Arc<Edge>) {
        okt_http::serve(todo!(), r, e, todo!()).await
    }";
    let error = compile(&crates, router).unwrap_err();
    assert!(error.contains("expected `Served`, found `Router"), "{error}");
}
