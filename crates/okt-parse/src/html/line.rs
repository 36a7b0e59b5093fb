//! One block of text in the making, with its Markdown.

use crate::{clean, text};

#[derive(Default)]
pub struct Line {
    text: String,
    markdown: String,
    /// The marks that are open and where they began, in the Markdown and in the text. They are written when they are
    /// closed, if there is text in them.
    open: Vec<(&'static str, usize, usize)>,
    link: Option<(usize, usize)>,
    /// Where the last link leads.
    pub leads: Option<String>,
    in_links: usize,
    /// White space that counts if something follows.
    space: bool,
}

impl Line {
    pub fn text(&mut self, piece: &str) {
        let piece = clean::characters(piece);
        for (at, word) in piece.split(|c: char| c.is_whitespace()).enumerate() {
            self.space |= at > 0;
            if !word.is_empty() {
                self.word(word);
            }
        }
    }

    fn word(&mut self, word: &str) {
        if self.space && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push(' ');
            self.markdown.push(' ');
        }
        self.space = false;
        self.text.push_str(word);
        let first = self.markdown.is_empty() || self.markdown.ends_with('\n');
        let escaped = text::escape(word);
        // Only at the start of a line do these mean something.
        let plain =
            escaped.strip_prefix('\\').filter(|rest| !first && rest.starts_with(['#', '+', '-', '=']));
        self.markdown.push_str(plain.unwrap_or(&escaped));
        if first {
            self.escape_number();
        }
    }

    /// `1.` at the start of a paragraph would begin a list.
    fn escape_number(&mut self) {
        let start = self.markdown.rfind('\n').map_or(0, |at| at + 1);
        let word = &self.markdown[start..];
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && matches!(word.as_bytes().get(digits), Some(b'.' | b')')) && word.len() == digits + 1
        {
            self.markdown.insert(start + digits, '\\');
        }
    }

    /// Whether the line was already broken here.
    pub fn new_line(&mut self) -> bool {
        self.space = false;
        if self.text.ends_with('\n') {
            return true;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
            self.markdown.push('\n');
        }
        false
    }

    pub fn open(&mut self, mark: &'static str) {
        if !mark.is_empty() {
            self.open.push((mark, self.markdown.len(), self.text.len()));
        }
    }

    pub fn close(&mut self, mark: &'static str) {
        if mark.is_empty() {
            return;
        }
        // A block within may have taken the line away.
        let Some(at) = self.open.iter().rposition(|(open, ..)| *open == mark) else { return };
        let (_, start, before) = self.open.remove(at);
        let Some(inside) = self.markdown.get(start..) else { return };
        let nested = self.open.iter().any(|(open, ..)| *open == mark);
        let trimmed = inside.trim_start();
        if trimmed.is_empty()
            || trimmed.contains('\n')
            || nested
            || self.link.is_some_and(|(from, _)| from > start)
        {
            return;
        }
        let start = self.markdown.len() - trimmed.len();
        if mark == "`" {
            // Code is as it is, without what escapes it elsewhere; so it must really become code.
            let code = self.text[before..].trim();
            if !code.contains('`') && !self.markdown[..start].ends_with('`') {
                let code = format!("`{code}`");
                self.markdown.truncate(start);
                self.markdown.push_str(&code);
            }
            return;
        }
        self.markdown.insert_str(start, mark);
        self.markdown.push_str(mark);
    }

    pub fn open_link(&mut self) {
        self.link = Some((self.markdown.len(), self.text.len()));
    }

    pub fn close_link(&mut self, address: Option<&str>) {
        let Some((start, before)) = self.link.take() else { return };
        self.in_links += self.text.get(before..).map_or(0, str::len);
        let Some(inside) = self.markdown.get(start..) else { return };
        let trimmed = inside.trim_start();
        let (Some(address), false) = (address, trimmed.is_empty()) else { return };
        self.leads = Some(address.to_owned());
        let label = trimmed.replace('\n', " ");
        let address: String = address
            .chars()
            .map(|c| if matches!(c, '<' | '>' | '(' | ')' | '\\') { percent(c) } else { c.to_string() })
            .collect();
        let start = self.markdown.len() - trimmed.len();
        self.markdown.truncate(start);
        for piece in ["[", &label, "](", &address, ")"] {
            self.markdown.push_str(piece);
        }
    }

    pub fn is_linky(&self) -> bool {
        self.in_links * 10 > self.text.len() * 8
    }

    pub fn finish(self) -> (String, String) {
        (self.text.trim().to_owned(), self.markdown.trim().to_owned())
    }
}

fn percent(c: char) -> String {
    format!("%{:02X}", u32::from(c))
}
