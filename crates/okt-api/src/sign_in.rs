//! Limits on registering and signing in, asked before anything is looked up.

use std::net::IpAddr;

use okt_config::Config;
use okt_http::{ClientAddress, Limit, Problem};

use crate::Api;

/// Per address and per account. Each process counts for itself.
pub(crate) struct SignInLimits {
    login_by_address: Limit<IpAddr>,
    login_by_account: Limit<String>,
    register_by_address: Limit<IpAddr>,
}

impl SignInLimits {
    pub(crate) fn new(config: &Config) -> Self {
        let limits = &config.rate_limits;
        Self {
            login_by_address: Limit::per_minute(limits.login_per_minute),
            login_by_account: Limit::per_hour(limits.login_per_hour_per_account),
            register_by_address: Limit::per_hour(limits.register_per_hour),
        }
    }

    /// The account counts as it is written, known or not, so that the limit tells nothing.
    pub(crate) fn login(&self, api: &Api, address: ClientAddress, email: &str) -> Result<(), Problem> {
        api.edge.check_address(&self.login_by_address, address)?;
        self.login_by_account.check(&email.trim().to_lowercase())
    }

    pub(crate) fn register(&self, api: &Api, address: ClientAddress) -> Result<(), Problem> {
        api.edge.check_address(&self.register_by_address, address)
    }

    /// Keeps the memory in proportion to the active callers.
    pub(crate) fn forget_idle(&self) {
        self.login_by_address.forget_idle();
        self.login_by_account.forget_idle();
        self.register_by_address.forget_idle();
    }
}
