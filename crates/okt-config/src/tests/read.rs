//! A setting that no code reads promises something that nobody keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::crate_file;

/// The fields of each section, with what their types name.
type Sections = BTreeMap<String, Vec<(String, Vec<String>)>>;

/// By name: a file has to name the field, and the section or something that holds one. So a section that is passed on to another
/// file is found, and a field that only shares its name with another section's is not.
#[test]
fn every_setting_is_read_by_code() {
    let sections = sections();
    assert!(sections.len() > 50, "only {} sections were found", sections.len());
    let sources = sources();
    let mut holders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (field, kinds) in sections.values().flatten() {
        for kind in kinds {
            holders.entry(kind).or_default().insert(field);
        }
    }
    let mut unread = Vec::new();
    for (section, fields) in &sections {
        let known = |text: &str| {
            let mut held = holders.get(section.as_str()).into_iter().flatten();
            // The outermost is passed to everything.
            section == "Config" || has_word(text, section) || held.any(|holder| reads(text, holder))
        };
        for (field, _) in fields {
            if !sources.iter().any(|text| reads(text, field) && known(text)) {
                unread.push(format!("{section}.{field}"));
            }
        }
    }
    assert_eq!(unread, [""; 0], "read the setting, or remove it");
}

#[test]
fn reading_is_told_from_naming() {
    assert!(reads("let x = config.server.port;", "port"));
    assert!(reads("let Server { host, port, .. } = server;", "port"));
    assert!(!reads("the port", "port") && !reads("config.ports", "port") && !reads("import(x)", "port"));
    assert!(has_word("fn of(storage: &Storage)", "Storage") && !has_word("StorageBackend", "Storage"));
}

/// As a field of something, or taken out of it by a pattern.
fn reads(text: &str, field: &str) -> bool {
    words(text, field).any(|at| matches!(text[..at].trim_end().chars().last(), Some('.' | '{' | ',')))
}

fn has_word(text: &str, word: &str) -> bool {
    words(text, word).next().is_some()
}

/// Where a whole word stands.
fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .filter(move |(at, _)| {
            let before = text[..*at].chars().last();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
        .map(|(at, _)| at)
}

fn sections() -> Sections {
    let mut found = BTreeMap::new();
    let folder = crate_file("src/sections");
    for file in rust_files(&folder).into_iter().chain([crate_file("src/sections.rs")]) {
        let text = code_of(&file);
        for block in text.split("\npub struct ").skip(1) {
            let Some((name, rest)) = block.split_once(" {\n") else { continue };
            let body = rest.split_once("\n}").map_or(rest, |(body, _)| body);
            let fields = body.lines().filter_map(|line| line.strip_prefix("    pub ")?.split_once(": "));
            let fields = fields.map(|(field, kind)| {
                let kinds = kind.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
                (field.to_owned(), kinds.map(str::to_owned).collect())
            });
            found.insert(name.to_owned(), fields.collect());
        }
    }
    found
}

/// All code but what checks and describes the configuration, and tests.
fn sources() -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(crate_file("..")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let folder = crate_file("..").join(&name).join("src");
        match name.as_str() {
            "okt-testkit" => {}
            "okt-config" => {
                let own = rust_files(&folder.join("sections")).into_iter();
                let own = own.chain([folder.join("sections.rs"), folder.join("presets.rs")]);
                // Declaring a setting is not reading it.
                let without = |text: String| {
                    let lines = text.lines().filter(|line| !line.trim_start().starts_with("pub "));
                    lines.collect::<Vec<_>>().join("\n")
                };
                texts.extend(own.map(|file| without(code_of(&file))));
            }
            _ => texts.extend(rust_files(&folder).iter().map(|file| code_of(file))),
        }
    }
    texts
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    files
}

/// Without comments, and without the tests at the end.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}
