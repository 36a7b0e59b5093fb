//! `okt backup` and `okt restore`: the drill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use okt_config::Config;
use okt_store::backups::Restore;
use okt_store::{Databases, Schema};
use okt_testkit::accounts::api_key_in;
use okt_testkit::db::{FILE, TestDatabase, run, server_url, url_of, variables};
use okt_testkit::jobs::program;
use okt_testkit::process::Process;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::process::Command;

use super::{builder, export, fill};

const URL: &str = "SVC__DATABASES__DEFAULT__URL";

/// An exit code, and all that was said.
async fn okt(settings: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program());
    command.args(arguments).arg("--config").arg(folder.path()).current_dir(folder.path());
    command.env_clear().env("PATH", "/usr/bin:/bin").envs(variables(folder.path(), settings));
    let done = command.output().await.unwrap();
    (done.status.code(), String::from_utf8([done.stdout, done.stderr].concat()).unwrap())
}

async fn must(settings: &[(&str, &str)], arguments: &[&str]) -> String {
    let (code, said) = okt(settings, arguments).await;
    assert_eq!(code, Some(0), "{arguments:?}: {said}");
    said
}

/// How many rows every table of ours has, and a sum over all that they say; the same for every sequence.
async fn digest(conn: &mut PgConnection) -> BTreeMap<String, String> {
    let tables: Vec<(String, String)> = sqlx::query_as(
        "SELECT format('%I.%I', n.nspname, c.relname), c.relkind::text
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname IN ('okt_system', 'okt_repository', 'okt_tasks', 'okt_vectors')
            AND c.relkind IN ('r', 'p', 'S') AND NOT c.relispartition AND c.relname <> 'migrations'",
    )
    .fetch_all(&mut *conn)
    .await
    .unwrap();
    let mut digests = BTreeMap::new();
    for (table, kind) in tables {
        let read = match kind.as_str() {
            "S" => format!("SELECT last_value::text || is_called FROM {table}"),
            _ => format!(
                "SELECT count(*) || ' rows ' || coalesce(sum(hashtextextended(t::text, 0)), 0) FROM {table} t"
            ),
        };
        digests.insert(table, sqlx::query_scalar(AssertSqlSafe(read)).fetch_one(&mut *conn).await.unwrap());
    }
    digests
}

/// Every file below a folder, with what is in it.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            let below = files(&entry.path()).into_iter();
            found.extend(below.map(|(path, bytes)| (format!("{name}/{path}"), bytes)));
        } else {
            found.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    found
}

fn kept(config: &Config) -> BTreeMap<String, Vec<u8>> {
    files(&config.providers.storage.root.join("repositories"))
}

#[tokio::test]
async fn everything_is_back_on_an_empty_machine() {
    let mut app = builder(true).start().await;
    app.work().await;
    fill(&app).await;
    let (_, key) =
        api_key_in(&app.service, &app.owner, &["graph:export", "job:read"], app.repository.uuid()).await;
    let (said, _) = export(&app, serde_json::json!({"include_bodies": true})).await;
    app.quiet().await;
    app.rest();
    let before = digest(&mut app.connect().await).await;
    let rows = |table: &str| before[table].starts_with("0 rows");
    for table in ["okt_system.users", "okt_repository.facts", "okt_vectors.points", "okt_repository.reports"]
    {
        assert!(!rows(table), "{table} has rows to be brought back");
    }

    // Away, as a superuser.
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let (first, second) = (first.to_str().unwrap(), second.to_str().unwrap());
    let mine: Vec<(&str, &str)> = app.process_settings();
    must(&mine, &["backup", first]).await;
    let (code, said_again) = okt(&mine, &["backup", first]).await;
    assert!(code == Some(1) && said_again.contains("is not empty"), "{said_again}");
    must(&mine, &["restore", "--check", first]).await;

    // Back, as somebody who only owns the database and sees one repository at a time; and away once more.
    let owned = TestDatabase::empty().await;
    let role = format!("{}_owner", owned.name());
    let mut conn = owned.connect().await;
    let make = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'plain'; ALTER DATABASE {} OWNER TO {role}; CREATE EXTENSION vector",
        owned.name()
    );
    run(&mut conn, &make).await;
    let url = url_of(owned.name());
    let url = format!("postgres://{role}:plain@{}", url.split_once('@').unwrap().1);
    let mut theirs = owned.settings().to_vec();
    theirs.retain(|(name, _)| *name != FILE);
    theirs.push((URL, &url));
    must(&theirs, &["restore", first]).await;
    assert_eq!(digest(&mut conn).await, before);
    must(&theirs, &["backup", second]).await;

    // Back again, as a superuser.
    let last = TestDatabase::empty().await;
    let mut settings = last.settings().to_vec();
    settings.retain(|(name, _)| *name != FILE);
    must(&settings, &["restore", second]).await;
    assert_eq!(digest(&mut last.connect().await).await, before);
    let here = kept(&last.config(&[]));
    assert!(!here.is_empty());
    assert_eq!(here, kept(app.service.api.app.config()));

    // It is not done over what is there, unless somebody says so.
    let (code, refused) = okt(&settings, &["restore", second]).await;
    assert!(code == Some(1) && refused.contains("--replace"), "{refused}");
    must(&settings, &["restore", "--replace", second]).await;
    assert_eq!(digest(&mut last.connect().await).await, before);

    // It serves, and exports what the first one did.
    let process = Process::serve(program(), &settings);
    let bundle = folder.path().join("bees.okt.json.gz");
    let repository = app.repository.to_string();
    let arguments = ["--repository", &repository, "--name", "Bees", "--bodies", "--json"];
    let service = [("OKT_URL", process.url.as_str()), ("OKT_API_KEY", key.as_str())];
    let mut command = Command::new(program());
    command.args(["bundle", "export"]).arg(&bundle).args(arguments).env_clear().envs(service);
    let done = command.output().await.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let output: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(output["sha256"].is_string(), "{output:#}");
    assert_eq!(output["sha256"], said["sha256"]);
    // Nobody restores under the hands of a service.
    let (code, refused) = okt(&settings, &["restore", "--replace", second]).await;
    assert!(code == Some(1) && refused.contains("stop all of them"), "{refused}");
    drop(process);

    run(&mut conn, &format!("REASSIGN OWNED BY {role} TO postgres; DROP OWNED BY {role}")).await;
    conn.close().await.unwrap();
    drop(owned);
    let mut server = PgConnection::connect(&server_url()).await.unwrap();
    run(&mut server, &format!("DROP ROLE {role}")).await;
}

/// A backup of the release before: the schemas are made as they were then, and brought up to date with the rows in them.
#[tokio::test]
async fn schemas_are_made_as_they_were_and_then_brought_up_to_date() {
    let database = TestDatabase::empty().await;
    let config = database.config(&[]);
    let system: Vec<i64> = (1..=3).collect();
    let wanted = BTreeMap::from([(Schema::System.name().to_owned(), system.clone())]);
    let (restore, made) = Restore::begin(&config, "default", &wanted).await.unwrap();
    assert_eq!(made, BTreeSet::from([Schema::System.name().to_owned()]));
    restore.finish().await.unwrap();
    let applied = "SELECT array_agg(version ORDER BY version) FROM okt_system.migrations";
    let found: Vec<i64> = sqlx::query_scalar(applied).fetch_one(&mut database.connect().await).await.unwrap();
    assert_eq!(found, system);
    Databases::migrate(&config).await.unwrap();
    let found: Vec<i64> = sqlx::query_scalar(applied).fetch_one(&mut database.connect().await).await.unwrap();
    assert!(found.len() > system.len());

    let later = BTreeMap::from([(Schema::System.name().to_owned(), vec![1, 9_999])]);
    let refused = Restore::begin(&config, "default", &later).await.err().unwrap().to_string();
    assert!(refused.contains("later release"), "{refused}");
}
