//! Rules that one value's type can't express. Each is a plain function from the configuration to its breaches;
//! none touches the world, except through the question it is handed.

mod accounts;
mod databases;
mod presets;
mod providers;
mod timeouts;

use std::net::IpAddr;
use std::path::Path as FilePath;

use crate::sections::Config;
use crate::suggest;
use crate::tree::Path;

/// A broken rule.
#[derive(Debug)]
pub(crate) struct Breach {
    /// The setting to change.
    pub path: Path,
    /// Others that the rule looked at: one of them may be the one that somebody set.
    pub related: Vec<Path>,
    /// Holds no secrets.
    pub message: String,
}

/// All broken rules.
pub(crate) fn breaches(config: &Config, is_file: &dyn Fn(&FilePath) -> bool) -> Vec<Breach> {
    let mut found = Breaches::default();
    accounts::rules(config, &mut found);
    databases::rules(config, is_file, &mut found);
    knowledge(config, &mut found);
    providers::rules(config, is_file, &mut found);
    presets::rules(config, &mut found);
    timeouts::rules(config, &mut found);
    found.0
}

/// What is allowed, and most likely not meant.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let mut warnings = accounts::warnings(config);
    warnings.extend(databases::warnings(config));
    warnings.extend(providers::warnings(config));
    warnings
}

#[derive(Default)]
struct Breaches(Vec<Breach>);

impl Breaches {
    /// A rule about one setting.
    fn at(&mut self, path: &str, message: impl Into<String>) {
        self.between(path, &[], message);
    }

    /// A rule about several settings; the first is the one to change.
    fn between(&mut self, path: &str, related: &[&str], message: impl Into<String>) {
        let related = related.iter().map(|path| Path::dotted(path)).collect();
        self.0.push(Breach { path: Path::dotted(path), related, message: message.into() });
    }

    /// A rule about a member of a list.
    fn in_list(&mut self, list: &str, index: usize, key: &str, message: impl Into<String>) {
        let path = Path::dotted(list).index(index).key(key);
        self.0.push(Breach { path, related: Vec::new(), message: message.into() });
    }
}

/// The sentence about a name that should be one of `known`.
fn no_such<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    format!("no {what} is named {name:?}{}", suggest::did_you_mean(suggest::closest(name, known)))
}

/// Whether a host as it stands in an address, with brackets around IPv6, is this machine.
fn is_loopback(host: &str) -> bool {
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    ip.map_or_else(
        |_| {
            let name = host.to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        },
        |ip| ip.to_canonical().is_loopback(),
    )
}

fn knowledge(config: &Config, found: &mut Breaches) {
    let concepts = &config.concepts;
    if concepts.min_shared_fact_count > concepts.stable_shared_fact_count {
        found.between(
            "concepts.min_shared_fact_count",
            &["concepts.stable_shared_fact_count"],
            format!(
                "must be at most concepts.stable_shared_fact_count: {} is more than {}",
                concepts.min_shared_fact_count, concepts.stable_shared_fact_count
            ),
        );
    }
}
