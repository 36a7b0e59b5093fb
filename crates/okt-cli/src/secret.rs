//! The signing secret: configured, or in development mode made once and kept beside the configuration.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use okt_config::{Loaded, Secret};
use rand::TryRng;

/// Where it is kept beside the configuration.
pub(crate) const FILE: &str = "okt.dev-secret";

/// Validation has seen to it that production has one of its own.
pub(crate) fn signing_secret(loaded: &Loaded) -> anyhow::Result<Secret> {
    let configured = &loaded.config.auth.jwt_secret;
    if !configured.is_empty() {
        return Ok(configured.clone());
    }
    let path = loaded.config_dir.join(FILE);
    if let Some(secret) = read(&path)? {
        return Ok(secret);
    }
    create(&path).with_context(|| {
        format!(
            "cannot write a development secret to {}; set AUTH_JWTSECRET (`openssl rand -base64 32` makes one), or name a \
             writable directory: okt --config DIRECTORY serve",
            path.display()
        )
    })?;
    tracing::warn!(file = %path.display(), "created a signing secret for development");
    read(&path)?.context("the development secret was deleted while it was being created")
}

fn read(path: &Path) -> anyhow::Result<Option<Secret>> {
    match fs::read_to_string(path) {
        Ok(text) if text.trim().len() >= 32 => Ok(Some(Secret::from(text.trim().to_owned()))),
        Ok(_) => anyhow::bail!("{} is too short; delete it and a new one is made", path.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
    }
}

/// Whole or not at all, and the first of several processes wins: written aside, then linked into place.
fn create(path: &Path) -> anyhow::Result<()> {
    let mut bytes = [0; 32];
    rand::rngs::SysRng
        .try_fill_bytes(&mut bytes)
        .context("cannot get random bytes from the operating system")?;
    let aside = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
    writeln!(file, "{}", BASE64_URL_SAFE_NO_PAD.encode(bytes))?;
    file.sync_all()?;
    let linked = fs::hard_link(&aside, path);
    fs::remove_file(&aside)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}
