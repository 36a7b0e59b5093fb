//! Writes a bundle, section by section.
//!
//! Rows are read in one transaction, which must not wait for anybody; files and vectors come from elsewhere, and belong between
//! the rows. So rows go into a spool first ([`Spool`]), which also computes their hash; the document is put together from it
//! when the hash is known ([`Writer`]), and no connection is held any more.

use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::hash::Hash;
use super::rows::{Metadata, Row};
use super::{SCHEMA_VERSION, Section};

/// The rows of a bundle on their way into one.
pub struct Spool<F: Write> {
    file: BufWriter<F>,
    hash: Hash,
    at: u64,
    /// Where the rows of each section are.
    pieces: Vec<(Section, u64, u64)>,
    buffer: Vec<u8>,
}

/// The rows of a bundle, all of them.
pub struct Spooled<F> {
    file: F,
    pieces: Vec<(Section, u64, u64)>,
    pub sha256: String,
}

impl<F: Write> Spool<F> {
    /// An empty file, and what the bundle will say of itself.
    pub fn new(file: F, metadata: &Metadata) -> Self {
        Self {
            file: BufWriter::with_capacity(1 << 20, file),
            hash: Hash::new(metadata),
            at: 0,
            pieces: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Takes a row. Those of one section come together, and the sections in their order.
    pub fn put(&mut self, row: &Row<'_>) -> io::Result<()> {
        match row {
            Row::Source(row) => {
                self.write(Section::Sources, row)?;
                self.hash.source((*row).clone());
            }
            Row::SourceImage(row) => self.write(Section::SourceImages, row)?,
            Row::SourceBody(row) => self.write(Section::SourceBodies, row)?,
            Row::Fact(row) => {
                self.write(Section::Facts, row)?;
                self.hash.fact((*row).clone());
            }
            Row::FactSource(row) => {
                self.write(Section::FactSources, row)?;
                self.hash.row(Section::FactSources, row);
            }
            Row::Reference(row) => self.write(Section::FactReferences, row)?,
            Row::Concept(row) => {
                self.write(Section::Concepts, row)?;
                self.hash.concept((*row).clone());
            }
            Row::Alias(row) => {
                self.write(Section::ConceptAliases, row)?;
                self.hash.alias((*row).clone());
            }
            Row::FactConcept(row) => {
                self.write(Section::FactConcepts, row)?;
                self.hash.fact_concept((*row).clone());
            }
            Row::Summary(row) => {
                self.write(Section::ConceptSummaries, row)?;
                self.hash.summary((*row).clone());
            }
            Row::Synthesis(row) => {
                self.write(Section::ConceptSyntheses, row)?;
                self.hash.synthesis((*row).clone());
            }
            Row::Investigation(row) => {
                self.write(Section::Investigations, row)?;
                self.hash.row(Section::Investigations, row);
            }
            Row::InvestigationSource(row) => {
                self.write(Section::InvestigationSources, row)?;
                self.hash.row(Section::InvestigationSources, row);
            }
            Row::Report(row) => {
                self.write(Section::Reports, row)?;
                self.hash.report((*row).clone());
            }
            Row::Annotation(row) => {
                self.write(Section::ReportAnnotations, row)?;
                self.hash.annotation((*row).clone());
            }
            Row::Curation(row) => self.write(Section::Curation, row)?,
            Row::Metadata(_)
            | Row::Image(..)
            | Row::Body(..)
            | Row::Vectors { .. }
            | Row::FactVector(..)
            | Row::ConceptVector(..) => {
                return Err(io::Error::other("files and vectors are written into the bundle, not spooled"));
            }
        }
        Ok(())
    }

    pub fn finish(self) -> io::Result<Spooled<F>> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Spooled { file, pieces: self.pieces, sha256: self.hash.finish() })
    }

    fn write<T: Serialize>(&mut self, section: Section, row: &T) -> io::Result<()> {
        self.buffer.clear();
        match self.pieces.last_mut() {
            Some((last, ..)) if *last == section => self.buffer.push(b','),
            Some((last, ..)) if *last > section => {
                return Err(io::Error::other("sections are spooled in another order than they are written"));
            }
            _ => self.pieces.push((section, self.at, self.at)),
        }
        serde_json::to_writer(&mut self.buffer, row)?;
        self.file.write_all(&self.buffer)?;
        self.at += self.buffer.len() as u64;
        if let Some((_, _, end)) = self.pieces.last_mut() {
            *end = self.at;
        }
        Ok(())
    }
}

/// A bundle that is written.
pub struct Writer<W: Write> {
    out: GzEncoder<W>,
    /// In a section that is being written piece by piece.
    entries: u64,
}

impl<W: Write> Writer<W> {
    pub fn new(out: W, metadata: &Metadata) -> io::Result<Self> {
        let mut out = GzEncoder::new(out, Compression::new(6));
        write!(out, "{{\"schema_version\":{SCHEMA_VERSION},\"metadata\":")?;
        serde_json::to_writer(&mut out, metadata)?;
        Ok(Self { out, entries: 0 })
    }

    /// Writes a section of rows as it was spooled. One without rows is an empty list, or left out where it may be.
    pub fn section<F: Read + Seek>(&mut self, section: Section, spooled: &mut Spooled<F>) -> io::Result<()> {
        let piece = spooled.pieces.iter().find(|(one, ..)| *one == section).copied();
        if piece.is_none() && !section.is_required() {
            return Ok(());
        }
        write!(self.out, ",\"{}\":[", section.name())?;
        if let Some((_, start, end)) = piece {
            spooled.file.seek(SeekFrom::Start(start))?;
            io::copy(&mut (&mut spooled.file).take(end - start), &mut self.out)?;
        }
        self.out.write_all(b"]")
    }

    /// Begins a section of files, [`Section::Images`] or [`Section::Bodies`].
    pub fn begin_files(&mut self, section: Section) -> io::Result<()> {
        self.entries = 0;
        write!(self.out, ",\"{}\":{{", section.name())
    }

    /// Begins a file; what is in it follows by [`Self::file_piece`].
    pub fn begin_file(&mut self, name: &str, content_type: &str) -> io::Result<()> {
        self.key(name)?;
        self.out.write_all(b"{\"content_type\":")?;
        serde_json::to_writer(&mut self.out, content_type)?;
        self.out.write_all(b",\"data\":\"")
    }

    /// Base64, which needs no escaping.
    pub fn file_piece(&mut self, base64: &str) -> io::Result<()> {
        self.out.write_all(base64.as_bytes())
    }

    pub fn end_file(&mut self) -> io::Result<()> {
        self.out.write_all(b"\"}")
    }

    pub fn end_files(&mut self) -> io::Result<()> {
        self.out.write_all(b"}")
    }

    pub fn begin_vectors(&mut self, model: &str, dimensions: u32) -> io::Result<()> {
        self.entries = 0;
        self.out.write_all(b",\"embeddings\":{\"model\":")?;
        serde_json::to_writer(&mut self.out, model)?;
        write!(self.out, ",\"dimensions\":{dimensions},\"fact_vectors\":{{")
    }

    pub fn vector(&mut self, idx: u32, vector: &[f32]) -> io::Result<()> {
        self.key(&idx.to_string())?;
        serde_json::to_writer(&mut self.out, vector)?;
        Ok(())
    }

    pub fn begin_concept_vectors(&mut self) -> io::Result<()> {
        self.entries = 0;
        self.out.write_all(b"},\"concept_vectors\":{")
    }

    pub fn end_vectors(&mut self) -> io::Result<()> {
        self.out.write_all(b"}}")
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(b"}")?;
        self.out.finish()
    }

    fn key(&mut self, name: &str) -> io::Result<()> {
        if self.entries > 0 {
            self.out.write_all(b",")?;
        }
        self.entries += 1;
        serde_json::to_writer(&mut self.out, name)?;
        self.out.write_all(b":")
    }
}
