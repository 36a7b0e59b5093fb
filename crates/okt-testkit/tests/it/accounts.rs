//! Who may do what: accounts, sessions, roles, API keys and the audit, through the product itself.
mod api_keys;
mod audit;
mod first_user;
mod limits;
mod lookalikes;
mod matrix;
mod passwords;
mod profiles;
mod registration;
mod roles;
mod sessions;
mod signed_in;
mod status;

use serde_json::Value;

/// The names of an object's fields, in alphabetical order.
fn fields(object: &Value) -> Vec<&str> {
    let mut fields: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}
