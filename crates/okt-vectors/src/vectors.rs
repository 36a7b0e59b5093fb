//! The store that an installation has chosen, and how its spaces are called.

use std::sync::Arc;

use okt_config::Config;
use okt_model::{EmbeddingSpace, Result};
use okt_store::Databases;

use crate::pgvector::PgVector;
use crate::qdrant::Qdrant;
use crate::store::{Space, VectorStore};

/// Cheap to clone.
#[derive(Clone)]
pub struct Vectors {
    store: Arc<dyn VectorStore>,
    collection: Arc<str>,
    concept_collection: Arc<str>,
}

impl Vectors {
    /// Qdrant where `providers.vector_store.host` names one, else pgvector beside the facts. `None` where no model makes
    /// vectors, or pgvector is not there.
    pub async fn open(config: &Config, databases: &Databases) -> Result<Option<Self>> {
        let settings = &config.providers.vector_store;
        if config.providers.embedding.model.is_empty() {
            return Ok(None);
        }
        let store: Arc<dyn VectorStore> = if settings.host.is_empty() {
            let missing = PgVector::missing(databases).await?;
            if !missing.is_empty() {
                tracing::warn!(
                    databases = missing.join(", "),
                    "facts are not embedded: install pgvector in these databases and run `okt migrate`, or name a Qdrant in \
                     providers.vector_store.host; providers.embedding.model = \"\" turns them off for good"
                );
                return Ok(None);
            }
            Arc::new(PgVector::new(databases.clone()))
        } else {
            Arc::new(Qdrant::new(settings)?)
        };
        let (collection, concept_collection) =
            (settings.collection.as_str().into(), settings.concept_collection.as_str().into());
        Ok(Some(Self { store, collection, concept_collection }))
    }

    pub fn store(&self) -> &dyn VectorStore {
        &*self.store
    }

    /// Where the vectors of facts that one model made are.
    pub fn space(&self, space: &EmbeddingSpace) -> Space {
        Space { name: format!("{}_{}", self.collection, space.no), dimensions: space.dimensions }
    }

    /// Where those of concepts are, which are replaced with those of facts.
    pub fn concept_space(&self, space: &EmbeddingSpace) -> Space {
        Space { name: format!("{}_{}", self.concept_collection, space.no), dimensions: space.dimensions }
    }

    /// Where those of passages are: beside those of facts, and replaced with them.
    pub fn passage_space(&self, space: &EmbeddingSpace) -> Space {
        Space { name: format!("{}_{}_passages", self.collection, space.no), dimensions: space.dimensions }
    }

    /// Wherever the vectors are that one model made. Those of facts are the last.
    pub fn spaces(&self, space: &EmbeddingSpace) -> [Space; 3] {
        [self.concept_space(space), self.passage_space(space), self.space(space)]
    }
}
