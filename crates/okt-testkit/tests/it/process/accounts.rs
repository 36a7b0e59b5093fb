//! What an operator does about accounts.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use okt_testkit::client::{Answer, client};
use okt_testkit::db::TestDatabase;
use okt_testkit::process::Process;
use serde_json::{Value, json};

use super::OKT;

const DATABASE: &str = "SVC__DATABASES__DEFAULT__URL";
const PASSWORD: &str = "correct horse";

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// `okt` with these arguments on this database, and this on standard input.
fn okt(database: &TestDatabase, arguments: &[&str], input: &str) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(&*OKT);
    command.args(arguments).arg("--config").arg(folder.path()).current_dir(folder.path());
    command.env_clear().env(DATABASE, database.url());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // It may end without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let ended = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: ended.status.code(), stdout: text(ended.stdout), stderr: text(ended.stderr) }
}

async fn post(process: &Process, path: &str, body: &Value) -> Answer {
    Answer::of(client().post(format!("{}{path}", process.url)).json(body)).await
}

async fn login(process: &Process, email: &str, password: &str) -> Answer {
    post(process, "/api/v1/auth/login", &json!({"email": email, "password": password})).await
}

async fn me(process: &Process, token: &Value) -> u16 {
    let request = client().get(format!("{}/api/v1/users/me", process.url));
    Answer::of(request.bearer_auth(token.as_str().unwrap())).await.status.as_u16()
}

#[tokio::test]
async fn a_lost_password_is_replaced_at_the_keyboard() {
    let database = TestDatabase::empty().await;
    let process = Process::serve(&*OKT, &[(DATABASE, database.url())]);
    let account = json!({"email": "ada@example.org", "password": PASSWORD});
    let session = post(&process, "/api/v1/auth/register", &account).await.json();

    let reset = okt(&database, &["admin", "reset-password", " Ada@Example.org"], "");
    assert_eq!(reset.code, Some(0), "{}", reset.stderr);
    let password = reset.stdout.strip_suffix('\n').unwrap();
    assert!(password.len() >= 20 && !password.contains(char::is_whitespace), "{password:?}");
    assert!(!reset.stderr.contains(password), "{}", reset.stderr);
    assert_eq!(me(&process, &session["token"]).await, 401, "the session is over, in a process that runs");
    let refresh = json!({"refresh_token": session["refresh_token"]});
    assert_eq!(post(&process, "/api/v1/auth/refresh", &refresh).await.status, 401);
    assert_eq!(login(&process, "ada@example.org", PASSWORD).await.status, 401);
    let again = login(&process, "ada@example.org", password).await;
    assert_eq!(again.status, 200);
    let token = again.json()["token"].clone();
    let audit = client().get(format!("{}/api/v1/admin/audit?action=password.reset", process.url));
    let audit = Answer::of(audit.bearer_auth(token.as_str().unwrap())).await;
    assert_eq!(audit.json()["data"].as_array().unwrap().len(), 1, "{audit:?}");
    assert!(!process.log().contains(password), "{}", process.log());

    let chosen =
        okt(&database, &["admin", "reset-password", "ada@example.org", "--stdin"], "one of my own\r\nmore");
    assert_eq!((chosen.code, chosen.stdout.as_str()), (Some(0), ""), "{}", chosen.stderr);
    assert_eq!(login(&process, "ada@example.org", "one of my own").await.status, 200);
    assert_eq!(me(&process, &token).await, 401);
}

#[tokio::test]
async fn an_account_that_is_not_there_is_named() {
    let database = TestDatabase::migrated().await;
    for command in ["promote", "reset-password"] {
        let ended = okt(&database, &["admin", command, "nobody@example.org"], "");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{command}");
        assert!(
            ended.stderr.contains("no account has the e-mail address nobody@example.org"),
            "{}",
            ended.stderr
        );
        let ended = okt(&database, &["admin", command, "nobody"], "");
        assert_eq!(ended.code, Some(1), "{command}");
        assert!(ended.stderr.contains("nobody: email is not an e-mail address"), "{}", ended.stderr);
    }
    let short = okt(&database, &["admin", "reset-password", "nobody@example.org", "--stdin"], "short\n");
    assert!(
        short.code == Some(1) && short.stderr.contains("must have 8 to 256 characters"),
        "{}",
        short.stderr
    );
}

/// The setup code as it stands in the log.
fn code_in(log: &str) -> Option<String> {
    let line = log.lines().find(|line| line.contains("setup_code"))?;
    let (_, rest) = line.split_once("\"setup_code\":\"")?;
    rest.split('"').next().map(str::to_owned)
}

#[tokio::test]
async fn the_setup_code_is_in_the_log_until_somebody_has_an_account() {
    let database = TestDatabase::empty().await;
    let folder = tempfile::tempdir().unwrap();
    let settings = [(DATABASE, database.url())];
    let process = Process::serve_in(&*OKT, folder.path(), &settings);
    let code = code_in(&process.log()).unwrap_or_else(|| panic!("no code in {}", process.log()));
    let mut account = json!({"email": "ada@example.org", "password": PASSWORD});
    let from_afar = async |body: &Value| {
        let request = client().post(format!("{}/api/v1/auth/register", process.url));
        Answer::of(request.header("x-forwarded-for", "192.0.2.1").json(body)).await
    };
    assert_eq!(from_afar(&account).await.problem(), "setup_code_needed");
    account["setup_code"] = json!(code);
    assert_eq!(from_afar(&account).await.status, 201);
    drop(process);
    let process = Process::serve_in(&*OKT, folder.path(), &settings);
    assert_eq!(code_in(&process.log()), None, "{}", process.log());
    assert!(!process.log().contains(&code), "{}", process.log());
}

#[tokio::test]
async fn production_says_how_the_first_administrator_is_made() {
    let database = TestDatabase::empty().await;
    let strict = [
        (DATABASE, database.url()),
        ("SVC__MODE", "production"),
        ("AUTH_JWTSECRET", "hk3Qz8vN1pXw6rTy0bLm5sJd9gFc2aEu"),
    ];
    let process = Process::serve(&*OKT, &strict);
    let log = process.log();
    assert!(log.contains("registering makes no user sysadmin"), "{log}");
    assert_eq!(code_in(&log), None, "a code would be worth nothing: {log}");
    let account = json!({"email": "ada@example.org", "password": PASSWORD});
    let session = post(&process, "/api/v1/auth/register", &account).await.json();
    let admin = async || {
        let request = client().get(format!("{}/api/v1/admin/users", process.url));
        Answer::of(request.bearer_auth(session["token"].as_str().unwrap())).await.status
    };
    assert_eq!(admin().await, 403);
    assert_eq!(okt(&database, &["admin", "promote", "ada@example.org"], "").code, Some(0));
    assert_eq!(admin().await, 200);
}

/// What the README calls the smallest configuration for production is valid and has nothing to be noted about accounts.
#[test]
fn the_readme_shows_a_configuration_for_production_that_the_check_agrees_with() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap();
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let block = readme.split("```toml\n").find(|block| block.starts_with("mode = \"production\"")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("okt.toml"), block.split("```").next().unwrap()).unwrap();
    let mut command = Command::new(&*OKT);
    command.args(["config", "check", "--config"]).arg(folder.path()).env_clear();
    for (name, value) in [
        ("AUTH_JWTSECRET", "hk3Qz8vN1pXw6rTy0bLm5sJd9gFc2aEu"),
        ("SVC_BOOTSTRAP_DEFAULT_ADMIN_EMAIL", "you@example.org"),
        ("SVC_BOOTSTRAP_DEFAULT_ADMIN_PASSWORD", "a long sentence"),
        ("SVC_BOOTSTRAP_DEFAULT_ADMIN_DISPLAY_NAME", "You"),
    ] {
        assert!(readme.contains(name), "the README does not say that {name} is needed");
        command.env(name, value);
    }
    command.env("SVC__PROVIDERS__PARSING__PDFIUM", std::env::var_os("OKT_PDFIUM").unwrap());
    let ended = command.output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{errors}");
    assert!(said.ends_with("The configuration is valid.\n"), "{said}");
    assert!(!said.contains("bootstrap") && !said.contains("auth."), "{said}");
}
