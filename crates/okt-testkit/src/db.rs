//! A database per test, cloned from a template that is migrated once per set of migrations.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use okt_config::{Config, LoadOptions};
use okt_store::{Databases, Schema};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;

/// A database of its own; dropped with the value.
pub struct TestDatabase {
    name: String,
    url: String,
    /// Where a service on it keeps files.
    files: TempDir,
}

impl TestDatabase {
    /// With every schema up to date.
    pub async fn migrated() -> Self {
        let template = template().await;
        // Its files are copied as they are, which is two to three times as quick as through the log.
        Self::create(&format!("TEMPLATE {template} STRATEGY file_copy")).await
    }

    /// With nothing in it.
    pub async fn empty() -> Self {
        Self::create("").await
    }

    async fn create(how: &str) -> Self {
        let name = format!("okt_test_{}", uuid::Uuid::from_u128(unique()).simple());
        let mut conn = server().await;
        run(&mut conn, &format!("CREATE DATABASE {name} {how}")).await;
        Self { url: url_of(&name), name, files: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The configuration of a service on this database, with these settings on top (`SVC__…` or documented names).
    pub fn config(&self, settings: &[(&str, &str)]) -> Config {
        let mut all = self.settings().to_vec();
        all.extend_from_slice(settings);
        config(&all)
    }

    /// What tells a service about this database and where to keep files.
    pub fn settings(&self) -> [(&str, &str); 5] {
        let files = self.files.path().to_str().expect("a path of letters");
        [
            ("SVC__DATABASES__DEFAULT__URL", &self.url),
            // Fifty that want one row, or fifty connections that are made at once, take longer than they may on a busy
            // machine.
            ("SVC__DATABASES__DEFAULT__LOCK_TIMEOUT", "30s"),
            ("SVC__DATABASES__DEFAULT__ACQUIRE_TIMEOUT", "30s"),
            ("SVC__PROVIDERS__STORAGE__ROOT", files),
            // Tests that need vectors or concepts say so: making them takes its time. A variable can't say "none".
            (
                FILE,
                "providers.embedding.model = \"\"\nproviders.decomposition.concept_extraction.model = \"\"",
            ),
        ]
    }

    pub async fn connect(&self) -> PgConnection {
        connect(&self.url).await.expect("the test database answers")
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Some(bin) = std::env::var_os("OKT_TEST_PG_BIN") else { return };
        // A process of its own that nobody waits for: PostgreSQL drops nothing while a connection is being made, and one that
        // a task of this test began to make is only given up when the test's process ends.
        let dropping = std::process::Command::new(Path::new(&bin).join("psql"))
            .args(["--quiet", "--no-psqlrc", "--dbname", &server_url(), "--command"])
            .arg(format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name))
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn();
        // Not being able to clean up is no reason to fail a test that passed.
        drop(dropping);
    }
}

/// What can't be said by variables: a setting of this name is the text of the file.
pub const FILE: &str = "okt.toml";

/// The settings that are variables; the text of the file, if there is one, is written into the folder.
pub fn variables<'a>(folder: &Path, settings: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let (texts, variables): (Vec<_>, Vec<_>) = settings.iter().copied().partition(|(name, _)| *name == FILE);
    if !texts.is_empty() {
        let text: String = texts.iter().flat_map(|(_, text)| [*text, "\n"]).collect();
        std::fs::write(folder.join(FILE), text).expect("a file in a temporary folder");
    }
    variables
}

/// The defaults with these settings on top, as the environment would give them.
pub fn config(settings: &[(&str, &str)]) -> Config {
    // As the program does when it starts: there are two kinds of cryptography in the tree, and none is the default.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let settings = variables(folder.path(), settings);
    let options = LoadOptions {
        config: Some(folder.path().to_owned()),
        binary_dir: folder.path().to_owned(),
        working_dir: folder.path().to_owned(),
    };
    let environment: BTreeMap<_, _> =
        settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    okt_config::load(&options, &environment).expect("a valid configuration").config
}

/// The server that the services script started.
pub fn server_url() -> String {
    std::env::var("OKT_TEST_DATABASE_URL")
        .expect("PostgreSQL for tests: run `scripts/services start`, then `eval \"$(scripts/services env)\"`")
}

/// Another database on that server.
pub fn url_of(name: &str) -> String {
    let server = server_url();
    let (base, _) = server.rsplit_once('/').expect("an address with a database");
    format!("{base}/{name}")
}

pub async fn run(conn: &mut PgConnection, statement: &str) {
    #[expect(clippy::disallowed_methods, reason = "tests set up what no query of ours would")]
    let done = sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await;
    done.unwrap_or_else(|error| panic!("{statement}: {error}"));
}

async fn server() -> PgConnection {
    connect(&server_url()).await.expect("the test server answers")
}

/// Without TLS, which would take most of the time; tests that are about it say so.
async fn connect(url: &str) -> sqlx::Result<PgConnection> {
    let options: PgConnectOptions = url.parse()?;
    PgConnection::connect_with(&options.ssl_mode(PgSslMode::Disable)).await
}

/// Every test is a process of its own, so the database is where they agree on who makes the template.
async fn template() -> String {
    let name = format!("okt_template_{:016x}", fingerprint());
    let mut conn = server().await;
    run(&mut conn, "SELECT pg_advisory_lock(7235)").await;
    let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
        .bind(&name)
        .fetch_one(&mut conn)
        .await
        .expect("the test server answers");
    if !exists {
        let half_made = format!("{name}_half");
        run(&mut conn, &format!("DROP DATABASE IF EXISTS {half_made} WITH (FORCE)")).await;
        run(&mut conn, &format!("CREATE DATABASE {half_made}")).await;
        let config = config(&[("SVC__DATABASES__DEFAULT__URL", &url_of(&half_made))]);
        Databases::migrate(&config).await.expect("migrations apply");
        run(&mut conn, &format!("ALTER DATABASE {half_made} RENAME TO {name}")).await;
    }
    conn.close().await.expect("the test server answers");
    name
}

/// Of all migration files, so that a changed one makes another template.
fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in migration_files() {
        file.hash(&mut hasher);
        std::fs::read(file).expect("a migration").hash(&mut hasher);
    }
    hasher.finish()
}

/// The migrations of every schema.
pub fn migration_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for schema in [Schema::System, Schema::Repository, Schema::Tasks, Schema::Vectors] {
        let folder = schema.name().trim_start_matches("okt_");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../okt-store/migrations").join(folder);
        files.extend(
            std::fs::read_dir(folder).expect("migrations").map(|entry| entry.expect("a file").path()),
        );
    }
    files.sort();
    files
}

fn unique() -> u128 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    #[expect(clippy::disallowed_methods, reason = "a name that no other process picks")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    (now << 48) ^ (u128::from(std::process::id()) << 16) ^ u128::from(COUNT.fetch_add(1, Ordering::Relaxed))
}
