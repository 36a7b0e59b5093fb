//! Lists of retracted papers as the public one is published: CSV whose first line names the columns, read piece by piece.
//!
//! Of a row only what is wanted is kept, and no more of a field than it may be long, so a list takes no more memory than a few
//! fields, whatever it holds. Quotes, line ends and the mark of UTF-8 are read as spreadsheets write them.

/// Of one list.
pub const MOST_ROWS: u64 = 200_000;

const MOST_COLUMNS: usize = 500;
/// Of a field, in bytes; the rest is cut off.
const LONGEST_FIELD: usize = 4_000;
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a notice says of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Nature {
    Retraction,
    ExpressionOfConcern,
    Correction,
    /// It was retracted, and no longer is.
    Reinstatement,
    Other,
}

/// A row of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Of the paper, as it is written there; empty if there is none.
    pub doi: String,
    pub nature: Nature,
    /// `2019-05-03`, if it can be read.
    pub date: Option<String>,
    /// The DOI of the notice itself, as it is written there.
    pub notice_doi: Option<String>,
    pub reason: Option<String>,
}

/// A row that has not the columns of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRow;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    #[error("must be CSV whose first line names a column OriginalPaperDOI or DOI")]
    NoDoi,
    #[error("must have at most 500 columns")]
    TooManyColumns,
    #[error("must have at most 200000 rows")]
    TooManyRows,
}

/// Reads a list piece by piece.
#[derive(Debug, Default)]
pub struct Reader {
    /// How much of the mark of UTF-8 was seen at the very beginning; `None` after it.
    mark: Option<usize>,
    begun: bool,
    state: State,
    /// The last byte ended a row by itself; a line feed after it belongs to it.
    after_return: bool,
    columns: Option<Columns>,
    /// The row that is being read: how many fields are complete, what is wanted of them, and the current one.
    fields: usize,
    names: Vec<String>,
    wanted: [Vec<u8>; WANTED],
    field: Vec<u8>,
    cut: bool,
    rows: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Plain,
    Quoted,
    /// After a quote in quotes: their end, or the first of two.
    Quote,
}

const WANTED: usize = 5;
/// The place of each in [`Reader::wanted`], with the names that it goes by, the better one first.
const COLUMNS: [&[&str]; WANTED] = [
    &["originalpaperdoi", "doi"],
    &["retractionnature", "nature"],
    &["retractiondate", "date"],
    &["retractiondoi"],
    &["reason", "reasons"],
];
const DOI: usize = 0;
const NATURE: usize = 1;

#[derive(Debug)]
struct Columns {
    count: usize,
    /// Where each of [`COLUMNS`] is.
    places: [Option<usize>; WANTED],
}

impl Reader {
    pub fn new() -> Self {
        Self::default()
    }

    /// How many rows were read, the names of the columns not counted.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Reads on, and adds the rows that are complete.
    pub fn read(&mut self, bytes: &[u8], rows: &mut Vec<Result<Notice, BadRow>>) -> Result<(), ListError> {
        for byte in bytes {
            if !self.begun {
                let seen = self.mark.unwrap_or(0);
                if UTF8_MARK.get(seen) == Some(byte) {
                    self.mark = Some(seen + 1);
                    continue;
                }
                self.begun = true;
            }
            self.step(*byte, rows)?;
        }
        Ok(())
    }

    /// After the last piece. A quote that was never closed spoils the row that it began in.
    pub fn finish(&mut self, rows: &mut Vec<Result<Notice, BadRow>>) -> Result<(), ListError> {
        if self.state == State::Quoted {
            self.fields = MOST_COLUMNS;
        }
        if self.state != State::Start || self.fields > 0 {
            self.end_row(rows)?;
        }
        if self.columns.is_some() { Ok(()) } else { Err(ListError::NoDoi) }
    }

    fn step(&mut self, byte: u8, rows: &mut Vec<Result<Notice, BadRow>>) -> Result<(), ListError> {
        let after_return = std::mem::take(&mut self.after_return);
        match (self.state, byte) {
            (State::Start, b'\n') if after_return => {}
            (State::Start, b'"') => self.state = State::Quoted,
            (State::Quoted, b'"') => self.state = State::Quote,
            (State::Quote, b'"') => {
                self.push(b'"');
                self.state = State::Quoted;
            }
            (State::Quoted, _) => self.push(byte),
            (_, b',') => {
                self.end_field()?;
                self.state = State::Start;
            }
            (_, b'\n' | b'\r') => {
                self.after_return = byte == b'\r';
                self.end_row(rows)?;
            }
            (State::Start | State::Plain | State::Quote, _) => {
                self.push(byte);
                self.state = State::Plain;
            }
        }
        Ok(())
    }

    fn push(&mut self, byte: u8) {
        if self.is_wanted() && self.field.len() < LONGEST_FIELD {
            self.field.push(byte);
        } else {
            self.cut = true;
        }
    }

    fn is_wanted(&self) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns.places.contains(&Some(self.fields)))
    }

    fn end_field(&mut self) -> Result<(), ListError> {
        let field = std::mem::take(&mut self.field);
        let cut = std::mem::take(&mut self.cut);
        match &self.columns {
            None if self.fields >= MOST_COLUMNS => return Err(ListError::TooManyColumns),
            None => self.names.push(name(&field)),
            Some(columns) => {
                for (place, wanted) in columns.places.iter().zip(&mut self.wanted) {
                    if *place == Some(self.fields) {
                        wanted.clone_from(&field);
                    }
                }
                // The beginning of a DOI is another DOI.
                if cut && columns.places[DOI] == Some(self.fields) {
                    self.wanted[DOI].clear();
                }
            }
        }
        self.fields += 1;
        Ok(())
    }

    fn end_row(&mut self, rows: &mut Vec<Result<Notice, BadRow>>) -> Result<(), ListError> {
        let empty = self.fields == 0 && self.state == State::Start;
        if !empty {
            self.end_field()?;
            match &self.columns {
                None => self.columns = Some(Columns::of(&self.names)?),
                Some(_) if self.rows >= MOST_ROWS => return Err(ListError::TooManyRows),
                Some(columns) => {
                    self.rows += 1;
                    let whole = self.fields == columns.count;
                    rows.push(if whole { Ok(notice(columns, &self.wanted)) } else { Err(BadRow) });
                }
            }
        }
        self.fields = 0;
        self.names.clear();
        self.wanted.iter_mut().for_each(Vec::clear);
        self.state = State::Start;
        Ok(())
    }
}

impl Columns {
    fn of(names: &[String]) -> Result<Self, ListError> {
        let place =
            |known: &&[&str]| known.iter().find_map(|known| names.iter().position(|name| name == known));
        let places = COLUMNS.each_ref().map(place);
        if places[DOI].is_none() {
            return Err(ListError::NoDoi);
        }
        Ok(Self { count: names.len(), places })
    }
}

/// Letters and digits alone: some write `Original Paper DOI`.
fn name(field: &[u8]) -> String {
    let name = String::from_utf8_lossy(field);
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).take(100).collect()
}

fn notice(columns: &Columns, [doi, nature, date, notice_doi, reason]: &[Vec<u8>; WANTED]) -> Notice {
    let given = |field: &[u8]| Some(text(field)).filter(|text| !text.is_empty());
    Notice {
        doi: text(doi),
        // A list without natures is one of retractions.
        nature: columns.places[NATURE].map_or(Nature::Retraction, |_| nature_of(&text(nature))),
        date: day(&text(date)),
        notice_doi: given(notice_doi),
        reason: given(reason),
    }
}

/// Without characters that stand for nothing.
fn text(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(field);
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.trim().to_owned()
}

fn nature_of(text: &str) -> Nature {
    match text.to_ascii_lowercase().as_str() {
        "retraction" | "retracted" => Nature::Retraction,
        "expression of concern" => Nature::ExpressionOfConcern,
        "correction" => Nature::Correction,
        "reinstatement" => Nature::Reinstatement,
        _ => Nature::Other,
    }
}

/// `5/3/2019 0:00`, as the public list has it (the month first), or `2019-05-03`.
fn day(text: &str) -> Option<String> {
    let text = text.split([' ', 'T']).next()?;
    let mut parts = text.split(['/', '-']);
    let (one, two, three) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day) = if text.contains('/') { (three, one, two) } else { (one, two, three) };
    let number = |text: &str, most: u32| text.parse::<u32>().ok().filter(|n| (1..=most).contains(n));
    let (year, month, day) = (number(year, 9999)?, number(month, 12)?, number(day, 31)?);
    (parts.next().is_none() && year >= 1000).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "Record ID,Title,RetractionDate,RetractionDOI,OriginalPaperDOI,RetractionNature,Reason\r\n";

    /// In pieces of this size.
    fn read(list: &[u8], piece: usize) -> Result<Vec<Result<Notice, BadRow>>, ListError> {
        let (mut reader, mut rows) = (Reader::new(), Vec::new());
        for piece in list.chunks(piece) {
            reader.read(piece, &mut rows)?;
        }
        reader.finish(&mut rows)?;
        Ok(rows)
    }

    #[test]
    fn a_list_is_the_same_however_it_is_cut() {
        let list = format!(
            "\u{feff}{HEAD}1,\"Bees, \"\"dances\"\"\r\nand more\",4/29/2014 0:00,10.1/n,10.1000/A,Retraction,+Data;\r\n\
             \r\n2,x,,,,Correction,\r\n3,too few\r\n4,x,2019-05-03,,10.1000/b,Expression of concern,y\n\
             5,x,1/1/2020,,10.1000/c,Reinstatement,z\r6,x,,,10.1000/d,\"Something else\",\"open"
        );
        let whole = read(list.as_bytes(), 4_096).unwrap();
        for piece in 1..50 {
            assert_eq!(read(list.as_bytes(), piece).unwrap(), whole, "in pieces of {piece}");
        }
        let seen: Vec<_> = whole.iter().map(|row| row.as_ref().map(|row| (&*row.doi, row.nature))).collect();
        assert_eq!(
            seen,
            [
                Ok(("10.1000/A", Nature::Retraction)),
                Ok(("", Nature::Correction)),
                Err(&BadRow),
                Ok(("10.1000/b", Nature::ExpressionOfConcern)),
                Ok(("10.1000/c", Nature::Reinstatement)),
                Err(&BadRow),
            ]
        );
        let first = whole[0].as_ref().unwrap();
        assert_eq!(
            (first.date.as_deref(), first.notice_doi.as_deref()),
            (Some("2014-04-29"), Some("10.1/n"))
        );
        assert_eq!(first.reason.as_deref(), Some("+Data;"));
    }

    #[test]
    fn a_list_of_dois_alone_is_one_of_retractions() {
        let rows = read(b"doi\n10.1000/a\n\n10.1000/b", 3).unwrap();
        let rows: Vec<_> = rows.into_iter().map(|row| row.map(|row| (row.doi, row.nature))).collect();
        let retracted = |doi: &str| Ok((doi.to_owned(), Nature::Retraction));
        assert_eq!(rows, [retracted("10.1000/a"), retracted("10.1000/b")]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for list in ["", "\n\n", "a,b,c\n1,2,3\n", "%PDF-1.7\n", "\u{feff}"] {
            assert_eq!(read(list.as_bytes(), 5), Err(ListError::NoDoi), "{list:?}");
        }
        assert_eq!(read(",".repeat(1_000).as_bytes(), 100), Err(ListError::TooManyColumns));
        let many = format!("doi\n{}", "x\n".repeat(200_001));
        assert_eq!(read(many.as_bytes(), 10_000), Err(ListError::TooManyRows));
    }

    #[test]
    fn a_field_without_end_takes_no_memory() {
        let (mut reader, mut rows) = (Reader::new(), Vec::new());
        reader.read(b"doi,reason\n\"10.1000/", &mut rows).unwrap();
        for _ in 0..1_000 {
            reader.read(&[b'x'; 1_000], &mut rows).unwrap();
        }
        assert!(reader.field.capacity() < 10_000);
        reader.read(b"\",why\n", &mut rows).unwrap();
        assert_eq!(rows[0].as_ref().unwrap().doi, "", "the beginning of a DOI is another one");
    }
}
