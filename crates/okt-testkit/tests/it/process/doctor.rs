//! `okt doctor` names what is wrong, and the command that mends it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use okt_testkit::db::{TestDatabase, migration_files, run, variables};
use okt_testkit::process::Process;
use serde_json::Value;

use super::OKT;

/// Whether nothing is broken, and the findings, a line each.
fn doctor(folder: &Path, settings: &[(&str, &str)], arguments: &[&str]) -> (bool, Vec<String>) {
    let mut command = Command::new(&*OKT);
    command.args(["doctor", "--json"]).args(arguments).arg("--config").arg(folder).current_dir(folder);
    command.env_clear().env("PATH", "/usr/bin:/bin").envs(variables(folder, settings));
    let output = command.output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let finding = |finding: &Value| {
        let word = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
        format!("{}: {} [{}]", word("level"), word("what"), word("mend"))
    };
    let findings = said["findings"].as_array().unwrap().iter().map(finding).collect();
    assert_eq!(output.status.success(), said["sound"] == true);
    (output.status.success(), findings)
}

fn has(findings: &[String], parts: &[&str]) -> bool {
    findings.iter().any(|finding| parts.iter().all(|part| finding.contains(part)))
}

#[tokio::test]
async fn what_is_wrong_is_named_with_what_mends_it_and_mended() {
    let (folder, database) = (tempfile::tempdir().unwrap(), TestDatabase::empty().await);
    let mut settings = database.settings().to_vec();
    settings.push(("SVC__SERVER__PORT", "1"));
    let secret = folder.path().join("okt.dev-secret");
    fs::write(&secret, "0123456789abcdef0123456789abcdef").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();

    let (sound, found) = doctor(folder.path(), &settings, &[]);
    assert!(sound, "{found:#?}");
    for parts in [
        ["okt.dev-secret", "chmod o="],
        ["migrations are missing", "okt migrate"],
        ["no service answers", "okt serve"],
    ] {
        assert!(has(&found, &parts), "{parts:?}: {found:#?}");
    }

    let (sound, found) = doctor(folder.path(), &settings, &["--repair"]);
    assert!(sound, "{found:#?}");
    assert!(has(&found, &["repaired", "okt.dev-secret"]), "{found:#?}");
    assert!(has(&found, &["repaired", &format!("{} migrations", migration_files().len())]), "{found:#?}");
    assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o640);

    // A job that nobody runs, and one that was given up.
    let plant = |kind: &str, state: &str, finished: &str| {
        format!(
            "INSERT INTO okt_tasks.jobs (id, kind, state, priority, turn, payload, max_attempts, finished_at)
             VALUES (gen_random_uuid(), '{kind}', '{state}', 3, 1, '{{}}', 1, {finished})"
        )
    };
    let mut conn = database.connect().await;
    run(&mut conn, &plant("cleanup_files", "available", "NULL")).await;
    run(&mut conn, &plant("cleanup_audit", "discarded", "now()")).await;
    let (sound, found) = doctor(folder.path(), &settings, &[]);
    assert!(!sound, "{found:#?}");
    assert!(has(&found, &["error: queue", "cleanup_files", "okt serve --role worker"]), "{found:#?}");
    assert!(has(&found, &["warning: queue: 1 jobs were given up", "okt api GET"]), "{found:#?}");
}

#[tokio::test]
async fn a_service_that_runs_and_its_public_address_are_asked() {
    let (folder, database) = (tempfile::tempdir().unwrap(), TestDatabase::migrated().await);
    let process = Process::serve(&*OKT, &database.settings());
    let port = process.url.rsplit(':').next().unwrap().to_owned();
    let mut settings = database.settings().to_vec();
    settings.push(("SVC__SERVER__PORT", &port));
    settings.push(("SVC_OAUTH_ISSUER", &process.url));
    let (_, found) = doctor(folder.path(), &settings, &[]);
    assert!(has(&found, &["ok: the service at 127.0.0.1", "is ready"]), "{found:#?}");
    assert!(has(&found, &[&process.url, "clients can connect"]), "{found:#?}");
}
