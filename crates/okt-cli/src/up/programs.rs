//! PostgreSQL's programs on this machine, taken only where pgvector is with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest that is tested.
const OLDEST: u32 = 15;
/// The oldest pgvector that okt uses, as `okt-store` has it.
const PGVECTOR: (u32, u32) = (0, 8);
const NEEDED: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

/// Folders that have folders of versions in them, each with what lies between a version and its programs.
const PLACES: [(&str, &str); 5] = [
    ("/usr/lib/postgresql", "bin"),
    ("/usr/local/lib/postgresql", "bin"),
    ("/opt/homebrew/opt", "bin"),
    ("/usr/local/opt", "bin"),
    ("/usr", "bin"),
];

/// The folder of programs for data of this major version, or of the newest where there is no data yet: the installed ones, or
/// others of this machine.
pub(super) fn find(installed: &Path, major: Option<u32>) -> Option<PathBuf> {
    let fits = |found: u32| major.map_or(found >= OLDEST, |major| found == major);
    if is_complete(installed) && version(installed).is_some_and(fits) {
        return Some(installed.to_owned());
    }
    let found = candidates().into_iter().filter_map(|folder| Some((version(&folder)?, folder)));
    let usable = found.filter(|(found, folder)| fits(*found) && has_pgvector(folder, *found));
    usable.max_by_key(|(found, _)| *found).map(|(_, folder)| folder)
}

fn candidates() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // What is in PATH may be a link into the folder where its neighbours are.
    let named = std::env::split_paths(&path)
        .filter_map(|folder| Some(folder.join("initdb").canonicalize().ok()?.parent()?.to_owned()));
    let below = PLACES.into_iter().flat_map(|(place, bin)| {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        let wanted = entries.filter(move |entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("postgresql") || name.starts_with("pgsql") || name.parse::<u32>().is_ok()
        });
        wanted.map(move |entry| entry.path().join(bin))
    });
    named.chain(below).filter(|folder| is_complete(folder)).collect()
}

fn is_complete(folder: &Path) -> bool {
    NEEDED.iter().all(|name| folder.join(name).is_file())
}

/// The major version; nothing of a program that does not run here.
pub(super) fn version(folder: &Path) -> Option<u32> {
    let output = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
    major_of(&String::from_utf8_lossy(&output.stdout))
}

/// Of `postgres (PostgreSQL) 18beta1`.
fn major_of(said: &str) -> Option<u32> {
    let rest = said.split_once("(PostgreSQL) ")?.1;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

fn has_pgvector(folder: &Path, major: u32) -> bool {
    let told = Command::new(folder.join("pg_config")).arg("--sharedir").output();
    let told = told.ok().and_then(|output| {
        let text = String::from_utf8(output.stdout).ok()?;
        Some(PathBuf::from(text.trim())).filter(|path| path.is_absolute())
    });
    let around = folder.parent().map(|home| [home.join("share/postgresql"), home.join("share")]);
    let debian = PathBuf::from(format!("/usr/share/postgresql/{major}"));
    let shares = told.into_iter().chain(around.into_iter().flatten()).chain([debian]);
    let controls = shares.filter_map(|share| fs::read_to_string(share.join("extension/vector.control")).ok());
    controls
        .into_iter()
        .next()
        .and_then(|control| pgvector_of(&control))
        .is_some_and(|found| found >= PGVECTOR)
}

/// Of `default_version = '0.8.1'`.
fn pgvector_of(control: &str) -> Option<(u32, u32)> {
    let line = control.lines().find(|line| line.trim_start().starts_with("default_version"))?;
    let mut numbers = line.split('\'').nth(1)?.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_they_are_said() {
        assert_eq!(major_of("postgres (PostgreSQL) 18.1 (Debian 18.1-1.pgdg13+2)\n"), Some(18));
        assert_eq!(major_of("postgres (PostgreSQL) 19devel\n"), Some(19));
        assert_eq!(major_of("not a server"), None);
        assert_eq!(pgvector_of("comment = 'vector'\ndefault_version = '0.8.1'\n"), Some((0, 8)));
        assert_eq!(pgvector_of("default_version = '0.10.0'"), Some((0, 10)));
        assert_eq!(pgvector_of("relocatable = true"), None);
    }
}
