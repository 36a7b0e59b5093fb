//! The child that reads what others have written. It locks itself in, reads one file from its standard input, writes
//! what it found to its standard output, and ends.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use crate::document::{Hint, Image, Limits, ParseError};
use crate::frames::{Frame, read_frame, write_frame};
use crate::parse;
use crate::pdf::Engine;
use crate::sandbox::{self, SandboxError};

/// The child could not lock itself in, and has read nothing.
pub const NOT_LOCKED: u8 = 3;
/// A larger file is not read.
pub const FILE_BYTES: u64 = 64 * 1024 * 1024;
const HEAD_BYTES: u32 = 64 * 1024;
/// What the words of one page take at most, with their places.
pub const WORDS_BYTES: u32 = 4 * 1024 * 1024;

/// What the service tells the child before the file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Head {
    pub hint: Hint,
    pub limits: Limits,
}

/// The whole life of the child. Ends with success whenever it could say what came of it, be that a document or an error;
/// whatever else happens to it, the file could not be read.
///
/// `ocr`: whoever started it answers when it asks for the words in a picture.
pub fn run_worker(pdfium: Option<&Path>, ocr: bool) -> ExitCode {
    let engine = match sandbox::begin().map(|()| pdfium) {
        // Loading needs files; from here on there are none.
        Ok(Some(library)) => {
            Engine::load(library).map(|engine| if ocr { engine.recognising(ask) } else { engine })
        }
        Ok(None) => Err(ParseError::NoPdfEngine("no PDF engine is configured".to_owned())),
        Err(error) => return not_locked(&error),
    };
    if let Err(error) = sandbox::lock() {
        return not_locked(&error);
    }
    // A panic is told as an error; its words would only tell the file's author where to dig.
    std::panic::set_hook(Box::new(|_| {}));
    let mut out = io::stdout().lock();
    match answer(engine.as_ref().map_err(Clone::clone), &mut out).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody is listening any more.
        Err(_) => ExitCode::FAILURE,
    }
}

fn not_locked(error: &SandboxError) -> ExitCode {
    let _ = writeln!(io::stderr(), "okt parse-worker: {error}");
    ExitCode::from(NOT_LOCKED)
}

fn answer(engine: Result<&Engine, ParseError>, out: &mut impl Write) -> io::Result<()> {
    let mut from = io::stdin().lock();
    let Some((Frame::Head, head)) = read_frame(&mut from, HEAD_BYTES)? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let head: Head = serde_json::from_slice(&head)?;
    let mut bytes = Vec::new();
    let most = u32::try_from(FILE_BYTES).unwrap_or(u32::MAX);
    loop {
        match read_frame(&mut from, most)? {
            Some((Frame::Bytes, piece)) if piece.is_empty() => break,
            Some((Frame::Bytes, piece)) => bytes.extend(piece),
            // A file whose end never came is no file.
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        if u64::try_from(bytes.len()).is_ok_and(|len| len > FILE_BYTES) {
            break;
        }
    }
    // The words in pictures are read from it.
    drop(from);
    let mut broken = None;
    let mut give = |image: Image| {
        if broken.is_none() {
            broken = image_frames(out, &image).err();
        }
    };
    let result = if u64::try_from(bytes.len()).is_ok_and(|len| len > FILE_BYTES) {
        Err(ParseError::TooMuch(format!("it is larger than {} MB", FILE_BYTES / 1024 / 1024)))
    } else {
        catch_unwind(AssertUnwindSafe(|| parse(engine, &bytes, &head, &mut give)))
            .unwrap_or_else(|_| Err(ParseError::Damaged("its structure cannot be parsed".to_owned())))
    };
    if let Some(error) = broken {
        return Err(error);
    }
    match result {
        Ok(document) => write_frame(out, Frame::Document, &serde_json::to_vec(&document)?),
        Err(error) => write_frame(out, Frame::Error, &serde_json::to_vec(&error)?),
    }
}

/// Asks for the words in the picture of a page.
fn ask(picture: &[u8]) -> Option<String> {
    let mut out = io::stdout().lock();
    write_frame(&mut out, Frame::Scan, picture).and_then(|()| out.flush()).ok()?;
    match read_frame(&mut io::stdin().lock(), WORDS_BYTES).ok()? {
        Some((Frame::Words, words)) => String::from_utf8(words).ok(),
        _ => None,
    }
}

fn image_frames(out: &mut impl Write, image: &Image) -> io::Result<()> {
    write_frame(out, Frame::Image, &serde_json::to_vec(image)?)?;
    write_frame(out, Frame::Bytes, &image.bytes)
}
