//! Promises about configuration as a whole.

mod golden;
mod layers;
mod problems;
mod read;
mod rules;
mod secrets;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{ConfigError, LoadOptions, Loaded, load};

/// A place with a binary's directory, a working directory and an environment.
struct Place {
    root: tempfile::TempDir,
    config: Option<PathBuf>,
    env: BTreeMap<String, String>,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for dir in ["bin", "here", "etc"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        Self { root, config: None, env: BTreeMap::new() }
    }

    /// A place whose override file has this text.
    fn with(text: &str) -> Self {
        let place = Self::new();
        place.write("here/okt.toml", text);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    fn load(&self) -> Result<Loaded, ConfigError> {
        let options = LoadOptions {
            config: self.config.clone(),
            binary_dir: self.path("bin"),
            working_dir: self.path("here"),
        };
        load(&options, &self.env)
    }

    /// Every problem, a line each, with the directory left out.
    fn problems(&self) -> String {
        let error = self.load().expect_err("should be refused").to_string();
        error.replace(self.root.path().to_str().unwrap(), "")
    }

    fn origin(&self, key: &str) -> String {
        let entries = self.load().unwrap_or_else(|error| panic!("{error}")).entries();
        let entry = entries.into_iter().find(|entry| entry.key == key);
        entry.unwrap_or_else(|| panic!("no {key}")).origin.to_string()
    }
}

fn crate_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}
