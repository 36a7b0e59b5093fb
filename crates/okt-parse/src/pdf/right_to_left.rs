//! Lines of scripts that run from right to left.
//!
//! Their letters come in an order that depends on the program that made the file: as read, as seen, or both in one line.
//! Where they stand does not, so the order is made anew from that.

use super::page::{Area, Fragment};

/// Scripts that run from right to left: Hebrew, Arabic and their neighbours.
pub fn is_right_to_left(char: char) -> bool {
    matches!(char, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Replaces the pieces of such lines by whole lines, in the order in which they are read.
pub fn reorder(fragments: &mut Vec<Fragment>) {
    let (mut pieces, others): (Vec<_>, Vec<_>) = std::mem::take(fragments)
        .into_iter()
        .partition(|fragment| !fragment.turned && fragment.text.contains(is_right_to_left));
    *fragments = others;
    // Signs between such words are in pieces of their own.
    let near = |piece: &Fragment, lines: &[Fragment]| {
        lines
            .iter()
            .any(|line| is_beside(line.area, piece.area, line.size) && !piece.turned && piece.spans.len() < 3)
    };
    let mut at = 0;
    while at < fragments.len() {
        if near(&fragments[at], &pieces) {
            pieces.push(fragments.remove(at));
        } else {
            at += 1;
        }
    }
    // The tallest say where the lines are: some fonts give each letter its own height.
    pieces.sort_by(|a, b| b.area.height().total_cmp(&a.area.height()));
    let mut lines: Vec<Vec<Fragment>> = Vec::new();
    for piece in pieces {
        // One that stands between two halves of a line makes them one.
        let beside =
            |line: &mut Vec<Fragment>| line.iter().any(|other| is_beside(other.area, piece.area, other.size));
        let mut line: Vec<_> = lines.extract_if(.., beside).flatten().collect();
        line.push(piece);
        lines.push(line);
    }
    fragments.extend(lines.iter().filter_map(|line| join(line)));
}

fn is_beside(line: Area, piece: Area, size: f32) -> bool {
    let gap = (piece.x0 - line.x1).max(line.x0 - piece.x1);
    (line.y0..line.y1).contains(&piece.middle()) && gap < 1.5 * size
}

fn join(pieces: &[Fragment]) -> Option<Fragment> {
    let area = pieces.iter().map(|piece| piece.area).reduce(Area::with)?;
    let size = pieces.iter().map(|piece| piece.size).fold(0.0, f32::max);
    let mut letters: Vec<(char, (f32, f32))> = Vec::new();
    for piece in pieces {
        letters.extend(piece.text.chars().zip(piece.spans.iter().copied()).filter(|(char, _)| *char != ' '));
    }
    letters.sort_by(|(_, a), (_, b)| (b.0 + b.1).total_cmp(&(a.0 + a.1)));
    // Numbers and words of other scripts run to the right even here.
    let mut from = 0;
    while from < letters.len() {
        let run = letters[from..].iter().take_while(|(char, _)| runs_right(*char)).count();
        letters[from..from + run].reverse();
        from += run.max(1);
    }
    let mut line = Fragment { text: String::new(), spans: Vec::new(), area, size, turned: false };
    let mut last: Option<(f32, f32)> = None;
    for (char, span) in letters {
        if let Some(last) = last
            && (last.0 - span.1).max(span.0 - last.1) > 0.25 * size
        {
            line.text.push(' ');
            line.spans.push((last.0.min(span.1), last.0.max(span.1)));
        }
        line.text.push(char);
        line.spans.push(span);
        last = Some(span);
    }
    Some(line)
}

fn runs_right(char: char) -> bool {
    char.is_numeric() || char.is_alphabetic() && !is_right_to_left(char)
}
