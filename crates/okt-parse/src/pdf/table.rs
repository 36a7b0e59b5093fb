//! Tables: lines whose pieces stand in columns, read cell by cell.
//!
//! A cell may have several lines. Read line by line, the words of cells that stand beside each other would become one sentence.

use super::layout::Line;
use super::page::{Area, Fragment};

/// Lines further apart, in sizes of their letters, are not of one table.
const FAR: f32 = 4.0;
/// A gap between rows, in steps between lines of one cell.
const ROW_GAP: f32 = 1.2;
/// A cell of more characters says something of its own.
const LONG_CELL: usize = 40;

/// Pieces of a table that belong together, in the order in which they are read: a long cell, or the short ones of a row.
pub type Cells = Vec<usize>;

/// How many of the lines are a table, from the first on, and what is in it; none if they are no table.
pub fn table(fragments: &[Fragment], lines: &[Line]) -> Option<(usize, Vec<Cells>)> {
    let size = lines.first().filter(|line| line.row)?.size;
    let near = |pair: &[Line]| pair[0].area.middle() - pair[1].area.middle() < FAR * size;
    let reach = 1 + lines.windows(2).take_while(|pair| near(pair)).count();
    let mut columns: Vec<f32> = Vec::new();
    let (mut end, mut rows, mut widest) = (0, 0, 0);
    for (at, line) in lines[..reach].iter().enumerate() {
        // Scripts that run to the left have their columns in another order.
        if line.parts.windows(2).any(|pair| fragments[pair[0]].area.x0 > fragments[pair[1]].area.x0) {
            break;
        }
        let cells = cells(fragments, line);
        if line.row {
            (end, rows, widest) = (at + 1, rows + 1, widest.max(cells.len()));
            for (area, _) in &cells {
                if !columns.iter().any(|column| (column - area.x0).abs() < size) {
                    columns.push(area.x0);
                }
            }
        } else if fits(&columns, &cells, size) {
            end = at + 1;
        } else {
            break;
        }
    }
    columns.sort_by(f32::total_cmp);
    // Cells that do not begin where others do: centred, or no table at all.
    if rows < 2 || columns.len() > widest + 1 {
        return None;
    }
    let lines = &lines[..end];
    let starts = row_starts(fragments, lines, columns.len());
    let mut all = Vec::new();
    let mut from = 0;
    for to in (1..=end).filter(|to| *to == end || starts[*to]) {
        row(fragments, &lines[from..to], &columns, size, &mut all);
        from = to;
    }
    Some((end, all))
}

/// The pieces of a line, those together that have no wide gap between them.
fn cells(fragments: &[Fragment], line: &Line) -> Vec<(Area, Vec<usize>)> {
    let mut cells: Vec<(Area, Vec<usize>)> = Vec::new();
    for &part in &line.parts {
        let own = fragments[part].area;
        match cells.last_mut() {
            Some((area, parts)) if own.x0 - area.x1 < 1.2 * line.size => {
                *area = area.with(own);
                parts.push(part);
            }
            _ => cells.push((own, vec![part])),
        }
    }
    cells
}

/// Whether each cell begins with a column and ends before the next one: a line of text does not.
fn fits(columns: &[f32], cells: &[(Area, Vec<usize>)], size: f32) -> bool {
    cells.iter().all(|(area, _)| {
        let begins = columns.iter().any(|column| (column - area.x0).abs() < size);
        let next =
            columns.iter().copied().filter(|column| *column > area.x0 + size).fold(f32::INFINITY, f32::min);
        begins && area.x1 < next && (next.is_finite() || columns.len() > 1 && area.x0 > columns[0] + size)
    })
}

/// For each line, whether a row begins with it: after a gap, or, where there are none, when most columns have something.
fn row_starts(fragments: &[Fragment], lines: &[Line], columns: usize) -> Vec<bool> {
    let steps: Vec<f32> =
        lines.windows(2).map(|pair| pair[0].area.middle() - pair[1].area.middle()).collect();
    let least = steps.iter().copied().fold(f32::INFINITY, f32::min);
    let gap = |step: &f32| *step > ROW_GAP * least;
    let by_gaps = steps.iter().filter(|step| gap(step)).count() * 4 >= lines.len();
    let first = |line: &Line| line.parts.first().and_then(|&part| fragments[part].text.chars().next());
    let capitals = lines.iter().filter(|line| first(line).is_some_and(char::is_uppercase)).count();
    // Where rows begin with capitals, a line that does not goes on.
    let goes_on =
        |line: &Line| capitals * 5 >= lines.len() * 3 && first(line).is_some_and(char::is_lowercase);
    let full = |line: &Line| cells(fragments, line).len() * 4 >= columns * 3 && !goes_on(line);
    let rest = steps.iter().zip(&lines[1..]).map(|(step, line)| if by_gaps { gap(step) } else { full(line) });
    std::iter::once(true).chain(rest).collect()
}

fn row(fragments: &[Fragment], lines: &[Line], columns: &[f32], size: f32, all: &mut Vec<Cells>) {
    let mut by_column: Vec<Vec<usize>> = vec![Vec::new(); columns.len()];
    for line in lines {
        for (area, parts) in cells(fragments, line) {
            let column = columns.iter().rposition(|column| *column < area.x0 + size).unwrap_or(0);
            by_column[column].extend(parts);
        }
    }
    let mut short = Vec::new();
    for cell in by_column.into_iter().filter(|cell| !cell.is_empty()) {
        if cell.iter().map(|&part| fragments[part].spans.len()).sum::<usize>() > LONG_CELL {
            if !short.is_empty() {
                all.push(std::mem::take(&mut short));
            }
            all.push(cell);
        } else {
            short.extend(cell);
        }
    }
    if !short.is_empty() {
        all.push(short);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces at these places, and the lines that they make.
    fn made(pieces: &[(f32, f32, &str)]) -> (Vec<Fragment>, Vec<Line>) {
        let mut lines: Vec<Line> = Vec::new();
        let mut fragments = Vec::new();
        for &(x0, y0, text) in pieces {
            let width = 5.0 * f32::from(u16::try_from(text.len()).unwrap());
            let area = Area { x0, y0, x1: x0 + width, y1: y0 + 10.0 };
            let spans = vec![(0.0, 0.0); text.len()];
            fragments.push(Fragment { text: text.to_owned(), spans, area, size: 10.0, turned: false });
            let part = fragments.len() - 1;
            match lines.last_mut() {
                Some(line) if line.area.same_line(area) => {
                    line.parts.push(part);
                    (line.area, line.row) = (line.area.with(area), true);
                }
                _ => lines.push(Line { parts: vec![part], area, size: 10.0, row: false }),
            }
        }
        (fragments, lines)
    }

    fn read(pieces: &[(f32, f32, &str)]) -> Option<(usize, Vec<String>)> {
        let (fragments, lines) = made(pieces);
        let (end, all) = table(&fragments, &lines)?;
        let text = |cells: &Cells| {
            cells.iter().map(|&part| fragments[part].text.as_str()).collect::<Vec<_>>().join(" ")
        };
        Some((end, all.iter().map(text).collect()))
    }

    #[test]
    fn cells_of_several_lines_are_read_one_after_the_other() {
        let rows = [
            (0.0, 100.0, "Salt marsh"),
            (200.0, 100.0, "Sampled every week of the"),
            (200.0, 88.0, "year by two volunteers."),
            (0.0, 66.0, "Dune"),
            (200.0, 66.0, "Sampled"),
            (200.0, 54.0, "twice."),
            (0.0, 42.0, "A line of text that follows the table and is as wide as the page."),
        ];
        let wanted =
            ["Salt marsh", "Sampled every week of the year by two volunteers.", "Dune Sampled twice."];
        assert_eq!(read(&rows), Some((4, wanted.map(str::to_owned).to_vec())));
    }

    #[test]
    fn rows_without_gaps_begin_where_most_columns_have_something() {
        let rows = [
            (0.0, 100.0, "Lake"),
            (100.0, 100.0, "50"),
            (200.0, 100.0, "online"),
            (0.0, 88.0, "Ulm"),
            (0.0, 76.0, "River"),
            (100.0, 76.0, "12"),
            (200.0, 76.0, "in person"),
        ];
        assert_eq!(
            read(&rows),
            Some((3, vec!["Lake Ulm 50 online".to_owned(), "River 12 in person".to_owned()]))
        );
    }

    #[test]
    fn a_line_in_small_letters_goes_on_where_rows_have_capitals() {
        let rows = [
            (0.0, 100.0, "Live coding or"),
            (200.0, 100.0, "Instructors write all their code and"),
            (0.0, 88.0, "demonstrations"),
            (200.0, 88.0, "others follow."),
            (0.0, 76.0, "Exercises"),
            (200.0, 76.0, "Pupils write."),
        ];
        let wanted = [
            "Live coding or demonstrations",
            "Instructors write all their code and others follow.",
            "Exercises Pupils write.",
        ];
        assert_eq!(read(&rows), Some((3, wanted.map(str::to_owned).to_vec())));
    }

    #[test]
    fn one_line_with_a_gap_is_no_table() {
        assert_eq!(
            read(&[(0.0, 100.0, "Chapter"), (300.0, 100.0, "9"), (0.0, 88.0, "It begins here.")]),
            None
        );
    }
}
