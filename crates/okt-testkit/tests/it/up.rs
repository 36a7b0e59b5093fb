//! `okt up`: from nothing to a service, and back again.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use okt_testkit::client::{Answer, client};
use okt_testkit::jobs::program;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder that the account which runs PostgreSQL under root may enter.
struct Home(TempDir);

struct Up {
    child: Child,
    url: String,
    said: PathBuf,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("okt")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(["up", "--data"]).arg(self.data()).args(arguments).env_clear();
        let programs = std::env::var("OKT_TEST_PG_BIN").unwrap();
        command.env("PATH", format!("{programs}:/usr/bin:/bin")).env("HOME", self.0.path());
        command.env("SVC__PROVIDERS__PARSING__PDFIUM", std::env::var("OKT_PDFIUM").unwrap());
        // Two of these tests may run at once, and 8080 may be somebody's.
        command.env("SVC__SERVER__PORT", "0").current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Starts it, and waits for the address.
    fn up(&self, arguments: &[&str]) -> Up {
        let said = self.0.path().join("said");
        let mut command = self.command(arguments);
        let mut child =
            command.stdout(Stdio::piped()).stderr(fs::File::create(&said).unwrap()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let up = Up { child, url: url.trim().to_owned(), said };
        assert!(up.url.starts_with("http://localhost:"), "{}", up.said());
        up
    }

    fn postmaster(&self) -> Option<String> {
        let text = fs::read_to_string(self.data().join("postgresql/data/postmaster.pid")).ok()?;
        text.lines().next().map(str::to_owned)
    }

    fn said_of(&self, arguments: &[&str]) -> (ExitStatus, String) {
        let ended = self.command(arguments).output().unwrap();
        (ended.status, String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap())
    }
}

impl Drop for Home {
    /// A test that fails leaves no server behind.
    fn drop(&mut self) {
        if let Some(process) = self.postmaster() {
            let _ = Command::new("kill").args(["-QUIT", &process]).stderr(Stdio::null()).status();
        }
    }
}

impl Up {
    fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    fn stop(mut self) -> String {
        self.signal("-INT");
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{}", self.said());
        self.said()
    }

    fn ended(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::of(client().post(format!("{}/api/v1{path}", self.url)).json(body)).await
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ada() -> Value {
    json!({"email": "ada@example.org", "password": "a long sentence", "name": "Ada"})
}

fn login() -> Value {
    json!({"email": "ada@example.org", "password": "a long sentence"})
}

#[tokio::test]
async fn from_an_empty_folder_it_serves_and_a_second_start_goes_on() {
    let home = Home::new();
    let up = home.up(&["--no-open"]);
    assert!(up.said().contains("make your account there"), "{}", up.said());
    let made = up.post("/auth/register", &ada()).await;
    assert_eq!(made.status, 201, "{made:?}");
    let vectors = Answer::of(client().get(format!("{}/readyz", up.url))).await;
    assert_eq!(vectors.status, 200, "{vectors:?}");

    // Its page is opened again, and nothing is started.
    let opened = home.0.path().join("opened");
    let browser = home.0.path().join("xdg-open");
    fs::write(&browser, format!("#!/bin/sh\necho \"$1\" > {}.new && mv {0}.new {0}\n", opened.display()))
        .unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let mut second = home.command(&[]);
    let path = format!("{}:/usr/bin:/bin", home.0.path().display());
    let second = second.env("PATH", path).env("DISPLAY", ":0").output().unwrap();
    let told = String::from_utf8(second.stderr).unwrap();
    assert!(second.status.success() && told.contains("already running"), "{told}");
    assert_eq!(String::from_utf8(second.stdout).unwrap().trim(), up.url);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !opened.exists() {
        assert!(Instant::now() < deadline, "no browser was opened");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(fs::read_to_string(&opened).unwrap().trim(), up.url);

    let said = up.stop();
    assert!(said.contains("stopped"), "{said}");
    assert_eq!(home.postmaster(), None, "PostgreSQL was stopped with it");
    for (secret, mode) in [("okt.dev-secret", 0o600), ("postgresql/password", 0o600), ("okt.log", 0o600)] {
        let meta = fs::metadata(home.data().join(secret)).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, mode, "{secret}");
    }

    let up = home.up(&["--no-open"]);
    assert!(!up.said().contains("make your account there"), "{}", up.said());
    let known = up.post("/auth/login", &login()).await;
    assert_eq!(known.status, 200, "{known:?}");
    up.stop();
}

#[tokio::test]
async fn killed_at_any_moment_it_goes_on_where_it_was() {
    let home = Home::new();
    let up = home.up(&["--no-open"]);
    let made = up.post("/auth/register", &ada()).await;
    assert_eq!(made.status, 201, "{made:?}");
    let first = home.postmaster();

    // okt is killed, PostgreSQL runs on.
    up.signal("-KILL");
    drop(up);
    let up = home.up(&["--no-open"]);
    assert!(up.said().contains("took over"), "{}", up.said());
    assert_eq!(home.postmaster(), first);

    // Both are killed, and the number of the server goes to another program.
    up.signal("-KILL");
    drop(up);
    let status = Command::new("kill").args(["-KILL", &first.unwrap()]).status().unwrap();
    assert!(status.success());
    let file = home.data().join("postgresql/data/postmaster.pid");
    let text = fs::read_to_string(&file).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    fs::write(&file, format!("{}\n{rest}", std::process::id())).unwrap();
    let up = home.up(&["--no-open"]);
    assert!(up.said().contains("it recovers"), "{}", up.said());
    let known = up.post("/auth/login", &login()).await;
    assert_eq!(known.status, 200, "{known:?}");
    up.signal("-TERM");
    assert!(up.ended().success());
    assert_eq!(home.postmaster(), None);
}

/// Whoever presses Ctrl-C twice wants it gone, with all that it has started.
#[test]
fn told_twice_it_leaves_no_postgresql_behind() {
    let home = Home::new();
    let up = home.up(&["--no-open"]);
    up.signal("-INT");
    up.signal("-TERM");
    up.ended();
    assert_eq!(home.postmaster(), None);
    // Whatever it was doing, it goes on.
    home.up(&["--no-open"]).stop();
}

#[test]
fn a_terminal_that_is_closed_stops_it() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let home = Home::new();
    let up = home.up(&["--no-open"]);
    up.signal("-HUP");
    // Started with nohup, these tests and all that they start outlive the terminal.
    if u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1 {
        up.stop();
    } else {
        assert!(up.ended().success());
    }
    assert_eq!(home.postmaster(), None);
}

/// The folder names all that other commands need.
#[test]
fn other_commands_find_it_by_its_folder() {
    let home = Home::new();
    let up = home.up(&["--no-open"]);
    let doctor = || {
        let mut doctor = Command::new(program());
        doctor.arg("--config").arg(home.data()).args(["doctor", "--json"]).env_clear();
        doctor.env("PATH", "/usr/bin:/bin").env("HOME", home.0.path()).current_dir(home.0.path());
        let looked = doctor.output().unwrap();
        (looked.status, String::from_utf8([looked.stdout, looked.stderr].concat()).unwrap())
    };
    let (status, said) = doctor();
    assert!(status.success(), "{said}");
    let port = up.url.rsplit(':').next().unwrap();
    assert!(said.contains(&format!("the service at 127.0.0.1:{port} is ready")), "{said}");
    assert!(said.contains("databases.default: PostgreSQL"), "{said}");

    // Clients do, where the folder is the usual one or OKT_DATA names it.
    let mut login = Command::new(program());
    login.args(["login", "--key-stdin"]).env_clear().env("HOME", home.0.path()).env("OKT_DATA", home.data());
    let refused = login.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("401"), "the service that runs there was asked: {said}");

    up.stop();
    let (status, said) = doctor();
    assert!(!status.success() && said.contains("okt up --data"), "{said}");
}

#[tokio::test]
async fn offline_it_fetches_nothing_and_says_why() {
    let home = Home::new();
    let up = home.up(&["--no-open", "--offline"]);
    let token = up.post("/auth/register", &ada()).await.json()["token"].as_str().unwrap().to_owned();
    let sources = format!("{}/api/v1/repositories/starter/sources", up.url);
    let body = json!({"url": "https://example.org/article"});
    let added = Answer::of(client().post(&sources).bearer_auth(&token).json(&body)).await;
    assert_eq!(added.status, 202, "{added:?}");
    let source = format!("{sources}/{}", added.json()["source_id"].as_str().unwrap());
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let seen = Answer::of(client().get(&source).bearer_auth(&token)).await.json();
        if seen["status"] == "failed" {
            assert!(seen.to_string().contains("offline"), "{seen:#}");
            break;
        }
        assert!(Instant::now() < deadline, "{seen:#}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    up.stop();
}

#[test]
fn without_a_postgresql_it_says_how_to_get_one() {
    let home = Home::new();
    let mut command = home.command(&["--no-open"]);
    let ended = command.env("PATH", "/usr/bin:/bin").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    if machine_has_pgvector(Path::new("/usr/lib/postgresql")) {
        return;
    }
    assert_eq!(ended.status.code(), Some(1), "{said}");
    for part in ["okt up --yes", "with pgvector", "SVC__DATABASES__DEFAULT__URL"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (status, said) = home.said_of(&["--offline", "--port", "80801"]);
    assert_eq!(status.code(), Some(2), "{said}");
}

#[test]
fn a_taken_port_is_named() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (status, said) = home.said_of(&["--no-open", "--port", &port]);
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("port {port} is taken")) && said.contains("--port"), "{said}");
}

/// On a machine of a developer who has it, the one that is found there is used.
fn machine_has_pgvector(folder: &Path) -> bool {
    let shares = fs::read_dir("/usr/share/postgresql").into_iter().flatten().flatten();
    let found = shares.map(|share| share.path().join("extension/vector.control")).any(|file| file.exists());
    found && folder.exists()
}
