//! The binary as an operator meets it.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod boot;
mod config;
mod issued;
mod restart;
mod secrets;
mod traces;

/// The binary under test.
const OKT: &str = env!("CARGO_BIN_EXE_okt");
