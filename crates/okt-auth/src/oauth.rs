//! The rules of OAuth 2.1 that need no database: which clients and redirects are acceptable, and what proves a code.

mod form;
mod pkce;
mod redirect;
mod registration;

pub use form::{FormToken, Step};
pub use pkce::{is_challenge, is_verifier, proves};
pub use redirect::{is_loopback, matches};
pub use registration::{BadRegistration, Metadata, Registration};
