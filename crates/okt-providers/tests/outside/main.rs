//! Whatever goes outside, against real listeners, all of them on loopback.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod addresses;
mod ai;
mod browser;
mod limits;
mod rebinding;
mod redirects;
mod requests;
mod resolution;
mod search;
mod server;
mod services;
