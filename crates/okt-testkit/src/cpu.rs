//! CPU time of processes, from `/proc`.

use std::fs;

/// The kernel counts in hundredths of a second, on every machine we know.
const TICKS: f64 = 100.0;

/// Seconds that a process has worked.
pub fn seconds(pid: u32) -> f64 {
    fields(pid).map_or(0.0, |fields| (fields[0] + fields[1]) / TICKS)
}

/// Seconds that a process and all it ever started have worked.
pub fn seconds_with_children(pid: u32) -> f64 {
    let own = fields(pid).map_or(0.0, |fields| fields.iter().sum::<f64>() / TICKS);
    own + children(pid).into_iter().map(seconds).sum::<f64>()
}

/// User and system time, its own and of children that have ended.
fn fields(pid: u32) -> Option<[f64; 4]> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold anything; what follows is plain.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut numbers = rest.split_whitespace().skip(11).map(|text| text.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??, numbers.next()??])
}

fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|text| text.parse().ok()).collect()
}
