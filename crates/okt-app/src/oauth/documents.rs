//! Clients that are described by a document at the address that is their id.

use std::time::Duration;

use okt_auth::oauth::{Metadata, Registration};
use okt_model::{Error, OAuthClient, Result};
use okt_providers::{GuardedClient, Request, Response, Timeouts};
use okt_store::oauth_clients::{self, NewClient};
use serde_json::Value;
use url::Url;

use super::clients::described;
use crate::App;

/// How long somebody waits for a turn.
const PATIENCE: Duration = Duration::from_secs(3);
const LIMIT: u64 = 64 * 1024;
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    idle: Duration::from_secs(5),
    total: Duration::from_secs(10),
};
/// How long a document is believed at most, and when it does not say.
const LONGEST: Duration = Duration::from_hours(24);
const USUAL: Duration = Duration::from_hours(1);

impl App {
    /// The client whose id is the address of its document; `None` when it is none, or can't be read right now. What
    /// went wrong is never remembered, so a mended document works at once.
    pub(super) async fn read_document(&self, id: &str) -> Result<Option<OAuthClient>> {
        let (true, Some(web)) = (is_document(id), self.web()) else { return Ok(None) };
        // Strangers make us fetch; a few at a time will do.
        let Ok(Ok(_turn)) = tokio::time::timeout(PATIENCE, self.documents().acquire()).await else {
            return Err(Error::Overloaded(
                "too many client metadata documents are being fetched; try again later",
            ));
        };
        let (metadata, fresh_for) = match fetch(web, id).await {
            Ok(read) => read,
            Err(cause) => {
                tracing::info!(client.id = id, cause, "rejected the metadata document of an OAuth client");
                return Ok(None);
            }
        };
        let words = metadata.scope.as_ref().map(okt_model::Scope::words);
        let described = described(id, &metadata, words.as_deref());
        let new = NewClient { fresh_for: Some(fresh_for), ..described };
        let mut conn = self.databases().acquire_system().await?;
        let client = oauth_clients::put(&mut conn, &new).await?;
        Ok(Some(client))
    }
}

/// An https address with a path and nothing that could be read in two ways.
fn is_document(id: &str) -> bool {
    let (true, Ok(url)) = (id.len() <= 500, Url::parse(id)) else { return false };
    id == url.as_str()
        && url.scheme() == "https"
        && url.path() != "/"
        && url.fragment().is_none()
        && !id.contains('@')
}

async fn fetch(web: &GuardedClient, id: &str) -> Result<(Metadata, Duration), String> {
    let request = Request::get(id).https_only().max_bytes(LIMIT).timeouts(TIMEOUTS);
    let response = web.send(request).await.map_err(|error| error.to_string())?;
    if response.status != 200 {
        return Err(format!("answered {}", response.status));
    }
    let fresh_for = fresh_for(&response);
    let body = response.bytes().await.map_err(|error| error.to_string())?;
    let document: Value = serde_json::from_slice(&body).map_err(|_| "is no JSON".to_owned())?;
    if document["client_id"] != id {
        return Err("does not name its own address as client_id".to_owned());
    }
    let metadata = Metadata::parse(&document, Registration::Document).map_err(|bad| bad.description)?;
    Ok((metadata, fresh_for))
}

fn fresh_for(response: &Response) -> Duration {
    let lines = response.headers.get_all("cache-control").iter().filter_map(|line| line.to_str().ok());
    let directives: Vec<_> =
        lines.flat_map(|line| line.split(',')).map(|text| text.trim().to_ascii_lowercase()).collect();
    if directives.iter().any(|text| text == "no-store" || text == "no-cache") {
        return Duration::ZERO;
    }
    let age =
        directives.iter().find_map(|text| text.strip_prefix("max-age=")?.trim_matches('"').parse().ok());
    age.map_or(USUAL, Duration::from_secs).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_path_is_an_id_and_nothing_like_it() {
        for (id, expected) in [
            ("https://app.example.org/client.json", true),
            ("https://app.example.org/oauth/client?v=1", true),
            ("https://app.example.org:8443/client.json", true),
            ("https://app.example.org", false),
            ("https://app.example.org/", false),
            ("http://app.example.org/client.json", false),
            ("https://app.example.org/client.json#a", false),
            ("https://user@app.example.org/client.json", false),
            ("https://app.example.org/a/../client.json", false),
            ("https://APP.example.org/client.json", false),
            ("https://app.example.org:443/client.json", false),
            ("client_0190a1b2c3d4", false),
            ("javascript:alert(1)", false),
            ("", false),
        ] {
            assert_eq!(is_document(id), expected, "{id}");
        }
    }
}
