//! Graph Bundles of a registry. They are as large as they are, so nothing of them is held in memory, and their time is their own.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{HeaderName, HeaderValue};
use okt_interchange::origin;
use okt_interchange::signing;
use serde::{Deserialize, Serialize};

use super::{MAX_ANSWER, Registry, RegistryError, SIGNATURE};
use crate::guarded::{FetchError, Pieces, Request, Response, Timeouts};

/// Longer headers may be refused on the way.
const LONGEST: usize = 4_000;
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    idle: Duration::from_secs(30),
    total: Duration::from_mins(150),
};

/// A bundle that a registry has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Graph {
    pub graph_id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub tags: Vec<String>,
    /// The hash of the graph.
    pub sha256: String,
    #[serde(default)]
    pub schema_version: i32,
    #[serde(default)]
    pub source_count: i64,
    #[serde(default)]
    pub fact_count: i64,
    #[serde(default)]
    pub concept_count: i64,
    #[serde(default)]
    pub bytes: u64,
    /// Who pushed it, as the registry says.
    #[serde(default)]
    pub owner: Option<String>,
    #[serde(default)]
    pub signed: bool,
    #[serde(default)]
    pub created_at: Option<DateTime<Utc>>,
}

/// Some of them.
#[derive(Clone, Debug, Deserialize)]
pub struct GraphPage {
    pub data: Vec<Graph>,
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A bundle that is given to a registry.
#[derive(Clone, Debug)]
pub struct NewGraph {
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    /// The hash of the graph.
    pub sha256: [u8; 32],
    pub schema_version: u32,
    pub sources: u64,
    pub facts: u64,
    pub concepts: u64,
    /// Of the file.
    pub file_sha256: [u8; 32],
}

/// What came of it.
#[derive(Clone, Debug, Deserialize)]
pub struct PushedGraph {
    pub graph_id: String,
    /// False if the registry had it.
    #[serde(default)]
    pub new: bool,
}

/// A bundle on its way here.
pub struct PulledGraph {
    registry: Registry,
    answer: Response,
    signature: Option<String>,
}

impl PulledGraph {
    /// The next piece of the file; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, RegistryError> {
        self.answer.chunk().await.map_err(|error: FetchError| self.registry.failed(error))
    }

    /// The key that signed the file, which has this hash; an error if what came with it is no signature over that.
    pub fn signed_by(&self, sha256: &[u8; 32]) -> Result<Option<String>, RegistryError> {
        let Some(signature) = &self.signature else { return Ok(None) };
        let key = origin::verified(signature, sha256);
        key.map(Some).ok_or_else(|| RegistryError::Signature { registry: self.registry.id().to_owned() })
    }
}

impl Registry {
    /// Bundles with this text in their name or description, or with this tag.
    pub async fn graphs(
        &self,
        text: Option<&str>,
        tag: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<GraphPage, RegistryError> {
        let mut url = self.0.service.url(["api", "v1", "graphs"]);
        url.query_pairs_mut().append_pair("limit", &self.0.per_page.to_string());
        for (name, value) in [("q", text), ("tag", tag), ("cursor", cursor)] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        self.read(url, MAX_ANSWER).await
    }

    /// What it says of a bundle.
    pub async fn graph(&self, id: &str) -> Result<Graph, RegistryError> {
        self.read(self.0.service.url(["api", "v1", "graphs", id]), MAX_ANSWER).await
    }

    /// The file of a bundle.
    pub async fn pull_graph(&self, id: &str, limit: u64) -> Result<PulledGraph, RegistryError> {
        let url = self.0.service.url(["api", "v1", "graphs", id, "bundle"]);
        let request =
            self.0.auth.read(Request::get(url.clone()), &url).map_err(|cause| self.failed(cause))?;
        let sent = self.0.service.send(request.max_bytes(limit).timeouts(TIMEOUTS)).await;
        let answer = sent.map_err(|error: FetchError| self.failed(error))?;
        if !answer.status.is_success() {
            // It says why.
            self.good(answer).await?;
            return Err(self.failed("it answered with neither a bundle nor an error"));
        }
        let signature =
            answer.headers.get(SIGNATURE).map(|value| value.to_str().unwrap_or_default().to_owned());
        Ok(PulledGraph { registry: self.clone(), answer, signature })
    }

    /// Gives it a bundle, signed if this installation signs. `read` begins to read the file.
    pub async fn push_graph(
        &self,
        graph: &NewGraph,
        read: impl Fn() -> Pieces + Send + Sync + 'static,
    ) -> Result<PushedGraph, RegistryError> {
        let url = self.0.service.url(["api", "v1", "graphs"]);
        let gzip = HeaderValue::from_static("application/gzip");
        let mut request = Request::post_pieces(url.clone(), gzip, read);
        let tags = graph.tags.iter().map(|tag| escaped(tag)).collect::<Vec<_>>().join(",");
        for (name, value) in [
            ("x-graph-name", escaped(&graph.name)),
            ("x-graph-description", escaped(&graph.description)),
            ("x-graph-tags", tags),
            ("x-graph-sha256", hex(&graph.sha256)),
            ("x-graph-schema-version", graph.schema_version.to_string()),
            ("x-graph-source-count", graph.sources.to_string()),
            ("x-graph-fact-count", graph.facts.to_string()),
            ("x-graph-concept-count", graph.concepts.to_string()),
        ] {
            // The bundle itself says it, too.
            if value.len() > LONGEST {
                continue;
            }
            let value = HeaderValue::from_str(&value).map_err(|error| self.failed(error))?;
            request = request.header(HeaderName::from_static(name), value);
        }
        if let Some(signature) = self.signature(&graph.file_sha256) {
            let value = HeaderValue::from_str(&signature).map_err(|error| self.failed(error))?;
            request = request.header(SIGNATURE, value);
        }
        let digest = signing::digest_of(graph.file_sha256);
        let request = self.0.auth.write_digest(request, &url, &digest).map_err(|cause| self.failed(cause))?;
        let sent = self.0.service.send(request.max_bytes(MAX_ANSWER).timeouts(TIMEOUTS)).await;
        let body = self.good(sent.map_err(|error: FetchError| self.failed(error))?).await?;
        serde_json::from_slice(&body).map_err(|error| self.failed(error))
    }
}

/// As it may stand in a header: anything else than letters, digits and a few marks percent-encoded.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b' ') {
            out.push(char::from(byte));
        } else {
            // Writing to a string never fails.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_hold_any_text() {
        assert_eq!(escaped("Bäume, 100 % + a\nb"), "B%C3%A4ume%2C 100 %25 %2B a%0Ab");
        assert_eq!(hex(&[0xab; 32]), "ab".repeat(32));
    }
}
