//! Records of what the database says about every checked query, so that a build needs no database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, bail, ensure};

use crate::cargo::cargo;

/// Crates with checked queries. Their records lie together in the root of the workspace.
const CRATES: &[&str] = &["okt-pg", "okt-store", "okt-queue", "okt-registry", "okt-vectors"];

#[expect(clippy::print_stderr, reason = "a chore talks to the person who runs it")]
pub fn record(check: bool) -> anyhow::Result<()> {
    let server = env::var("OKT_TEST_DATABASE_URL")
        .context("needs PostgreSQL: run `scripts/services start`, then `eval \"$(scripts/services env)\"`")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let database = with_fresh_database(&server)?;
    let (kept, fresh) =
        (root.join(".sqlx"), env::temp_dir().join(format!("okt-sqlx-{}", std::process::id())));
    fs::create_dir_all(&fresh)?;
    // The macros write a record for every query they check while this names a folder. A crate is only checked again
    // when it changed, so its root is touched.
    touch(root)?;
    // Whoever checks the records wants the lints as well, and what clippy does is what a check does.
    let arguments: &[&str] = if check {
        &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"]
    } else {
        &["check", "--workspace", "--locked"]
    };
    let status = cargo()
        .args(arguments)
        .env("SQLX_OFFLINE", "false")
        .env("SQLX_OFFLINE_DIR", &fresh)
        .env("DATABASE_URL", &database)
        .status();
    let (_, name) = database.rsplit_once('/').context("a database has a name")?;
    psql(&server, &["-c", &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")])?;
    ensure!(status?.success(), "a query does not fit the schema, or clippy found something; see above");
    touch(root)?;
    let (found, recorded) = (records(&fresh)?, records(&kept)?);
    if check {
        if found != recorded {
            bail!("the records in .sqlx are not true any more; run `cargo xtask sqlx` and commit them");
        }
    } else {
        let _ = fs::remove_dir_all(&kept);
        fs::create_dir_all(&kept)?;
        for (file, text) in &found {
            fs::write(kept.join(file), text)?;
        }
        eprintln!("{} queries recorded", found.len());
    }
    fs::remove_dir_all(&fresh)?;
    Ok(())
}

/// A database of its own with every migration, made by psql because a chore must not need a build that needs it.
fn with_fresh_database(server: &str) -> anyhow::Result<String> {
    let (base, _) = server.rsplit_once('/').context("OKT_TEST_DATABASE_URL names a database")?;
    // Two checkouts may be recorded at once.
    let name = format!("okt_sqlx_{}", std::process::id());
    let database = format!("{base}/{name}");
    psql(server, &["-c", &format!("CREATE DATABASE {name}")])?;
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/okt-store/migrations");
    for schema in ["system", "repository", "tasks", "vectors", "registry"] {
        psql(&database, &["-c", &format!("CREATE SCHEMA okt_{schema}")])?;
        let mut files: Vec<PathBuf> = fs::read_dir(migrations.join(schema))?
            .map(|entry| entry.map(|e| e.path()))
            .collect::<Result<_, _>>()?;
        files.sort();
        for file in files {
            psql(&database, &["-f", &file.to_string_lossy()])?;
        }
    }
    Ok(database)
}

fn psql(url: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let bin =
        env::var("OKT_TEST_PG_BIN").context("OKT_TEST_PG_BIN is not set; see `scripts/services env`")?;
    let status = Command::new(Path::new(&bin).join("psql"))
        .args(["--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1", "-d", url])
        .args(arguments)
        .env("PGOPTIONS", "-c client_min_messages=warning")
        .status()
        .context("can't run psql")?;
    ensure!(status.success(), "psql failed");
    Ok(())
}

fn records(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut records = BTreeMap::new();
    if folder.is_dir() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            records
                .insert(entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path())?);
        }
    }
    Ok(records)
}

fn touch(root: &Path) -> anyhow::Result<()> {
    for name in CRATES {
        let file = root.join("crates").join(name).join("src/lib.rs");
        fs::write(&file, fs::read(&file)?)?;
    }
    Ok(())
}
