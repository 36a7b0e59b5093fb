//! The ground floor: the words every other crate speaks.
//!
//! Typed ids, permissions, and the one error type. It must not know async code, SQL, HTTP or files.
//! To add a word, give its noun a file here and re-export it below.

mod error;
mod id;
mod permission;

pub use error::{Cause, Error, FieldError, Result};
pub use id::RepositoryId;
pub use permission::{Action, Object, Permission};
