//! The daily path at a terminal: `okt login`, `source`, `search`, `fact`, `concept`, `job`, `usage`, `api`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use okt_model::CONCEPT_MODEL;
use okt_testkit::app::TestApp;
use okt_testkit::client::client;
use okt_testkit::jobs::program;
use okt_testkit::oauth::Browser;
use serde_json::{Value, json};
use tempfile::TempDir;

const TEXT: &str = "Honey bees find the way back to their hive by the position of the sun. \
    Varroa mites killed 40 percent of all honey bee colonies in Norway in 2006.";

/// A terminal of somebody who has a home.
struct Terminal(TempDir);

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Terminal {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).env_clear().env("HOME", self.0.path()).env("PATH", "/usr/bin:/bin");
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    async fn okt(&self, arguments: &[&str]) -> Said {
        let mut command = tokio::process::Command::from(self.command(arguments));
        let done = command.output().await.unwrap();
        Said {
            code: done.status.code(),
            out: String::from_utf8(done.stdout).unwrap(),
            err: String::from_utf8(done.stderr).unwrap(),
        }
    }

    /// Standard output of a command that has to work.
    async fn must(&self, arguments: &[&str]) -> String {
        let said = self.okt(arguments).await;
        assert_eq!(said.code, Some(0), "{arguments:?}: {}{}", said.out, said.err);
        said.out
    }

    /// Signs in with a browser, on the pages of the service.
    async fn log_in(&self, app: &TestApp) {
        let said = self.0.path().join("said");
        let mut command = self.command(&["login", "--no-open", "--url", &app.service.url]);
        let mut child = command.stderr(fs::File::create(&said).unwrap()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        let page = loop {
            let told = fs::read_to_string(&said).unwrap();
            if let Some(page) = told.lines().find(|line| line.contains("/oauth/authorize?")) {
                break page.to_owned();
            }
            assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "{told}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        // Somebody else on the machine has no say in it.
        let port = page.split("127.0.0.1%3A").nth(1).unwrap().split('%').next().unwrap();
        let foreign = format!("http://127.0.0.1:{port}/callback?code=planted&state=planted");
        assert_eq!(client().get(foreign).send().await.unwrap().status().as_u16(), 400);

        let mut browser = Browser::default();
        let asked = browser.open(&app.service, &page).await;
        let decide = browser.sign_in(&app.service, &asked, &app.owner.email).await;
        let back = browser.decide(&app.service, &decide, "allow").await;
        assert_eq!(client().get(back).send().await.unwrap().status().as_u16(), 200);
        let ended = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
        assert!(ended.success(), "{}", fs::read_to_string(&said).unwrap());
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn from_the_login_to_a_fact_and_out_again() {
    let mut app = TestApp::builder().concepts(CONCEPT_MODEL).start().await;
    app.work().await;
    let terminal = Terminal::new();
    let refused = terminal.okt(&["search", "bees"]).await;
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("okt login"), "{}", refused.err);

    terminal.log_in(&app).await;
    let kept = terminal.0.path().join(".config/okt/login.json");
    assert_eq!(mode(&kept), 0o600);
    let first = fs::read_to_string(&kept).unwrap();
    assert!(terminal.must(&["repo", "list"]).await.contains(" sources"));
    let repository = app.repository.to_string();
    terminal.must(&["repo", "use", &repository]).await;

    fs::write(terminal.path("bees.txt"), TEXT).unwrap();
    let added = terminal.okt(&["source", "add", "bees.txt", "--watch"]).await;
    assert_eq!(added.code, Some(0), "{}", added.err);
    assert!(added.out.contains("processed"), "{}", added.out);
    assert!(added.err.contains("finding facts") || added.err.contains("2 facts"), "{}", added.err);

    // As a token is that has ended.
    let mut login: Value = serde_json::from_str(&first).unwrap();
    let ended = login["token"].as_str().unwrap().replace('.', ".e");
    login["token"] = json!(ended);
    login["repository"] = json!(repository);
    fs::write(&kept, login.to_string()).unwrap();
    let found = terminal.must(&["search", "honey", "bees", "--types", "facts"]).await;
    assert!(found.contains("find the way back to their hive"), "{found}");
    assert!(!found.contains('\u{1b}'), "no colours in a pipe: {found}");
    let login: Value = serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    assert_ne!(login["token"], json!(ended), "the token was renewed");
    assert_eq!(terminal.okt(&["search", "zeppelin", "--types", "facts"]).await.code, Some(1));

    let facts: Value = serde_json::from_str(&terminal.must(&["fact", "list", "--json"]).await).unwrap();
    let fact = facts["data"][0]["id"].as_str().unwrap();
    let shown = terminal.must(&["fact", "show", fact]).await;
    assert!(shown.contains('“') && shown.contains("builtin-extractive-1"), "{shown}");
    app.quiet().await;
    let listed = terminal.must(&["concept", "list"]).await;
    assert!(listed.contains("Norway"), "{listed}");
    assert!(terminal.must(&["concept", "show", "Norway"]).await.contains("facts"));
    assert!(terminal.must(&["usage"]).await.contains("total"));
    let jobs: Value = serde_json::from_str(&terminal.must(&["job", "list", "--json"]).await).unwrap();
    let job = jobs["data"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap();
    assert!(terminal.must(&["job", "watch", job]).await.contains("completed"));

    fs::write(
        terminal.path("report.md"),
        "Varroa mites killed 70 percent of all honey bee colonies in Norway in 2006.",
    )
    .unwrap();
    let checked = terminal.okt(&["report", "check", "report.md"]).await;
    assert_eq!(checked.code, Some(1), "{}{}", checked.out, checked.err);
    assert!(checked.out.contains("contradicted"), "{}", checked.out);

    let me: Value = serde_json::from_str(&terminal.must(&["api", "GET", "/users/me"]).await).unwrap();
    assert_eq!(me["email"], app.owner.email);
    let path = "/repositories/{repo}/investigations";
    let made = terminal.must(&["api", "POST", path, "--data", r#"{"title": "Bees"}"#]).await;
    assert!(made.contains("Bees"), "{made}");
    let changed = r#"{"description": "What bees do"}"#;
    let changed = terminal.must(&["api", "PUT", "/repositories/{repo}", "--data", changed]).await;
    assert!(changed.contains("What bees do"), "{changed}");
    let missing = terminal.okt(&["api", "GET", "/repositories/none/facts"]).await;
    assert!(missing.code == Some(3) && missing.out.contains("not_found"), "{}{}", missing.out, missing.err);
    assert_eq!(terminal.okt(&["api", "POST", "/repositories", "--data", "{"]).await.code, Some(2));

    terminal.must(&["logout"]).await;
    assert!(!kept.exists());
    assert_eq!(terminal.okt(&["repo", "list"]).await.code, Some(2));
}

#[tokio::test]
async fn shells_and_manuals_know_the_commands() {
    let terminal = Terminal::new();
    for shell in ["bash", "zsh", "fish"] {
        let words = terminal.must(&["completions", shell]).await;
        assert!(words.contains("source") && words.contains("backup"), "{shell}");
    }
    let folder = terminal.path("man");
    terminal.must(&["man", &folder]).await;
    let page = fs::read_to_string(terminal.0.path().join("man/okt-up.1")).unwrap();
    assert!(page.contains("offline"), "{page}");
}
