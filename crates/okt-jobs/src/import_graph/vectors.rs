//! Keeps the vectors of a bundle, if they are of the model whose vectors are searched here.

use std::collections::HashMap;
use std::fs::File;

use okt_interchange::bundle::{Refused, Row, read};
use okt_model::{EmbeddingSpace, Error, Progress};
use okt_queue::{JobContext, JobError};
use okt_store::bundles::{Kind, derived, find_new_concepts, find_new_facts, mark_facts};
use okt_store::concept_vectors;
use okt_vectors::{Point, Space, Tenant, Vectors};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::again;
use super::reading::{Verified, limits, refused};
use crate::Tools;
use crate::embed_concepts::vector_of;
use crate::embed_facts::{current, or_wait, still};

const BATCH: usize = 256;

/// What became of the vectors.
#[derive(Default)]
pub(super) struct Kept {
    pub facts: u64,
    pub concepts: u64,
    /// They are of the model that is used here.
    pub used: bool,
}

type Batch = Vec<(u32, Vec<f32>)>;

pub(super) async fn keep(
    ctx: &JobContext,
    tools: &Tools,
    file: &File,
    verified: &Verified,
) -> Result<Kept, JobError> {
    let Some((space, vectors)) = current(tools).await? else { return Ok(Kept::default()) };
    let metadata = &verified.read.metadata;
    if metadata.embedding_model != space.model || metadata.embedding_dimensions != space.dimensions {
        return Ok(Kept::default());
    }
    for place in [vectors.space(&space), vectors.concept_space(&space)] {
        vectors.store().prepare(&place, false).await.map_err(or_wait)?;
    }
    let (send, mut batches) = mpsc::channel::<(Kind, Batch)>(4);
    let (file, bytes_limit, model) = (again(file)?, verified.bytes_limit, space.model.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let (mut batch, mut of, mut is_theirs) = (Vec::new(), Kind::Fact, false);
        let mut put = |kind: Kind, next: Option<(u32, Vec<f32>)>| {
            if !batch.is_empty() && (kind != of || batch.len() >= BATCH || next.is_none()) {
                send.blocking_send((of, std::mem::take(&mut batch)))
                    .map_err(|_| Refused::new("", "nobody reads it any more"))?;
            }
            of = kind;
            batch.extend(next);
            Ok(())
        };
        read(file, &limits(bytes_limit), &mut |row| match row {
            Row::Vectors { model: theirs, .. } => {
                is_theirs = theirs == model;
                Ok(())
            }
            Row::FactVector(idx, vector) if is_theirs => put(Kind::Fact, Some((idx, vector.to_vec()))),
            Row::ConceptVector(idx, vector) if is_theirs => put(Kind::Concept, Some((idx, vector.to_vec()))),
            _ => Ok(()),
        })?;
        put(Kind::Concept, None)?;
        Ok::<_, Refused>(is_theirs)
    });
    let mut kept = Kept::default();
    while let Some((kind, batch)) = batches.recv().await {
        still(tools, &space).await?;
        // One without a direction would keep all others out of the store.
        let batch: Batch = batch.into_iter().filter(|(_, vector)| Space::has_direction(vector)).collect();
        match kind {
            Kind::Fact => kept.facts += facts(ctx, &space, &vectors, batch).await?,
            _ => kept.concepts += concepts(ctx, &space, &vectors, batch).await?,
        }
        let done = kept.facts + kept.concepts;
        ctx.progress(Progress { stage: "vectors".to_owned(), done, total: None, message: None });
    }
    kept.used = reading.await.map_err(Error::internal)?.map_err(|error| refused(&error))?;
    Ok(kept)
}

/// Of facts that this job has added.
async fn facts(
    ctx: &JobContext,
    space: &EmbeddingSpace,
    vectors: &Vectors,
    batch: Batch,
) -> Result<u64, JobError> {
    let mut made: HashMap<Uuid, Vec<f32>> =
        batch.into_iter().map(|(idx, vector)| (derived(ctx.id(), Kind::Fact, idx), vector)).collect();
    let ids: Vec<Uuid> = made.keys().copied().collect();
    let mut tx = ctx.read().await?;
    let new = find_new_facts(&mut tx, ctx.repository(), &ids).await?;
    tx.commit().await?;
    let points: Vec<Point> =
        new.iter().filter_map(|(id, _)| Some(Point { id: *id, vector: made.remove(id)? })).collect();
    let tenant = Tenant::new(ctx.repository(), ctx.database());
    vectors.store().upsert(&tenant, &vectors.space(space), &points).await.map_err(or_wait)?;
    let numbers: Vec<i64> = new.iter().map(|(_, no)| *no).collect();
    let mut tx = ctx.checkpoint().await?;
    mark_facts(&mut tx, ctx.repository(), &numbers, space.no).await?;
    tx.commit().await?;
    Ok(points.len() as u64)
}

/// Of concepts that this job has added. Their vectors are called by what the concepts are described by.
async fn concepts(
    ctx: &JobContext,
    space: &EmbeddingSpace,
    vectors: &Vectors,
    batch: Batch,
) -> Result<u64, JobError> {
    let mut made: HashMap<Uuid, Vec<f32>> =
        batch.into_iter().map(|(idx, vector)| (derived(ctx.id(), Kind::Concept, idx), vector)).collect();
    let ids: Vec<Uuid> = made.keys().copied().collect();
    let mut tx = ctx.read().await?;
    let new = find_new_concepts(&mut tx, ctx.repository(), &ids).await?;
    let described = concept_vectors::describe(&mut tx, ctx.repository(), &new).await?;
    tx.commit().await?;
    let (mut points, mut named) = (Vec::new(), Vec::new());
    for concept in described {
        let id = vector_of(&concept);
        if let Some(vector) = made.remove(&concept.id.uuid()) {
            points.push(Point { id, vector });
            named.push((concept.no, id));
        }
    }
    let tenant = Tenant::new(ctx.repository(), ctx.database());
    vectors.store().upsert(&tenant, &vectors.concept_space(space), &points).await.map_err(or_wait)?;
    let mut tx = ctx.checkpoint().await?;
    concept_vectors::mark(&mut tx, ctx.repository(), &named, space.no).await?;
    tx.commit().await?;
    Ok(points.len() as u64)
}
