//! Who may do what: accounts, sessions, roles, API keys and the audit, through the product itself.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod api_keys;
mod audit;
mod first_user;
mod limits;
mod matrix;
mod profiles;
mod roles;
mod sessions;

use serde_json::Value;

/// The names of an object's fields, in alphabetical order.
fn fields(object: &Value) -> Vec<&str> {
    let mut fields: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}
