//! Cargo, as a person would run it.

use std::process::Command;

/// Without what cargo has told this program about itself. Some build scripts look at it, and whatever they build would be
/// built anew every time that a chore follows a person and a person a chore.
pub fn cargo() -> Command {
    let mut command = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
    command
}
