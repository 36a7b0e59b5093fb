//! The text of a source, sentence by sentence, and its parts that a model is asked about.

use std::ops::Range;

/// A text whose sentences can be looked up.
#[derive(Clone, Debug)]
pub struct Text<'a> {
    text: &'a str,
    /// Half-open, in bytes.
    sentences: Vec<(usize, usize)>,
}

impl<'a> Text<'a> {
    /// Takes sentences as they are kept: half-open, in code points, in order. One that goes back or beyond the end is cut
    /// to what is left of it, so that every other keeps its number.
    pub fn new(text: &'a str, sentences: &[(i32, i32)]) -> Self {
        let mut points = text.char_indices().map(|(byte, _)| byte);
        let (mut point, mut byte) = (0, points.next().unwrap_or(text.len()));
        let mut at = |wanted: i32| {
            let wanted = usize::try_from(wanted).unwrap_or(0);
            if wanted > point {
                byte = points.nth(wanted - point - 1).unwrap_or(text.len());
                point = wanted;
            }
            byte
        };
        let sentences = sentences.iter().map(|&(start, end)| (at(start), at(end))).collect();
        Self { text, sentences }
    }

    /// How many sentences there are.
    pub fn len(&self) -> usize {
        self.sentences.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sentences.is_empty()
    }

    /// A sentence by its number; empty where there is none.
    pub fn sentence(&self, no: usize) -> &'a str {
        self.sentences.get(no).map_or("", |&(start, end)| &self.text[start..end])
    }

    /// Whether a line break stands before a sentence.
    pub fn begins_line(&self, no: usize) -> bool {
        let Some(&(start, _)) = self.sentences.get(no) else { return true };
        let before =
            no.checked_sub(1).and_then(|before| self.sentences.get(before)).map_or(0, |&(_, end)| end);
        before == 0 || self.text.get(before..start).is_none_or(|between| between.contains('\n'))
    }

    /// Whether a sentence has a letter or a digit. What has none is no matter for a question, and nothing rests on it.
    pub fn says_something(&self, no: usize) -> bool {
        self.sentence(no).contains(char::is_alphanumeric)
    }
}

/// A run of sentences that is asked about at once, and the sentences before it that help to understand it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub no: usize,
    pub sentences: Range<usize>,
    pub context: Range<usize>,
}

/// How often a chunk is halved whose answer holds several claims in one: quarters of what it was are small for any model.
pub const SPLITS: u32 = 2;

impl Chunk {
    /// The same sentences as two chunks, each with the context that it had or would have had; `None` where there is only one
    /// that says something.
    pub fn halves(&self, text: &Text) -> Option<[Self; 2]> {
        let said: Vec<usize> = self.sentences.clone().filter(|no| text.says_something(*no)).collect();
        let middle = *said.get(said.len() / 2).filter(|_| said.len() > 1)?;
        let first = Self { sentences: self.sentences.start..middle, ..self.clone() };
        let context = self.context.start.min(self.sentences.start)..middle;
        Some([first, Self { no: self.no, sentences: middle..self.sentences.end, context }])
    }
}

/// Cuts a text into runs of whole sentences, each sentence in exactly one of them.
///
/// A run has at most `chunk_size` characters, with one between sentences; a longer sentence stands alone. Up to
/// `chunk_overlap` characters of whole sentences before it are its context. Sentences without a letter or digit take no
/// room, since they are not shown; a text of nothing else has no chunks, for nobody should pay for asking about it.
pub fn chunks(text: &Text, chunk_size: u32, chunk_overlap: u32) -> Vec<Chunk> {
    let sizes: Vec<usize> = (0..text.len()).map(|no| size(text, no)).collect();
    if sizes.iter().all(|size| *size == 0) {
        return Vec::new();
    }
    let (most, overlap) = (chunk_size as usize, chunk_overlap as usize);
    let mut chunks = Vec::new();
    let (mut start, mut length) = (0, 0);
    for (no, &size) in sizes.iter().enumerate() {
        let grown = joined(length, size);
        if length > 0 && grown > most && size > 0 {
            chunks.push(start..no);
            (start, length) = (no, size);
        } else {
            length = grown;
        }
    }
    chunks.push(start..sizes.len());
    let context = |start: usize| context(&sizes, start, overlap)..start;
    let numbered = chunks.into_iter().enumerate();
    numbered.map(|(no, run)| Chunk { no, context: context(run.start), sentences: run }).collect()
}

/// Where the context of a run begins.
fn context(sizes: &[usize], start: usize, most: usize) -> usize {
    let mut length = 0;
    let mut first = start;
    for no in (0..start).rev() {
        length = joined(length, sizes[no]);
        if length > most {
            break;
        }
        first = no;
    }
    first
}

fn size(text: &Text, no: usize) -> usize {
    if text.says_something(no) { text.sentence(no).chars().count() } else { 0 }
}

fn joined(length: usize, size: usize) -> usize {
    length + size + usize::from(length > 0 && size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sentences, one space apart, with their offsets.
    fn kept(sentences: &[&str]) -> (String, Vec<(i32, i32)>) {
        let (mut text, mut offsets) = (String::new(), Vec::new());
        let points = |text: &str| i32::try_from(text.chars().count()).unwrap();
        for sentence in sentences {
            let start = points(&text);
            text.push_str(sentence);
            offsets.push((start, points(&text)));
            text.push(' ');
        }
        (text, offsets)
    }

    #[test]
    fn a_sentence_is_found_by_its_number() {
        let sentences = ["Grüße aus Köln.", "漢字です。", "𝔘nd weiter.", "Ende"];
        let (text, offsets) = kept(&sentences);
        let text = Text::new(&text, &offsets);
        let found: Vec<_> = (0..text.len()).map(|no| text.sentence(no)).collect();
        assert_eq!(found, sentences);
        assert_eq!(text.sentence(4), "");
    }

    #[test]
    fn bad_offsets_cost_only_their_own_sentence() {
        let offsets = [(-5, 2), (1, 3), (3, 3), (4, 2), (5, 99), (7, 8), (i32::MAX, i32::MIN)];
        let text = Text::new("äbcdefg", &offsets);
        let found: Vec<_> = (0..text.len()).map(|no| text.sentence(no)).collect();
        assert_eq!(found, ["äb", "c", "", "", "fg", "", ""]);
        assert_eq!(Text::new("", &[(0, 1)]).sentence(0), "");
    }

    #[test]
    fn runs_fill_up_and_look_back() {
        let (text, offsets) =
            kept(&["One one.", "Two two.", "—", "Three three three three.", "Four.", "***"]);
        let text = Text::new(&text, &offsets);
        let chunk = |no, sentences, context| Chunk { no, sentences, context };
        assert_eq!(
            chunks(&text, 17, 8),
            [chunk(0, 0..3, 0..0), chunk(1, 3..4, 1..3), chunk(2, 4..6, 4..4)],
            "two of eight and the space between fill a run, the dash takes no room, the long one stands alone"
        );
        assert_eq!(chunks(&text, 10_000, 0), [chunk(0, 0..6, 0..0)]);
        assert_eq!(chunks(&text, 0, 0).len(), 4);
    }

    #[test]
    fn a_chunk_is_halved_down_to_its_sentences() {
        let (text, offsets) = kept(&["Zero.", "One.", "***", "Two.", "Three."]);
        let text = Text::new(&text, &offsets);
        let whole = Chunk { no: 7, sentences: 1..5, context: 0..1 };
        let [first, second] = whole.halves(&text).unwrap();
        assert_eq!((first.sentences.clone(), first.context.clone()), (1..3, 0..1));
        assert_eq!((second.sentences.clone(), second.context.clone()), (3..5, 0..3));
        assert_eq!((first.no, second.no), (7, 7));
        assert_eq!(first.halves(&text), None, "stars say nothing");
        assert_eq!(second.halves(&text).unwrap().map(|half| half.sentences), [3..4, 4..5]);
    }

    #[test]
    fn nothing_to_ask_about_is_not_asked_about() {
        let (text, offsets) = kept(&["***", "—", ""]);
        assert_eq!(chunks(&Text::new(&text, &offsets), 100, 10), []);
        assert_eq!(chunks(&Text::new("", &[]), 100, 10), []);
    }

    #[test]
    fn every_sentence_is_in_one_chunk_in_order_and_sizes_are_kept() {
        let mut state = 11_u64;
        let mut roll = |sides: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % sides
        };
        for _ in 0..2_000 {
            let sentences: Vec<String> = (0..roll(30))
                .map(|_| {
                    let letter = ["a", "é", "漢", "-"][usize::try_from(roll(4)).unwrap()];
                    letter.repeat(usize::try_from(roll(40)).unwrap())
                })
                .collect();
            let (text, offsets) = kept(&sentences.iter().map(String::as_str).collect::<Vec<_>>());
            let text = Text::new(&text, &offsets);
            let (most, overlap) = (u32::try_from(roll(100)).unwrap(), u32::try_from(roll(60)).unwrap());
            check(&text, &chunks(&text, most, overlap), most as usize, overlap as usize);
        }
    }

    fn check(text: &Text, chunks: &[Chunk], most: usize, overlap: usize) {
        if !(0..text.len()).any(|no| text.says_something(no)) {
            assert!(chunks.is_empty());
            return;
        }
        let shown = |range: &Range<usize>| {
            let said: Vec<_> = range.clone().filter(|no| text.says_something(*no)).collect();
            let length: usize = said.iter().map(|no| text.sentence(*no).chars().count()).sum();
            (said.len(), length + said.len().saturating_sub(1))
        };
        let mut next = 0;
        for (no, chunk) in chunks.iter().enumerate() {
            assert_eq!((chunk.no, chunk.sentences.start, chunk.context.end), (no, next, next));
            next = chunk.sentences.end;
            let (count, length) = shown(&chunk.sentences);
            assert!(count > 0 && (length <= most || count == 1), "{chunk:?} of {most}");
            assert!(shown(&chunk.context).1 <= overlap, "{chunk:?} looks back over {overlap}");
            let more = chunk.context.start.saturating_sub(1)..chunk.context.end;
            assert!(
                chunk.context.start == 0 || shown(&more).1 > overlap,
                "{chunk:?} could look back further"
            );
            let grown = chunk.sentences.start..chunk.sentences.end + 1;
            assert!(chunk.sentences.end == text.len() || shown(&grown).1 > most, "{chunk:?} could be longer");
        }
        assert_eq!(next, text.len());
    }
}
