//! PDFs, read with pdfium.
//!
//! A page comes as characters with their places (`page.rs`); those become lines in the order in which a person reads them
//! (`layout.rs`), without what every page repeats (`furniture.rs`); the lines become paragraphs (`flow.rs`).

mod facts;
mod flow;
mod furniture;
mod images;
mod layout;
mod page;
mod right_to_left;

use std::path::Path;

use pdfium_render::prelude::{Pdfium, PdfiumError, PdfiumInternalError};

use crate::document::{Document, Image, Kind, Limits, ParseError};
use crate::{SEGMENTER, language, segmenter_hash, sentences};

/// The library, loaded once: it has one state for the whole process. Without a lock around it: the child has one thread, and
/// when the library runs out of memory the lock would be waited for by whoever holds it.
pub struct Engine(Pdfium);

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
        Ok(Self(Pdfium::new(bindings)))
    }

    /// The engine itself, for measuring it without us.
    pub fn bare(&self) -> &Pdfium {
        &self.0
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
    let file = engine.0.load_pdf_from_byte_slice(bytes, None).map_err(|error| refused(&error))?;
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
    let mut pages = Vec::new();
    let (mut text_bytes, mut broken) = (0, 0);
    for index in 0..file.pages().len() {
        let number = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        let Ok(page) = file.pages().get(index) else {
            broken += 1;
            continue;
        };
        let text = page::read(&page, number);
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
    furniture::remove(&mut pages);
    let flow::Flow { text, markdown, title, places } = flow::flow(&pages);
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    let facts = facts::read(&file, &text);
    let language = language::of(&text, facts.language.as_deref());
    let sentences = sentences(&text, language.as_deref());
    let boxes = places.boxes(&pages, &sentences);
    Ok(Document {
        kind: Kind::Pdf,
        content_type: "application/pdf".to_owned(),
        title: facts.title.or(title),
        author: facts.author,
        site_name: None,
        published_at: None,
        language,
        license: None,
        doi: facts.doi,
        text,
        markdown,
        sentences,
        boxes,
        pages: Some(count),
        segmenter: SEGMENTER.to_owned(),
        segmenter_hash: segmenter_hash(),
    })
}

fn refused(error: &PdfiumError) -> ParseError {
    match error {
        PdfiumError::PdfiumLibraryInternalError(
            PdfiumInternalError::PasswordError | PdfiumInternalError::SecurityError,
        ) => ParseError::Locked,
        _ => ParseError::Damaged("it begins like a PDF, but its structure can't be read".to_owned()),
    }
}
