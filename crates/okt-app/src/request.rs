//! Where a request came from, for the audit.

use std::net::IpAddr;

/// What is known of a request besides its caller.
#[derive(Clone, Debug)]
pub struct Origin {
    pub request_id: String,
    pub address: Option<IpAddr>,
    /// What the program at the other end calls itself.
    pub agent: Option<String>,
    /// Through what it came, where that is not the API.
    pub via: Option<&'static str>,
}

impl Origin {
    /// The service itself.
    pub fn service(what: &str) -> Self {
        Self { request_id: what.to_owned(), address: None, agent: None, via: None }
    }
}
