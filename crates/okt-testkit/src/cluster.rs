//! A PostgreSQL cluster that one test owns, to stop and start as it likes.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::cpu;

pub struct Cluster {
    folder: TempDir,
    port: u16,
    user: Option<&'static str>,
    /// Beyond those that every cluster of ours has.
    settings: String,
}

impl Cluster {
    /// A new cluster, running.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// As [`Self::start`], with these settings, such as `shared_buffers=1GB`.
    pub fn start_with(settings: &[&str]) -> Self {
        let settings: Vec<String> = settings.iter().map(|setting| format!(" -c {setting}")).collect();
        let settings = settings.concat();
        let folder = tempfile::Builder::new().prefix("okt-cluster-").tempdir().expect("a temporary folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))
            .expect("a folder of ours");
        let cluster = Self { port: free_port(), user: unprivileged_user(folder.path()), folder, settings };
        let data = cluster.data();
        cluster.must(
            "initdb",
            &["-D", &data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"],
        );
        cluster.up();
        cluster
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts the server again after [`Self::down`].
    pub fn up(&self) {
        let settings = format!(
            "-c listen_addresses=127.0.0.1 -c port={} -c unix_socket_directories= -c fsync=off -c max_connections=60{}",
            self.port, self.settings
        );
        let log = self.folder.path().join("data/log").display().to_string();
        self.must("pg_ctl", &["-D", &self.data(), "-w", "-l", &log, "-o", &settings, "start"]);
    }

    /// Stops the server as a crash would: clients see their connections break.
    pub fn down(&self) {
        self.must("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]);
    }

    /// CPU time of the server with all its connections.
    pub fn cpu_seconds(&self) -> f64 {
        let file = self.folder.path().join("data/postmaster.pid");
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let pid = text.lines().next().and_then(|line| line.trim().parse().ok());
        pid.map_or(0.0, cpu::seconds_with_children)
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    fn must(&self, program: &str, arguments: &[&str]) {
        let output = self.run(program, arguments);
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let program = bin().join(program);
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.args(arguments).current_dir(self.folder.path()).output().expect("PostgreSQL's programs run")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]);
    }
}

fn bin() -> PathBuf {
    std::env::var_os("OKT_TEST_PG_BIN")
        .expect("PostgreSQL's programs: `eval \"$(scripts/services env)\"`")
        .into()
}

/// The server refuses to run as root; then the folder goes to the user that Debian and the services script make.
fn unprivileged_user(folder: &Path) -> Option<&'static str> {
    let id = |flag: &[&str]| {
        let output = Command::new("id").args(flag).output().expect("id runs");
        String::from_utf8_lossy(&output.stdout).trim().parse::<u32>().expect("a number")
    };
    if id(&["-u"]) != 0 {
        return None;
    }
    chown(folder, Some(id(&["-u", "postgres"])), Some(id(&["-g", "postgres"])))
        .expect("root may give a folder away");
    Some("postgres")
}

/// Free when asked; good enough on loopback.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}
