//! The vectors that come with a package, of facts and of concepts.

use std::collections::HashMap;

use okt_interchange::package::{EmbeddingData, Package};
use okt_model::Error;
use okt_queue::JobContext;
use okt_store::packages::Import;
use okt_vectors::{Point, Space, Tenant};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::places::Places;

/// How many vectors came along that are used here.
#[derive(Default)]
pub(super) struct Kept {
    pub facts: usize,
    pub concepts: usize,
    /// Every concept that is new has one.
    pub all_concepts: bool,
}

/// Stores vectors of the model that is in use, before the rows that they are of: what no row speaks of in the end is removed by
/// `cleanup_facts`. Without a store that takes them, they are made anew.
pub(super) async fn keep(ctx: &JobContext, places: &Places, package: &Package, import: &mut Import) -> Kept {
    let Some((space, vectors)) = &places.space else { return Kept::default() };
    let is_ours = |data: &&EmbeddingData| data.model == space.model && data.dimensions == space.dimensions;
    let tenant = Tenant::new(ctx.repository(), ctx.database());
    let mut kept = Kept::default();
    let put = async |place: Space, points: &[Point]| {
        vectors.store().prepare(&place, false).await?;
        vectors.store().upsert(&tenant, &place, points).await
    };
    let mut points = Vec::new();
    if let Some(data) = package.embeddings.as_ref().filter(is_ours) {
        // A vector is called as its fact is, so one that is here keeps its own.
        let new = import.facts.iter().filter(|fact| !places.taken.contains(&fact.id));
        points.extend(new.filter_map(|fact| point(fact.id, data.vectors.get(&fact.id)?)));
    }
    match put(vectors.space(space), &points).await {
        Ok(()) => kept.facts = points.len(),
        Err(error) => not_kept(&error),
    }
    let data = package.concept_embeddings.as_ref().filter(is_ours);
    let of: HashMap<Uuid, bool> =
        package.concepts.iter().map(|one| one.id).zip(places.known.iter().copied()).collect();
    let mut named = HashMap::new();
    let mut points = Vec::new();
    let mut missing = 0;
    for concept in import.concepts.iter().filter(|one| of.get(&one.id) != Some(&true)) {
        let Some(vector) = data.and_then(|data| data.vectors.get(&concept.id)) else {
            missing += 1;
            continue;
        };
        let id = vector_name(concept.id, vector);
        let Some(point) = point(id, vector) else {
            missing += 1;
            continue;
        };
        points.push(point);
        named.insert(concept.id, id);
    }
    match put(vectors.concept_space(space), &points).await {
        Ok(()) => {
            for concept in &mut import.concepts {
                concept.vector = named.get(&concept.id).copied();
            }
            import.space = Some(space.no);
            kept.concepts = points.len();
            kept.all_concepts = missing == 0;
        }
        Err(error) => not_kept(&error),
    }
    kept
}

fn not_kept(error: &Error) {
    tracing::info!(
        error = error as &dyn std::error::Error,
        "failed to store the vectors of a package; they are made anew"
    );
}

/// One without a direction would keep all others out of the store.
fn point(id: Uuid, vector: &[f32]) -> Option<Point> {
    Space::has_direction(vector).then(|| Point { id, vector: vector.to_vec() })
}

/// What the vector of an imported concept is called: nobody else has one of this name.
fn vector_name(concept: Uuid, vector: &[f32]) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(concept.as_bytes());
    hash.update("registry");
    for number in vector {
        hash.update(number.to_le_bytes());
    }
    let hash: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Uuid::from_bytes(bytes)
}
