//! The folder of an installation, and who runs in it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use okt_config::{Loaded, Origin};
use serde::{Deserialize, Serialize};

use super::owner::Owner;
use super::{LOG, remove, say};

const LOCK: &str = "up.lock";
const RUNNING: &str = "up.json";
/// What PostgreSQL has of the folder.
pub(super) const HOME: &str = "postgresql";
/// Root's folder: another account, which runs PostgreSQL, has to enter it.
const OF_ROOT: &str = "/var/lib/okt-up";

/// How long a second start waits for the first to say where it is.
const PATIENCE: Duration = Duration::from_mins(3);

/// What a running `okt up` says of itself.
#[derive(Deserialize, Serialize)]
pub(super) struct Running {
    pub(super) url: String,
    pub(super) process: u32,
}

/// The folder, made if it is not there.
pub(super) fn folder(given: Option<PathBuf>, owner: Option<&Owner>) -> anyhow::Result<PathBuf> {
    let folder = match (given, owner) {
        (Some(given), _) => given,
        (None, Some(_)) => PathBuf::from(OF_ROOT),
        (None, None) => {
            of_this_person().context("there is no home folder: name a folder with `okt up --data DIR`")?
        }
    };
    let (is_new, mode) = (!folder.exists(), if owner.is_some() { 0o755 } else { 0o700 });
    let is_there = DirBuilder::new().recursive(true).mode(mode).create(&folder).and_then(|()| {
        // Whatever the umask is.
        if is_new { fs::set_permissions(&folder, Permissions::from_mode(mode)) } else { Ok(()) }
    });
    is_there.and_then(|()| folder.canonicalize()).with_context(|| {
        format!("can't make the folder {}; name another one: okt up --data DIR", folder.display())
    })
}

/// Where programs of this person keep what is theirs.
fn of_this_person() -> Option<PathBuf> {
    let shared = named("XDG_DATA_HOME").or_else(|| Some(named("HOME")?.join(".local/share")))?;
    Some(shared.join("okt"))
}

/// A folder that a variable of the environment names.
pub(super) fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The lock of whoever runs in the folder.
pub(super) fn lock(folder: &Path) -> anyhow::Result<File> {
    let lock =
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(folder.join(LOCK));
    lock.with_context(|| {
        format!("can't write to {}; name another folder: okt up --data DIR", folder.display())
    })
}

/// Who runs in the folder, if somebody does; otherwise it is ours from here on, without what a killed process has left.
pub(super) fn taken(lock: &File, folder: &Path) -> anyhow::Result<Option<Running>> {
    let begun = Instant::now();
    let mut said = false;
    loop {
        match lock.try_lock() {
            Ok(()) => return forget(folder).map(|()| None),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("can't lock {}", folder.join(LOCK).display()));
            }
        }
        if let Some(running) = read_running(folder) {
            return Ok(Some(running));
        }
        if begun.elapsed() > PATIENCE {
            bail!(
                "another `okt up` has been starting or stopping in {} for minutes; its log is {}",
                folder.display(),
                folder.join(LOG).display()
            );
        }
        if !said {
            say(&format!("another `okt up` is starting or stopping in {}; waiting for it", folder.display()));
            said = true;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// From now on others find what runs here.
pub(super) fn tell(folder: &Path, url: &str) -> anyhow::Result<()> {
    let running = Running { url: url.to_owned(), process: std::process::id() };
    let (file, aside) = (folder.join(RUNNING), folder.join(format!("{RUNNING}.new")));
    fs::write(&aside, serde_json::to_vec(&running)?)
        .and_then(|()| fs::rename(&aside, &file))
        .with_context(|| format!("can't write {}", file.display()))
}

pub(super) fn forget(folder: &Path) -> anyhow::Result<()> {
    remove(&folder.join(RUNNING))
}

/// The address of the `okt up` of whoever asks, if one runs.
pub(crate) fn address() -> Option<String> {
    folders().find_map(|folder| running(&folder)).map(|running| running.url)
}

/// What helps somebody whose database does not answer and who has an `okt up`: starting it, or naming its folder.
pub(crate) fn remedy(loaded: &Loaded) -> Option<String> {
    if loaded.config_dir.join(HOME).is_dir() {
        return Some(format!("okt up --data {}", loaded.config_dir.display()));
    }
    let is_configured =
        loaded.config.databases.values().any(|database| database.url_origin != Origin::Default);
    let folder = folders().find(|folder| !is_configured && folder.join(HOME).is_dir())?;
    let remedy =
        format!("okt --config {} doctor   # that is where okt up keeps everything", folder.display());
    Some(remedy)
}

/// Where whoever asks may have an `okt up`.
fn folders() -> impl Iterator<Item = PathBuf> {
    [named("OKT_DATA"), of_this_person(), Some(PathBuf::from(OF_ROOT))].into_iter().flatten()
}

/// What runs in the folder: a file that a killed process has left says nothing, a lock ends with its process.
pub(super) fn running(folder: &Path) -> Option<Running> {
    let lock = File::open(folder.join(LOCK)).ok()?;
    if !matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    read_running(folder)
}

fn read_running(folder: &Path) -> Option<Running> {
    serde_json::from_slice(&fs::read(folder.join(RUNNING)).ok()?).ok()
}
