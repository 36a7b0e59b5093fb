//! Words in columns.

use std::str::FromStr;

use okt_model::Error;
use okt_pg::Result;

/// What a column says. Another release may have written a word that this one does not know.
pub(crate) fn word<T: FromStr>(column: &'static str, text: &str) -> Result<T> {
    text.parse().map_err(|_| Error::internal(format!("unknown {column} {text:?}")).into())
}
