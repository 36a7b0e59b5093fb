//! Bundles of a repository: those that were made for somebody to fetch, by their jobs
//! (`repositories/{repository}/bundles/{job}/{sha256}`), and those that somebody brought to be imported, by their uploads
//! (`…/graph-uploads/{upload}/{sha256}`). No row speaks of them; they go when they are old.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::stream::TryStreamExt as _;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStoreExt as _};
use okt_model::{Blob, Error, JobId, RepositoryId, Result};
use uuid::Uuid;

use super::{Blobs, Incoming, Reading, folder, from_io, from_store};

/// Whose bundle it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleOf {
    Export(JobId),
    Upload(Uuid),
}

impl BundleOf {
    const FOLDERS: [&str; 2] = ["bundles", "graph-uploads"];

    fn path(self, repository: RepositoryId) -> Path {
        let (kind, id) = match self {
            Self::Export(job) => (0, job.uuid()),
            Self::Upload(id) => (1, id),
        };
        folder(repository).join(Self::FOLDERS[kind]).join(id.to_string())
    }
}

/// A bundle that is kept.
#[derive(Clone, Debug)]
pub struct StoredBundle {
    path: Path,
    pub blob: Blob,
}

impl Blobs {
    /// Begins the bundle of a job or an upload.
    pub fn begin_bundle(&self, repository: RepositoryId, of: BundleOf) -> Incoming {
        self.begin_in(of.path(repository))
    }

    /// The bundle of a job or an upload; `None` when there is none, or none any more.
    pub async fn find_bundle(&self, repository: RepositoryId, of: BundleOf) -> Result<Option<StoredBundle>> {
        let mut listed = self.store.list(Some(&of.path(repository)));
        while let Some(meta) = listed.try_next().await.map_err(from_store)? {
            if let Some(hash) = meta.location.filename().and_then(|name| name.parse().ok()) {
                let blob = Blob { hash, size: meta.size };
                return Ok(Some(StoredBundle { path: meta.location, blob }));
            }
        }
        Ok(None)
    }

    /// Reads it, or a part of it; `None` when it is gone.
    pub async fn read_bundle(
        &self,
        bundle: &StoredBundle,
        range: Option<Range<u64>>,
    ) -> Result<Option<Reading>> {
        let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
        self.read_at(&bundle.path, options).await
    }

    pub async fn remove_bundle(&self, repository: RepositoryId, of: BundleOf) -> Result<usize> {
        self.remove_below(&of.path(repository)).await
    }

    /// How many uploaded bundles wait.
    pub async fn count_uploads(&self, repository: RepositoryId) -> Result<usize> {
        let folder = folder(repository).join(BundleOf::FOLDERS[1]);
        let listed: Vec<_> = self.store.list(Some(&folder)).try_collect().await.map_err(from_store)?;
        Ok(listed.len())
    }

    /// Removes the bundles of a repository that are at least this old; returns how many.
    pub async fn remove_old_bundles(
        &self,
        repository: RepositoryId,
        age: Duration,
        now: DateTime<Utc>,
    ) -> Result<u64> {
        let mut old = Vec::new();
        for kind in BundleOf::FOLDERS {
            let mut listed = self.store.list(Some(&folder(repository).join(kind)));
            while let Some(meta) = listed.try_next().await.map_err(from_store)? {
                if (now - meta.last_modified).to_std().is_ok_and(|since| since >= age) {
                    old.push(meta.location);
                }
            }
        }
        for path in &old {
            match self.store.delete(path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(from_store(error)),
            }
        }
        Ok(old.len() as u64)
    }

    /// A file to work with, which nobody else can open and which is gone with this process: beside the others where these
    /// are on a file system, else where the system keeps temporary files.
    pub fn scratch(&self) -> Result<File> {
        let folder = self.incoming.as_deref().map_or_else(std::env::temp_dir, Into::into);
        let path = folder.join(format!("scratch-{}", JobId::mint()));
        let made = || -> io::Result<File> {
            use std::os::unix::fs::OpenOptionsExt as _;
            std::fs::create_dir_all(&folder)?;
            let mut options = File::options();
            let file = options.read(true).write(true).create_new(true).mode(super::FILE_MODE).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        };
        made().map_err(from_io)
    }
}

/// What went wrong with a file to work with.
pub fn scratch_error(error: io::Error) -> Error {
    from_io(error)
}
