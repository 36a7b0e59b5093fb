//! Limits on what anybody may ask of the authorization server.

use std::net::IpAddr;

use okt_config::Config;
use okt_http::{ClientAddress, Limit, Problem};

use crate::Api;

/// Each process counts for itself.
pub(crate) struct OAuthLimits {
    register_by_address: Limit<IpAddr>,
    /// By address as well: anybody knows a client's id, and could use up its allowance.
    token_by_client: Limit<(String, IpAddr)>,
}

impl OAuthLimits {
    pub(crate) fn new(config: &Config) -> Self {
        let limits = &config.rate_limits;
        Self {
            register_by_address: Limit::per_hour(limits.oauth_register_per_hour),
            token_by_client: Limit::per_minute(limits.oauth_token_per_minute),
        }
    }

    pub(super) fn register(&self, api: &Api, address: ClientAddress) -> Result<(), Problem> {
        api.edge.check_address(&self.register_by_address, address)
    }

    /// The text of an id is kept for a while, so only as much of it as an id of ours may have.
    pub(super) fn token(&self, client: &str, address: ClientAddress) -> Result<(), Problem> {
        self.token_by_client.check(&(client.chars().take(64).collect(), address.subscriber()))
    }

    /// Keeps the memory in proportion to the active callers.
    pub(crate) fn forget_idle(&self) {
        self.register_by_address.forget_idle();
        self.token_by_client.forget_idle();
    }
}
