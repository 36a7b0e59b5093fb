//! The authorization server: OAuth 2.1 for programs that act for people.

pub mod authorize;
mod error;
pub mod grants;
mod limits;
pub mod metadata;
mod page;
pub mod register;
pub mod token;

pub(crate) use error::OAuthError;
pub use error::OAuthErrorBody;
pub(crate) use limits::OAuthLimits;
pub(crate) use metadata::resource_metadata;
pub(crate) use page::invitation as invitation_page;
