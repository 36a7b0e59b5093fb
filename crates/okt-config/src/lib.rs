//! Configuration: embedded defaults, the copy of them on disk, the override file, the environment; then one
//! check of everything, whose answer lists every problem with its key and the place it came from.
//!
//! This crate knows no engine: it opens no connection, starts no task and writes no log. What a person should
//! hear is handed back as [`Loaded::notes`], [`Loaded::warnings`] or a [`ConfigError`].
//!
//! To add a setting: a field with a doc comment in `src/sections/`, its default in `defaults.toml`, a rule in
//! `src/validate/` when its type can't say everything, then `just bless` for the schema and the reference page.

mod check;
mod defaults;
mod env;
mod error;
mod format;
mod layer;
mod load;
pub mod ontology;
mod origin;
mod period;
mod presets;
mod reference;
mod schema;
mod secret;
mod sections;
mod suggest;
#[cfg(test)]
mod tests;
mod tree;
mod validate;

pub use env::is_setting;
pub use error::ConfigError;
pub use load::{Entry, LoadOptions, Loaded, load};
pub use origin::Origin;
pub use period::Period;
pub use presets::{Contexts, CustomContext, Preset, PresetProviders, ResolutionProvider, SearchProvider};
pub use reference::reference_page;
pub use schema::json_schema;
pub use secret::Secret;
pub use sections::*;
pub use suggest::{closest, did_you_mean, variable_for};
