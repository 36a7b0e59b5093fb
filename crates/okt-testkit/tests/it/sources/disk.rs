//! A disk that is full is an answer, and leaves nothing behind.

use std::process::Command;
use std::time::Duration;

use okt_config::Storage;
use okt_model::{Error, RepositoryId, SourceId};
use okt_store::Blobs;
use okt_testkit::db;
use okt_testkit::wait::eventually;

use crate::sources::blobs::files_below;

/// A small disk in memory, gone with the value.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn of(size: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "okt-test"])
            .arg(folder.path())
            .status()
            .unwrap();
        assert!(mounted.success(), "a disk in memory can be mounted; run the tests as root");
        Self(folder)
    }

    fn storage(&self) -> Storage {
        let root = self.0.path().to_str().unwrap();
        db::config(&[("SVC__PROVIDERS__STORAGE__ROOT", root)]).providers.storage
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// What was being written when the disk was full goes a moment after it was said.
async fn soon(is: impl Fn() -> bool) {
    let look = async || if is() { Ok(()) } else { Err("something is left behind") };
    eventually(Duration::from_secs(10), "the folder is tidy", look).await;
}

#[tokio::test]
async fn a_full_disk_leaves_nothing_behind_and_works_again_with_room() {
    let disk = SmallDisk::of("8m");
    let blobs = Blobs::open(&disk.storage()).unwrap();
    let (repository, source) = (RepositoryId::mint(), SourceId::mint());
    let write = async |megabytes: usize| {
        let mut incoming = blobs.begin(repository, source);
        for n in 0..megabytes {
            incoming.write(vec![u8::try_from(n).unwrap(); 1024 * 1024].into()).await?;
        }
        incoming.finish().await
    };
    write(3).await.unwrap();
    for _ in 0..3 {
        assert!(matches!(write(12).await, Err(Error::StorageFull)));
        soon(|| files_below(disk.0.path()).len() == 1).await;
    }
    blobs.remove_repository(repository).await.unwrap();
    // What was just being written holds its room for a moment longer.
    let look = async || write(5).await.map_err(|error| format!("{error:?}"));
    eventually(Duration::from_secs(10), "there is room again", look).await;
}

/// Through the whole service: 507 with a code, no file, no row, and the next one fits.
#[tokio::test]
async fn an_upload_that_does_not_fit_is_refused_cleanly() {
    let disk = SmallDisk::of("6m");
    let root = disk.0.path().to_str().unwrap();
    let app = crate::sources::test_app(&[("SVC__PROVIDERS__STORAGE__ROOT", root)]).await;
    let large = b"Some text that is said again and again. ".repeat(250_000);
    let refused = app.upload("large.txt", "text/plain", &large).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (507, "storage_full"), "{refused:?}");
    soon(|| files_below(disk.0.path()).is_empty()).await;
    assert_eq!(app.get("").await.json()["data"], serde_json::json!([]));
    assert_eq!(app.upload("small.txt", "text/plain", &large[..1_000_000]).await.status, 202);
}
