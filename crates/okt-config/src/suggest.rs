//! "Did you mean …?"

use crate::env;
use crate::schema;

/// The candidate that a mistyped word most likely stands for.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(word, candidate)?, candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The setting that an unknown key most likely stands for: a sibling, a path that reads alike, or the same word
/// elsewhere.
pub(crate) fn setting<'a>(
    path: &str,
    word: &str,
    siblings: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let known = schema::paths().iter().map(String::as_str);
    closest(word, siblings)
        .or_else(|| known.clone().find(|known| is_alike(path, known)))
        .or_else(|| elsewhere(word, known))
        .map(str::to_owned)
}

/// How many slips of the finger lie between two words; `None` when they are too many for a slip.
fn distance(word: &str, other: &str) -> Option<usize> {
    let tolerance = (word.chars().count() / 3).max(1);
    let distance = strsim::damerau_levenshtein(&word.to_lowercase(), &other.to_lowercase());
    Some(distance).filter(|distance| *distance <= tolerance)
}

/// Whether two paths are alike key by key.
fn is_alike(path: &str, known: &str) -> bool {
    let (keys, known): (Vec<&str>, Vec<&str>) = (path.split('.').collect(), known.split('.').collect());
    keys.len() == known.len() && keys.iter().zip(known).all(|(key, known)| distance(key, known).is_some())
}

/// The one nearest setting whose last key is the word, or alike; none when two are as near.
fn elsewhere<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut found: Vec<(usize, usize, &str)> = known
        .filter_map(|known| {
            let last = known.rsplit('.').next()?;
            // The settings of the registry service are meant by few.
            let depth = known.matches('.').count() + usize::from(known.starts_with("registry."));
            Some((distance(word, last)?, depth, known))
        })
        .collect();
    found.sort_unstable();
    match found.as_slice() {
        [(.., only)] => Some(only),
        [first, second, ..] if (first.0, first.1) < (second.0, second.1) => Some(first.2),
        _ => None,
    }
}

/// The setting that somebody means who gives this word as an option, and its variable.
pub fn variable_for(word: &str) -> Option<(String, String)> {
    let path = setting(word, &word.replace('-', "_"), [])?;
    let variable = env::general_name(&path)?;
    Some((path, variable))
}

/// The end of a sentence that says what is wrong.
pub fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|suggestion| format!("; did you mean `{suggestion}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_suggested_and_a_far_one_is_not() {
        assert_eq!(closest("prot", ["host", "port"]), Some("port"));
        assert_eq!(closest("Port", ["host", "port"]), Some("port"));
        assert_eq!(closest("colour", ["host", "port"]), None);
    }

    #[test]
    fn a_key_in_the_wrong_place_is_found_elsewhere() {
        assert_eq!(setting("jwt_secret", "jwt_secret", ["mode"]).as_deref(), Some("auth.jwt_secret"));
        assert_eq!(setting("srever.prot", "prot", []).as_deref(), Some("server.port"));
        assert_eq!(setting("enabled", "enabled", []), None, "there are many");
    }

    #[test]
    fn an_option_leads_to_its_variable() {
        let found = |word| variable_for(word).map(|(path, variable)| format!("{path} {variable}"));
        assert_eq!(found("port").as_deref(), Some("server.port SVC__SERVER__PORT"));
        assert_eq!(found("metrics-addr").as_deref(), Some("server.metrics_addr SVC__SERVER__METRICS_ADDR"));
        assert_eq!(found("enabled"), None);
    }
}
