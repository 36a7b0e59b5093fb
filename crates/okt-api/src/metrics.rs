//! Prometheus metrics: what was counted while it happened, and what is read when somebody asks.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use metrics::gauge;
use okt_app::Backlog;
use tokio::sync::Mutex;

use crate::Api;

/// How old the numbers of the queue may be: however many scrape, it is asked no more often.
const AGE: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(2);

/// The last numbers of the queue.
#[derive(Default)]
pub(crate) struct Backlogs(Mutex<Option<(Instant, Vec<Backlog>)>>);

/// Metrics in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", tag = "Operations",
    operation_id = "getMetrics",
    responses(
    (status = 200, body = String, content_type = "text/plain", description = "Metrics",
     example = "okt_database_connections{database=\"default\",pool=\"api\"} 2")
))]
pub async fn show(State(api): State<Api>) -> Response {
    for databases in &api.pools {
        let purpose = databases.purpose().name();
        for (name, pool) in databases.usage() {
            gauge!("okt_database_connections", "database" => name.clone(), "pool" => purpose).set(pool.open);
            gauge!("okt_database_connections_idle", "database" => name.clone(), "pool" => purpose)
                .set(pool.idle);
            gauge!("okt_database_connections_limit", "database" => name, "pool" => purpose).set(pool.limit);
        }
    }
    let mut text = api.metrics.render();
    write_backlog(&mut text, &backlog(&api).await);
    write_process(&mut text);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// What waits in the queue; nothing when its database does not answer: old numbers would be wrong ones.
async fn backlog(api: &Api) -> Vec<Backlog> {
    let mut last = api.backlogs.0.lock().await;
    if let Some((at, known)) = &*last
        && at.elapsed() < AGE
    {
        return known.clone();
    }
    let asked = tokio::time::timeout(TIMEOUT, api.app.backlog()).await;
    let found = asked.ok().and_then(Result::ok).unwrap_or_default();
    *last = Some((Instant::now(), found.clone()));
    found
}

fn write_backlog(text: &mut String, backlog: &[Backlog]) {
    if backlog.is_empty() {
        return;
    }
    let help =
        "Jobs that are ready to run and not taken yet, all processes together; 10000 means at least so many";
    family(text, "okt_jobs_waiting", "gauge", help);
    for Backlog { kind, waiting, .. } in backlog {
        let _ = writeln!(text, "okt_jobs_waiting{{kind=\"{kind}\"}} {waiting}");
    }
    let help = "How long the oldest waiting job has been ready to run";
    family(text, "okt_jobs_oldest_waiting_seconds", "gauge", help);
    for Backlog { kind, oldest_seconds, .. } in backlog {
        let _ = writeln!(text, "okt_jobs_oldest_waiting_seconds{{kind=\"{kind}\"}} {oldest_seconds}");
    }
}

/// By the names that every Prometheus client uses. What the system does not tell is left out.
fn write_process(text: &mut String) {
    let mut sample = |name: &str, kind: &str, help: &str, value: Option<f64>| {
        if let Some(value) = value {
            family(text, name, kind, help);
            let _ = writeln!(text, "{name} {value}");
        }
    };
    let process = Process::read();
    let get = |read: fn(&Process) -> f64| process.as_ref().map(read);
    sample("process_cpu_seconds_total", "counter", "CPU time, user and system", get(|process| process.cpu));
    sample("process_resident_memory_bytes", "gauge", "Resident memory", get(|process| process.resident));
    sample("process_virtual_memory_bytes", "gauge", "Virtual memory", get(|process| process.virtual_memory));
    sample(
        "process_start_time_seconds",
        "gauge",
        "Start, in seconds since 1970",
        get(|process| process.started),
    );
    sample("process_threads", "gauge", "Threads", get(|process| process.threads));
    let open = fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
    sample(
        "process_open_fds",
        "gauge",
        "Open file descriptors",
        open.and_then(|open| u32::try_from(open).ok()).map(f64::from),
    );
    sample("process_max_fds", "gauge", "Most file descriptors that may be open", max_fds());
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// What Linux says of this process.
struct Process {
    cpu: f64,
    resident: f64,
    virtual_memory: f64,
    started: f64,
    threads: f64,
}

impl Process {
    /// Linux counts in these on every machine that we run on.
    const TICKS: f64 = 100.0;
    const PAGE: f64 = 4096.0;

    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let boot = fs::read_to_string("/proc/stat").ok()?;
        Self::of(&stat, &boot)
    }

    fn of(stat: &str, boot: &str) -> Option<Self> {
        // The name of the program may hold anything, also spaces and brackets; it ends with the last one.
        let (_, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // By their numbers in proc(5), of which the first two are gone.
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<f64>().ok()?;
        Some(Self {
            cpu: (field(14)? + field(15)?) / Self::TICKS,
            threads: field(20)?,
            started: boot + field(22)? / Self::TICKS,
            virtual_memory: field(23)?,
            resident: field(24)? * Self::PAGE,
        })
    }
}

fn max_fds() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let stat = "42 (a) b c) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 7 0 1000 8192000 500 18446744073709551615";
        let process = Process::of(stat, "cpu 1 2\nbtime 1700000000\n").unwrap();
        let numbers =
            [process.cpu, process.threads, process.started, process.virtual_memory, process.resident];
        assert_eq!(numbers.map(|number| format!("{number}")), ["3", "7", "1700000010", "8192000", "2048000"]);
        assert!(Process::read().is_some_and(|own| own.resident > 0.0 && own.threads >= 1.0));
    }
}
