//! PDFs become text: fixtures against what is kept beside them (`OKT_BLESS=1` writes it anew), and small ones made here.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use okt_parse::{Document, Image, ImageKind, Limits, ParseError, Rect, pdf};
use serde_json::json;

/// One for each thread: it has one state, and is not made to be shared.
fn engine() -> &'static pdf::Engine {
    thread_local! {
        static ENGINE: &'static pdf::Engine = {
            let library = std::env::var_os("OKT_PDFIUM").expect("first: export OKT_PDFIUM=$(scripts/pdfium)");
            Box::leak(Box::new(pdf::Engine::load(Path::new(&library)).unwrap()))
        };
    }
    ENGINE.with(|engine| *engine)
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pdf").join(name)
}

fn read(bytes: &[u8], limits: &Limits) -> (Result<Document, ParseError>, Vec<Image>) {
    let mut images = Vec::new();
    let result = pdf::parse(engine(), bytes, limits, &mut |image| images.push(image));
    (result, images)
}

fn text_of(bytes: &[u8]) -> Document {
    read(bytes, &Limits { images: 0, page_images: 0, ..Limits::default() }).0.unwrap()
}

fn check(name: &str) {
    let bytes = std::fs::read(fixture(&format!("{name}.pdf"))).unwrap();
    let (document, images) = read(&bytes, &Limits::default());
    let document = document.unwrap();
    let chars: Vec<char> = document.text.chars().collect();
    let said: Vec<_> = document
        .sentences
        .iter()
        .zip(&document.boxes)
        .map(|(&(start, end), boxes)| {
            let text: String =
                chars[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()].iter().collect();
            let boxes: Vec<_> = boxes.iter().map(shown).collect();
            json!([text, boxes.join(" | ")])
        })
        .collect();
    let pictures: Vec<_> = images
        .iter()
        .map(|image| {
            json!([
                image.kind,
                image.page_number,
                image.position,
                image.width,
                image.height,
                image.content_type
            ])
        })
        .collect();
    let snapshot = json!({
        "title": document.title, "author": document.author, "language": document.language, "doi": document.doi,
        "pages": document.pages, "markdown": document.markdown.split("\n\n").collect::<Vec<_>>(),
        "sentences": said, "images": pictures,
    });
    let snapshot = serde_json::to_string_pretty(&snapshot).unwrap() + "\n";
    let file = fixture(&format!("{name}.json"));
    if std::env::var_os("OKT_BLESS").is_some() {
        std::fs::write(&file, &snapshot).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == snapshot,
        "{} is not what the code says any more; look, then OKT_BLESS=1",
        file.display()
    );
}

fn shown(rect: &Rect) -> String {
    format!("{}: {:.0} {:.0} {:.0} {:.0}", rect.page, rect.x0, rect.y0, rect.x1, rect.y1)
}

#[test]
fn an_article_with_a_list_a_figure_and_a_table_is_read_as_written() {
    check("article");
}

#[test]
fn a_paper_is_read_column_by_column_without_what_its_pages_repeat() {
    check("paper");
}

#[test]
fn scripts_of_every_direction_are_read_as_written() {
    check("scripts");
}

#[test]
fn a_scan_gives_its_picture_and_then_says_that_it_has_no_text() {
    let (result, images) = read(&std::fs::read(fixture("scan.pdf")).unwrap(), &Limits::default());
    let error = result.unwrap_err();
    assert!(matches!(error, ParseError::Scanned(_)) && error.code() == "no_text", "{error}");
    assert!(
        images
            .iter()
            .any(|image| image.kind == ImageKind::Page && image.content_type.as_deref() == Some("image/png"))
    );
    assert!(images.iter().any(|image| image.kind == ImageKind::Inline));
}

#[test]
fn pages_and_text_beyond_the_limits_are_too_much() {
    let bytes = std::fs::read(fixture("paper.pdf")).unwrap();
    for limits in [Limits { pages: 2, ..Limits::default() }, Limits { text_bytes: 500, ..Limits::default() }]
    {
        assert_eq!(read(&bytes, &limits).0.unwrap_err().code(), "too_much");
    }
}

#[test]
fn images_beyond_the_limits_are_left_out() {
    let bytes = std::fs::read(fixture("paper.pdf")).unwrap();
    let count = |limits: Limits| read(&bytes, &limits).1.len();
    assert_eq!(count(Limits::default()), 4, "three pages and one figure");
    assert_eq!(count(Limits { images: 0, ..Limits::default() }), 3, "pages are none of the images");
    assert_eq!(count(Limits { page_images: 1, ..Limits::default() }), 2);
    assert_eq!(count(Limits { image_bytes: 500, ..Limits::default() }), 0);
}

/// A page with a content stream, in Helvetica, which is not in the file; `extra` goes into the page.
fn one_page(content: &str, extra: &str) -> Vec<u8> {
    let objects = [
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        format!(
            "<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>{extra}{}>>",
            if extra.contains("MediaBox") { "" } else { "/MediaBox[0 0 600 800]" }
        ),
        format!("<</Length {}>>stream\n{content}\nendstream", content.len()),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_owned(),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = "0000000000 65535 f \n".to_owned();
    for (index, object) in objects.iter().enumerate() {
        writeln!(table, "{:010} 00000 n ", file.len()).unwrap();
        writeln!(file, "{} 0 obj {object} endobj", index + 1).unwrap();
    }
    let at = file.len();
    let size = objects.len() + 1;
    write!(file, "xref\n0 {size}\n{table}trailer <</Size {size}/Root 1 0 R>>\nstartxref\n{at}\n%%EOF")
        .unwrap();
    file.into_bytes()
}

fn line(x: u32, y: u32, size: u32, text: &str) -> String {
    format!("BT /F {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n")
}

#[test]
fn columns_that_are_written_row_by_row_are_read_one_after_the_other() {
    let left = [
        "Bees that winter in a hollow tree",
        "keep their queen in the middle of",
        "a ball that never stops to move.",
    ];
    let right = [
        "Wasps do nothing of the kind, and",
        "of a whole nest only the queens of",
        "the next year live to see spring.",
    ];
    let mut content = line(
        60,
        700,
        12,
        "A line that goes from the left edge of the page to its right edge and crosses it.",
    );
    for row in 0..3_u32 {
        let at = usize::try_from(row).unwrap();
        content += &line(60, 660 - 15 * row, 12, left[at]);
        content += &line(320, 660 - 15 * row, 12, right[at]);
    }
    content += &line(
        60,
        580,
        12,
        "Another line that goes from the left edge of the page to the right one, below both.",
    );
    let text = text_of(&one_page(&content, "")).text;
    let (bees, wasps) = (left.join(" "), right.join(" "));
    let order = ["A line", bees.as_str(), wasps.as_str(), "Another"].map(|part| text.find(part));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?}: {text}");
}

#[test]
fn a_word_that_is_broken_at_the_end_of_a_line_is_one_word() {
    let content = line(60, 700, 12, "The well-known honey of that summer was an extra-")
        + &line(60, 685, 12, "ordinary one, and well-")
        + &line(60, 670, 12, "known for it. The Anglo-")
        + &line(60, 655, 12, "Saxon name is lost.");
    let text = text_of(&one_page(&content, "")).text;
    let joined = "The well-known honey of that summer was an extraordinary one, and well-known for it. The Anglo-Saxon name is lost.";
    assert_eq!(text, joined);
}

#[test]
fn places_are_those_of_the_page_as_it_is_shown() {
    let content = line(160, 700, 12, "Here.");
    let at = |extra: &str| {
        let document = text_of(&one_page(&content, extra));
        assert_eq!(document.text, "Here.");
        document.boxes[0][0]
    };
    let close = |rect: Rect, x0: f32, y0: f32| (rect.x0 - x0).abs() < 3.0 && (rect.y0 - y0).abs() < 4.0;
    let plain = at("");
    assert!(close(plain, 160.0, 697.0), "{plain:?}");
    let cropped = at("/MediaBox[0 0 600 800]/CropBox[100 600 500 800]");
    assert!(close(cropped, 60.0, 97.0), "{cropped:?}");
    let turned = at("/Rotate 180");
    assert!(close(turned, 600.0 - plain.x1, 800.0 - plain.y1), "{turned:?}");
    let quarter = at("/Rotate 90");
    assert!(close(quarter, plain.y0, 600.0 - plain.x1), "{quarter:?}");
}

#[test]
fn signs_of_markdown_are_kept_from_meaning_anything() {
    let document = text_of(&one_page(&line(60, 700, 12, "# 3 * 4 < 13 and [so] on_and_on."), ""));
    assert_eq!(document.text, "# 3 * 4 < 13 and [so] on_and_on.");
    assert_eq!(document.markdown, r"\# 3 \* 4 \< 13 and \[so\] on\_and\_on.");
}
