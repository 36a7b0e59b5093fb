//! Periods that must fit into each other.

use super::Breaches;
use crate::period::Period;
use crate::sections::{Config, LLM_JOB_KINDS, LlmRetry};

const PER_CALL: &str = "providers.llm_retry.per_call_timeout";
const RETRY: [&str; 4] = [
    PER_CALL,
    "providers.llm_retry.max_attempts",
    "providers.llm_retry.base_delay",
    "providers.llm_retry.max_delay",
];

pub(super) fn rules(config: &Config, found: &mut Breaches) {
    let task = &config.task;
    if task.heartbeat_interval >= task.heartbeat_timeout {
        found.between(
            "task.heartbeat_interval",
            &["task.heartbeat_timeout"],
            format!(
                "must be less than task.heartbeat_timeout: {} is not less than {}",
                task.heartbeat_interval, task.heartbeat_timeout
            ),
        );
    }
    let retry = &config.providers.llm_retry;
    if retry.base_delay > retry.max_delay {
        found.between(
            RETRY[2],
            &[RETRY[3]],
            format!("must be at most max_delay: {} is more than {}", retry.base_delay, retry.max_delay),
        );
    }
    llm_jobs(config, found);
}

/// A job that calls a model must outlive the worst run of attempts, or it is killed while its last attempt could
/// still succeed, and all that was paid for is lost.
fn llm_jobs(config: &Config, found: &mut Breaches) {
    let Some((key, limit)) = shortest(config) else {
        return;
    };
    let retry = &config.providers.llm_retry;
    if retry.per_call_timeout > limit {
        found.between(
            PER_CALL,
            &[&key],
            format!(
                "{} must be at most the shortest limit of a job that calls a model: {key}, {limit}",
                retry.per_call_timeout
            ),
        );
        return;
    }
    let (worst, sum) = worst_case(retry);
    if limit <= worst {
        found.between(
            &key,
            &RETRY,
            format!("{limit} must be more than the worst case of a call to a model: {sum} = {worst} (providers.llm_retry)"),
        );
    }
}

/// The shortest limit of all jobs that call a model, and its key; `None` when none has a limit.
fn shortest(config: &Config) -> Option<(String, Period)> {
    LLM_JOB_KINDS
        .iter()
        .filter_map(|kind| {
            let own = config.task.timeouts.contains_key(*kind);
            let key = if own { format!("task.timeouts.{kind}") } else { "task.job_timeout".into() };
            Some((key, config.task.timeout(kind)?))
        })
        .min_by_key(|(_, limit)| *limit)
}

/// All attempts at their longest with all waits between them, and the sum in words.
fn worst_case(retry: &LlmRetry) -> (Period, String) {
    let (attempts, call) = (retry.max_attempts, retry.per_call_timeout);
    let mut total = call.duration().saturating_mul(attempts);
    let mut wait = retry.base_delay.duration().min(retry.max_delay.duration());
    let mut waits = Vec::new();
    for _ in 1..attempts {
        total = total.saturating_add(wait);
        waits.push(Period::from(wait).to_string());
        wait = wait.saturating_mul(2).min(retry.max_delay.duration());
    }
    if waits.len() > 6 {
        waits.splice(3..waits.len() - 1, ["…".to_owned()]);
    }
    let waits = if waits.is_empty() { String::new() } else { format!(" + waits of {}", waits.join(" + ")) };
    (total.into(), format!("{attempts} attempts × {call}{waits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_case_of_the_defaults_is_twenty_minutes_and_fourteen_seconds() {
        let (worst, sum) = worst_case(&Config::default().providers.llm_retry);
        assert_eq!(worst.to_string(), "20m14s");
        assert_eq!(sum, "4 attempts × 5m + waits of 2s + 4s + 8s");
    }

    #[test]
    fn the_shortest_limit_wins_and_no_limit_is_the_longest() {
        let mut config = Config::default();
        assert_eq!(shortest(&config).unwrap().1.to_string(), "4h");
        config.task.timeouts.insert("annotate_report".into(), Period::from_secs(60));
        config.task.timeouts.insert("embed_facts".into(), Period::from_secs(1));
        assert_eq!(shortest(&config).unwrap().0, "task.timeouts.annotate_report");
        config.task.timeouts.clear();
        config.task.job_timeout = Period::from_secs(0);
        assert!(shortest(&config).is_none());
    }
}
