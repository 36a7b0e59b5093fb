//! What a document is, once it has been read.

use serde::{Deserialize, Serialize};

/// What is known of the bytes before they are read. None of it is believed where the bytes say otherwise.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Hint {
    /// As the server or the uploader said, parameters included.
    pub content_type: Option<String>,
    pub file_name: Option<String>,
    /// Where it came from, to complete the addresses in it.
    pub url: Option<String>,
}

/// What a caller is willing to take.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Images in the document.
    pub images: u32,
    /// Pages that are drawn, the first ones; fewer when that takes long.
    pub page_images: u32,
    pub image_bytes: u32,
    pub pages: u32,
    /// Of the text, in bytes.
    pub text_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            images: 20,
            page_images: 200,
            image_bytes: 5 * 1024 * 1024,
            pages: 3_000,
            text_bytes: 8 * 1024 * 1024,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Html,
    Pdf,
    Text,
    Markdown,
    Docx,
}

impl Kind {
    /// Those that are read. Of a Word document it is only seen that it is one, to say so.
    pub const READ: &[Self] = &[Self::Html, Self::Pdf, Self::Text, Self::Markdown];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Pdf => "pdf",
            Self::Text => "text",
            Self::Markdown => "markdown",
            Self::Docx => "docx",
        }
    }
}

/// A document that has been read. Texts are as written, without control characters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    pub kind: Kind,
    /// The media type that it really is, such as `application/pdf`.
    pub content_type: String,
    pub title: Option<String>,
    pub author: Option<String>,
    pub site_name: Option<String>,
    /// `2026-03-01`, `2026-03` or `2026`, as much as is known.
    pub published_at: Option<String>,
    /// ISO 639-1, said by the document or found out from the text.
    pub language: Option<String>,
    pub license: Option<String>,
    pub doi: Option<String>,
    /// Paragraphs with an empty line between them.
    pub text: String,
    pub markdown: String,
    /// Half-open, in code points of `text`, in order and without overlap.
    pub sentences: Vec<(u32, u32)>,
    /// For PDFs: as many as sentences, each with the places where it stands.
    pub boxes: Vec<Vec<Rect>>,
    /// For PDFs: those that could be opened.
    pub pages: Vec<PageSize>,
    /// Which segmenter made the sentences: name and version, and a hash of what it does.
    pub segmenter: String,
    pub segmenter_hash: String,
}

/// A page as it is shown, turned and cropped, in PDF points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageSize {
    /// From 1.
    pub number: u32,
    pub width: f32,
    pub height: f32,
    /// By how many degrees clockwise it is turned to be shown: 0, 90, 180 or 270.
    pub rotation: u16,
    /// Its text was recognised in its picture: a scan. It may have mistakes that the document has not.
    #[serde(default)]
    pub ocr: bool,
}

/// A place on a page, in PDF points from its lower left corner. Pages count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rect {
    pub page: u32,
    pub x0: f32,
    pub y0: f32,
    pub x1: f32,
    pub y1: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageKind {
    Inline,
    /// A page of a PDF, as a picture.
    Page,
}

impl ImageKind {
    pub const ALL: &[Self] = &[Self::Inline, Self::Page];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Page => "page",
        }
    }
}

/// An image of a document: its bytes, or the address where they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    pub kind: ImageKind,
    pub page_number: Option<u32>,
    /// From 0, in the order of the document.
    pub position: u32,
    /// Absolute, http or https; where the document only points to it.
    pub url: Option<String>,
    pub width: Option<u32>,
    pub height: Option<u32>,
    pub alt_text: Option<String>,
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`; nothing else is carried.
    pub content_type: Option<String>,
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

/// Why there is no document, in words for whoever added the source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParseError {
    #[error("unsupported file type: {0}")]
    Unsupported(String),
    #[error("the file is damaged or not what it says it is: {0}")]
    Damaged(String),
    #[error("the file is encrypted with a password; add an unencrypted copy")]
    Locked,
    #[error("the file is too large or too deep to be read: {0}")]
    TooMuch(String),
    #[error("the file contains no extractable text")]
    Empty,
    #[error("the file contains no extractable text: its pages are pictures, and {0}")]
    Scanned(String),
    #[error("PDFs can't be read on this installation: {0}")]
    NoPdfEngine(String),
}

impl ParseError {
    /// Stable, for the record of a failed source.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unsupported(_) => "unsupported_type",
            Self::Damaged(_) => "damaged",
            Self::Locked => "locked",
            Self::TooMuch(_) => "too_much",
            Self::Empty | Self::Scanned(_) => "no_text",
            Self::NoPdfEngine(_) => "no_pdf_engine",
        }
    }
}
