//! Reads a bundle row by row, and believes nothing of it: sizes, nesting, order of sections, numbers that refer to other rows,
//! hashes of facts, counts and the hash of the whole. Whoever is given the rows may keep them only when all of it was read
//! without an error.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use okt_model::content_hash;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use sha2::{Digest as _, Sha256};

use super::check;
use super::hash::Hash;
use super::rows::{Metadata, NONE, Row};
use super::{Refused, SCHEMA_VERSION, Section};

/// What is read at most. A row is all that is in memory at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub compressed_bytes: u64,
    pub bytes: u64,
    /// The document to the file, beyond `ratio_after` bytes of the document.
    pub ratio: u64,
    pub ratio_after: u64,
    pub depth: u32,
    /// Of one row, and of one file in base64.
    pub row_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            compressed_bytes: 4 << 30,
            bytes: 16 << 30,
            ratio: 100,
            ratio_after: 1 << 20,
            depth: 64,
            row_bytes: 72 << 20,
        }
    }
}

/// Numbers of rows are below this.
pub const MOST_ROWS: u32 = 1 << 27;

/// A bundle that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub schema_version: u32,
    pub metadata: Metadata,
    /// Computed from what was read; equal to what the bundle says, if it says so.
    pub sha256: String,
    pub bytes: u64,
}

/// Reads a gzipped bundle and gives its rows to `take`, which may refuse one.
pub fn read(
    file: impl io::Read,
    limits: &Limits,
    take: &mut dyn FnMut(Row<'_>) -> Result<(), Refused>,
) -> Result<Read, Refused> {
    let meter = Rc::new(Meter::default());
    let file =
        BufReader::with_capacity(64 * 1024, Compressed { file, meter: Rc::clone(&meter), limits: *limits });
    let mut document = Document {
        gz: MultiGzDecoder::new(file),
        meter: Rc::clone(&meter),
        limits: *limits,
        scan: Scan::default(),
    };
    let document = BufReader::with_capacity(64 * 1024, Blocks(&mut document));
    let mut state = State::new(Rc::clone(&meter), take);
    let mut json = serde_json::Deserializer::from_reader(document);
    let done = DocumentSeed(&mut state).deserialize(&mut json).and_then(|()| json.end());
    if let Err(error) = done {
        return Err(meter.refused.take().unwrap_or_else(|| state.explain(&error)));
    }
    let read = state.finish()?;
    Ok(Read { bytes: meter.bytes.get(), ..read })
}

/// What was read so far, and what was found wrong in it: errors can't be carried through the parser.
#[derive(Default)]
struct Meter {
    compressed: Cell<u64>,
    bytes: Cell<u64>,
    /// Since the last row.
    row: Cell<u64>,
    refused: RefCell<Option<Refused>>,
}

impl Meter {
    fn refuse(&self, refused: Refused) -> io::Error {
        let told = refused.to_string();
        self.refused.borrow_mut().get_or_insert(refused);
        io::Error::other(told)
    }
}

struct Compressed<R> {
    file: R,
    meter: Rc<Meter>,
    limits: Limits,
}

impl<R: io::Read> io::Read for Compressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        let all = self.meter.compressed.get() + count as u64;
        self.meter.compressed.set(all);
        if all > self.limits.compressed_bytes {
            let most = self.limits.compressed_bytes;
            return Err(self.meter.refuse(Refused::new("", format!("has more than {most} bytes"))));
        }
        Ok(count)
    }
}

/// The document, with what limits it.
struct Document<R> {
    gz: MultiGzDecoder<R>,
    meter: Rc<Meter>,
    limits: Limits,
    scan: Scan,
}

struct Blocks<'a, R>(&'a mut Document<R>);

impl<R: BufRead> io::Read for Blocks<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Document { gz, meter, limits, scan } = &mut *self.0;
        let count = match gz.read(buffer) {
            Ok(count) => count,
            Err(error) => {
                return Err(meter.refuse(Refused::new("", format!("is no gzip file: {error}"))));
            }
        };
        let all = meter.bytes.get() + count as u64;
        meter.bytes.set(all);
        if all > limits.bytes {
            let reason = format!("has more than {} bytes when it is decompressed", limits.bytes);
            return Err(meter.refuse(Refused::new("", reason)));
        }
        if all > limits.ratio_after && all / meter.compressed.get().max(1) > limits.ratio {
            let reason = format!("is more than {} times as large when it is decompressed", limits.ratio);
            return Err(meter.refuse(Refused::new("", reason)));
        }
        let row = meter.row.get() + count as u64;
        meter.row.set(row);
        // A piece may hold the end of one row and the beginning of the next.
        if row > limits.row_bytes + buffer.len() as u64 {
            let reason = format!("a row has more than {} bytes", limits.row_bytes);
            return Err(meter.refuse(Refused::new("", reason)));
        }
        scan.look(&buffer[..count], limits.depth).map_err(|reason| meter.refuse(Refused::new("", reason)))?;
        Ok(count)
    }
}

/// Follows the document far enough to know how deep it is, and that no text holds what PostgreSQL can't store.
#[derive(Default)]
struct Scan {
    depth: u32,
    in_text: bool,
    /// After a backslash: how many characters of the escape were seen.
    escape: u8,
    zeros: u8,
}

impl Scan {
    fn look(&mut self, bytes: &[u8], most: u32) -> Result<(), String> {
        for &byte in bytes {
            if self.escape > 0 {
                self.escaped(byte)?;
            } else if self.in_text {
                match byte {
                    b'"' => self.in_text = false,
                    b'\\' => (self.escape, self.zeros) = (1, 0),
                    _ => {}
                }
            } else {
                match byte {
                    b'"' => self.in_text = true,
                    b'[' | b'{' => {
                        self.depth += 1;
                        if self.depth > most {
                            return Err(format!("is nested more than {most} levels deep"));
                        }
                    }
                    b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn escaped(&mut self, byte: u8) -> Result<(), String> {
        if self.escape == 1 && byte != b'u' {
            self.escape = 0;
            return Ok(());
        }
        if self.escape > 1 && byte == b'0' {
            self.zeros += 1;
        }
        self.escape += 1;
        if self.zeros == 4 {
            return Err("a text contains U+0000, which can't be stored".to_owned());
        }
        if self.escape == 6 {
            self.escape = 0;
        }
        Ok(())
    }
}

/// Words of a page.
const PAGE: usize = 64;

/// Numbers of rows that are there, a bit for each, in pages: a single great number takes little memory.
#[derive(Default)]
pub(super) struct Numbers {
    pages: Vec<Option<Box<[u64; PAGE]>>>,
    count: u64,
}

impl Numbers {
    /// False where it is there already.
    pub(super) fn add(&mut self, number: u32) -> bool {
        let (page, word, bit) = place(number);
        if page >= self.pages.len() {
            self.pages.resize_with((page + 1).next_power_of_two(), || None);
        }
        let words = self.pages[page].get_or_insert_with(|| Box::new([0; PAGE]));
        let new = words[word] & bit == 0;
        words[word] |= bit;
        self.count += u64::from(new);
        new
    }

    pub(super) fn has(&self, number: u32) -> bool {
        let (page, word, bit) = place(number);
        self.page(page).is_some_and(|words| words[word] & bit != 0)
    }

    fn page(&self, page: usize) -> Option<&[u64; PAGE]> {
        self.pages.get(page)?.as_deref()
    }

    pub(super) fn first_without(&self, other: &Self) -> Option<u64> {
        (0..self.pages.len()).find_map(|page| {
            let theirs = other.page(page).unwrap_or(&[0; PAGE]);
            self.page(page)?.iter().zip(theirs).enumerate().find_map(|(at, (word, theirs))| {
                let missing = word & !theirs;
                let first = (page * PAGE + at) as u64 * 64 + u64::from(missing.trailing_zeros());
                (missing != 0).then_some(first)
            })
        })
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let pages = self.pages.iter().flatten().count();
        self.pages.capacity() * size_of::<usize>() + pages * PAGE * size_of::<u64>()
    }
}

/// The page, the word in it, and the bit in that.
const fn place(number: u32) -> (usize, usize, u64) {
    let word = number as usize / 64;
    (word / PAGE, word % PAGE, 1 << (number % 64))
}

/// What is known of a document so far.
struct State<'a> {
    meter: Rc<Meter>,
    take: &'a mut dyn FnMut(Row<'_>) -> Result<(), Refused>,
    version: u32,
    metadata: Option<Metadata>,
    hash: Option<Hash>,
    sections: Vec<Section>,
    /// Where we are.
    section: &'static str,
    row: u64,
    known: Known,
}

/// The rows that others refer to.
#[derive(Default)]
pub(super) struct Known {
    pub sources: Numbers,
    pub source_images: Numbers,
    pub facts: Numbers,
    pub concepts: Numbers,
    pub summaries: Numbers,
    pub investigations: Numbers,
    pub reports: Numbers,
    /// Images that facts name before there are any: version 1.
    pub wanted_images: Numbers,
    /// Facts that duplicates name.
    pub wanted_facts: Numbers,
    /// Reports and their parents.
    pub parents: Vec<(u32, u32)>,
    /// Of files.
    pub image_refs: HashSet<u64>,
    pub body_refs: HashSet<u64>,
    pub has_images: bool,
    pub has_bodies: bool,
    pub syntheses: u64,
    vectors: [Numbers; 2],
}

impl<'a> State<'a> {
    fn new(meter: Rc<Meter>, take: &'a mut dyn FnMut(Row<'_>) -> Result<(), Refused>) -> Self {
        Self {
            meter,
            take,
            version: 0,
            metadata: None,
            hash: None,
            sections: Vec::new(),
            section: "",
            row: 0,
            known: Known::default(),
        }
    }

    fn place(&self) -> String {
        match self.section {
            "" => String::new(),
            "metadata" => "metadata".to_owned(),
            section => format!("{section}[{}]", self.row),
        }
    }

    fn explain(&self, error: &serde_json::Error) -> Refused {
        Refused::new(self.place(), error.to_string())
    }

    fn refuse<E: serde::de::Error>(&self, reason: impl Into<String>) -> E {
        self.fail(Refused::new(self.place(), reason))
    }

    fn fail<E: serde::de::Error>(&self, refused: Refused) -> E {
        E::custom(self.meter.refuse(refused))
    }

    /// Gives a row away.
    fn give<E: serde::de::Error>(&mut self, row: Row<'_>) -> Result<(), E> {
        (self.take)(row).map_err(|refused| {
            let place = if refused.place.is_empty() { self.place() } else { refused.place };
            self.fail::<E>(Refused { place, reason: refused.reason })
        })?;
        self.meter.row.set(0);
        self.row += 1;
        Ok(())
    }

    fn begin<E: serde::de::Error>(&mut self, section: Section) -> Result<(), E> {
        (self.section, self.row) = (section.name(), 0);
        let here = |refused: &Self, reason: String| refused.fail(Refused::new(section.name(), reason));
        if self.metadata.is_none() {
            return Err(here(self, "comes before metadata".to_owned()));
        }
        if self.sections.contains(&section) {
            return Err(here(self, "is there twice".to_owned()));
        }
        let place = section.place(self.version);
        if let Some(last) = self.sections.last().filter(|last| last.place(self.version) > place) {
            return Err(here(self, format!("comes after {}; sections have one order", last.name())));
        }
        self.sections.push(section);
        Ok(())
    }

    fn hash(&mut self) -> &mut Hash {
        // A section that comes before the metadata is refused.
        self.hash.get_or_insert_with(|| Hash::new(&Metadata::default()))
    }

    fn finish(self) -> Result<Read, Refused> {
        let Some(metadata) = self.metadata else { return Err(Refused::new("metadata", "is missing")) };
        for section in Section::ALL {
            if section.is_required() && !self.sections.contains(&section) {
                return Err(Refused::new(section.name(), "is missing"));
            }
        }
        let known = &self.known;
        if let Some(missing) = known.wanted_images.first_without(&known.source_images) {
            let reason = format!("a fact refers to image {missing}, which is not there");
            return Err(Refused::new("facts", reason));
        }
        if let Some(missing) = known.wanted_facts.first_without(&known.facts) {
            return Err(Refused::new(
                "facts",
                format!("a duplicate refers to fact {missing}, which is not there"),
            ));
        }
        check::parents(known)?;
        let counts = [
            ("source_count", metadata.source_count, known.sources.count),
            ("fact_count", metadata.fact_count, known.facts.count),
            ("concept_count", metadata.concept_count, known.concepts.count),
            ("summary_count", metadata.summary_count, known.summaries.count),
            ("synthesis_count", metadata.synthesis_count, known.syntheses),
            ("report_count", metadata.report_count, known.reports.count),
            ("investigation_count", metadata.investigation_count, known.investigations.count),
        ];
        for (name, said, counted) in counts {
            if said != counted {
                let reason = format!("is {said}, but there are {counted}");
                return Err(Refused::new(format!("metadata.{name}"), reason));
            }
        }
        let sha256 = self.hash.map(Hash::finish).unwrap_or_default();
        // That of the first version was computed over other sections.
        if self.version == SCHEMA_VERSION && !metadata.sha256.is_empty() && metadata.sha256 != sha256 {
            let reason = format!("is {}, but the content has {sha256}", metadata.sha256);
            return Err(Refused::new("metadata.sha256", reason));
        }
        Ok(Read { schema_version: self.version, metadata, sha256, bytes: 0 })
    }
}

struct DocumentSeed<'s, 'a>(&'s mut State<'a>);

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DocumentSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a graph bundle")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let state = self.0;
        while let Some(name) = map.next_key::<String>()? {
            if state.version == 0 && name != "schema_version" {
                return Err(state.refuse("does not begin with schema_version"));
            }
            match &*name {
                "schema_version" => {
                    let version: u64 = map.next_value()?;
                    if state.version != 0 {
                        return Err(state.fail(Refused::new("schema_version", "is there twice")));
                    }
                    state.version = match u32::try_from(version) {
                        Ok(version @ 1..=SCHEMA_VERSION) => version,
                        Ok(0) => return Err(state.fail(Refused::new("schema_version", "must be at least 1"))),
                        _ => {
                            let reason = format!(
                                "is {version}, and this version of okt reads up to {SCHEMA_VERSION}; bring it up to date"
                            );
                            return Err(state.fail(Refused::new("schema_version", reason)));
                        }
                    };
                }
                "metadata" => {
                    state.section = "metadata";
                    let metadata: Metadata = map.next_value()?;
                    if state.metadata.is_some() {
                        return Err(state.refuse("is there twice"));
                    }
                    check::metadata(&metadata).map_err(|refused| state.fail::<A::Error>(refused))?;
                    state.hash = Some(Hash::new(&metadata));
                    state.give::<A::Error>(Row::Metadata(&metadata))?;
                    state.metadata = Some(metadata);
                }
                name => {
                    if let Some(section) = Section::of_name(name) {
                        state.begin::<A::Error>(section)?;
                        map.next_value_seed(SectionSeed(state, section))?;
                    } else {
                        // Of a later version of the format, or somebody's own.
                        map.next_value::<IgnoredAny>()?;
                        state.meter.row.set(0);
                    }
                }
            }
            state.section = "";
        }
        Ok(())
    }
}

struct SectionSeed<'s, 'a>(&'s mut State<'a>, Section);

impl<'de> DeserializeSeed<'de> for SectionSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.1 {
            Section::Images | Section::Bodies | Section::Embeddings => deserializer.deserialize_map(self),
            _ => deserializer.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for SectionSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the section {}", self.1.name())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        let Self(state, section) = self;
        macro_rules! each {
            ($check:path, $given:path, $hash:ident) => {
                while let Some(row) = rows.next_element()? {
                    $check(&row, &mut state.known).map_err(|reason| state.refuse::<A::Error>(reason))?;
                    state.give::<A::Error>($given(&row))?;
                    state.hash().$hash(row);
                }
            };
            ($check:path, $given:path) => {
                while let Some(row) = rows.next_element()? {
                    $check(&row, &mut state.known).map_err(|reason| state.refuse::<A::Error>(reason))?;
                    state.give::<A::Error>($given(&row))?;
                    if section.is_hashed() {
                        state.hash().row(section, &row);
                    }
                }
            };
        }
        match section {
            Section::Sources => each!(check::source, Row::Source, source),
            Section::SourceImages => each!(check::source_image, Row::SourceImage),
            Section::SourceBodies => each!(check::source_body, Row::SourceBody),
            Section::Facts => each!(check::fact, Row::Fact, fact),
            Section::FactSources => each!(check::fact_source, Row::FactSource),
            Section::FactReferences => each!(check::reference_row, Row::Reference),
            Section::Concepts => each!(check::concept, Row::Concept, concept),
            Section::ConceptAliases => each!(check::alias, Row::Alias, alias),
            Section::FactConcepts => each!(check::fact_concept, Row::FactConcept, fact_concept),
            Section::ConceptSummaries => each!(check::summary, Row::Summary, summary),
            Section::ConceptSyntheses => each!(check::synthesis, Row::Synthesis, synthesis),
            Section::Investigations => each!(check::investigation, Row::Investigation),
            Section::InvestigationSources => {
                each!(check::investigation_source, Row::InvestigationSource);
            }
            Section::Reports => each!(check::report, Row::Report, report),
            Section::ReportAnnotations => each!(check::annotation, Row::Annotation, annotation),
            Section::Curation => each!(check::curation, Row::Curation),
            Section::Images | Section::Bodies | Section::Embeddings => {
                return Err(A::Error::custom("expected an object"));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(state, section) = self;
        if section == Section::Embeddings {
            return embeddings(state, map);
        }
        if section == Section::Images {
            state.known.has_images = true;
        } else {
            state.known.has_bodies = true;
        }
        while let Some(name) = map.next_key::<String>()? {
            let refs = if section == Section::Images {
                &mut state.known.image_refs
            } else {
                &mut state.known.body_refs
            };
            if !refs.insert(short(&name)) {
                return Err(state.refuse("the same reference is there twice"));
            }
            map.next_value_seed(FileSeed(state, section, &name))?;
        }
        Ok(())
    }
}

/// A text as a number: there may be many, and a chance of one in 10^19 for two of them to meet only refuses a bundle.
pub(super) fn short(text: &str) -> u64 {
    let hash: [u8; 32] = Sha256::digest(text).into();
    u64::from_be_bytes([hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]])
}

struct FileSeed<'s, 'a, 'n>(&'s mut State<'a>, Section, &'n str);

impl<'de> DeserializeSeed<'de> for FileSeed<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FileSeed<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a file: content_type and data")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(state, section, name) = self;
        let mut has_data = false;
        while let Some(field) = map.next_key::<String>()? {
            if field == "data" {
                if has_data {
                    return Err(state.refuse("data is there twice"));
                }
                has_data = true;
                map.next_value_seed(DataSeed(state, section, name))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if has_data { Ok(()) } else { Err(state.refuse("has no data")) }
    }
}

/// The one text that is too large to be copied.
struct DataSeed<'s, 'a, 'n>(&'s mut State<'a>, Section, &'n str);

impl<'de> DeserializeSeed<'de> for DataSeed<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for DataSeed<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a file in base64")
    }

    fn visit_str<E: serde::de::Error>(self, data: &str) -> Result<(), E> {
        let Self(state, section, name) = self;
        let is_base64 = data.len().is_multiple_of(4)
            && data
                .trim_end_matches('=')
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
            && data.len() - data.trim_end_matches('=').len() <= 2;
        if !is_base64 {
            return Err(state.refuse("data is not base64"));
        }
        let row = if section == Section::Images { Row::Image(name, data) } else { Row::Body(name, data) };
        state.give(row)
    }
}

fn embeddings<'de, A: MapAccess<'de>>(state: &mut State<'_>, mut map: A) -> Result<(), A::Error> {
    let (mut model, mut dimensions, mut told) = (None::<String>, None::<u32>, false);
    while let Some(name) = map.next_key::<String>()? {
        match &*name {
            "model" => model = Some(map.next_value()?),
            "dimensions" => dimensions = Some(map.next_value()?),
            "fact_vectors" | "concept_vectors" => {
                let (Some(model), Some(dimensions)) = (&model, dimensions) else {
                    return Err(state.refuse("model and dimensions come before the vectors"));
                };
                if !told {
                    if !(1..=65_536).contains(&dimensions) {
                        return Err(
                            state.refuse(format!("dimensions is {dimensions}; from 1 to 65536 are possible"))
                        );
                    }
                    state.give::<A::Error>(Row::Vectors { model, dimensions })?;
                    (told, state.row) = (true, 0);
                }
                map.next_value_seed(VectorsSeed {
                    state: &mut *state,
                    dimensions,
                    of_facts: name == "fact_vectors",
                })?;
            }
            _ => {
                map.next_value::<IgnoredAny>()?;
                state.meter.row.set(0);
            }
        }
    }
    Ok(())
}

struct VectorsSeed<'s, 'a> {
    state: &'s mut State<'a>,
    dimensions: u32,
    of_facts: bool,
}

impl<'de> DeserializeSeed<'de> for VectorsSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for VectorsSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("vectors by the numbers of their rows")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { state, dimensions, of_facts } = self;
        let mut vector: Vec<f32> = Vec::with_capacity(dimensions.min(4_096) as usize);
        while let Some(name) = map.next_key::<String>()? {
            let known = if of_facts { &state.known.facts } else { &state.known.concepts };
            let idx = name.parse::<u32>().ok().filter(|idx| *idx < MOST_ROWS && known.has(*idx));
            let Some(idx) = idx else {
                return Err(state.refuse(format!("{name:.20?} is the number of no row")));
            };
            if !state.known.vectors[usize::from(of_facts)].add(idx) {
                return Err(state.refuse(format!("row {idx} has two vectors")));
            }
            vector.clear();
            map.next_value_seed(VectorSeed(&mut vector, dimensions))?;
            if vector.len() != dimensions as usize {
                return Err(state.refuse(format!("the vector of row {idx} has {} dimensions", vector.len())));
            }
            if !vector.iter().all(|number| number.is_finite()) {
                return Err(state.refuse(format!("the vector of row {idx} has a number that is not finite")));
            }
            let row = if of_facts { Row::FactVector(idx, &vector) } else { Row::ConceptVector(idx, &vector) };
            state.give::<A::Error>(row)?;
        }
        Ok(())
    }
}

struct VectorSeed<'v>(&'v mut Vec<f32>, u32);

impl<'de> DeserializeSeed<'de> for VectorSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for VectorSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a vector")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<(), A::Error> {
        while let Some(number) = numbers.next_element()? {
            if self.0.len() >= self.1 as usize {
                return Err(A::Error::custom(format!("a vector has more than {} dimensions", self.1)));
            }
            self.0.push(number);
        }
        Ok(())
    }
}

/// A reference to a row, or to none.
pub(super) fn reference(numbers: &Numbers, idx: u32, name: &str) -> Result<(), String> {
    if numbers.has(idx) { Ok(()) } else { Err(format!("{name} is {idx}, and there is no such row")) }
}

/// The number of a row, if it refers to one.
pub(super) fn optional(idx: i64, name: &str) -> Result<Option<u32>, String> {
    match idx {
        NONE => Ok(None),
        idx => u32::try_from(idx)
            .ok()
            .filter(|idx| *idx < MOST_ROWS)
            .map(Some)
            .ok_or_else(|| format!("{name} is {idx}, which is the number of no row")),
    }
}

/// A row that is there once.
pub(super) fn new_row(numbers: &mut Numbers, idx: u32) -> Result<(), String> {
    if idx >= MOST_ROWS {
        return Err(format!("idx is {idx}; a bundle has at most {MOST_ROWS} rows of a kind"));
    }
    if numbers.add(idx) { Ok(()) } else { Err(format!("idx {idx} is there twice")) }
}

/// Whether the hash of a fact is that of its text.
pub(super) fn is_hash_of(hash: &str, text: &str) -> bool {
    content_hash(text).to_string() == hash
}
