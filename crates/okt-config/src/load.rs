//! Puts the layers on each other and hands out the result, or everything that is wrong with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path as FilePath, PathBuf};

use serde_json::Value;

use crate::check;
use crate::defaults;
use crate::env;
use crate::error::{ConfigError, Problem};
use crate::layer::{self, Layer};
use crate::origin::{Origin, Sources};
use crate::sections::Config;
use crate::tree::{self, Path};
use crate::validate;

/// The name of the override file.
const OVERRIDE: &str = "okt.toml";

/// What production does only when it is told to.
const AUTO_PROMOTE: &str = "bootstrap.auto_promote_first_user";

/// Where to look.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// `--config`: the override file itself, which must exist, or the directory for it and the defaults' copy.
    pub config: Option<PathBuf>,
    /// The directory of the binary.
    pub binary_dir: PathBuf,
    /// The directory that relative paths start at.
    pub working_dir: PathBuf,
}

/// A configuration that passed every check.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    /// By key, for every effective setting.
    origins: BTreeMap<String, Origin>,
    /// What a person should hear but need not act on. Holds no secrets.
    pub notes: Vec<String>,
    /// What is allowed and most likely not meant. Holds no secrets.
    pub warnings: Vec<String>,
    /// The directory that the configuration lives in, for files that belong beside it.
    pub config_dir: PathBuf,
}

/// One effective setting.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    /// As shown to people: secrets are masked.
    pub value: Value,
    pub origin: Origin,
}

impl Loaded {
    /// Every effective setting, in the order of the keys.
    pub fn entries(&self) -> Vec<Entry> {
        let shown = shown(&self.config);
        let values: BTreeMap<String, &Value> =
            tree::leaves(&shown).into_iter().map(|(path, value)| (path.to_string(), value)).collect();
        self.origins
            .iter()
            .filter_map(|(key, origin)| {
                let value = (*values.get(key)?).clone();
                Some(Entry { key: key.clone(), value, origin: origin.clone() })
            })
            .collect()
    }
}

/// Reads the configuration. Later layers win: embedded defaults, their copy on disk when it was edited, the
/// override file, the environment.
pub fn load(options: &LoadOptions, env: &BTreeMap<String, String>) -> Result<Loaded, ConfigError> {
    let places = Places::find(options)?;
    let mut problems = Vec::new();
    let mut notes = Vec::new();

    let copy = edited_copy(&places.defaults_dir, &mut notes, &mut problems);
    let override_layer = places.override_file.as_deref().and_then(|file| read_layer(file, &mut problems));
    if !problems.is_empty() {
        return Err(ConfigError::new(problems));
    }

    let mut merged = defaults::tree().clone();
    let mut sources = Sources::default();
    for layer in copy.into_iter().chain(override_layer) {
        layer.apply(&mut merged, &mut sources);
    }
    let environment = env::layer(env, &mut problems, &mut notes);
    problems.extend(overridden(&merged, &sources, &environment));
    environment.apply(&mut merged, &mut sources);

    let config = typed(merged, &sources, &mut problems);
    let Some(mut config) = config.filter(|_| problems.is_empty()) else {
        return Err(ConfigError::new(problems));
    };
    if config.mode.is_production() && sources.of_value(&Path::dotted(AUTO_PROMOTE)) == Origin::Default {
        // Whoever finds a fresh installation first must not get it only because nobody thought of it.
        config.bootstrap.auto_promote_first_user = false;
    }
    for (name, database) in &mut config.databases {
        database.url_origin = sources.of_value(&Path::of(["databases", name, "url"]));
    }
    let warnings = validate::warnings(&config);
    let shown = shown(&config);
    let origins = tree::leaves(&shown)
        .into_iter()
        .map(|(path, _)| (path.to_string(), sources.of_value(&path)))
        .collect();
    Ok(Loaded { config, origins, notes, warnings, config_dir: places.config_dir })
}

struct Places {
    defaults_dir: PathBuf,
    override_file: Option<PathBuf>,
    config_dir: PathBuf,
}

impl Places {
    fn find(options: &LoadOptions) -> Result<Self, ConfigError> {
        let Some(given) = &options.config else {
            let found = [&options.working_dir, &options.binary_dir]
                .into_iter()
                .map(|dir| dir.join(OVERRIDE))
                .find(|file| file.exists());
            let config_dir = found.as_deref().and_then(FilePath::parent).unwrap_or(&options.binary_dir);
            return Ok(Self {
                defaults_dir: options.binary_dir.clone(),
                config_dir: config_dir.to_owned(),
                override_file: found,
            });
        };
        let given = options.working_dir.join(given);
        if given.is_dir() {
            let file = Some(given.join(OVERRIDE)).filter(|file| file.exists());
            return Ok(Self { defaults_dir: given.clone(), override_file: file, config_dir: given });
        }
        if !given.exists() {
            let message = format!("{} does not exist", given.display());
            return Err(ConfigError::new(vec![Problem { key: "--config".into(), message, origin: None }]));
        }
        let config_dir = given.parent().unwrap_or(&options.working_dir).to_owned();
        Ok(Self { defaults_dir: options.binary_dir.clone(), override_file: Some(given), config_dir })
    }
}

/// The defaults' copy as a layer, when a person has edited it. Only what they changed counts as theirs.
fn edited_copy(dir: &FilePath, notes: &mut Vec<String>, problems: &mut Vec<Problem>) -> Option<Layer> {
    let file = dir.join(defaults::FILE);
    let text = match defaults::refresh(dir, notes) {
        Ok(text) => text?,
        Err(error) => {
            problems.push(unreadable(&file, &error));
            return None;
        }
    };
    match layer::parse(&text, &file) {
        Ok(mut layer) => {
            let embedded = defaults::tree();
            layer.places.retain(|path, _| tree::find(&layer.tree, path) != tree::find(embedded, path));
            Some(layer)
        }
        Err(found) => {
            problems.extend(found);
            None
        }
    }
}

fn read_layer(file: &FilePath, problems: &mut Vec<Problem>) -> Option<Layer> {
    match fs::read_to_string(file) {
        Ok(text) => layer::parse(&text, file).map_err(|found| problems.extend(found)).ok(),
        Err(error) => {
            problems.push(unreadable(file, &error));
            None
        }
    }
}

fn unreadable(file: &FilePath, error: &std::io::Error) -> Problem {
    Problem { key: file.display().to_string(), message: format!("can't be read: {error}"), origin: None }
}

/// Values of the wrong form in files that the environment overrides: without its variable they would be in force.
fn overridden(files: &Value, sources: &Sources, environment: &Layer) -> Vec<Problem> {
    let overridden_by = |path: &Path| environment.places.iter().find(|(set, _)| path.is_within(set));
    let findings = check::check(files).into_iter();
    findings
        .filter_map(|check::Finding { path, message }| {
            // What is missing in a file may be what the environment adds.
            let wrong = tree::find(files, &path).is_some();
            let (_, by) = overridden_by(&path).filter(|_| wrong)?;
            let message = format!("{message}, although {by} overrides it now");
            Some(Problem { key: path.to_string(), message, origin: Some(sources.nearest(&path)) })
        })
        .collect()
}

/// The typed configuration, with all problems of form and of sense added to the list.
///
/// Values of the wrong form are put back to their defaults first, so that the rules can still be asked about the
/// rest; what they then say about a value that was put back is left out.
fn typed(mut merged: Value, sources: &Sources, problems: &mut Vec<Problem>) -> Option<Config> {
    let findings = check::check(&merged);
    let broken: Vec<Path> = findings.iter().map(|finding| mendable(&merged, &finding.path)).collect();
    for path in &broken {
        tree::set(&mut merged, path, tree::find(defaults::tree(), path).cloned());
    }
    for check::Finding { path, message } in findings {
        let origin = Some(sources.nearest(&path));
        problems.push(Problem { key: path.to_string(), message, origin });
    }

    let Ok(config) = serde_json::from_value::<Config>(merged) else {
        // Serde's own words may repeat a secret.
        if problems.is_empty() {
            let message = "passed the schema but not the types; this is a fault of okt".into();
            problems.push(Problem { key: "configuration".into(), message, origin: None });
        }
        return None;
    };
    for breach in validate::breaches(&config, &FilePath::is_file) {
        let places = || std::iter::once(&breach.path).chain(&breach.related);
        if places().any(|place| broken.iter().any(|broken| place.is_within(broken))) {
            continue;
        }
        let set = places().map(|place| sources.of_value(place)).find(|origin| *origin != Origin::Default);
        let origin = Some(set.unwrap_or(Origin::Default));
        problems.push(Problem { key: breach.path.to_string(), message: breach.message, origin });
    }
    Some(config)
}

/// The place to put back: a list as a whole, and the entry around a member that is missing.
fn mendable(merged: &Value, path: &Path) -> Path {
    let path = path.outermost_list();
    match path.parent() {
        Some(entry) if tree::find(merged, &path).is_none() => entry,
        _ => path,
    }
}

/// The configuration as it may be shown.
fn shown(config: &Config) -> Value {
    serde_json::to_value(config).expect("every setting can be written as JSON")
}
