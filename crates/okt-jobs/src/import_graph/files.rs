//! Stores the images and originals of a bundle, each with the sources that name it. Those of sources that are here already are
//! not needed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use okt_interchange::bundle::{Refused, Row, read};
use okt_model::{Blob, Error, Progress, SourceId};
use okt_queue::{JobContext, JobError};
use okt_store::bundles::{Kind, SourceNames, derived, find_sources};
use tokio::sync::mpsc;

use super::again;
use super::reading::{Verified, limits, refused};
use crate::Tools;

/// Characters of base64 that are decoded at once: whole groups of four.
const PIECE: usize = 1 << 20;
const NAMES: usize = 1_000;

/// What was stored, by source and reference.
#[derive(Default)]
pub(super) struct Files(BTreeMap<(u32, String), Blob>);

impl Files {
    pub(super) fn get(&self, source: u32, reference: &str) -> Option<Blob> {
        self.0.get(&(source, reference.to_owned())).copied()
    }
}

enum Piece {
    /// An image, or an original.
    Begin(String, bool),
    Bytes(Bytes),
    End,
}

pub(super) async fn store(
    ctx: &JobContext,
    tools: &Tools,
    file: &File,
    verified: &Verified,
) -> Result<Files, JobError> {
    let owners = owners(ctx, verified).await?;
    if owners.is_empty() {
        return Ok(Files::default());
    }
    let wanted: BTreeSet<String> = owners.keys().cloned().collect();
    let (file, bytes_limit) = (again(file)?, verified.bytes_limit);
    let (send, mut pieces) = mpsc::channel(4);
    let reading = tokio::task::spawn_blocking(move || {
        read(file, &limits(bytes_limit), &mut |row| {
            let (name, data, is_body) = match row {
                Row::Image(name, data) => (name, data, false),
                Row::Body(name, data) => (name, data, true),
                _ => return Ok(()),
            };
            if !wanted.contains(name) {
                return Ok(());
            }
            let put =
                |piece| send.blocking_send(piece).map_err(|_| Refused::new("", "nobody reads it any more"));
            put(Piece::Begin(name.to_owned(), is_body))?;
            for piece in data.as_bytes().chunks(PIECE) {
                let bytes =
                    BASE64.decode(piece).map_err(|error| Refused::new("", format!("data: {error}")))?;
                put(Piece::Bytes(bytes.into()))?;
            }
            put(Piece::End)
        })
    });
    let (mut stored, mut arriving, mut done, mut bodies) = (Files::default(), Vec::new(), 0, false);
    while let Some(piece) = pieces.recv().await {
        match piece {
            Piece::Begin(name, is_body) => {
                bodies = is_body;
                arriving = owners[&name]
                    .iter()
                    .map(|idx| {
                        let source = SourceId::from(derived(ctx.id(), Kind::Source, *idx));
                        (*idx, name.clone(), tools.blobs().begin(ctx.repository(), source))
                    })
                    .collect();
            }
            Piece::Bytes(bytes) => {
                for (.., incoming) in &mut arriving {
                    incoming.write(bytes.clone()).await?;
                }
            }
            Piece::End => {
                for (idx, name, incoming) in arriving.drain(..) {
                    let blob = incoming.finish().await?;
                    let stated = verified.names.get(&idx).and_then(|names| names.sha256.as_deref());
                    if bodies && stated.is_some_and(|stated| stated != blob.hash.0) {
                        let reason =
                            format!("bodies: the file of source {idx} has another SHA-256 than the source");
                        return Err(Error::invalid("bundle", reason).into());
                    }
                    stored.0.insert((idx, name), blob);
                    done += 1;
                }
                ctx.progress(Progress { stage: "files".to_owned(), done, total: None, message: None });
            }
        }
    }
    reading.await.map_err(Error::internal)?.map_err(|error| refused(&error))?;
    Ok(stored)
}

/// The sources that each file is stored with.
async fn owners(ctx: &JobContext, verified: &Verified) -> Result<BTreeMap<String, Vec<u32>>, JobError> {
    let mut owners: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let sources: Vec<(&u32, &SourceNames)> = verified.names.iter().collect();
    for some in sources.chunks(NAMES) {
        let names: Vec<SourceNames> = some.iter().map(|(_, names)| (*names).clone()).collect();
        let mut tx = ctx.read().await?;
        let there = find_sources(&mut tx, ctx.repository(), &names).await?;
        // Those that an earlier run of this job has made have theirs.
        tx.commit().await?;
        for ((idx, _), there) in some.iter().zip(there) {
            if !there {
                for name in verified.files.get(idx).into_iter().flatten() {
                    owners.entry(name.clone()).or_default().push(**idx);
                }
            }
        }
    }
    Ok(owners)
}
