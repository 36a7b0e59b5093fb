//! The embedded defaults, and the copy of them on disk.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::layer;
use crate::sections::Config;

/// The copy's name.
pub(crate) const FILE: &str = "okt.default.toml";

const TEXT: &str = include_str!("../defaults.toml");
const MARK: &str = "# okt defaults sha256:";

/// The embedded defaults as values.
pub(crate) fn tree() -> &'static Value {
    static TREE: LazyLock<Value> = LazyLock::new(|| {
        let parsed = layer::parse(TEXT, Path::new("defaults.toml"));
        parsed.expect("defaults.toml is valid TOML; a test reads it").tree
    });
    &TREE
}

/// The embedded defaults as the type.
pub(crate) fn typed() -> Config {
    serde_json::from_value(tree().clone()).expect("defaults.toml fits the type; a test reads it")
}

/// Brings the copy in `dir` up to date, and answers with its text when a person has edited it.
///
/// The first line holds a hash of the rest. While it is right nobody has touched the file, so it may be replaced
/// when a new version brings new defaults. Otherwise it is somebody's work, and counts.
pub(crate) fn refresh(dir: &Path, notes: &mut Vec<String>) -> io::Result<Option<String>> {
    let path = dir.join(FILE);
    let what = match fs::read_to_string(&path) {
        Ok(text) if is_edited(&text) => return Ok(Some(text)),
        Ok(text) if text.ends_with(TEXT) => return Ok(None),
        Ok(_) => "brought up to date",
        Err(error) if error.kind() == io::ErrorKind::NotFound => "written",
        Err(error) => return Err(error),
    };
    match write(&path) {
        Ok(()) => notes.push(format!("{}: {what}", path.display())),
        // A program that is installed for everybody lies where the service can't write, and need not.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) => {}
        // Nothing is lost, the defaults are in the binary.
        Err(error) => notes.push(format!("{}: could not be {what}: {error}", path.display())),
    }
    Ok(None)
}

fn is_edited(text: &str) -> bool {
    let Some((first, body)) = text.split_once('\n') else {
        return true;
    };
    let stated = first.strip_prefix(MARK).and_then(|rest| rest.split_whitespace().next());
    stated != Some(hash(body).as_str())
}

/// Written beside and renamed, so that a process starting at the same time never reads half a file.
fn write(path: &Path) -> io::Result<()> {
    let text = format!("{MARK}{} (written by okt; changes belong into okt.toml)\n{TEXT}", hash(TEXT));
    let partial = path.with_file_name(format!(".{FILE}.{}", std::process::id()));
    fs::write(&partial, text).and_then(|()| fs::rename(&partial, path)).inspect_err(|_| {
        // It may not exist; then there is nothing to clean up.
        let _ = fs::remove_file(&partial);
    })
}

fn hash(body: &str) -> String {
    hex::encode(Sha256::digest(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refreshed(dir: &Path) -> (Option<String>, Vec<String>) {
        let mut notes = Vec::new();
        (refresh(dir, &mut notes).unwrap(), notes)
    }

    #[test]
    fn the_copy_is_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let (edited, notes) = refreshed(dir.path());
        assert!(edited.is_none());
        assert!(notes[0].ends_with("okt.default.toml: written"), "{notes:?}");
        let first = fs::read_to_string(dir.path().join(FILE)).unwrap();
        assert!(first.starts_with(MARK) && first.ends_with(TEXT));

        assert_eq!(refreshed(dir.path()), (None, vec![]));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no partial file is left");
    }

    #[test]
    fn an_untouched_older_copy_is_replaced_and_an_edited_one_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let older = "[server]\nport = 7000\n";
        fs::write(&path, format!("{MARK}{} (written by okt)\n{older}", hash(older))).unwrap();
        let (edited, notes) = refreshed(dir.path());
        assert!(edited.is_none());
        assert!(notes[0].ends_with("brought up to date"), "{notes:?}");
        assert!(fs::read_to_string(&path).unwrap().ends_with(TEXT));

        let touched = fs::read_to_string(&path).unwrap().replace("port = 8080", "port = 7000");
        fs::write(&path, &touched).unwrap();
        assert_eq!(refreshed(dir.path()), (Some(touched.clone()), vec![]));
        assert_eq!(fs::read_to_string(&path).unwrap(), touched);
    }

    #[test]
    fn a_place_that_can_not_be_written_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let (edited, notes) = refreshed(&dir.path().join("missing"));
        assert!(edited.is_none());
        assert!(notes[0].contains("could not be written"), "{notes:?}");
    }
}
