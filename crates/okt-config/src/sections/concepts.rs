//! Which concepts and relations are worth showing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concepts {
    /// A relation with fewer shared facts is insignificant, and hidden unless asked for.
    #[schemars(range(min = 1))]
    pub min_shared_fact_count: u32,
    /// A relation with at least this many shared facts is stable; between the two it is weak.
    #[schemars(range(min = 1))]
    pub stable_shared_fact_count: u32,
    /// Concepts with fewer facts are left out of lists and search, unless asked for.
    pub min_concept_fact_count: u32,
}
