//! Packages and bundles, named by what is in them: `packages/{sha256}` and `graphs/{sha256}`, each in one of 256 folders. What arrives
//! is in `incoming` until it is whole. What is left of something that went wrong is found by [`Registry::sweep`].

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3Builder;
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};
use okt_config::{Storage, StorageBackend};
use okt_model::{Error, JobId, Result};
use okt_pg::Tx;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use crate::{PATIENCE, Registry, store};

/// For so long it is believed how the storage was.
const FRESH: Duration = Duration::from_secs(5);

/// Of which kind a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Package,
    Graph,
}

/// Where they are, and the folder if it is one of this machine.
#[derive(Clone)]
pub(crate) struct Files(Arc<dyn ObjectStore>, Option<PathBuf>);

/// A file that arrives. It has its name when it is whole.
pub(crate) struct Incoming {
    files: Files,
    path: Path,
    writer: BufWriter,
    hash: Sha256,
    size: u64,
}

impl Files {
    pub(crate) fn open(settings: &Storage) -> Result<Self> {
        let refused = |error: String| Error::Operator(format!("registry.storage: {error}"));
        let store: Arc<dyn ObjectStore> = match settings.backend {
            StorageBackend::Filesystem => {
                std::fs::create_dir_all(&settings.root).map_err(|error| refused(error.to_string()))?;
                let store = LocalFileSystem::new_with_prefix(&settings.root);
                let store = store.map_err(|error| refused(error.to_string()))?;
                Arc::new(store.with_fsync(true).with_automatic_cleanup(true))
            }
            StorageBackend::S3 => {
                let s3 = &settings.s3;
                let mut builder = AmazonS3Builder::new()
                    .with_region(&s3.region)
                    .with_bucket_name(&s3.bucket)
                    .with_access_key_id(s3.access_key_id.expose())
                    .with_secret_access_key(s3.secret_access_key.expose());
                if let Some(endpoint) = &s3.endpoint {
                    builder =
                        builder.with_endpoint(endpoint.as_str().trim_end_matches('/')).with_client_options(
                            ClientOptions::new().with_allow_http(endpoint.scheme() == "http"),
                        );
                }
                Arc::new(builder.build().map_err(|error| refused(error.to_string()))?)
            }
        };
        let folder = (settings.backend == StorageBackend::Filesystem).then(|| settings.root.clone());
        Ok(Self(store, folder))
    }

    /// Whether a file can be written and removed.
    pub(crate) async fn check(&self) -> Result<()> {
        // Of one's own: two may look at once.
        let path = Path::from_iter(["incoming", &format!("check-{}", JobId::mint())]);
        self.0.put(&path, "okt".into()).await.map_err(away)?;
        self.0.delete(&path).await.map_err(away)
    }

    pub(crate) async fn put(&self, kind: Kind, sha256: [u8; 32], bytes: Bytes) -> Result<()> {
        self.0.put(&path(kind, &sha256), bytes.into()).await.map_err(away)?;
        Ok(())
    }

    pub(crate) fn begin(&self, id: Uuid) -> Incoming {
        let path = Path::from_iter(["incoming", &id.to_string()]);
        let writer = BufWriter::new(Arc::clone(&self.0), path.clone());
        Incoming { files: self.clone(), path, writer, hash: Sha256::new(), size: 0 }
    }

    /// All of it or a part; `None` if it is gone.
    pub(crate) async fn read(
        &self,
        kind: Kind,
        sha256: &[u8],
        range: Option<Range<u64>>,
    ) -> Result<Option<BoxStream<'static, Result<Bytes>>>> {
        let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
        match self.0.get_opts(&path(kind, sha256), options).await {
            Ok(found) => Ok(Some(found.into_stream().map_err(away).boxed())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(away(error)),
        }
    }

    pub(crate) async fn is_there(&self, kind: Kind, sha256: &[u8]) -> Result<bool> {
        match self.0.head(&path(kind, sha256)).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(away(error)),
        }
    }

    /// What has been in a folder since before this time.
    pub(crate) async fn list_older(&self, folder: Path, than: DateTime<Utc>) -> Result<Vec<Path>> {
        let found = self.0.list(Some(&folder)).map_err(away);
        let old = found.try_filter_map(|file| async move {
            Ok::<_, Error>((file.last_modified < than).then_some(file.location))
        });
        old.try_collect().await
    }

    /// Removes pieces of files whose writer was killed, which no list of a folder shows.
    pub(crate) async fn forget_pieces(&self, folder: &str, than: DateTime<Utc>) -> Result<()> {
        let Some(folder) = self.1.as_ref().map(|root| root.join(folder)) else { return Ok(()) };
        let done = tokio::task::spawn_blocking(move || {
            let Ok(entries) = std::fs::read_dir(folder) else { return };
            for entry in entries.flatten() {
                let changed = entry.metadata().and_then(|file| file.modified());
                let is_old = changed.is_ok_and(|at| DateTime::<Utc>::from(at) < than);
                if is_old && entry.file_name().to_string_lossy().contains('#') {
                    drop(std::fs::remove_file(entry.path()));
                }
            }
        });
        done.await.map_err(Error::internal)
    }

    /// What nobody has gone on writing.
    pub(crate) async fn forget(&self, path: &Path) -> Result<()> {
        self.0.delete(path).await.map_err(away)
    }

    pub(crate) async fn remove(&self, kind: Kind, sha256: &[u8]) -> Result<()> {
        match self.0.delete(&path(kind, sha256)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(away(error)),
        }
    }
}

impl Incoming {
    pub(crate) async fn write(&mut self, bytes: &Bytes) -> Result<()> {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        self.writer.write_all(bytes).await.map_err(away)
    }

    /// The hash of what has come so far.
    pub(crate) fn sha256(&self) -> [u8; 32] {
        self.hash.clone().finalize().into()
    }

    /// How much has come so far.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// It is whole, and gets its name.
    pub(crate) async fn finish(mut self, kind: Kind) -> Result<()> {
        AsyncWriteExt::shutdown(&mut self.writer).await.map_err(away)?;
        let hash = self.sha256();
        self.files.0.rename(&self.path, &path(kind, &hash)).await.map_err(away)
    }

    /// Leaves nothing.
    pub(crate) async fn give_up(mut self) {
        drop(self.writer.abort().await);
        drop(self.files.0.delete(&self.path).await);
    }
}

impl Registry {
    /// Whether files can be written. Looked at now and then, for anybody may ask.
    pub(crate) async fn is_storage_well(&self) -> bool {
        let mut seen = self.storage.lock().await;
        if let Some((at, is_well)) = *seen
            && at.elapsed() < FRESH
        {
            return is_well;
        }
        let is_well = in_time(self.files.check()).await.is_ok();
        *seen = Some((Instant::now(), is_well));
        is_well
    }

    /// A transaction in which nobody else removes a file that was just written; an error if somebody has meanwhile.
    pub(crate) async fn begin_with_file(&self, kind: Kind, sha256: &[u8]) -> Result<Tx> {
        let mut tx = self.begin().await?;
        store::hold_file(&mut tx, sha256).await?;
        if in_time(self.files.is_there(kind, sha256)).await? {
            return Ok(tx);
        }
        Err(Error::Overloaded("the same file was just removed; push it again"))
    }

    /// Removes the file unless a row speaks of it.
    pub(crate) async fn drop_unused(&self, kind: Kind, sha256: &[u8]) -> Result<()> {
        let mut tx = self.begin().await?;
        store::hold_file(&mut tx, sha256).await?;
        if !store::is_file_used(&mut tx, kind, sha256).await? {
            in_time(self.files.remove(kind, sha256)).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Removes what no row speaks of from one of 256 folders of each kind, and what has stopped arriving: files that are older than
    /// `age`, for whoever writes one writes its row soon.
    pub async fn sweep(&self, folder: u8, age: Duration) -> Result<()> {
        let mut conn = self.acquire().await?;
        let before = store::now(&mut conn).await? - age;
        drop(conn);
        for kind in [Kind::Package, Kind::Graph] {
            let pieces = format!("{}/{}", kind.folder(), hex::encode([folder]));
            self.files.forget_pieces(&pieces, before).await?;
            for path in self
                .files
                .list_older(Path::from_iter([kind.folder(), &hex::encode([folder])]), before)
                .await?
            {
                let sha256 = path.filename().and_then(|name| hex::decode(name).ok());
                if let Some(sha256) = sha256.filter(|sha256| sha256.len() == 32) {
                    self.drop_unused(kind, &sha256).await?;
                }
            }
        }
        if folder == 0 {
            for path in self.files.list_older(Path::from("incoming"), before).await? {
                self.files.forget(&path).await?;
            }
            self.files.forget_pieces("incoming", before).await?;
        }
        Ok(())
    }
}

impl Kind {
    const fn folder(self) -> &'static str {
        match self {
            Self::Package => "packages",
            Self::Graph => "graphs",
        }
    }
}

fn path(kind: Kind, sha256: &[u8]) -> Path {
    let name = hex::encode(sha256);
    Path::from_iter([kind.folder(), &name[..2.min(name.len())], &name])
}

/// Nobody holds a connection and a lock for a storage that hangs.
async fn in_time<T>(asked: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|error| Err(away(error)))
}

fn away(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Unavailable { service: "the file storage", cause: error.into() }
}
