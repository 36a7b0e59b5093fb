//! Stores the images and originals of a bundle, each with the sources that name it: it is written for one of them, and copied for
//! the others one by one. Those of sources that are here already are not needed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use okt_interchange::bundle::{Refused, Row, read};
use okt_model::{Blob, Error, Progress, SourceFile, SourceId};
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
    // A file that many sources name is stored for each of them.
    let bytes_most = limits(bytes_limit).bytes;
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
    let source = |idx: u32| SourceId::from(derived(ctx.id(), Kind::Source, idx));
    let (mut stored, mut arriving, mut done, mut bytes_stored) = (Files::default(), None, 0, 0_u64);
    while let Some(piece) = pieces.recv().await {
        match piece {
            Piece::Begin(name, is_body) => {
                let first = source(owners[&name][0]);
                arriving = Some((name, is_body, first, tools.blobs().begin(ctx.repository(), first)));
            }
            Piece::Bytes(bytes) => {
                if let Some((.., incoming)) = &mut arriving {
                    incoming.write(bytes).await?;
                }
            }
            Piece::End => {
                let Some((name, is_body, first, incoming)) = arriving.take() else { continue };
                let blob = incoming.finish().await?;
                let file = SourceFile { repository: ctx.repository(), source: first, hash: blob.hash };
                for idx in owners[&name].iter().copied() {
                    let stated = verified.names.get(&idx).and_then(|names| names.sha256.as_deref());
                    if is_body && stated.is_some_and(|stated| stated != blob.hash.0) {
                        let reason =
                            format!("bodies: the file of source {idx} has another SHA-256 than the source");
                        return Err(Error::invalid("bundle", reason).into());
                    }
                    bytes_stored += blob.size;
                    if bytes_stored > bytes_most {
                        let reason = format!("the files of its sources have more than {bytes_most} bytes");
                        return Err(Error::invalid("bundle", reason).into());
                    }
                    if source(idx) != first {
                        tools.blobs().copy(file, source(idx)).await?;
                    }
                    stored.0.insert((idx, name.clone()), blob);
                    done += 1;
                    ctx.progress(Progress { stage: "files".to_owned(), done, total: None, message: None });
                }
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
