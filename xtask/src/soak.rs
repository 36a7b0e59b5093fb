//! Jobs under kill, outage and poison, at full length; what came of it is written into a page.

use std::process::Command;

use anyhow::ensure;

use crate::figures::{self, Measurement};

const PAGE: &str = "docs/trust/README.md";

const SOAKS: [Measurement; 7] = [
    Measurement {
        name: "kills",
        what: "No job is lost, and none commits twice, when processes are killed 1,000 times",
    },
    Measurement {
        name: "outages",
        what: "PostgreSQL may crash 100 times: no job is lost, work resumes within 5 s",
    },
    Measurement { name: "recovery", what: "The job of a killed process runs again within 15 s (p99)" },
    Measurement { name: "frozen", what: "The late outcome of a process that was paused is refused" },
    Measurement { name: "poison", what: "A job that crashes its process runs at most three times" },
    Measurement { name: "ticks", what: "Each tick of a periodic job has one job, whichever process dies" },
    Measurement {
        name: "fairness",
        what: "50,000 waiting jobs of one tenant delay another's single job to at most twice the idle p95",
    },
];

pub fn run(named: &[String]) -> anyhow::Result<()> {
    let chosen = figures::chosen(&SOAKS, named)?;
    let program = figures::okt_test()?;
    let mut failed = Vec::new();
    for soak in chosen {
        let mut command = Command::new(&program);
        command.args(["soak", soak.name]);
        let figure = figures::measure(soak, &mut command, |line| !line.trim().is_empty())?;
        if figure.verdict != "held" {
            failed.push(soak.name);
        }
        figures::write(PAGE, &SOAKS, &[figure])?;
    }
    ensure!(failed.is_empty(), "a promise did not hold: {}", failed.join(", "));
    Ok(())
}
