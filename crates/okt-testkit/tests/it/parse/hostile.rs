//! Files made to hurt. Each ends with an answer or with a death that is told apart, and none with a hang.

use std::fmt::Write as _;

use okt_parse::ParseError;

use super::made::{bomb, file, file_with, noise, pack, page, page_of, stream};
use super::{Answer, Run, fixture, parse};

/// The worker's memory, all of it.
const MEMORY_MIB: u64 = 512;

#[expect(clippy::print_stdout, reason = "what each did is worth reading")]
fn attack(name: &str, bytes: &[u8]) -> Run {
    let run = parse(bytes);
    let answer = match &run.answer {
        Answer::Document(document) => format!("a document of {} bytes of text", document.text.len()),
        Answer::Error(error) => format!("{}: {error}", error.code()),
        Answer::Death(how) => format!("death: {how}"),
    };
    println!("{name}: {} KB, {:.1?}, peak {} MiB, {answer}", bytes.len() / 1024, run.took, run.peak_mib);
    assert!(run.peak_mib <= MEMORY_MIB, "{name} took {} MiB", run.peak_mib);
    run
}

fn refused(name: &str, bytes: &[u8], code: &str) {
    match attack(name, bytes).answer {
        Answer::Error(error) => assert_eq!(error.code(), code, "{name}: {error}"),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn what_holds_no_document_is_refused() {
    refused("a picture", &[b"\x89PNG\r\n\x1a\n".as_slice(), &noise(5_000)].concat(), "unsupported_type");
    refused("an empty page", b"<!doctype html><title>application/pdf</title>", "no_text");
    refused("nothing", b"", "no_text");
}

#[test]
fn damaged_files_are_refused() {
    refused("noise behind a header", &[b"%PDF-1.7\n".as_slice(), &noise(1_000_000)].concat(), "damaged");
    refused("only a header", b"%PDF-1.7", "damaged");
    let whole = fixture("article.pdf");
    for part in [4, 2] {
        attack("a part of a file", &whole[..whole.len() / part]);
        attack(
            "a file with its middle gone",
            &[&whole[..whole.len() / (part + 1)], &whole[whole.len() / part..]].concat(),
        );
    }
}

#[test]
fn a_locked_file_is_refused_as_such() {
    let text = page("BT /F 12 Tf (Secret) Tj ET");
    let objects = [
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]>>".to_owned(),
        format!("<</Filter/Standard/V 1/R 2/P -4/O<{0}>/U<{0}>>>", "5a".repeat(32)),
    ];
    let id = "/Encrypt 4 0 R/ID[<00112233445566778899aabbccddeeff><00112233445566778899aabbccddeeff>]";
    match attack("locked", &file_with(&objects, id)).answer {
        Answer::Error(error) => assert_eq!(error, ParseError::Locked),
        other => panic!("{other:?}"),
    }
    assert!(matches!(attack("not locked", &text).answer, Answer::Document(_)));
}

#[test]
fn a_million_pages_are_too_many() {
    let lie = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1000000>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
    ];
    refused("a count that lies", &file(&lie), "too_much");
    let kids = format!("<</Type/Pages/Kids[{}]/Count 1000000>>", "3 0 R ".repeat(1_000_000));
    refused("one page a million times", &file(&[lie[0], &kids, lie[2]]), "too_much");
    // A tree that doubles at each of twenty levels.
    let mut tree = vec![lie[0].to_owned()];
    for level in 0..20 {
        tree.push(format!(
            "<</Type/Pages/Kids[{0} 0 R {0} 0 R]/Count {1}>>",
            level + 3,
            1_u32 << (20 - level)
        ));
    }
    tree.push("<</Type/Page/MediaBox[0 0 9 9]>>".to_owned());
    let run = attack("a tree that doubles", &file(&tree));
    assert!(matches!(run.answer, Answer::Error(_)), "{:?}", run.answer);
}

#[test]
fn what_is_nested_ten_thousand_deep_does_not_overflow_into_a_hang() {
    let deep = 10_000;
    let arrays = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
    let dictionaries = format!("{}null{}", "<</A ".repeat(deep), ">>".repeat(deep));
    attack("arrays in an object", &page_of(&stream("", b""), "/A 6 0 R", &[arrays.clone().into_bytes()]));
    attack("dictionaries in the page", &page_of(&stream("", b""), &format!("/A {dictionaries}"), &[]));
    attack("arrays in the content", &page(&format!("{arrays} TJ BT /F 9 Tf (x) Tj ET")));
    attack("states in the content", &page(&format!("{} BT /F 9 Tf (x) Tj ET", "q ".repeat(1_000_000))));
    let mut chain = vec!["<</Type/Catalog/Pages 2 0 R>>".to_owned()];
    for level in 0..deep {
        chain.push(format!("<</Type/Pages/Kids[{} 0 R]/Count 1>>", level + 3));
    }
    chain.push("<</Type/Page/MediaBox[0 0 9 9]>>".to_owned());
    attack("a tree of pages that is a chain", &file(&chain));
}

#[test]
fn loops_end() {
    let catalogue = "<</Type/Catalog/Pages 2 0 R>>";
    attack("pages within themselves", &file(&[catalogue, "<</Type/Pages/Kids[2 0 R 2 0 R]/Count 5>>"]));
    attack("an object that is itself", &file(&[catalogue, "2 0 R"]));
    attack(
        "a length that is its own stream",
        &file(&[
            catalogue,
            "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R>>",
            "<</Length 4 0 R>>stream\nq\nendstream",
        ]),
    );
    let form = |body: &str, next: &str| {
        stream(
            &format!("/Type/XObject/Subtype/Form/BBox[0 0 600 700]/Resources<</XObject<</X {next} 0 R>>>>"),
            body.as_bytes(),
        )
    };
    let resources = "/Resources<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>";
    attack("a form that draws itself", &page_of(&stream("", b"/X Do"), resources, &[form("/X Do", "6")]));
    attack(
        "a font within itself",
        &file(&[
            catalogue,
            "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
            "<</Length 24>>stream\nBT /F 12 Tf (loop) Tj ET\nendstream",
            "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding 5 0 R/ToUnicode 5 0 R/DescendantFonts[5 0 R]>>",
        ]),
    );
    let mut looping = page("q");
    let table = looping.windows(5).position(|window| window == b"xref\n").unwrap();
    let text = String::from_utf8(looping.clone())
        .unwrap()
        .replace("/Root 1 0 R", &format!("/Root 1 0 R/Prev {table}"));
    looping = text.into_bytes();
    attack("a table of objects that points to itself", &looping);
}

#[test]
fn bombs_stay_within_the_memory() {
    let zeros = bomb(b' ', 400 * 1024 * 1024);
    attack("400 MB of spaces as content", &page_of(&stream("/Filter/FlateDecode", &zeros), "", &[]));
    let twice = pack(&bomb(0, 1024 * 1024 * 1024));
    attack("1 GB packed twice", &page_of(&stream("/Filter[/FlateDecode/FlateDecode]", &twice), "", &[]));
    let mut words = String::new();
    for _ in 0..200_000 {
        words.push_str("(many words and more of them in one place ) Tj ");
    }
    let words = pack(format!("BT /F 9 Tf {words} ET").as_bytes());
    attack("8 million letters on one page", &page_of(&stream("/Filter/FlateDecode", &words), "", &[]));
}

#[test]
fn images_of_absurd_sizes_are_passed_over() {
    let image = |width: u32, height: u32, entries: &str, data: &[u8]| {
        let entries = format!("/Type/XObject/Subtype/Image/Width {width}/Height {height}{entries}");
        let resources = "/Resources<</Font<</F 5 0 R>>/XObject<</I 6 0 R>>>>";
        let content =
            stream("", b"BT /F 12 Tf 60 700 Td (Text beside it.) Tj ET q 400 0 0 400 50 50 cm /I Do Q");
        page_of(&content, resources, &[stream(&entries, data)])
    };
    let rgb = "/ColorSpace/DeviceRGB/BitsPerComponent 8";
    attack("100000 x 100000 in colour", &image(100_000, 100_000, rgb, &noise(3_000)));
    attack(
        "100000 x 100000 packed",
        &image(100_000, 100_000, &format!("{rgb}/Filter/FlateDecode"), &bomb(7, 64 << 20)),
    );
    attack(
        "40000 x 40000 in black and white",
        &image(40_000, 40_000, "/ImageMask true/BitsPerComponent 1", &noise(3_000)),
    );
    for filter in ["JBIG2Decode", "JPXDecode", "DCTDecode", "CCITTFaxDecode", "LZWDecode", "RunLengthDecode"]
    {
        let run = attack(filter, &image(2_000, 2_000, &format!("{rgb}/Filter/{filter}"), &noise(20_000)));
        assert!(matches!(run.answer, Answer::Document(_)), "{filter}: {:?}", run.answer);
    }
}

#[test]
fn pages_of_absurd_sizes_are_read_all_the_same() {
    for media in [
        "[0 0 0 0]",
        "[0 0 0.001 0.001]",
        "[0 0 1e9 1e9]",
        "[0 0 99999999999 1]",
        "[9 9 9 9]",
        "[0 0 -5 -5]",
        "[0 0 1]",
        "[0 0 1 10000]",
    ] {
        let content = stream("", b"BT /F 12 Tf 1 0 0 1 0 0 Tm (Text all the same.) Tj ET");
        let run = attack(media, &page_of(&content, &format!("/MediaBox{media}"), &[]));
        assert!(!matches!(run.answer, Answer::Death(_)), "{media}: {:?}", run.answer);
    }
}

#[test]
fn work_that_never_ends_is_ended() {
    // Forms that draw the next one ten times: ten thousand million drawings.
    let mut forms = Vec::new();
    for level in 0..10 {
        let mut body = String::new();
        for _ in 0..10 {
            write!(body, "/X Do ").unwrap();
        }
        let entries = format!(
            "/Type/XObject/Subtype/Form/BBox[0 0 600 700]/Resources<</XObject<</X {} 0 R>>>>",
            level + 7
        );
        forms.push(stream(&entries, body.as_bytes()));
    }
    forms.push(stream("/Type/XObject/Subtype/Form/BBox[0 0 600 700]", b"0 0 600 700 re f"));
    let resources = "/Resources<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>";
    let run = attack("ten thousand million drawings", &page_of(&stream("", b"/X Do"), resources, &forms));
    assert!(!matches!(run.answer, Answer::Document(_)), "{:?}", run.answer);
}
