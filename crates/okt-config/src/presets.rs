//! Types of repository to choose from at creation.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const ALL: &str = "all";

/// One preset. Its id is its key in `repository_presets`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Display name.
    #[schemars(length(min = 1))]
    pub label: String,
    /// Who it is for.
    #[serde(default)]
    pub description: String,
    /// Which providers a new repository starts with.
    #[serde(default)]
    pub providers: PresetProviders,
    /// `"all"`, or a list of ontology labels that concepts may be filed under; an empty list leaves the custom
    /// ones.
    #[serde(default)]
    #[schemars(schema_with = "contexts")]
    pub contexts: Contexts,
    /// Further contexts that a new repository starts with.
    #[serde(default)]
    pub custom_contexts: Vec<CustomContext>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PresetProviders {
    /// Search providers.
    pub search: Vec<SearchProvider>,
    /// Resolution providers.
    pub resolution: Vec<ResolutionProvider>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchProvider {
    Web,
    Academic,
}

impl SearchProvider {
    pub const ALL: [Self; 2] = [Self::Web, Self::Academic];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Academic => "academic",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResolutionProvider {
    Fetch,
    OpenAccess,
    Tls,
    ChallengeSolver,
}

impl ResolutionProvider {
    pub const ALL: [Self; 4] = [Self::Fetch, Self::OpenAccess, Self::Tls, Self::ChallengeSolver];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::OpenAccess => "open_access",
            Self::Tls => "tls",
            Self::ChallengeSolver => "challenge_solver",
        }
    }
}

/// Which contexts of the ontology a repository uses. Written as `"all"` or as a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Contexts {
    #[default]
    All,
    Labels(Vec<String>),
}

impl Serialize for Contexts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str(ALL),
            Self::Labels(labels) => labels.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Contexts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Word(String),
            Labels(Vec<String>),
        }
        match Written::deserialize(deserializer)? {
            Written::Word(word) if word == ALL => Ok(Self::All),
            Written::Word(_) => Err(de::Error::custom("expected \"all\" or a list")),
            Written::Labels(labels) => Ok(Self::Labels(labels)),
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomContext {
    /// Its name.
    #[schemars(length(min = 1, max = 100))]
    pub label: String,
    /// What belongs in it, in words for the model.
    #[serde(default)]
    pub description: String,
}

fn contexts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "string", "enum": [ALL] },
            { "type": "array", "items": { "type": "string", "minLength": 1 } },
        ],
    })
}
