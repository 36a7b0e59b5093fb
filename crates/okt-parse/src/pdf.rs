//! PDFs, read with pdfium.
//!
//! A page comes as characters with their places (`page.rs`); those become lines in the order in which a person reads them
//! (`layout.rs`), without what every page repeats (`headers_footers.rs`); the lines become paragraphs (`flow.rs`).

mod byline;
mod dates;
mod facts;
mod flow;
mod headers_footers;
mod images;
mod layout;
mod page;
mod record;
mod right_to_left;
mod scan;
mod table;

use std::path::Path;
use std::time::{Duration, Instant};

use pdfium_render::prelude::{Pdfium, PdfiumError, PdfiumInternalError};

use crate::document::{Document, Image, Kind, Limits, PageSize, ParseError};
use crate::{SEGMENTER, language, segmenter_hash, sentences};

/// For the pictures of pages in which words are looked for, of the half minute that a file has. Pages not drawn by then stay
/// without text.
const SCAN_TIME: Duration = Duration::from_secs(10);

/// The library, loaded once: it has one state for the whole process. Without a lock around it: the child has one thread, and
/// when the library runs out of memory the lock would be waited for by whoever holds it.
pub struct Engine {
    pdfium: Pdfium,
    recognise: Option<Recognise>,
}

/// Finds the words in the picture of a page, a PNG: tesseract's TSV.
type Recognise = fn(&[u8]) -> Option<String>;

impl Engine {
    pub fn load(library: &Path) -> Result<Self, ParseError> {
        let bindings = Pdfium::bind_to_library(library).map_err(|error| {
            let why = match error {
                PdfiumError::LoadLibraryError(error) => error.to_string(),
                other => other.to_string(),
            };
            ParseError::NoPdfEngine(format!(
                "{} can't be loaded ({why}); set it to a libpdfium.so",
                library.display()
            ))
        })?;
        Ok(Self { pdfium: Pdfium::new(bindings), recognise: None })
    }

    /// Pages without text are given to this, to have their words found.
    #[must_use]
    pub fn recognising(self, recognise: Recognise) -> Self {
        Self { recognise: Some(recognise), ..self }
    }

    /// The engine itself, for measuring it without us.
    pub fn bare(&self) -> &Pdfium {
        &self.pdfium
    }
}

/// Whether the bytes are a PDF. Some carry a line of a mail or of a server before their header.
pub fn is_pdf(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(1024)].windows(5).any(|window| window == b"%PDF-")
}

/// Images go out as they are found, in the order of the pages; a file without any text has given all of its renders
/// before it is said to be empty.
pub fn parse(
    engine: &Engine,
    bytes: &[u8],
    limits: &Limits,
    images: &mut dyn FnMut(Image),
) -> Result<Document, ParseError> {
    let file = engine.pdfium.load_pdf_from_byte_slice(bytes, None).map_err(|error| refused(&error))?;
    let count = u32::try_from(file.pages().len()).unwrap_or(0);
    if count == 0 {
        return Err(ParseError::Damaged("it has no pages".to_owned()));
    }
    if count > limits.pages {
        return Err(ParseError::TooMuch(format!(
            "it has {count} pages, and {} are read at most",
            limits.pages
        )));
    }
    let mut gallery = images::Gallery::new(limits, images);
    let (mut pages, mut sizes) = (Vec::new(), Vec::new());
    let (mut text_bytes, mut broken, mut scans, mut drawing) = (0, 0, false, Duration::ZERO);
    for index in 0..file.pages().len() {
        let number = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        let Ok(page) = file.pages().get(index) else {
            broken += 1;
            continue;
        };
        let mut text = page::read(&page, number);
        let (width, height, rotation) = (page.width().value, page.height().value, text.rotation);
        let is_scan = scan::is_scan(&page, &text);
        scans |= is_scan;
        let began = Instant::now();
        let wanted = is_scan && engine.recognise.is_some() && drawing < SCAN_TIME;
        let picture = if wanted { scan::picture(&page) } else { None };
        drawing += began.elapsed();
        let words = engine.recognise.zip(picture).and_then(|(recognise, picture)| recognise(&picture));
        let words = words.map_or_else(Vec::new, |words| scan::fragments(&words, (width, height)));
        let ocr = !words.is_empty();
        if ocr {
            text.fragments = words;
        }
        sizes.push(PageSize { number, width, height, rotation, ocr });
        text_bytes += text.fragments.iter().map(|fragment| fragment.text.len()).sum::<usize>();
        if text_bytes > usize::try_from(limits.text_bytes).unwrap_or(usize::MAX) {
            return Err(ParseError::TooMuch(format!("its text is longer than {} bytes", limits.text_bytes)));
        }
        gallery.take(&page, number);
        pages.push(text);
    }
    if broken == count {
        return Err(ParseError::Damaged("none of its pages can be read".to_owned()));
    }
    headers_footers::remove(&mut pages);
    let flow = flow::flow(&pages);
    if flow.text.is_empty() {
        return Err(match (scans, engine.recognise) {
            (false, _) => ParseError::Empty,
            (true, None) => {
                ParseError::Scanned("this installation does not recognise text in pictures".to_owned())
            }
            (true, Some(_)) => ParseError::Scanned("no words were recognised in them".to_owned()),
        });
    }
    let facts = facts::read(&file, bytes, &flow);
    let flow::Flow { text, markdown, places, .. } = flow;
    let language = language::of(&text, facts.language.as_deref());
    let sentences = sentences(&text, language.as_deref());
    let boxes = places.boxes(&pages, &sentences);
    Ok(Document {
        kind: Kind::Pdf,
        content_type: "application/pdf".to_owned(),
        title: facts.title,
        author: facts.author,
        site_name: None,
        published_at: facts.published_at,
        language,
        license: None,
        doi: facts.doi,
        text,
        markdown,
        sentences,
        boxes,
        pages: sizes,
        segmenter: SEGMENTER.to_owned(),
        segmenter_hash: segmenter_hash(),
    })
}

fn refused(error: &PdfiumError) -> ParseError {
    match error {
        PdfiumError::PdfiumLibraryInternalError(
            PdfiumInternalError::PasswordError | PdfiumInternalError::SecurityError,
        ) => ParseError::Locked,
        _ => ParseError::Damaged("it begins like a PDF, but its structure cannot be parsed".to_owned()),
    }
}
