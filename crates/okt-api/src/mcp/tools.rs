//! The tools.
//!
//! To add one: a function that takes a [`Call`] and asks for its repository by the permission of the REST route that does the
//! same, types for its arguments and its result, and a line in [`TOOLS`], which is in the order of names. The test of who may call
//! what (`http/mcp/rights.rs`) names the route.

mod answers;
mod concepts;
mod facts;
mod fetch;
mod investigations;
pub(super) mod progress;
mod reports;
mod repositories;
mod search;
mod sources;

use futures_util::future::BoxFuture;
use okt_auth::Needed;
use okt_http::Problem;
use okt_model::Permission;
use serde_json::{Value, json};

use super::call::{Call, Outcome};

type Run = for<'a> fn(&'a Call) -> BoxFuture<'a, Result<Outcome, Problem>>;

pub(super) struct Tool {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    hints: Hints,
    /// What a client has to have been given, for these arguments.
    pub(super) needs: fn(&Value) -> Vec<Permission>,
    /// Whether its result has fewer rows where it is asked for fewer.
    pub(super) pages: bool,
    /// Whether it makes something new each time.
    pub(super) creates: bool,
    input: fn() -> Value,
    output: fn() -> Value,
    pub(super) run: Run,
}

/// What a client may think of a tool before it has called it. None of ours destroys anything.
#[derive(Clone, Copy)]
struct Hints {
    read_only: bool,
    idempotent: bool,
    /// Whether it reaches beyond this service.
    open_world: bool,
}

const READ: Hints = Hints { read_only: true, idempotent: true, open_world: false };
const CHANGE: Hints = Hints { read_only: false, idempotent: false, open_world: false };

pub(super) static TOOLS: [Tool; 25] = [
    sources::ADD,
    investigations::ADD,
    answers::ASK,
    reports::CHECK,
    investigations::CREATE,
    reports::CREATE,
    sources::DISCOVER,
    sources::ESTIMATE,
    fetch::FETCH,
    facts::CONTRADICTIONS,
    facts::EVIDENCE,
    concepts::GET,
    facts::GET,
    investigations::GET,
    progress::GET,
    reports::GET,
    sources::GET,
    reports::LIST,
    repositories::LIST,
    sources::LIST,
    concepts::RELATED,
    search::SEARCH,
    concepts::SEARCH,
    facts::SEARCH,
    reports::UPDATE,
];

impl Tool {
    /// As `tools/list` has it.
    pub(super) fn described(&self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": (self.input)(),
            "outputSchema": (self.output)(),
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.hints.read_only,
                "destructiveHint": false,
                "idempotentHint": self.hints.idempotent,
                "openWorldHint": self.hints.open_world,
            },
        })
    }
}

/// For a tool that needs the same whatever its arguments are.
fn needs<P: Needed>(_: &Value) -> Vec<Permission> {
    vec![P::PERMISSION]
}

/// The beginning of a text, at most so many characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order_and_short_enough_to_be_read_by_every_agent() {
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        assert!(names.is_sorted(), "{names:?}");
        for tool in &TOOLS {
            let known = tool.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            assert!(known && tool.name.len() <= 64, "{}", tool.name);
            let length = tool.description.chars().count();
            assert!((20..=300).contains(&length), "{}: {length}", tool.name);
            let described = tool.described();
            for schema in ["inputSchema", "outputSchema"] {
                assert_eq!(described[schema]["type"], "object", "{}: {}", tool.name, described[schema]);
                assert!(!described[schema].to_string().contains("$ref"), "{}", tool.name);
            }
            assert_eq!(described["inputSchema"]["additionalProperties"], false, "{}", tool.name);
        }
        let list: Vec<_> = TOOLS.iter().map(Tool::described).collect();
        let length = serde_json::to_string(&list).unwrap().len();
        assert!(length <= 40_000, "{length}");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
    }
}
