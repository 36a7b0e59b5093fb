//! The rules of who somebody is and what they may do.
//!
//! Passwords, signed tokens, opaque secrets, and the decision about a permission. It must not know axum: it is handed
//! texts and times, and answers with claims, hashes and decisions; doors turn those into status codes.
//!
//! To add a kind of opaque secret, give it a prefix in `opaque.rs`; a kind of signed token, a `Kind` in `jwt.rs` and
//! its column in the confusion table beside it. Roles and what they hold are words, in `okt-model/src/role.rs`.

mod caller;
mod grants;
mod jwt;
pub mod oauth;
pub mod opaque;
mod password;
pub mod refresh;

pub use caller::{Auth, Caller, Credential, LOCATED_FOR, RepoScope, SystemScope, Visible};
pub use grants::{Decision, Grants, Narrow};
pub use jwt::{AccessClaims, NewAccess, SessionClaims, Tokens};
pub use password::{Passwords, Verified};
