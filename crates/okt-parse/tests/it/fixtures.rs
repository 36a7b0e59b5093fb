//! Files of our own making through the whole reader, held against what a person found right.
//!
//! `OKT_BLESS=1` writes the answers anew. Read them before you commit them: is the title the title, is the navigation
//! gone, do sentences end where they end?

use std::fs;
use std::path::{Path, PathBuf};

use okt_parse::worker::Head;
use okt_parse::{Document, Hint, Image, Limits, ParseError};
use serde_json::json;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn hint(path: &Path) -> Hint {
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    Hint {
        content_type: None,
        url: Some(format!("https://site.example/texts/{name}")),
        file_name: Some(name),
    }
}

fn read(bytes: &[u8], hint: &Hint) -> (Vec<Image>, Document) {
    let mut images = Vec::new();
    let head = Head { hint: hint.clone(), limits: Limits::default() };
    let engine = Err(ParseError::NoPdfEngine("none is needed here".to_owned()));
    let document = okt_parse::parse(engine, bytes, &head, &mut |image| images.push(image)).unwrap();
    (images, document)
}

/// What a person wants to see of it: each sentence with its offsets.
fn shown(images: &[Image], document: &Document) -> String {
    let points: Vec<char> = document.text.chars().collect();
    let sentences: Vec<_> = document
        .sentences
        .iter()
        .map(|&(start, end)| {
            json!([start, end, points[start as usize..end as usize].iter().collect::<String>()])
        })
        .collect();
    let images: Vec<_> = images
        .iter()
        .map(|image| json!({ "url": image.url, "alt": image.alt_text, "type": image.content_type, "bytes": image.bytes.len() }))
        .collect();
    let mut shown = serde_json::to_value(document).unwrap();
    let fields = shown.as_object_mut().unwrap();
    fields.insert("sentences".into(), sentences.into());
    fields.insert("images".into(), images.into());
    // The same for all; a test beside the segmenter holds it.
    fields.remove("segmenter");
    fields.remove("segmenter_hash");
    serde_json::to_string_pretty(&shown).unwrap() + "\n"
}

#[test]
fn every_fixture_reads_as_a_person_reads_it() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() || path.extension().is_some_and(|end| end == "json") {
            continue;
        }
        count += 1;
        let (images, document) = read(&fs::read(&path).unwrap(), &hint(&path));
        let shown = shown(&images, &document);
        let kept = PathBuf::from(format!("{}.json", path.display()));
        if std::env::var_os("OKT_BLESS").is_some() {
            fs::write(&kept, shown).unwrap();
        } else if fs::read_to_string(&kept).unwrap_or_default() != shown {
            wrong.push(kept);
        }
    }
    assert!(count >= 14, "the fixtures are missing");
    assert!(
        wrong.is_empty(),
        "not what the code says any more; run `just bless`, read and commit: {wrong:#?}"
    );
}
