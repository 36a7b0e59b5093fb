//! All files, whoever they belong to: for backups.

use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::GetOptions;
use object_store::path::Path;
use okt_model::{BlobHash, Error, Result};

use super::{Blobs, Incoming, KEPT, Reading, from_store};

/// A file, by where it is kept.
#[derive(Clone, Debug)]
pub struct StoredFile {
    path: Path,
    pub size: u64,
}

impl StoredFile {
    pub fn path(&self) -> &str {
        self.path.as_ref()
    }

    /// What it is named by.
    pub fn hash(&self) -> Option<BlobHash> {
        self.path.filename()?.parse().ok()
    }
}

impl Blobs {
    /// Every file that is kept.
    pub fn list_all(&self) -> BoxStream<'static, Result<StoredFile>> {
        let listed = self.store.list(Some(&Path::from(KEPT))).map_err(from_store);
        listed.map_ok(|meta| StoredFile { size: meta.size, path: meta.location }).boxed()
    }

    /// Whether there is none.
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.list_all().try_next().await?.is_none())
    }

    /// Reads one; `None` when it is gone.
    pub async fn read_stored(&self, file: &StoredFile) -> Result<Option<Reading>> {
        self.read_at(&file.path, GetOptions::default()).await
    }

    /// Begins a file that was kept at this path. It gets the name of what is written to it.
    pub fn begin_stored(&self, path: &str) -> Result<Incoming> {
        let invalid = || Error::Operator(format!("{path} is no path of a file"));
        let path = Path::parse(path).map_err(|_| invalid())?;
        let parts: Vec<_> = path.parts().collect();
        match parts.as_slice() {
            [first, between @ .., _] if first.as_ref() == KEPT && !between.is_empty() => {
                Ok(self.begin_in(Path::from_iter(parts[..parts.len() - 1].to_vec())))
            }
            _ => Err(invalid()),
        }
    }

    /// Removes all of them; returns how many.
    pub async fn remove_all(&self) -> Result<usize> {
        self.remove_below(&Path::from(KEPT)).await
    }
}
