//! Any file, by the reader of its kind.

use crate::document::{Document, Image, Kind, ParseError, Piece};
use crate::pdf::{self, Engine};
use crate::worker::Head;
use crate::{SEGMENTER, language, parse, segmenter_hash, sentences, sniff};

/// Images go out as they are found, before the document.
pub fn read(
    engine: Result<&Engine, ParseError>,
    bytes: &[u8],
    head: &Head,
    images: &mut dyn FnMut(Image),
) -> Result<Document, ParseError> {
    let Head { hint, limits } = head;
    if sniff::kind(bytes, hint)?.0 == Kind::Pdf {
        let segment = |text: &str, said: Option<&str>| sentences(text, language::of(text, said).as_deref());
        let read = pdf::parse(engine?, bytes, limits, segment, images)?;
        return Ok(Document {
            language: language::of(&read.text, read.language.as_deref()),
            segmenter: SEGMENTER.to_owned(),
            segmenter_hash: segmenter_hash(),
            ..read
        });
    }
    let mut found = None;
    let parsed = parse(bytes, hint, limits, &mut |piece| {
        match piece {
            Piece::Image(image) => images(image),
            Piece::Document(document) => found = Some(*document),
        }
        Ok(())
    });
    parsed.map_err(|error| ParseError::Damaged(error.to_string()))??;
    found.ok_or(ParseError::Empty)
}
