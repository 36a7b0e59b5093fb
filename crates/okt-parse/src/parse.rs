//! Any file, by the reader of its kind.

use crate::pdf::{self, Engine};
use crate::worker::Head;
use crate::{
    Document, Image, Kind, Limits, ParseError, SEGMENTER, charset, clean, html, language, segmenter_hash,
    sentences, sniff, text,
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

/// Reads a file. Images go out as they are found, before the document is there. Whoever reads no PDFs has no engine.
pub fn parse(
    engine: Result<&Engine, ParseError>,
    bytes: &[u8],
    head: &Head,
    images: &mut dyn FnMut(Image),
) -> Result<Document, ParseError> {
    let Head { hint, limits } = head;
    let (kind, content_type) = sniff::kind(bytes, hint)?;
    let decode = || charset::decode(bytes, hint.content_type.as_deref());
    let read = match kind {
        Kind::Pdf => return pdf::parse(engine?, bytes, limits, images),
        Kind::Docx => {
            return Err(ParseError::Unsupported("Word document; add it as PDF or HTML".to_owned()));
        }
        Kind::Html => html::read(&decode(), hint, limits)?,
        Kind::Markdown => text::markdown(&decode()),
        Kind::Text => text::plain(&decode()),
    };
    let (found, document) = finish(read, kind, content_type, limits)?;
    found.into_iter().for_each(images);
    Ok(document)
}

fn finish(
    mut read: Read,
    kind: Kind,
    content_type: &str,
    limits: &Limits,
) -> Result<(Vec<Image>, Document), ParseError> {
    // An entity may stand for any character, so this comes last.
    read.text = clean::paragraphs(&clean::characters(&read.text));
    read.markdown = clean::paragraphs(&clean::characters(&read.markdown));
    let most = usize::try_from(limits.text_bytes).unwrap_or(usize::MAX);
    if read.text.len() > most || read.markdown.len() > most {
        return Err(ParseError::TooMuch(format!("its text is longer than {most} bytes; add it in parts")));
    }
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
        pages: Vec::new(),
        segmenter: SEGMENTER.to_owned(),
        segmenter_hash: segmenter_hash(),
    };
    if document.sentences.is_empty() {
        return Err(ParseError::Empty);
    }
    Ok((read.images, document))
}
