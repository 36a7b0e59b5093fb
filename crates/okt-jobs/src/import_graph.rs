//! Takes in a bundle that somebody has uploaded, or one of a registry.
//!
//! 1. The file is read from its beginning to its end, and nothing is done before all of it was found to be right.
//! 2. Images and originals are stored. Until a row speaks of them they are strays, which the sweep removes.
//! 3. The rows are taken in, in one transaction: either all of them are there, or none.
//! 4. Vectors of the model that is in use here are kept; where there are none of it, the facts wait to be embedded, as new ones do.
//!
//! Nothing is fetched, and no chat model is asked: not here, and not by a job that follows. Each step finds what an earlier run
//! has done: ids are made of that of the job.

mod files;
mod reading;
mod vectors;

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};

use futures_util::StreamExt as _;
use okt_model::{
    ContentHash, EmbedConcepts, EmbedFacts, Error, ImportGraph, IndexSource, JobId, Progress, Result, Waiting,
};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::blobs::{BundleOf, scratch_error};
use okt_store::bundles::{BundleOrigin, Intake, TakenIn};
use okt_store::outbox::{self, When};

use crate::embed_facts::current;
use crate::{Tools, registries};
use files::Files;
use reading::{Staged, Verified, staged, verify};

const ANOTHER: std::time::Duration = std::time::Duration::from_secs(5);

pub(crate) async fn run(payload: ImportGraph, ctx: JobContext, tools: Tools) -> Result<Finished, JobError> {
    ctx.checkpoint().await?.commit().await?;
    let (file, pulled) = fetch(&payload, &ctx, &tools).await?;
    let verified = verify(&ctx, &tools, &file).await?;
    let origin = origin(&ctx, &tools, &verified, pulled).await?;
    let files =
        if payload.dry_run { Files::default() } else { files::store(&ctx, &tools, &file, &verified).await? };
    let taken = take_in(&payload, &ctx, &tools, (&file, &verified, &origin), files).await?;
    let mut output = serde_json::json!({
        "name": verified.read.metadata.name,
        "schema_version": verified.read.schema_version,
        "sha256": verified.read.sha256,
        "dry_run": payload.dry_run,
        "rows": taken,
    });
    if let Some((registry, graph)) = &origin.registry {
        output["registry"] =
            serde_json::json!({ "id": registry, "graph_id": graph, "key_id": origin.key_id });
    }
    if payload.dry_run {
        return ctx.begin().await?.commit(Some(output)).await;
    }
    let kept = vectors::keep(&ctx, &tools, &file, &verified).await?;
    output["vectors"] =
        serde_json::json!({ "facts": kept.facts, "concepts": kept.concepts, "used": kept.used });
    let has_place = current(&tools).await?.is_some();
    let mut tx = ctx.begin().await?;
    if has_place && !kept.used && taken.facts.added > 0 {
        tx.push(&EmbedFacts { source: None }, When::default()).await?;
    }
    if has_place && !kept.used && taken.concepts.added > 0 {
        tx.push(&EmbedConcepts { source: None, concepts: Vec::new() }, When::default()).await?;
    }
    let finished = tx.commit(Some(output)).await?;
    if let Some(upload) = payload.upload {
        // Should this fail, it goes when it is old.
        drop(tools.blobs().remove_bundle(ctx.repository(), BundleOf::Upload(upload)).await);
    }
    Ok(finished)
}

/// The bundle as a file that can be read several times; with what a registry says of it, where it is one's.
async fn fetch(
    payload: &ImportGraph,
    ctx: &JobContext,
    tools: &Tools,
) -> Result<(File, Option<registries::Pulled>), JobError> {
    if let Some(graph) = &payload.registry {
        let (file, pulled) = registries::pull(ctx, tools, graph).await?;
        return Ok((file, Some(pulled)));
    }
    let gone = || Error::invalid("upload_id", "the uploaded file is not there any more; upload it again");
    let upload = BundleOf::Upload(payload.upload.ok_or_else(gone)?);
    let bundle = tools.blobs().find_bundle(ctx.repository(), upload).await?.ok_or_else(gone)?;
    let mut reading = tools.blobs().read_bundle(&bundle, None).await?.ok_or_else(gone)?;
    let mut file = tools.blobs().scratch()?;
    let mut done = 0;
    while let Some(bytes) = reading.bytes.next().await {
        let bytes = bytes?;
        done += bytes.len() as u64;
        let written = tokio::task::spawn_blocking(move || file.write_all(&bytes).map(|()| file));
        file = written.await.map_err(Error::internal)?.map_err(scratch_error)?;
        let total = Some(bundle.blob.size);
        ctx.progress(Progress { stage: "reading".to_owned(), done, total, message: None });
    }
    Ok((file, None))
}

/// Where it came from, and whether the repository takes anything from there.
async fn origin(
    ctx: &JobContext,
    tools: &Tools,
    verified: &Verified,
    pulled: Option<registries::Pulled>,
) -> Result<BundleOrigin, JobError> {
    let sha256: ContentHash = verified.read.sha256.parse().map_err(Error::internal)?;
    match pulled {
        Some(pulled) => pulled.origin(ctx, tools, sha256).await,
        None => Ok(BundleOrigin { registry: None, sha256, key_id: None, pushed_by: None }),
    }
}

/// The file from its beginning, for a reader of its own.
fn again(file: &File) -> Result<File> {
    let mut again = file.try_clone().map_err(scratch_error)?;
    again.seek(SeekFrom::Start(0)).map_err(scratch_error)?;
    Ok(again)
}

async fn take_in(
    payload: &ImportGraph,
    ctx: &JobContext,
    tools: &Tools,
    (file, verified, origin): (&File, &Verified, &BundleOrigin),
    files: Files,
) -> Result<TakenIn, JobError> {
    let space = current(tools).await?.map(|(space, _)| space.no);
    let mut rows = staged(tools, again(file)?, verified.bytes_limit);
    let mut tx = ctx.checkpoint().await?;
    tx.handle_with_care();
    let intake = Intake::begin(&mut tx, ctx.repository(), ctx.id()).await?;
    let Some(mut intake) = intake else {
        return Err(JobError::Waits { why: Waiting::Dependency, delay: ANOTHER });
    };
    let mut done = 0;
    while let Some(batch) = rows.next().await {
        done += batch.len() as u64;
        for row in batch {
            put(&mut intake, row, &files)?;
        }
        intake.send().await?;
        ctx.progress(Progress { stage: "rows".to_owned(), done, total: Some(verified.rows), message: None });
    }
    rows.finish().await?;
    let limits = &tools.config().limits;
    let floor = i64::from(tools.config().concept_floor());
    let taken = intake.take_in(floor, limits.sources_per_repository, space, origin).await?;
    if payload.dry_run {
        // Nobody ever sees it.
        drop(tx);
        return Ok(taken);
    }
    for source in &taken.touched {
        outbox::push(
            &mut tx,
            ctx.repository(),
            JobId::mint(),
            &IndexSource::of_imported(*source),
            When::default(),
        )
        .await?;
    }
    // Once more: it has taken a while.
    registries::check_origin(ctx, tools, origin).await?;
    tx.commit().await?;
    registries::take_out_revoked(ctx, (origin.key_id.as_deref(), origin.pushed_by.as_deref())).await?;
    Ok(taken)
}

fn put(intake: &mut Intake<'_>, row: Staged, files: &Files) -> Result<()> {
    use okt_interchange::bundle::OwnedRow as Row;
    match row {
        Staged::Row(Row::Source(row)) => intake.source(&row)?,
        Staged::Row(Row::SourceImage(row)) => {
            let blob = files.get(row.source_idx, &row.image_ref);
            intake.image(&row, blob);
        }
        Staged::Row(Row::SourceBody(row)) => {
            if let Some(blob) = files.get(row.source_idx, &row.body_ref) {
                intake.body(&row, blob);
            }
        }
        Staged::Row(Row::Fact(row)) => intake.fact(&row),
        Staged::Row(Row::FactSource(row)) => intake.fact_source(&row),
        Staged::Row(Row::Reference(row)) => intake.reference(&row),
        Staged::Row(Row::Concept(row)) => intake.concept(&row),
        Staged::Row(Row::Alias(row)) => intake.alias(&row),
        Staged::Row(Row::FactConcept(row)) => intake.fact_concept(&row),
        Staged::Row(Row::Summary(row)) => intake.summary(&row),
        Staged::Row(Row::Synthesis(row)) => intake.synthesis(&row),
        Staged::Row(Row::Investigation(row)) => intake.investigation(&row),
        Staged::Row(Row::InvestigationSource(row)) => intake.investigation_source(&row),
        Staged::Row(Row::Report(row)) => intake.report(&row, &[], &[], None),
        Staged::Row(Row::Annotation(row)) => intake.annotation(&row),
        Staged::Row(Row::Curation(row)) => intake.curation(&row),
        Staged::Report { row, sentences, words, language } => {
            intake.report(&row, &sentences, &words, language.as_deref());
        }
    }
    Ok(())
}
