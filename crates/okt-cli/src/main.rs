//! The one binary: `okt`.

use std::process::ExitCode;

/// A request makes some hundred small allocations, on a thread other than the last one's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    okt_cli::main()
}
