//! The binary as an operator meets it.
mod accounts;
mod answers;
mod away;
mod boot;
mod check;
mod config;
mod doctor;
mod frames;
mod health;
mod issued;
mod planning;
mod readers;
mod restart;
mod secrets;
mod shelf;
mod traces;
mod unreachable;

use std::path::PathBuf;
use std::sync::LazyLock;

/// The binary under test.
static OKT: LazyLock<PathBuf> = LazyLock::new(okt_testkit::jobs::program);
