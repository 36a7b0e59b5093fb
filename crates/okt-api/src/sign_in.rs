//! Limits on registering and signing in, asked before anything is looked up.

use std::net::IpAddr;
use std::time::Duration;

use moka::sync::Cache;
use okt_config::Config;
use okt_http::{ClientAddress, Limit, Problem};
use okt_model::{Email, UserId};

use crate::Api;

/// Per address and per account. Each process counts for itself.
pub(crate) struct SignInLimits {
    login_by_address: Limit<IpAddr>,
    /// By address as well: anybody can name an account, and would keep its owner out.
    login_by_account: Limit<Place>,
    /// From everywhere together, for whoever guesses from many addresses.
    login_in_all: Limit<String>,
    /// Where somebody signed in to an account lately. That they do it again costs the others nothing, and what the others
    /// do does not cost them.
    known: Cache<Place, ()>,
    register_by_address: Limit<IpAddr>,
    /// New addresses and passwords of an account, each of which may be a guess at the present password.
    changes: Limit<UserId>,
}

/// An account, and what one subscriber has of addresses.
type Place = (String, IpAddr);

/// How long and how many of them are remembered.
const KNOWN_FOR: Duration = Duration::from_hours(30 * 24);
const KNOWN: u64 = 100_000;

impl SignInLimits {
    pub(crate) fn new(config: &Config) -> Self {
        let limits = &config.rate_limits;
        Self {
            login_by_address: Limit::per_minute(limits.login_per_minute),
            login_by_account: Limit::per_hour(limits.login_per_hour_per_account),
            login_in_all: Limit::per_hour(limits.login_per_hour_per_account_in_all),
            known: Cache::builder().max_capacity(KNOWN).time_to_live(KNOWN_FOR).build(),
            register_by_address: Limit::per_hour(limits.register_per_hour),
            changes: Limit::per_hour(limits.login_per_hour_per_account),
        }
    }

    /// An account counts whether or not it is known, so that the limit tells nothing.
    pub(crate) fn login(&self, api: &Api, address: ClientAddress, email: &str) -> Result<(), Problem> {
        let too_often = |problem: Problem| problem.saying("too many attempts to sign in");
        api.edge.check_address(&self.login_by_address, address).map_err(too_often)?;
        let place = place(address, email);
        self.login_by_account.check(&place).map_err(too_often)?;
        if self.known.contains_key(&place) {
            return Ok(());
        }
        self.login_in_all.check(&place.0).map_err(too_often)
    }

    /// Somebody signed in.
    pub(crate) fn remember(&self, address: ClientAddress, email: &str) {
        self.known.insert(place(address, email), ());
    }

    pub(crate) fn register(&self, api: &Api, address: ClientAddress) -> Result<(), Problem> {
        let limited = api.edge.check_address(&self.register_by_address, address);
        limited.map_err(|problem| problem.saying("too many accounts were registered from this address"))
    }

    /// A change of an account that shows its password, or tells whether an address is taken.
    pub(crate) fn change(&self, user: UserId) -> Result<(), Problem> {
        self.changes.check(&user)
    }

    /// Keeps the memory in proportion to the active callers.
    pub(crate) fn forget_idle(&self) {
        self.login_by_address.forget_idle();
        self.login_by_account.forget_idle();
        self.login_in_all.forget_idle();
        self.register_by_address.forget_idle();
        self.changes.forget_idle();
    }
}

/// What is no e-mail address at all counts as one account: otherwise its text, of any length, would be kept.
fn place(address: ClientAddress, email: &str) -> Place {
    let account = Email::parse(email).map_or_else(|_| String::new(), |email| email.key());
    (account, address.subscriber())
}
