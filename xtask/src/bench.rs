//! Benchmarks with a bar to reach; what they come to is written into a page.

use std::process::Command;

use anyhow::ensure;

use crate::figures::{self, Measurement};

const PAGE: &str = "docs/performance.md";

/// Those with a bar; `okt-test bench embeddings` is for looking at.
const BENCHMARKS: [Measurement; 6] = [
    Measurement { name: "http", what: "A GET of one row over HTTP beside its bare SQL, in CPU" },
    Measurement { name: "permissions", what: "One decision about a permission" },
    Measurement { name: "queue", what: "The queue beside a bare loop of two statements" },
    Measurement {
        name: "repositories",
        what: "Looking at a few among a million repositories, beside a thousand",
    },
    Measurement { name: "pipeline", what: "From text to facts, beside a bare loop of the same model calls" },
    Measurement { name: "vectors", what: "The stores of vectors beside bare calls" },
];

pub fn run(named: &[String]) -> anyhow::Result<()> {
    let chosen = figures::chosen(&BENCHMARKS, named)?;
    let program = figures::okt_test()?;
    let mut failed = Vec::new();
    for benchmark in chosen {
        let mut command = Command::new(&program);
        command.args(["bench", benchmark.name]);
        // Each figure stands beside what it is held against.
        let is_figure = |line: &str| line.contains("limit ") || line.contains("goal ");
        let figure = figures::measure(benchmark, &mut command, is_figure)?;
        if figure.verdict != "held" {
            failed.push(benchmark.name);
        }
        // Whatever comes of the next one.
        figures::write(PAGE, &BENCHMARKS, &[figure])?;
    }
    ensure!(failed.is_empty(), "a figure is worse than its limit: {}", failed.join(", "));
    Ok(())
}
