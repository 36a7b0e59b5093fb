use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use okt_model::{RepositoryId, SourceId};
use okt_store::Blobs;
use okt_testkit::db::config;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// What tenants have stored can't be read by other accounts of the machine, whatever the umask.
#[tokio::test]
async fn files_are_for_the_service_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("new/files");
    let settings = config(&[("SVC__PROVIDERS__STORAGE__ROOT", root.to_str().unwrap())]).providers.storage;
    // One that is new, and one that an older version has made.
    for _ in 0..2 {
        let blobs = Blobs::open(&settings).unwrap();
        for folder in [root.clone(), root.join("incoming")] {
            assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        }
        let (repository, source) = (RepositoryId::mint(), SourceId::mint());
        let mut incoming = blobs.begin(repository, source);
        incoming.write("an original".into()).await.unwrap();
        let blob = incoming.finish().await.unwrap();
        let file = root.join(format!("repositories/{repository}/{source}/{}", blob.hash));
        assert_eq!(mode(&file), 0o600);
        for folder in [root.clone(), root.join("incoming")] {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}
