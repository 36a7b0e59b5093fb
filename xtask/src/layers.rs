//! The layers of the workspace. A crate may use crates on lower layers, never on its own layer or above.

use std::path::PathBuf;

use anyhow::{Context, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// Crate and layer. A crate that is not listed can't be added by accident: it needs a layer first.
const LAYERS: &[(&str, u8)] = &[
    ("okt-model", 0),
    ("okt-config", 1),
    ("okt-extract", 1),
    ("okt-interchange", 1),
    ("okt-parse", 1),
    ("okt-pg", 1),
    ("okt-search", 1),
    ("okt-store", 2),
    ("okt-providers", 2),
    ("okt-http", 2),
    ("okt-ai", 3),
    ("okt-auth", 3),
    ("okt-queue", 3),
    ("okt-vectors", 3),
    ("okt-check", 4),
    ("okt-app", 5),
    ("okt-jobs", 5),
    ("okt-wire", 6),
    ("okt-api", 7),
    ("okt-registry", 7),
    ("okt-cli", 8),
    // Beside the layers: may use every crate, and no crate may use them.
    ("okt-testkit", 9),
    ("xtask", 9),
];

/// Who may know an engine; for everybody else it does not exist.
const ENGINES: &[(&str, &[&str])] = &[
    ("sqlx", &["okt-pg", "okt-store", "okt-queue", "okt-vectors", "okt-registry", "okt-testkit"]),
    ("axum", &["okt-http", "okt-api", "okt-registry", "okt-testkit"]),
    ("reqwest", &["okt-providers", "okt-testkit"]),
    ("qdrant-client", &["okt-vectors", "okt-testkit"]),
];

/// The model and the formats know no async code.
const SYNCHRONOUS: &[&str] =
    &["okt-model", "okt-config", "okt-extract", "okt-interchange", "okt-parse", "okt-search"];

pub fn check(manifest_path: Option<PathBuf>) -> anyhow::Result<()> {
    let mut command = MetadataCommand::new();
    command.no_deps();
    if let Some(path) = manifest_path {
        command.manifest_path(path);
    }
    let metadata = command.exec().context("can't read the workspace")?;
    let breaches = breaches(&metadata);
    if breaches.is_empty() {
        return Ok(());
    }
    bail!("{}\nThe layers are listed in docs/ARCHITECTURE.md.", breaches.join("\n"));
}

fn breaches(metadata: &Metadata) -> Vec<String> {
    let mut breaches = Vec::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        let Some(layer) = layer(name) else {
            breaches.push(format!("{name} has no layer: give it one in xtask/src/layers.rs"));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development) {
            let used = dependency.name.as_str();
            if let Some(other) = self::layer(used)
                && other >= layer
            {
                breaches.push(format!("{name} (layer {layer}) must not use {used} (layer {other})"));
            }
            if let Some((engine, allowed)) = ENGINES.iter().find(|(engine, _)| *engine == used)
                && !allowed.contains(&name)
            {
                breaches.push(format!("{name} must not know {engine}; only {} may", allowed.join(", ")));
            }
            if used == "tokio" && SYNCHRONOUS.contains(&name) {
                breaches.push(format!("{name} must not know async code"));
            }
        }
    }
    breaches
}

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, layer)| *layer)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// A workspace with nothing but manifests.
    fn plant(folder: &Path, crates: &[(&str, &[&str])]) -> PathBuf {
        for (name, dependencies) in crates {
            let at = folder.join(name);
            fs::create_dir_all(at.join("src")).unwrap();
            fs::write(at.join("src/lib.rs"), "").unwrap();
            let lines: String = dependencies.iter().fold(String::new(), |text, used| {
                let source = if used.starts_with("okt-") {
                    format!("{{ path = \"../{used}\" }}")
                } else {
                    "\"*\"".into()
                };
                format!("{text}{used} = {source}\n")
            });
            let manifest =
                format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n[dependencies]\n{lines}");
            fs::write(at.join("Cargo.toml"), manifest).unwrap();
        }
        let root = folder.join("Cargo.toml");
        fs::write(&root, "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n").unwrap();
        root
    }

    #[test]
    fn the_workspace_keeps_its_layers() {
        check(None).unwrap();
    }

    #[test]
    fn a_planted_breach_is_named() {
        for (crates, expected) in [
            (
                vec![("okt-store", &["okt-app"][..]), ("okt-app", &[])],
                "okt-store (layer 2) must not use okt-app (layer 5)",
            ),
            (
                vec![("okt-store", &["okt-http"]), ("okt-http", &[])],
                "okt-store (layer 2) must not use okt-http (layer 2)",
            ),
            (
                vec![("okt-api", &["okt-testkit"]), ("okt-testkit", &[])],
                "okt-api (layer 7) must not use okt-testkit (layer 9)",
            ),
            (vec![("okt-api", &["sqlx"])], "okt-api must not know sqlx"),
            (vec![("okt-app", &["axum"])], "okt-app must not know axum"),
            (vec![("okt-model", &["tokio"])], "okt-model must not know async code"),
            (vec![("okt-attic", &[])], "okt-attic has no layer"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let error = check(Some(plant(folder.path(), &crates))).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn lower_layers_may_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let crates: [(&str, &[&str]); 3] =
            [("okt-app", &["okt-store"]), ("okt-store", &["okt-model", "sqlx"]), ("okt-model", &[])];
        check(Some(plant(folder.path(), &crates))).unwrap();
    }
}
