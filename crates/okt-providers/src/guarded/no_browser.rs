//! Stands in for `browser.rs` in a build without it: there is no profile, so nothing here is ever reached.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use url::Url;

use super::error::FetchError;
use super::response::Head;

#[derive(Clone, Copy, Debug)]
pub enum Profile {}

#[derive(Clone, Default)]
pub(super) struct Authorities(());

pub(super) enum Answer {}

impl Profile {
    pub fn named(_: &str) -> Result<Self, String> {
        Err("this build has no browser to look like; leave it empty".to_owned())
    }
}

#[expect(clippy::unused_async, reason = "the one that it stands in for waits")]
pub(super) async fn get(
    _: &Authorities,
    profile: Profile,
    _: &Url,
    _: Vec<SocketAddr>,
    _: HeaderMap,
    _: Duration,
) -> Result<Head, FetchError> {
    match profile {}
}

impl Answer {
    pub(super) fn length(&self) -> Option<u64> {
        match *self {}
    }

    #[expect(clippy::unused_async, reason = "the one that it stands in for waits")]
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        match *self {}
    }
}
