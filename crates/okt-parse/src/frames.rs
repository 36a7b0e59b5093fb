//! How the service and its parser talk: one kind of frame, both ways.
//!
//! To the parser: one head (JSON: [`Hint`](crate::Hint) and [`Limits`](crate::Limits)), then the bytes of the file in pieces,
//! the last of which is empty. From the parser: for each image a head (JSON) and its bytes, then the document or an error
//! (JSON). A parser that was started for it asks for the words in the picture of a page, and is answered on its input.

use std::io::{self, Read, Write};

/// Five bytes before each: what it is, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Frame {
    Head = b'h',
    Image = b'i',
    Bytes = b'b',
    Document = b'd',
    Error = b'e',
    /// The picture of a page that has no text, as PNG.
    Scan = b's',
    /// The words in it, as tesseract's TSV; empty when there are none.
    Words = b'w',
}

impl Frame {
    pub const HEAD_LEN: usize = 5;

    /// Reads the five bytes.
    pub fn decode(head: [u8; Self::HEAD_LEN]) -> Option<(Self, u32)> {
        let [tag, len @ ..] = head;
        let frame = match tag {
            b'h' => Self::Head,
            b'i' => Self::Image,
            b'b' => Self::Bytes,
            b'd' => Self::Document,
            b'e' => Self::Error,
            b's' => Self::Scan,
            b'w' => Self::Words,
            _ => return None,
        };
        Some((frame, u32::from_le_bytes(len)))
    }

    /// Writes the five bytes.
    pub fn encode(self, len: u32) -> [u8; Self::HEAD_LEN] {
        let [a, b, c, d] = len.to_le_bytes();
        [self as u8, a, b, c, d]
    }
}

pub fn write_frame(to: &mut impl Write, frame: Frame, payload: &[u8]) -> io::Result<()> {
    let len = u32::try_from(payload.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    to.write_all(&frame.encode(len))?;
    to.write_all(payload)
}

/// The next frame, of at most so many bytes; `None` at the end.
pub fn read_frame(from: &mut impl Read, limit: u32) -> io::Result<Option<(Frame, Vec<u8>)>> {
    let mut head = [0; Frame::HEAD_LEN];
    let mut got = 0;
    while got < head.len() {
        match from.read(&mut head[got..])? {
            0 if got == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => got += more,
        }
    }
    let (frame, len) = Frame::decode(head).ok_or(io::ErrorKind::InvalidData)?;
    if len > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut payload = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    from.read_exact(&mut payload)?;
    Ok(Some((frame, payload)))
}
