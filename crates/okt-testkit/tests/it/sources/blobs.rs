//! Files, on a disk and in a bucket: the same promises for both.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use okt_config::{Config, Storage};
use okt_model::{Blob, BlobHash, RepositoryId, SourceFile, SourceId};
use okt_store::Blobs;
use okt_testkit::db;
use okt_testkit::s3::S3Server;
use okt_testkit::wait::eventually;

fn on_disk(root: &Path) -> Storage {
    settings(&[("SVC__PROVIDERS__STORAGE__ROOT", root.to_str().unwrap())]).providers.storage
}

fn settings(all: &[(&str, &str)]) -> Config {
    db::config(all)
}

async fn write(blobs: &Blobs, repository: RepositoryId, source: SourceId, bytes: &[u8]) -> Blob {
    let mut incoming = blobs.begin(repository, source);
    for piece in bytes.chunks(100_000) {
        incoming.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    incoming.finish().await.unwrap()
}

async fn read(blobs: &Blobs, file: SourceFile, range: Option<std::ops::Range<u64>>) -> Option<Vec<u8>> {
    let reading = blobs.read(file, range).await.unwrap()?;
    let pieces: Vec<Bytes> = reading.bytes.try_collect().await.unwrap();
    Some(pieces.concat())
}

/// What both kinds of storage promise.
async fn keep_what_they_are_given(blobs: &Blobs) {
    let (repository, source, other) = (RepositoryId::mint(), SourceId::mint(), SourceId::mint());
    // Larger than what is written at once.
    let large: Vec<u8> = (0..20_000_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let small = b"a small file".as_slice();
    let (kept, little) =
        (write(blobs, repository, source, &large).await, write(blobs, repository, source, small).await);
    assert_eq!(kept.size, 20_000_000);
    assert_eq!(little.hash.to_string(), "58831986bf022035197bd05d44de7eb9b1f5a6cac36994a862a7164c5ead0b41");
    let file = |source, blob: Blob| SourceFile { repository, source, hash: blob.hash };
    assert!(read(blobs, file(source, kept), None).await.unwrap() == large);
    assert_eq!(read(blobs, file(source, kept), Some(251..257)).await.unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(read(blobs, file(source, little), None).await.unwrap(), small);
    // The same bytes have the same name, and are there once.
    assert_eq!(write(blobs, repository, source, small).await, little);
    let listed: Vec<_> = blobs.list(repository).try_collect().await.unwrap();
    assert_eq!(listed.len(), 2, "{listed:?}");
    // Another source's, another repository's and nobody's are not there.
    assert!(read(blobs, file(other, little), None).await.is_none());
    let elsewhere = SourceFile { repository: RepositoryId::mint(), ..file(source, little) };
    assert!(read(blobs, elsewhere, None).await.is_none());
    assert!(read(blobs, SourceFile { hash: BlobHash([7; 32]), ..elsewhere }, None).await.is_none());
    // A copy is there for itself.
    let copied = SourceId::mint();
    blobs.copy(file(source, little), copied).await.unwrap();
    assert_eq!(read(blobs, file(copied, little), None).await.unwrap(), small);
    assert_eq!(blobs.remove_source(repository, copied).await.unwrap(), 1);
    assert!(read(blobs, file(copied, little), None).await.is_none());
    assert_eq!(read(blobs, file(source, little), None).await.unwrap(), small);

    write(blobs, repository, other, small).await;
    assert_eq!(blobs.repositories().await.unwrap(), [repository]);
    blobs.remove(&[file(source, little), file(source, little)]).await.unwrap();
    assert!(read(blobs, file(source, little), None).await.is_none());
    assert!(read(blobs, file(other, little), None).await.is_some(), "each source has its own");
    assert_eq!(blobs.remove_source(repository, source).await.unwrap(), 1);
    assert_eq!(blobs.remove_repository(repository).await.unwrap(), 1);
    assert_eq!(blobs.remove_repository(repository).await.unwrap(), 0);
    assert!(blobs.repositories().await.unwrap().is_empty());
}

#[tokio::test]
async fn files_on_a_disk_are_kept_by_what_is_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&on_disk(folder.path())).unwrap();
    keep_what_they_are_given(&blobs).await;
    assert!(files_below(folder.path()).is_empty(), "{:?}", files_below(folder.path()));
}

#[tokio::test]
async fn files_in_a_bucket_are_kept_by_what_is_in_them() {
    let server = S3Server::start("okt-files").await;
    let all = server.settings("okt-files");
    let all: Vec<(&str, &str)> = all.iter().map(|(key, value)| (&**key, &**value)).collect();
    let blobs = Blobs::open(&settings(&all).providers.storage).unwrap();
    keep_what_they_are_given(&blobs).await;
}

/// A file that breaks off leaves nothing that has a name, and what a killed process leaves is found.
#[tokio::test]
async fn what_never_arrived_is_gone_or_found() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&on_disk(folder.path())).unwrap();
    let (repository, source) = (RepositoryId::mint(), SourceId::mint());
    for begun in [b"a".repeat(10), b"a".repeat(3_000_000)] {
        let mut incoming = blobs.begin(repository, source);
        incoming.write(Bytes::from(begun)).await.unwrap();
        drop(incoming);
    }
    // It goes in the background.
    eventually(Duration::from_secs(10), "the folder is empty", async || {
        match files_below(folder.path()).as_slice() {
            [] => Ok(()),
            left => Err(format!("{left:?}")),
        }
    })
    .await;
    assert!(blobs.repositories().await.unwrap().is_empty());

    // As a process that is killed in the middle would.
    let mut incoming = blobs.begin(repository, source);
    incoming.write(Bytes::from(vec![1; 3_000_000])).await.unwrap();
    std::mem::forget(incoming);
    assert_eq!(files_below(folder.path()).len(), 1);
    let now = chrono::DateTime::UNIX_EPOCH;
    assert_eq!(blobs.remove_abandoned(Duration::from_mins(1), now).await.unwrap(), 0, "it may be arriving");
    assert_eq!(blobs.remove_abandoned(Duration::ZERO, now).await.unwrap(), 1);
    assert!(files_below(folder.path()).is_empty());
}

pub(crate) fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}
