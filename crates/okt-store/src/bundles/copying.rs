//! Rows as COPY takes them: a line each, with tabs between the columns.

use std::fmt::{Display, Write as _};

use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// What is sent at once.
const PIECE: usize = 1 << 20;

/// Lines for one table.
pub(super) struct Lines {
    /// With its columns.
    table: &'static str,
    text: String,
    /// In a line.
    begun: bool,
    pub(super) rows: u64,
}

impl Lines {
    pub(super) const fn new(table: &'static str) -> Self {
        Self { table, text: String::new(), begun: false, rows: 0 }
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.separate();
        for c in text.chars() {
            match c {
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                c => self.text.push(c),
            }
        }
        self
    }

    pub(super) fn optional_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => self.null(),
        }
    }

    /// A text that is null where it is empty.
    pub(super) fn filled(&mut self, text: &str) -> &mut Self {
        self.optional_text(Some(text).filter(|text| !text.is_empty()))
    }

    pub(super) fn value(&mut self, value: impl Display) -> &mut Self {
        self.separate();
        let _ = write!(self.text, "{value}");
        self
    }

    pub(super) fn optional(&mut self, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.value(value),
            None => self.null(),
        }
    }

    pub(super) fn bytes(&mut self, bytes: Option<&[u8]>) -> &mut Self {
        let Some(bytes) = bytes else { return self.null() };
        self.separate();
        self.text.push_str("\\\\x");
        for byte in bytes {
            let _ = write!(self.text, "{byte:02x}");
        }
        self
    }

    /// Bytes that are written in hexadecimal; null where there are none.
    pub(super) fn hex(&mut self, hex: &str) -> &mut Self {
        if hex.is_empty() {
            return self.null();
        }
        self.separate();
        self.text.push_str("\\\\x");
        self.text.push_str(hex);
        self
    }

    pub(super) fn list(&mut self, values: impl IntoIterator<Item = impl Display>) -> &mut Self {
        self.separate();
        self.text.push('{');
        for (at, value) in values.into_iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(self.text, "{comma}{value}");
        }
        self.text.push('}');
        self
    }

    pub(super) fn null(&mut self) -> &mut Self {
        self.separate();
        self.text.push_str("\\N");
        self
    }

    pub(super) fn uuid(&mut self, id: Uuid) -> &mut Self {
        self.value(id.hyphenated())
    }

    pub(super) fn end(&mut self) {
        self.text.push('\n');
        self.begun = false;
        self.rows += 1;
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= PIECE
    }

    pub(super) async fn send(&mut self, conn: &mut PgConnection) -> Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let mut copy = conn.copy_in_raw(&format!("COPY {} FROM STDIN", self.table)).await?;
        copy.send(std::mem::take(&mut self.text).into_bytes()).await?;
        copy.finish().await?;
        Ok(())
    }

    fn separate(&mut self) {
        if self.begun {
            self.text.push('\t');
        }
        self.begun = true;
    }
}
