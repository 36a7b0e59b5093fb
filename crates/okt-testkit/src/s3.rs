//! A server that speaks S3, on a port of its own.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::client::client;
use crate::wait::eventually;

pub struct S3Server {
    child: Child,
    pub url: String,
}

impl S3Server {
    /// With an empty bucket of this name.
    pub async fn start(bucket: &str) -> Self {
        let program = std::env::var_os("OKT_TEST_S3_SERVER")
            .expect("a server that speaks S3: run `eval \"$(scripts/services env)\"`");
        // Taken and given back: the server can't be asked to choose.
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("a port").port();
        let child = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = Self { child, url: format!("http://127.0.0.1:{port}") };
        eventually(Duration::from_mins(1), "the S3 server starts", async || {
            // Any credential does.
            client().put(format!("{}/{bucket}", server.url)).body("").send().await?.error_for_status()
        })
        .await;
        server
    }

    /// What makes a service keep its files there.
    pub fn settings(&self, bucket: &str) -> Vec<(String, String)> {
        let pairs = [
            ("BACKEND", "s3"),
            ("S3__ENDPOINT", &self.url),
            ("S3__BUCKET", bucket),
            ("S3__ACCESS_KEY_ID", "test"),
            ("S3__SECRET_ACCESS_KEY", "test"),
        ];
        pairs.map(|(key, value)| (format!("SVC__PROVIDERS__STORAGE__{key}"), value.to_owned())).to_vec()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
