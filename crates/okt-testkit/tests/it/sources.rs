//! Sources: from an address or a file to text with sentences, and the files that are kept of them.

pub(crate) mod blobs;
mod disk;
mod files;
mod hostile;
mod intake;
mod kills;
mod marks;
mod provider_marks;
mod retrieval;
mod scans;
mod texts;
mod uploads;

use okt_testkit::app::TestApp;

/// Short paths are those below `/sources`.
async fn test_app(settings: &[(&str, &str)]) -> TestApp {
    TestApp::builder().settings(settings).paths_below("/sources").start().await
}
