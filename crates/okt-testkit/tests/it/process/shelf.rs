//! A real process with something large to read.

use okt_testkit::client::{Answer, client};
use okt_testkit::db::{TestDatabase, run};
use okt_testkit::process::Process;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::OKT;

/// A process with a source of some seven megabytes.
pub(super) struct Shelf {
    pub(super) process: Process,
    pub(super) token: String,
    /// Of the source.
    pub(super) path: String,
    _database: TestDatabase,
}

impl Shelf {
    pub(super) async fn start(settings: &[(&str, &str)]) -> Self {
        let database = TestDatabase::migrated().await;
        let process = Process::serve(&*OKT, &[settings, &database.settings()].concat());
        process.await_ready().await;
        let url = |path: &str| format!("{}/api/v1{path}", process.url);
        let account = json!({"email": "ada@example.org", "password": "correct horse"});
        let registered = Answer::of(client().post(url("/auth/register")).json(&account)).await.json();
        let token = registered["token"].as_str().unwrap().to_owned();
        let made = client().post(url("/repositories")).bearer_auth(&token).json(&json!({"name": "Bees"}));
        let repository = Answer::of(made).await.json()["id"].as_str().unwrap().to_owned();
        let source = "01a1e018-8541-71d7-8946-53b9e4e60cee";
        let insert = format!(
            "INSERT INTO okt_repository.sources (repository_id, id, url, status, job_id)
             VALUES ('{repository}', '{source}', 'https://example.org/', 'processed', '{source}');
             INSERT INTO okt_repository.source_texts
             SELECT '{repository}', '{source}', string_agg(md5(i::text) || '. ', ''), string_agg(md5(i::text) || '. ', ''),
                    array_agg(34 * (i / 2) + 33 * (i % 2)), NULL, 'none', 'none'
               FROM generate_series(0, 88000) AS i"
        );
        run(&mut database.connect().await, &insert).await;
        let path = format!("/api/v1/repositories/{repository}/sources/{source}");
        Self { process, token, path, _database: database }
    }

    pub(super) async fn whole(&self) -> Answer {
        let request = client().get(format!("{}{}", self.process.url, self.path)).bearer_auth(&self.token);
        Answer::of(request).await
    }

    pub(super) fn address(&self) -> std::net::SocketAddr {
        self.process.url.trim_start_matches("http://").parse().unwrap()
    }

    /// One that has hardly any room for what it is sent.
    pub(super) async fn connect(&self) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(2048).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a reader that no HTTP client would be")]
        socket.connect(self.address()).await.unwrap()
    }

    /// Asks for something, and reads no more than the status.
    pub(super) async fn ask(&self, path: &str, header: &str) -> (u16, TcpStream) {
        let (mut stream, host) = (self.connect().await, self.address());
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{header}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        (String::from_utf8_lossy(&first[9..]).parse().unwrap(), stream)
    }

    /// As [`Self::ask`], as the one who has the source.
    pub(super) async fn ask_as_owner(&self, path: &str) -> (u16, TcpStream) {
        self.ask(path, &format!("authorization: Bearer {}", self.token)).await
    }
}
