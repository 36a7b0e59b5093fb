//! Packages and bundles, named by what is in them: `packages/{sha256}` and `graphs/{sha256}`, each in one of 256 folders.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3Builder;
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};
use okt_config::{Storage, StorageBackend};
use okt_model::{Error, Result};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

/// Of which kind a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Package,
    Graph,
}

#[derive(Clone)]
pub(crate) struct Files(Arc<dyn ObjectStore>);

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
        Ok(Self(store))
    }

    /// Whether a file can be written and removed.
    pub(crate) async fn check(&self) -> Result<()> {
        let path = Path::from("incoming/check");
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

    /// Its hash and its size.
    pub(crate) async fn finish(mut self, kind: Kind) -> Result<([u8; 32], u64)> {
        AsyncWriteExt::shutdown(&mut self.writer).await.map_err(away)?;
        let hash: [u8; 32] = self.hash.finalize().into();
        self.files.0.rename(&self.path, &path(kind, &hash)).await.map_err(away)?;
        Ok((hash, self.size))
    }

    /// Leaves nothing.
    pub(crate) async fn give_up(mut self) {
        drop(self.writer.abort().await);
        drop(self.files.0.delete(&self.path).await);
    }
}

fn path(kind: Kind, sha256: &[u8]) -> Path {
    let folder = match kind {
        Kind::Package => "packages",
        Kind::Graph => "graphs",
    };
    let name = hex::encode(sha256);
    Path::from_iter([folder, &name[..2.min(name.len())], &name])
}

fn away(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Unavailable { service: "the file storage", cause: error.into() }
}
