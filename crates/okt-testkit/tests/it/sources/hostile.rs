//! Files that were made to hurt whoever reads them: the worker stays up and small, and each source says why it failed.

use std::io::Write as _;

use flate2::{Compress, Compression, FlushCompress};
use okt_testkit::jobs::program;
use okt_testkit::process::Process;

use crate::sources::test_app;

/// How much a worker may grow over what it needs for an ordinary file.
const GROWTH_KIB: u64 = 64 * 1024;

#[tokio::test]
async fn hostile_files_end_with_a_reason_and_the_worker_stays_small() {
    let app = test_app(&[]).await;
    let mut settings = app.process_settings();
    settings.push(("SVC__PROVIDERS__RESOLUTION__FETCH__TIMEOUT", "2s"));
    let worker = Process::serve_as(program(), &["--role", "worker"], &settings);
    let ordinary = app.upload("a.txt", "text/plain", &b"Bees dance on the comb. ".repeat(4_000)).await;
    let seen = app.settled(ordinary.json()["source_id"].as_str().unwrap()).await;
    assert_eq!(seen["status"], "processed", "{seen}");
    let before = worker.memory();

    let deep = b"<div>".repeat(200_000);
    let entities = "<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\"><!ENTITY b \"&a;&a;\">]><x>&b;</x>";
    let picture = format!(
        "<?xml version=\"1.0\"?>{entities}<svg xmlns=\"http://www.w3.org/2000/svg\"><script>1</script></svg>"
    );
    let pages = many_pages(1_000_000);
    let cases: Vec<(&str, &str, Vec<u8>, Option<&str>)> = vec![
        ("bomb.pdf", "application/pdf", bomb(600), Some("unprocessable")),
        ("nested.pdf", "application/pdf", nested(10_000), None),
        ("loop.pdf", "application/pdf", looped(), None),
        ("pages.pdf", "application/pdf", pages, Some("too_much")),
        ("cut.pdf", "application/pdf", bomb(1)[..300].to_vec(), Some("damaged")),
        ("deep.html", "text/html", deep, Some("no_text")),
        ("tags.html", "text/html", b"<p>xxxxx".repeat(2_000_000), None),
        ("attributes.html", "text/html", [b"<p ".to_vec(), b"a=1 ".repeat(500_000)].concat(), None),
        ("entities.xml", "application/xml", entities.as_bytes().to_vec(), None),
        ("picture.svg", "image/svg+xml", picture.into_bytes(), None),
        ("long.txt", "text/plain", b"No end to it ".repeat(3_000_000), Some("too_much")),
        ("picture.pdf", "application/pdf", b"\x89PNG\r\n\x1a\nnothing".to_vec(), Some("unsupported_type")),
        ("program.txt", "text/plain", b"\x7fELF\x02\x01\x01\0\0\0\0".repeat(1_000), Some("unsupported_type")),
    ];
    for (name, content_type, bytes, code) in cases {
        let size = bytes.len();
        let added = app.upload(name, content_type, &bytes).await;
        assert_eq!(added.status, 202, "{name}: {added:?}");
        let seen = app.settled(added.json()["source_id"].as_str().unwrap()).await;
        let text = seen["parsed_text"].as_str().unwrap_or_default();
        assert!(!text.contains("root:"), "{name}: {text}");
        println!(
            "{name}: {} KB, {} {}, worker {} MiB",
            size / 1024,
            seen["status"],
            seen["failure"]["message"],
            worker.memory() / 1024
        );
        if let Some(code) = code {
            assert_eq!(
                (&seen["status"], &seen["failure"]["code"]),
                (&"failed".into(), &code.into()),
                "{name}: {seen}"
            );
        }
        if seen["status"] == "failed" {
            assert!(seen["failure"]["message"].as_str().unwrap().len() > 10, "{name}: {seen}");
        }
        let grown = worker.memory().saturating_sub(before);
        assert!(grown <= GROWTH_KIB, "{name}: the worker grew by {grown} KiB");
    }
    // And it still works.
    let added = app.upload("b.txt", "text/plain", b"Bees make wax. It takes much honey.").await;
    let seen = app.settled(added.json()["source_id"].as_str().unwrap()).await;
    assert_eq!(seen["status"], "processed", "{seen}");
}

/// A page whose drawing unpacks to so many megabytes.
fn bomb(megabytes: usize) -> Vec<u8> {
    let packed = repeated(&b"0 0 m 1 1 l S\n".repeat(75_000), megabytes);
    let mut stream = format!("<</Filter/FlateDecode/Length {}>>stream\n", packed.len()).into_bytes();
    stream.extend_from_slice(&packed);
    stream.extend_from_slice(b"\nendstream");
    pdf(&[
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R>>".to_vec(),
        stream,
    ])
}

/// What unpacks to so many of the piece. It is packed once: a block that refers to nothing before it can be said again.
fn repeated(piece: &[u8], times: usize) -> Vec<u8> {
    const MODULUS: u64 = 65_521;
    let mut block = Vec::with_capacity(piece.len());
    Compress::new(Compression::best(), false).compress_vec(piece, &mut block, FlushCompress::Full).unwrap();
    // Adler-32 of all, from what one more piece does to it.
    let length = u64::try_from(piece.len()).unwrap();
    let sum: u64 = piece.iter().map(|byte| u64::from(*byte)).sum();
    let weighted: u64 =
        piece.iter().zip((1..=length).rev()).map(|(byte, left)| u64::from(*byte) * left).sum();
    let (mut a, mut b) = (1, 0);
    for _ in 0..times {
        b = (b + length * a + weighted) % MODULUS;
        a = (a + sum) % MODULUS;
    }
    let checksum = u32::try_from((b << 16) | a).unwrap().to_be_bytes();
    [b"\x78\xda".as_slice(), &block.repeat(times), b"\x03\x00", &checksum].concat()
}

fn nested(levels: usize) -> Vec<u8> {
    let deep = [b"[".repeat(levels), b"]".repeat(levels)].concat();
    pdf(&[
        b"<</Type/Catalog/Pages 2 0 R/X 4 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Annots 4 0 R>>".to_vec(),
        deep,
    ])
}

/// Pages that are their own parents and children.
fn looped() -> Vec<u8> {
    pdf(&[
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[2 0 R 3 0 R]/Count 5/Parent 3 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[2 0 R 3 0 R]/Count 5/Parent 2 0 R>>".to_vec(),
    ])
}

/// One page, said a million times.
fn many_pages(count: usize) -> Vec<u8> {
    let kids = b"3 0 R ".repeat(count);
    let tree = [b"<</Type/Pages/Kids[".to_vec(), kids, format!("]/Count {count}>>").into_bytes()].concat();
    pdf(&[
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        tree,
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]>>".to_vec(),
    ])
}

fn pdf(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n".to_vec();
    let mut places = Vec::new();
    for (object, number) in objects.iter().zip(1..) {
        places.push(file.len());
        writeln!(file, "{number} 0 obj").unwrap();
        file.extend_from_slice(object);
        file.extend_from_slice(b"\nendobj\n");
    }
    let table = file.len();
    write!(file, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    for place in places {
        writeln!(file, "{place:010} 00000 n ").unwrap();
    }
    write!(file, "trailer<</Size {}/Root 1 0 R>>\nstartxref\n{table}\n%%EOF", objects.len() + 1).unwrap();
    file
}
