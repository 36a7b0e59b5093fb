//! What one decision about a permission costs, for somebody with few and with very many roles. Built and run in release:
//! `cargo xtask bench`.
//!
//! `okt-test bench permissions ROUNDS`: the best of several rounds counts, because what else the machine does is not what is
//! measured.

use std::time::{Duration, Instant};

use anyhow::ensure;
use okt_auth::{Grants, Narrow};
use okt_model::{Domain, Permission, PermissionSet, RepositoryId, Role};

const ASSIGNMENTS: [usize; 3] = [100, 100_000, 1_000_000];
const CHECKS: u32 = 200_000;
const ROUNDS: usize = 5;
/// What has to be reached.
const LIMIT: Duration = Duration::from_micros(1);

pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let rounds = arguments.first().map_or(Ok(ROUNDS), |text| text.parse())?;
    let mut worst = Duration::ZERO;
    for assignments in ASSIGNMENTS {
        let repositories: Vec<_> = (0..assignments).map(|_| RepositoryId::mint()).collect();
        let roles = repositories.iter().map(|id| (Domain::Repository(*id), Role::Curator));
        let grants = Grants::new(roles, true);
        let best = (0..rounds.max(1)).map(|_| round(&grants, &repositories)).min().unwrap_or_default();
        println!("{} ns per check with {assignments} roles (limit {LIMIT:?})", best.as_nanos());
        worst = worst.max(best);
    }
    ensure!(worst <= LIMIT, "{worst:?} is more than {LIMIT:?}");
    Ok(())
}

/// How long a check takes, as the mean of many.
fn round(grants: &Grants, repositories: &[RepositoryId]) -> Duration {
    let narrow = Narrow { permissions: PermissionSet::ALL, repositories: None };
    let asked: Vec<Permission> = PermissionSet::ALL.iter().collect();
    let (mut allowed, start) = (0_u32, Instant::now());
    for check in 0..CHECKS as usize {
        // A prime stride, so that neither cache nor branch predictor sees a pattern.
        let domain = Domain::Repository(repositories[check * 7919 % repositories.len()]);
        let decision = grants.decide(domain, asked[check % asked.len()], Some(&narrow));
        allowed += u32::from(decision.is_ok());
    }
    assert!(allowed > 0 && allowed < CHECKS, "some are allowed and some are not");
    start.elapsed() / CHECKS
}
