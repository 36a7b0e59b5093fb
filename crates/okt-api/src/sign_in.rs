//! Limits on registering and signing in, asked before anything is looked up.

use std::net::IpAddr;

use okt_config::Config;
use okt_http::{ClientAddress, Limit, Problem};
use okt_model::{Email, UserId};

use crate::Api;

/// Per address and per account. Each process counts for itself.
pub(crate) struct SignInLimits {
    login_by_address: Limit<IpAddr>,
    login_by_account: Limit<String>,
    register_by_address: Limit<IpAddr>,
    /// New addresses of an account.
    addresses: Limit<UserId>,
}

impl SignInLimits {
    pub(crate) fn new(config: &Config) -> Self {
        let limits = &config.rate_limits;
        Self {
            login_by_address: Limit::per_minute(limits.login_per_minute),
            login_by_account: Limit::per_hour(limits.login_per_hour_per_account),
            register_by_address: Limit::per_hour(limits.register_per_hour),
            addresses: Limit::per_hour(limits.login_per_hour_per_account),
        }
    }

    /// An account counts whether or not it is known, so that the limit tells nothing. What is no address at all counts
    /// as one account: otherwise its text, of any length, would be kept.
    pub(crate) fn login(&self, api: &Api, address: ClientAddress, email: &str) -> Result<(), Problem> {
        api.edge.check_address(&self.login_by_address, address)?;
        self.login_by_account.check(&Email::parse(email).map_or_else(|_| String::new(), |email| email.key()))
    }

    pub(crate) fn register(&self, api: &Api, address: ClientAddress) -> Result<(), Problem> {
        api.edge.check_address(&self.register_by_address, address)
    }

    pub(crate) fn change_address(&self, user: UserId) -> Result<(), Problem> {
        self.addresses.check(&user)
    }

    /// Keeps the memory in proportion to the active callers.
    pub(crate) fn forget_idle(&self) {
        self.login_by_address.forget_idle();
        self.login_by_account.forget_idle();
        self.register_by_address.forget_idle();
        self.addresses.forget_idle();
    }
}
