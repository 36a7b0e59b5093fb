//! A real browser behind the protocol of solvers: Chromium, by way of `tests/solver/shim`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::*;

/// Ended with the test.
struct Shim {
    process: Child,
    url: String,
}

impl Shim {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/solver/shim");
        let started = Command::new("python3").arg(script).stdout(Stdio::piped()).spawn();
        let mut process = started.expect("python3 runs tests/solver/shim");
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned() }
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Lets nobody in who does not keep the cookie that a script sets, and writes its text with another script.
fn guarded_page(head: &str) -> Vec<u8> {
    let head = head.to_ascii_lowercase();
    if head.starts_with("get /robots.txt ") {
        return status(404, "");
    }
    if !head.contains("cookie: pass=42\r\n") {
        let challenge = "<title>Just a moment...</title><p>Checking your browser</p>\
             <script>document.cookie = 'pass=' + 6 * 7; location.reload()</script>";
        return page(403, "server: cloudflare\r\ncontent-type: text/html\r\n", challenge);
    }
    let article = "<title>Bees</title><p id=text></p><script>document.getElementById('text').textContent = \
         ['Bees', 'dance', 'to', 'tell', 'where', 'the', 'flowers', 'are.'].join(' ')</script>";
    page(200, "content-type: text/html\r\n", article)
}

#[tokio::test]
async fn a_real_browser_gets_through_where_fetching_does_not() {
    let shim = Shim::start();
    let site = Server::start(any_port(ALLOWED), guarded_page).await;
    let mut config = config();
    config.providers.resolution.challenge_solver.url = Some(shim.url.parse().unwrap());
    let resolver = resolver(&config, &[site.address]);
    let mut reader = Reader::default();
    let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut reader).await.unwrap();
    assert_eq!(
        story(&resolution),
        ["fetch /a 403 challenge", "challenge_solver /a 200 taken"],
        "is Chromium at /usr/bin/chromium, or named in OKT_CHROMIUM? {:?}",
        resolution.end
    );
    let text = "<p id=\"text\">Bees dance to tell where the flowers are.</p>";
    assert!(reader.pages[0].contains(text), "{:?}", reader.pages);
    assert!(pages(&site) >= 3, "fetch, the challenge, and the page behind it");
}
