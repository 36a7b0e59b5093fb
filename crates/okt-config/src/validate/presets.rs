//! Repository presets.

use std::collections::BTreeSet;

use super::{Breaches, no_such};
use crate::ontology;
use crate::presets::{Contexts, Preset};
use crate::sections::Config;

pub(super) fn rules(config: &Config, found: &mut Breaches) {
    let default = &config.default_repository_preset;
    if !config.repository_presets.contains_key(default) {
        let known = config.repository_presets.keys().map(String::as_str);
        found.between(
            "default_repository_preset",
            &[&format!("repository_presets.{default}")],
            no_such("preset", default, known),
        );
    }
    for (id, preset) in &config.repository_presets {
        contexts(id, preset, found);
    }
}

fn contexts(id: &str, preset: &Preset, found: &mut Breaches) {
    let key = format!("repository_presets.{id}.custom_contexts");
    let mut seen = BTreeSet::new();
    for (index, custom) in preset.custom_contexts.iter().enumerate() {
        if !seen.insert(custom.label.to_lowercase()) {
            found.in_list(&key, index, "label", format!("{:?} is there twice", custom.label));
        }
    }

    let Contexts::Labels(labels) = &preset.contexts else {
        return;
    };
    let key = format!("repository_presets.{id}.contexts");
    for label in labels {
        if ontology::find(label).is_none() {
            let known = ontology::classes().map(|class| class.label);
            let message = no_such("class of the ontology", label, known);
            found.at(&key, format!("{message}; contexts of one's own belong into custom_contexts"));
        } else if !seen.insert(label.to_lowercase()) {
            found.at(&key, format!("{label:?} is there twice"));
        }
    }
}
