//! A real process of ours, started as an operator would, with its log at hand.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::client::{Answer, client};
use crate::cpu;
use crate::db::variables;

pub struct Process {
    child: Child,
    log: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
    /// Where it listens, once [`Self::await_listening`] was called.
    pub url: String,
    /// Where it keeps its configuration, unless the test has a folder of its own; gone with the value.
    folder: Option<TempDir>,
}

impl Process {
    /// Starts `program serve` on a port of its own with nothing but these variables in its environment, and waits
    /// for it to listen.
    pub fn serve(program: impl AsRef<Path>, settings: &[(&str, &str)]) -> Self {
        Self::serve_as(program, &[], settings)
    }

    /// As [`Self::serve`], with more arguments.
    pub fn serve_as(program: impl AsRef<Path>, arguments: &[&str], settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut process = Self::start(program.as_ref(), folder.path(), ("serve", arguments), settings);
        process.folder = Some(folder);
        process.await_listening();
        process
    }

    /// As [`Self::serve`], with a folder for its configuration that the test keeps.
    pub fn serve_in(program: impl AsRef<Path>, folder: impl AsRef<Path>, settings: &[(&str, &str)]) -> Self {
        let mut process = Self::start(program.as_ref(), folder.as_ref(), ("serve", &[]), settings);
        process.await_listening();
        process
    }

    /// As [`Self::serve`], without waiting.
    pub fn spawn(program: impl AsRef<Path>, settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut process = Self::start(program.as_ref(), folder.path(), ("serve", &[]), settings);
        process.folder = Some(folder);
        process
    }

    /// As [`Self::serve`], for `program registry`, which listens where its own settings say.
    pub fn registry(program: impl AsRef<Path>, settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut process = Self::start(program.as_ref(), folder.path(), ("registry", &[]), settings);
        process.folder = Some(folder);
        process.await_listening();
        process
    }

    fn start(
        program: &Path,
        folder: &Path,
        (command, arguments): (&str, &[&str]),
        settings: &[(&str, &str)],
    ) -> Self {
        let mut child = Command::new(program)
            .args([command, "--config"])
            .arg(folder)
            .args(arguments)
            .env_clear()
            .env("SVC__SERVER__PORT", "0")
            .env("SVC__LOG__FORMAT", "json")
            .envs(variables(folder, settings))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (stderr, lines) = (child.stderr.take().expect("a pipe"), Arc::clone(&log));
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = lines.lock().expect("nobody panics with the log");
                log.push_str(&line);
                log.push('\n');
            }
        });
        Self { child, log, reader: Some(reader), url: String::new(), folder: None }
    }

    pub fn log(&self) -> String {
        self.log.lock().expect("nobody panics with the log").clone()
    }

    /// Waits until it says where it listens.
    pub fn await_listening(&mut self) {
        let address = self.await_log(Duration::from_mins(1), |line| {
            if !line.contains("listening") || line.contains("listening for metrics") {
                return None;
            }
            // In both formats the address is the first thing that looks like one.
            let (_, rest) = line.split_once("127.0.0.1:")?;
            let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
            Some(format!("127.0.0.1:{port}"))
        });
        self.url = format!("http://{address}");
    }

    /// Waits until a line of the log yields something.
    pub fn await_log<T>(&mut self, limit: Duration, find: impl Fn(&str) -> Option<T>) -> T {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(found) = self.log().lines().find_map(&find) {
                return found;
            }
            let ended = self.child.try_wait().expect("a child of ours");
            assert!(ended.is_none(), "it ended with {ended:?}:\n{}", self.log());
            assert!(Instant::now() < deadline, "nothing of the kind was logged in time:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until it wants requests.
    pub async fn await_ready(&self) {
        let (client, deadline) = (client(), Instant::now() + Duration::from_secs(30));
        loop {
            let answer = Answer::try_of(client.get(format!("{}/readyz", self.url))).await;
            if answer.is_ok_and(|answer| answer.status == 200) {
                return;
            }
            assert!(Instant::now() < deadline, "it did not become ready:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asks it to stop, as an orchestrator would.
    pub fn terminate(&self) {
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Waits for the end; the whole log is there afterwards.
    pub fn wait(&mut self) -> ExitStatus {
        let status = self.child.wait().expect("a child of ours");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the log was read");
        }
        status
    }

    /// CPU time so far.
    pub fn cpu_seconds(&self) -> f64 {
        cpu::seconds(self.child.id())
    }

    /// Resident memory in KiB.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
