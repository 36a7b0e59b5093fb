//! From bytes to pieces.

use std::io;

use crate::{
    Document, Hint, Image, Kind, Limits, ParseError, Piece, SEGMENTER, charset, clean, html, language,
    segmenter_hash, sentences, sniff, text,
};

/// What the reader of a format found out. What follows from the text is added for all formats alike.
#[derive(Debug, Default)]
pub struct Read {
    pub title: Option<String>,
    pub author: Option<String>,
    pub site_name: Option<String>,
    pub published_at: Option<String>,
    pub language: Option<String>,
    pub license: Option<String>,
    pub doi: Option<String>,
    pub text: String,
    pub markdown: String,
    pub images: Vec<Image>,
}

/// Reads a file and hands out its pieces: images first, then the document. The outer error is that of `out`.
pub fn parse(
    bytes: &[u8],
    hint: &Hint,
    limits: &Limits,
    out: &mut dyn FnMut(Piece) -> io::Result<()>,
) -> io::Result<Result<(), ParseError>> {
    let (kind, content_type) = match sniff::kind(bytes, hint) {
        Ok(found) => found,
        Err(error) => return Ok(Err(error)),
    };
    let decode = || charset::decode(bytes, hint.content_type.as_deref());
    let read = match kind {
        // Joined with the reader of PDFs here: `Kind::Pdf => return crate::pdf::parse(bytes, hint, limits, out),`
        Kind::Pdf => return Ok(Err(ParseError::NoPdfEngine("this build has no reader for them".to_owned()))),
        Kind::Docx => Err(ParseError::Unsupported("Word document; add it as PDF or HTML".to_owned())),
        Kind::Html => html::read(&decode(), hint, limits),
        Kind::Markdown => Ok(text::markdown(&decode())),
        Kind::Text => Ok(text::plain(&decode())),
    };
    let read = match read {
        Ok(read) => read,
        Err(error) => return Ok(Err(error)),
    };
    let (images, document) = finish(read, kind, content_type, limits);
    if document.sentences.is_empty() {
        return Ok(Err(ParseError::Empty));
    }
    for image in images {
        out(Piece::Image(image))?;
    }
    out(Piece::Document(Box::new(document)))?;
    Ok(Ok(()))
}

fn finish(mut read: Read, kind: Kind, content_type: &str, limits: &Limits) -> (Vec<Image>, Document) {
    let most = usize::try_from(limits.text_bytes).unwrap_or(usize::MAX);
    // An entity may stand for any character, so this comes last.
    read.text = clean::paragraphs(&clean::characters(&read.text));
    read.markdown = clean::paragraphs(&clean::characters(&read.markdown));
    clean::shorten(&mut read.text, most);
    clean::shorten(&mut read.markdown, most);
    let language = language::of(&read.text, read.language.as_deref());
    let sentences = sentences(&read.text, language.as_deref());
    let document = Document {
        kind,
        content_type: content_type.to_owned(),
        title: read.title,
        author: read.author,
        site_name: read.site_name,
        published_at: read.published_at,
        language,
        license: read.license,
        doi: read.doi,
        text: read.text,
        markdown: read.markdown,
        sentences,
        boxes: Vec::new(),
        pages: None,
        segmenter: SEGMENTER.to_owned(),
        segmenter_hash: segmenter_hash(),
    };
    (read.images, document)
}
