//! What is wrong with a configuration: everything at once, each with its key and its place.

use std::fmt;

use crate::origin::Origin;

/// One thing to mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The setting; for a file that can't be read or parsed, the file.
    pub key: String,
    /// What is wrong with it. Never holds a secret.
    pub message: String,
    /// Where it was set, when it is about a setting.
    pub origin: Option<Origin>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)?;
        self.origin.as_ref().map_or(Ok(()), |origin| write!(f, " ({})", origin.place()))
    }
}

/// Why a configuration can't be used: one line for each problem.
#[derive(Clone, Debug)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    pub(crate) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|left, right| left.key.cmp(&right.key));
        problems.dedup();
        Self { problems }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.problems.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
