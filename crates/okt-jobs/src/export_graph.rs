//! Writes a repository into a Graph Bundle, which is kept as a file, and given to a registry if that is wanted. Changes nothing.
//!
//! The rows are read in one snapshot, so the bundle is of one moment. They go into a spool, and their hash is computed on the way. When
//! the snapshot is over, and no connection is held any more, the document is put together: the rows of the spool, with files
//! and vectors between them. The file has its name only when it is whole and on disk.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use futures_util::StreamExt as _;
use okt_interchange::bundle::{Metadata, OwnedRow, SCHEMA_VERSION, Section, Spool, Writer, write::Spooled};
use okt_model::{EmbeddingSpace, Error, ExportGraph, Progress, Result, WebhookEvent};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::blobs::{BundleOf, scratch_error};
use okt_store::bundles::{ImageFile, Snapshot};
use okt_store::{repositories, webhooks};
use okt_vectors::{Tenant, Vectors};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::embed_facts::{current, or_wait};
use crate::{Tools, registries};

/// Vectors that are asked for at once.
const VECTORS: usize = 256;
/// What is sent on at once of a file.
const PIECE: usize = 1 << 20;
/// Batches and pieces that wait for whoever takes them.
const WAITING: usize = 4;

pub(crate) async fn run(payload: ExportGraph, ctx: JobContext, tools: Tools) -> Result<Finished, JobError> {
    ctx.checkpoint().await?.commit().await?;
    let registry = match &payload.registry {
        Some(id) => Some(registries::named(&tools, id)?),
        None => None,
    };
    let place = current(&tools).await?;
    let gathered = gather(&payload, &ctx, &tools, place.as_ref().map(|(space, _)| space)).await?;
    let sha256 = gathered.spooled.sha256.clone();
    let metadata = Metadata { sha256: sha256.clone(), ..gathered.metadata.clone() };
    let blob = put_together(gathered, metadata.clone(), &ctx, &tools, place).await?;
    let mut output = serde_json::json!({
        "name": metadata.name,
        "sha256": sha256,
        "schema_version": SCHEMA_VERSION,
        "file": { "sha256": blob.hash.to_string(), "bytes": blob.size },
        "counts": {
            "sources": metadata.source_count, "facts": metadata.fact_count, "concepts": metadata.concept_count,
            "summaries": metadata.summary_count, "syntheses": metadata.synthesis_count,
            "reports": metadata.report_count, "investigations": metadata.investigation_count,
        },
        "embeddings": metadata.embedding_model,
    });
    if let Some(registry) = registry {
        ctx.progress(Progress { stage: "push".to_owned(), ..Progress::default() });
        output["registry"] = registries::give(&ctx, &tools, registry, &metadata, blob).await?;
    }
    let mut tx = ctx.begin().await?;
    let data = serde_json::json!({ "job_id": ctx.id(), "sha256": blob.hash.to_string(), "bytes": blob.size });
    webhooks::announce(&mut tx, ctx.repository(), WebhookEvent::GraphExported, "exchange", &data).await?;
    tx.commit(Some(output)).await
}

/// All that is read in the snapshot.
struct Gathered {
    metadata: Metadata,
    spooled: Spooled<File>,
    images: Vec<ImageFile>,
    bodies: Vec<ImageFile>,
    facts: Vec<(u32, Uuid)>,
    concepts: Vec<(u32, Uuid)>,
}

async fn gather(
    payload: &ExportGraph,
    ctx: &JobContext,
    tools: &Tools,
    space: Option<&EmbeddingSpace>,
) -> Result<Gathered, JobError> {
    let mut conn = ctx.databases().acquire_system().await?;
    let now = repositories::now(&mut conn).await?;
    // It may have moved since the job was queued.
    let found =
        repositories::find(&mut conn, ctx.repository()).await?.ok_or(Error::NotFound("repository"))?;
    drop(conn);
    let mut snapshot = Snapshot::open(ctx.databases(), &found.database, ctx.repository()).await?;
    let images = if payload.include_images { snapshot.files(false).await? } else { Vec::new() };
    let bodies = if payload.include_bodies { snapshot.files(true).await? } else { Vec::new() };
    let (facts, concepts) = match space {
        Some(space) => {
            (snapshot.embedded_facts(space.no).await?, snapshot.embedded_concepts(space.no).await?)
        }
        None => (Vec::new(), Vec::new()),
    };
    let counts = snapshot.counts;
    let space = space.filter(|_| !facts.is_empty() || !concepts.is_empty());
    let metadata = Metadata {
        name: payload.name.clone(),
        description: payload.description.clone(),
        owner: String::new(),
        tags: payload.tags.clone(),
        okt_version: env!("CARGO_PKG_VERSION").to_owned(),
        promptset_hashes: snapshot.promptset_hashes.clone(),
        embedding_model: space.map(|space| space.model.clone()).unwrap_or_default(),
        embedding_dimensions: space.map_or(0, |space| space.dimensions),
        source_count: counts.sources,
        fact_count: counts.facts,
        concept_count: counts.concepts,
        summary_count: counts.summaries,
        synthesis_count: counts.syntheses,
        report_count: counts.reports,
        investigation_count: counts.investigations,
        sha256: String::new(),
        exported_at: now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
    };
    let file = tools.blobs().scratch()?;
    let (send, mut rows) = mpsc::channel::<Vec<OwnedRow>>(WAITING);
    let mut spool = Spool::new(file, &metadata);
    let spooling = tokio::task::spawn_blocking(move || {
        while let Some(batch) = rows.blocking_recv() {
            for row in &batch {
                spool.put(&row.as_row())?;
            }
        }
        spool.finish()
    });
    let mut done = 0;
    let read = snapshot.rows(payload.include_images, payload.include_bodies, |batch| {
        done += batch.len() as u64;
        ctx.progress(Progress { stage: "rows".to_owned(), done, total: None, message: None });
        let send = send.clone();
        // Whoever takes them says itself what went wrong.
        async move { send.send(batch).await.map_err(|_| Error::StorageFull) }
    });
    let read = read.await;
    drop(send);
    let spooled = spooling.await.map_err(Error::internal)?.map_err(scratch_error)?;
    read?;
    snapshot.close().await?;
    Ok(Gathered { metadata, spooled, images, bodies, facts, concepts })
}

/// A step of the document that needs more than the spool.
enum Step {
    Files(Section),
    File { name: String, content_type: String },
    Bytes(Bytes),
    EndFile,
    EndFiles,
    Rows(Vec<Section>),
    Vectors { model: String, dimensions: u32 },
    Vector(u32, Vec<f32>),
    ConceptVectors,
    EndVectors,
}

async fn put_together(
    gathered: Gathered,
    metadata: Metadata,
    ctx: &JobContext,
    tools: &Tools,
    place: Option<(EmbeddingSpace, Vectors)>,
) -> Result<okt_model::Blob, JobError> {
    let Gathered { mut spooled, images, bodies, facts, concepts, .. } = gathered;
    let (steps, mut taken) = mpsc::channel::<Step>(WAITING);
    let (out, mut made) = mpsc::channel::<Bytes>(WAITING);
    let writing = tokio::task::spawn_blocking(move || {
        let out = BufWriter::with_capacity(PIECE, Pipe(out));
        let mut writer = Writer::new(out, &metadata)?;
        let mut rest: Vec<u8> = Vec::new();
        while let Some(step) = taken.blocking_recv() {
            write(&mut writer, step, &mut rest, &mut spooled)?;
        }
        writer.finish()?.flush()
    });
    let feeding = async {
        let steps = Steps(steps);
        steps.put(Step::Rows(vec![Section::Sources])).await?;
        for (section, files) in [(Section::Images, images), (Section::Bodies, bodies)] {
            if !files.is_empty() {
                feed_files(&steps, section, files, tools).await?;
            }
        }
        let rows = Section::ALL.into_iter().filter(|section| {
            !matches!(section, Section::Sources | Section::Images | Section::Bodies | Section::Embeddings)
        });
        steps.put(Step::Rows(rows.collect())).await?;
        if let Some((space, vectors)) = place
            && !(facts.is_empty() && concepts.is_empty())
        {
            feed_vectors(&steps, ctx, &space, &vectors, facts, concepts).await?;
        }
        Ok::<_, JobError>(())
    };
    let keeping = async move {
        let mut incoming = tools.blobs().begin_bundle(ctx.repository(), BundleOf::Export(ctx.id()));
        let mut whole = false;
        while let Some(piece) = made.recv().await {
            whole = piece.is_empty();
            incoming.write(piece).await?;
            ctx.progress(Progress {
                stage: "bytes".to_owned(),
                done: incoming.size(),
                total: None,
                message: None,
            });
        }
        Ok::<_, JobError>((incoming, whole))
    };
    let (fed, kept) = tokio::join!(feeding, keeping);
    let written = writing.await.map_err(Error::internal)?;
    // What stopped one of them stopped the others too, and says why.
    fed?;
    let (incoming, whole) = kept?;
    written.map_err(scratch_error)?;
    if !whole {
        return Err(Error::internal("a bundle was not written to its end").into());
    }
    Ok(incoming.finish().await?)
}

fn write<W: Write>(
    writer: &mut Writer<W>,
    step: Step,
    rest: &mut Vec<u8>,
    spooled: &mut Spooled<File>,
) -> io::Result<()> {
    match step {
        Step::Files(section) => writer.begin_files(section),
        Step::File { name, content_type } => writer.begin_file(&name, &content_type),
        Step::Bytes(bytes) => {
            // Three bytes are four characters; what is left over waits.
            rest.extend_from_slice(&bytes);
            let whole = rest.len() - rest.len() % 3;
            writer.file_piece(&BASE64.encode(&rest[..whole]))?;
            rest.drain(..whole);
            Ok(())
        }
        Step::EndFile => {
            writer.file_piece(&BASE64.encode(&*rest))?;
            rest.clear();
            writer.end_file()
        }
        Step::EndFiles => writer.end_files(),
        Step::Rows(sections) => sections.into_iter().try_for_each(|section| writer.section(section, spooled)),
        Step::Vectors { model, dimensions } => writer.begin_vectors(&model, dimensions),
        Step::Vector(idx, vector) => writer.vector(idx, &vector),
        Step::ConceptVectors => writer.begin_concept_vectors(),
        Step::EndVectors => writer.end_vectors(),
    }
}

struct Steps(mpsc::Sender<Step>);

impl Steps {
    /// Whoever takes them has stopped, and says why.
    async fn put(&self, step: Step) -> Result<()> {
        self.0.send(step).await.map_err(|_| Error::internal("the writer of a bundle has stopped"))
    }
}

async fn feed_files(steps: &Steps, section: Section, files: Vec<ImageFile>, tools: &Tools) -> Result<()> {
    steps.put(Step::Files(section)).await?;
    for file in files {
        // Its source was deleted since; a run that begins anew does not see it.
        let gone = Error::Overloaded("a file of the repository was deleted while it was being exported");
        let mut reading = tools.blobs().read(file.file, None).await?.ok_or(gone)?;
        steps.put(Step::File { name: file.reference, content_type: file.content_type }).await?;
        while let Some(bytes) = reading.bytes.next().await {
            steps.put(Step::Bytes(bytes?)).await?;
        }
        steps.put(Step::EndFile).await?;
    }
    steps.put(Step::EndFiles).await
}

async fn feed_vectors(
    steps: &Steps,
    ctx: &JobContext,
    space: &EmbeddingSpace,
    vectors: &Vectors,
    facts: Vec<(u32, Uuid)>,
    concepts: Vec<(u32, Uuid)>,
) -> Result<(), JobError> {
    let tenant = Tenant::new(ctx.repository(), ctx.database());
    let model = space.model.clone();
    steps.put(Step::Vectors { model, dimensions: space.dimensions }).await?;
    for (kind, (place, rows)) in
        [(vectors.space(space), facts), (vectors.concept_space(space), concepts)].into_iter().enumerate()
    {
        if kind == 1 {
            steps.put(Step::ConceptVectors).await?;
        }
        for some in rows.chunks(VECTORS) {
            let ids: Vec<Uuid> = some.iter().map(|(_, id)| *id).collect();
            let mut points: Vec<_> = vectors.store().find(&tenant, &place, &ids).await.map_err(or_wait)?;
            points.sort_by_key(|point| point.id);
            for (idx, id) in some {
                // One that is gone since is made again by whoever imports the bundle.
                if let Ok(at) = points.binary_search_by_key(id, |point| point.id) {
                    steps.put(Step::Vector(*idx, std::mem::take(&mut points[at].vector))).await?;
                }
            }
        }
    }
    Ok(steps.put(Step::EndVectors).await?)
}

/// Hands on what is written. An empty piece says that it was flushed at the end, so that one who stops early is told from one
/// who is done.
struct Pipe(mpsc::Sender<Bytes>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.blocking_send(Bytes::copy_from_slice(bytes)).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.blocking_send(Bytes::new()).map_err(io::Error::other)
    }
}
