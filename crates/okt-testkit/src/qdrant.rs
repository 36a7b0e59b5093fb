//! A server that speaks Qdrant's protocol over Qdrant's own engine, on a port and a folder of its own.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use okt_config::VectorStore;
use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::free_port;
use crate::db::config;

pub struct QdrantServer {
    child: Child,
    folder: TempDir,
    port: u16,
    key: &'static str,
}

impl QdrantServer {
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// One that wants a key, if it is not empty.
    pub fn start_with(key: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Somebody else may take a port that was free a moment ago.
        for _ in 0..5 {
            let port = free_port();
            if let Some(child) = spawn(folder.path(), port, key) {
                return Self { child, folder, port, key };
            }
        }
        panic!("the Qdrant server did not start");
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again on what it had.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.folder.path(), self.port, self.key).expect("the Qdrant server starts again");
    }

    /// Tells it how to misbehave from now on; `scripts/qdrant-test-server` says how it can.
    pub fn misbehave(&self, how: &Value) {
        let (new, file) =
            (self.folder.path().join("misbehave.new"), self.folder.path().join("misbehave.json"));
        std::fs::write(&new, how.to_string()).expect("a file in a temporary folder");
        std::fs::rename(new, file).expect("a file in a temporary folder");
    }

    pub fn config(&self) -> VectorStore {
        let port = self.port.to_string();
        let settings = [
            ("VECTOR_STORE_HOST", "127.0.0.1"),
            ("VECTOR_STORE_PORT", &port),
            ("VECTOR_STORE_API_KEY", self.key),
        ];
        config(&settings).providers.vector_store
    }
}

impl Drop for QdrantServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `None` when it ended before it was ready.
fn spawn(folder: &Path, port: u16, key: &str) -> Option<Child> {
    let python =
        std::env::var_os("OKT_TEST_QDRANT").expect("Qdrant's engine: run `eval \"$(scripts/services env)\"`");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/qdrant-test-server");
    let mut child = Command::new(python)
        .arg(script)
        .arg(folder)
        .args([&port.to_string(), key])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("Python starts");
    let mut line = String::new();
    let said = child.stdout.as_mut().map(|out| BufReader::new(out).read_line(&mut line));
    if said.is_some_and(|said| said.is_ok()) && line.trim() == "ready" {
        return Some(child);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}
