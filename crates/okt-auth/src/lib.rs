//! The rules of who somebody is and what they may do.
//!
//! Passwords, signed tokens, opaque secrets, and the decision about a permission. It must not know axum: it is handed
//! texts and times, and answers with claims, hashes and decisions; the front ends turn those into status codes.
//!
//! To add a kind of opaque secret, give it a prefix in `opaque.rs`; a kind of signed token, a `Kind` in `jwt.rs` and
//! its column in the confusion table beside it; a permission that use cases ask for, a type in `permissions.rs`.
//! Roles and what they hold are words, in `okt-model/src/role.rs`.

mod caller;
mod grants;
mod jwt;
pub mod oauth;
pub mod opaque;
mod password;
pub mod permissions;
pub mod refresh;
mod scope;
pub mod seal;
pub mod webhooks;

pub use caller::{Auth, Caller, Credential, LOCATED_FOR, Visible};
pub use grants::{Grants, Narrow, Refused};
pub use jwt::{AccessClaims, NewAccess, SessionClaims, Tokens};
pub use password::{Passwords, Verified};
pub use permissions::Needed;
pub use scope::{Proof, RepoAccess, RepoScope, SystemScope};
