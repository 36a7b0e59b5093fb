//! Finding the words in a picture: by tesseract, a program of its own, in a child that is locked in as the parser is.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::sandbox;
use crate::worker::NOT_LOCKED;

/// Where programs, their libraries and their models are installed.
const INSTALLED: [&str; 5] = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache"];

/// The child becomes tesseract, which reads a PNG from its standard input and writes words with their places to its standard
/// output. Returns only if it could not.
pub fn run_tesseract(program: &Path, languages: &str) -> ExitCode {
    let error = match sandbox::begin() {
        Ok(()) => {
            // The program itself, where it is not installed with the system.
            let folders: Vec<&Path> = INSTALLED.iter().map(Path::new).chain([program]).collect();
            let mut command = Command::new(program);
            // One thread: it can't start others here, and as many children run at once as there are processors.
            command.env_clear().env("OMP_THREAD_LIMIT", "1").env("LC_ALL", "C");
            command.args(["stdin", "stdout", "-l", languages, "--dpi", "300", "tsv"]);
            sandbox::become_program(&mut command, &folders)
        }
        Err(error) => error,
    };
    let _ = writeln!(io::stderr(), "okt ocr-worker: {error}");
    ExitCode::from(NOT_LOCKED)
}
