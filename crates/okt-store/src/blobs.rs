//! Files: the originals and images of sources, on a file system or in a bucket.
//!
//! A file is named by what is in it, below the source that it belongs to: `repositories/{repository}/{source}/{sha256}`. So writing it
//! twice is writing it once, what belongs to a source or a repository goes with its folder, and no file has two owners who
//! would have to agree on when it may go. While a file arrives it has another name (`incoming/…`); it gets its own once it
//! is whole and on disk. Rows are written after the file they speak of, so a file without a row is a stray
//! (`cleanup_files`), and a row without a file does not happen.

mod bundles;
mod copies;

use std::error::Error as _;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3Builder;
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ClientOptions, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt as _};
use okt_config::{Storage, StorageBackend};
use okt_model::{Blob, BlobHash, Error, RepositoryId, Result, SourceFile, SourceId};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

pub use bundles::{BundleOf, StoredBundle, scratch_error};
pub use copies::StoredFile;

const INCOMING: &str = "incoming";
const KEPT: &str = "repositories";
/// What a bucket takes as one part, but for the last.
const PART: usize = 8 * 1024 * 1024;
/// What is written to a disk at once.
const PIECE: usize = 1024 * 1024;
const DELETES: usize = 500;
/// What tenants have stored is nobody's business but the service's.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Where files are kept. Cheap to clone.
#[derive(Clone)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
    /// On a file system: where files arrive.
    incoming: Option<Arc<FilePath>>,
    piece: usize,
}

/// A file that arrives. Dropping it leaves nothing behind on a disk, and in a bucket what its rule for unfinished uploads
/// removes.
pub struct Incoming {
    blobs: Blobs,
    /// Where it goes when it is whole.
    folder: Path,
    path: Path,
    /// Missing once a write has failed.
    writer: Option<BufWriter>,
    hash: Sha256,
    size: u64,
}

/// A file that is read.
pub struct Reading {
    /// Of the whole file.
    pub size: u64,
    /// What is read of it.
    pub range: Range<u64>,
    pub bytes: BoxStream<'static, Result<Bytes>>,
}

/// A file in a list.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    pub file: SourceFile,
    pub modified: DateTime<Utc>,
}

impl Blobs {
    /// Opens the storage of the settings. Nothing is asked of a bucket yet.
    pub fn open(settings: &Storage) -> Result<Self> {
        match settings.backend {
            StorageBackend::Filesystem => Self::open_folder(&settings.root),
            StorageBackend::S3 => {
                let s3 = &settings.s3;
                let mut builder = AmazonS3Builder::new()
                    .with_region(&s3.region)
                    .with_bucket_name(&s3.bucket)
                    .with_access_key_id(s3.access_key_id.expose())
                    .with_secret_access_key(s3.secret_access_key.expose());
                if let Some(endpoint) = &s3.endpoint {
                    let http = endpoint.scheme() == "http";
                    builder = builder
                        .with_endpoint(endpoint.as_str().trim_end_matches('/'))
                        .with_client_options(ClientOptions::new().with_allow_http(http));
                }
                let store = builder
                    .build()
                    .map_err(|error| Error::Operator(format!("providers.storage.s3: {error}")))?;
                Ok(Self { store: Arc::new(store), incoming: None, piece: PART })
            }
        }
    }

    fn open_folder(root: &FilePath) -> Result<Self> {
        let refused = |error: io::Error| {
            Error::Operator(format!("providers.storage.root: {} can't be used: {error}", root.display()))
        };
        let incoming = root.join(INCOMING);
        for folder in [root, &incoming] {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(refused)?;
            keep_private(folder);
        }
        let store =
            LocalFileSystem::new_with_prefix(root).map_err(|error| refused(io::Error::other(error)))?;
        Ok(Self {
            store: Arc::new(store.with_fsync(true).with_automatic_cleanup(true)),
            incoming: Some(PathBuf::into_boxed_path(incoming).into()),
            piece: PIECE,
        })
    }

    /// Whether a file can be written and removed.
    pub async fn check(&self) -> Result<()> {
        let path = Path::from_iter([INCOMING, &SourceId::mint().to_string()]);
        self.store.put(&path, "okt".into()).await.map_err(from_store)?;
        self.store.delete(&path).await.map_err(from_store)
    }

    /// Begins a file of a source.
    pub fn begin(&self, repository: RepositoryId, source: SourceId) -> Incoming {
        self.begin_in(folder(repository).join(source.to_string()))
    }

    fn begin_in(&self, folder: Path) -> Incoming {
        // An id of its own, whatever else arrives for the same source.
        let path = Path::from_iter([INCOMING, &SourceId::mint().to_string()]);
        let writer = BufWriter::with_capacity(Arc::clone(&self.store), path.clone(), self.piece);
        Incoming { blobs: self.clone(), folder, path, writer: Some(writer), hash: Sha256::new(), size: 0 }
    }

    /// Reads a file, or the part of it that a range asks for; `None` when there is no such file.
    pub async fn read(&self, file: SourceFile, range: Option<Range<u64>>) -> Result<Option<Reading>> {
        let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
        self.read_at(&path(file), options).await
    }

    async fn read_at(&self, path: &Path, options: GetOptions) -> Result<Option<Reading>> {
        match self.store.get_opts(path, options).await {
            Ok(got) => Ok(Some(Reading {
                size: got.meta.size,
                range: got.range.clone(),
                bytes: got.into_stream().map_err(from_store).boxed(),
            })),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(from_store(error)),
        }
    }

    /// Makes a file that is kept one of another source of its repository, too.
    pub async fn copy(&self, file: SourceFile, to: SourceId) -> Result<()> {
        match self.store.copy(&path(file), &path(SourceFile { source: to, ..file })).await {
            Err(error) if !matches!(error, object_store::Error::NotFound { .. }) => {
                // On a disk it is a hard link, which not every file system has.
                tracing::debug!(error = &error as &dyn std::error::Error, "a file is copied by reading it");
                self.copy_bytes(file, to).await
            }
            copied => copied.map_err(from_store),
        }
    }

    async fn copy_bytes(&self, file: SourceFile, to: SourceId) -> Result<()> {
        let reading = self.read(file, None).await?;
        let mut reading = reading.ok_or_else(|| unavailable("a file that is copied is gone".into()))?;
        let mut incoming = self.begin(file.repository, to);
        while let Some(bytes) = reading.bytes.try_next().await? {
            incoming.write(bytes).await?;
        }
        let copied = incoming.finish().await?;
        if copied.hash == file.hash {
            return Ok(());
        }
        self.remove(&[SourceFile { source: to, hash: copied.hash, ..file }]).await?;
        Err(unavailable("a file that is copied is not what it was".into()))
    }

    /// Removes what is kept of a source; returns how many files.
    pub async fn remove_source(&self, repository: RepositoryId, source: SourceId) -> Result<usize> {
        self.remove_below(&folder(repository).join(source.to_string())).await
    }

    /// Removes what is kept of a repository; returns how many files.
    pub async fn remove_repository(&self, repository: RepositoryId) -> Result<usize> {
        self.remove_below(&folder(repository)).await
    }

    /// Removes these; those that are gone already are no matter.
    pub async fn remove(&self, files: &[SourceFile]) -> Result<()> {
        let paths = stream::iter(files.iter().map(|file| Ok(path(*file))).collect::<Vec<_>>()).boxed();
        let mut removed = self.store.delete_stream(paths);
        while let Some(removed) = removed.next().await {
            match removed {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(from_store(error)),
            }
        }
        Ok(())
    }

    /// The repositories of which something is kept.
    pub async fn repositories(&self) -> Result<Vec<RepositoryId>> {
        let found = self.store.list_with_delimiter(Some(&Path::from(KEPT))).await.map_err(from_store)?;
        Ok(found.common_prefixes.iter().filter_map(|path| path.filename()?.parse().ok()).collect())
    }

    /// What is kept of a repository.
    pub fn list(&self, repository: RepositoryId) -> BoxStream<'static, Result<Listed>> {
        let listed = self.store.list(Some(&folder(repository))).map_err(from_store);
        listed.try_filter_map(move |meta| async move { Ok(listed_as(repository, &meta)) }).boxed()
    }

    /// Removes what began to arrive this long ago and never did; returns how many. A bucket has a rule of its own for
    /// that, but for what lost its way between the one name and the other.
    pub async fn remove_abandoned(&self, age: Duration, now: DateTime<Utc>) -> Result<usize> {
        let mut removed = 0;
        if let Some(folder) = &self.incoming {
            let folder = Arc::clone(folder);
            let swept = tokio::task::spawn_blocking(move || sweep(&folder, age)).await;
            return swept.map_err(Error::internal)?.map_err(|error| unavailable(error.into()));
        }
        let mut listed = self.store.list(Some(&Path::from(INCOMING)));
        while let Some(meta) = listed.try_next().await.map_err(from_store)? {
            if (now - meta.last_modified).to_std().is_ok_and(|old| old >= age) {
                self.store.delete(&meta.location).await.map_err(from_store)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    async fn remove_below(&self, folder: &Path) -> Result<usize> {
        let mut removed = 0;
        loop {
            let paths = self.store.list(Some(folder)).map_ok(|meta| meta.location).take(DELETES);
            let paths: Vec<Path> = paths.try_collect().await.map_err(from_store)?;
            if paths.is_empty() {
                return Ok(removed);
            }
            removed += paths.len();
            let paths = stream::iter(paths).map(Ok).boxed();
            let done = self.store.delete_stream(paths).try_collect::<Vec<_>>().await;
            match done {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(from_store(error)),
            }
        }
    }
}

impl Incoming {
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let mut writer = self.writer.take().ok_or_else(broken)?;
        self.hash.update(&bytes);
        self.size += bytes.len() as u64;
        match writer.put(bytes).await {
            Ok(()) => {
                self.writer = Some(writer);
                Ok(())
            }
            Err(error) => {
                // So that there is room again when this is heard of.
                drop(writer.abort().await);
                Err(from_store(error))
            }
        }
    }

    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Makes it a file of the source; it is on disk when this returns.
    pub async fn finish(mut self) -> Result<Blob> {
        let mut writer = self.writer.take().ok_or_else(broken)?;
        tokio::io::AsyncWriteExt::shutdown(&mut writer).await.map_err(from_io)?;
        let blob = Blob { hash: BlobHash(self.hash.finalize().into()), size: self.size };
        if let (Some(folder), Some(name)) = (&self.blobs.incoming, self.path.filename()) {
            let arrived = folder.join(name);
            let private = move || std::fs::set_permissions(arrived, Permissions::from_mode(FILE_MODE));
            tokio::task::spawn_blocking(private).await.map_err(Error::internal)?.map_err(from_io)?;
        }
        let store = &self.blobs.store;
        let renamed = store.rename(&self.path, &self.folder.join(blob.hash.to_string())).await;
        if let Err(error) = renamed {
            drop(store.delete(&self.path).await);
            return Err(from_store(error));
        }
        Ok(blob)
    }
}

/// A folder that was there before may be open to others on this machine, by the umask of whoever made it. Where it is not
/// ours to change, whoever owns it has decided.
fn keep_private(folder: &FilePath) {
    let mode = std::fs::metadata(folder).map_or(FOLDER_MODE, |meta| meta.permissions().mode());
    if mode & 0o777 == FOLDER_MODE {
        return;
    }
    let folder_name = folder.display();
    match std::fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)) {
        Ok(()) => {
            tracing::info!(folder = %folder_name, "other accounts of this machine can't read the files any more");
        }
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(folder = %folder_name, error, "other accounts of this machine may be able to read the files");
        }
    }
}

fn broken() -> Error {
    Error::internal("a file is written to after a write has failed")
}

fn folder(repository: RepositoryId) -> Path {
    Path::from_iter([KEPT, &repository.to_string()])
}

fn path(file: SourceFile) -> Path {
    folder(file.repository).join(file.source.to_string()).join(file.hash.to_string())
}

fn listed_as(repository: RepositoryId, meta: &ObjectMeta) -> Option<Listed> {
    let mut parts = meta.location.parts().skip(2);
    let source: Uuid = parts.next()?.as_ref().parse().ok()?;
    let hash = parts.next()?.as_ref().parse().ok()?;
    Some(Listed {
        file: SourceFile { repository, source: source.into(), hash },
        modified: meta.last_modified,
    })
}

/// On a disk, also what has no name yet.
#[expect(clippy::disallowed_methods, reason = "files are as old as the clock of their machine says")]
fn sweep(folder: &FilePath, age: Duration) -> io::Result<usize> {
    let (now, mut removed) = (SystemTime::now(), 0);
    let entries = match std::fs::read_dir(folder) {
        // An empty folder goes with the last file in it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let modified = entry.metadata().and_then(|meta| meta.modified());
        let old = modified.is_ok_and(|at| now.duration_since(at).unwrap_or_default() >= age);
        // Whoever was just finished is gone, and that is as well.
        if old && std::fs::remove_file(entry.path()).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

fn from_store(error: object_store::Error) -> Error {
    let mut next = error.source();
    while let Some(cause) = next {
        if cause.downcast_ref::<io::Error>().is_some_and(is_full) {
            return Error::StorageFull;
        }
        next = cause.source();
    }
    unavailable(error.into())
}

fn from_io(error: io::Error) -> Error {
    if is_full(&error) {
        return Error::StorageFull;
    }
    match error.downcast::<object_store::Error>() {
        Ok(error) => from_store(error),
        Err(error) => unavailable(error.into()),
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

fn unavailable(cause: okt_model::Cause) -> Error {
    Error::Unavailable { service: "the file storage", cause }
}
