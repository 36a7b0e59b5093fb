//! Who runs PostgreSQL: it refuses to run as root, so root has another account run it.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The first of these accounts that there is.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

#[derive(Clone, Debug)]
pub(super) struct Owner {
    name: &'static str,
    user: u32,
    group: u32,
}

/// Somebody else if we are root.
pub(super) fn of_postgres() -> anyhow::Result<Option<Owner>> {
    if id(&["-u"])? != Some(0) {
        return Ok(None);
    }
    for name in ACCOUNTS {
        if let Some((user, group)) = id(&["-u", name])?.zip(id(&["-g", name])?) {
            return Ok(Some(Owner { name, user, group }));
        }
    }
    bail!(
        "PostgreSQL refuses to run as root, and this machine has neither an account postgres nor nobody: make one (useradd \
         --system postgres), or run okt up as an ordinary user"
    )
}

/// A number, or nothing where there is no such account.
fn id(arguments: &[&str]) -> anyhow::Result<Option<u32>> {
    let output = Command::new("id").args(arguments).stderr(Stdio::null()).output();
    let output = output.context("can't run `id`, which says who this is")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
}

impl Owner {
    /// Has a command run as this account, with none of our groups.
    pub(super) fn runs(&self, command: &mut Command) {
        command.uid(self.user).gid(self.group);
    }

    pub(super) fn gets(&self, path: &Path) -> anyhow::Result<()> {
        let given = chown(path, Some(self.user), Some(self.group));
        given.with_context(|| format!("can't give {} to the account {}", path.display(), self.name))
    }

    /// Refuses a folder that this account can't enter.
    pub(super) fn enters(&self, folder: &Path) -> anyhow::Result<()> {
        let mut command = Command::new("test");
        command.arg("-x").arg(folder).current_dir("/");
        self.runs(&mut command);
        if command.status().is_ok_and(|status| status.success()) {
            return Ok(());
        }
        let closed = folder.ancestors().filter(|folder| {
            use std::os::unix::fs::PermissionsExt as _;
            fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode() & 0o001 == 0)
        });
        let closed = closed.last().unwrap_or(folder);
        bail!(
            "PostgreSQL refuses to run as root, and the account {} that would run it can't enter {}: open it (chmod o+x {}), \
             name a folder that others may enter (okt up --data /var/lib/okt-up), or run okt up as an ordinary user",
            self.name,
            closed.display(),
            closed.display(),
        )
    }
}
