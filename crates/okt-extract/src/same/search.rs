//! From the beginnings of two texts to their ends, by permitted moves only.

use super::{Move, Pair, PermittedDifference, structure, surface, wording};

/// More changed words than these make another text, however well each is known.
const MOST_WORDINGS: usize = 3;

/// Looks for a way through both texts. Places that led nowhere are not tried twice.
pub struct Search<'a> {
    pair: Pair<'a>,
    failed: Vec<bool>,
    found: Vec<PermittedDifference>,
}

impl<'a> Search<'a> {
    pub fn run(pair: Pair<'a>) -> Option<Vec<PermittedDifference>> {
        let places = (pair.a.tokens.len() + 1) * (pair.b.tokens.len() + 1);
        let mut search = Self { pair, failed: vec![false; places], found: Vec::new() };
        if !search.go(0, 0) {
            return None;
        }
        // Written from the end to the beginning.
        search.found.reverse();
        let wordings = search.found.iter().filter(|by| by.is_wording()).count();
        (wordings <= MOST_WORDINGS).then_some(search.found)
    }

    fn go(&mut self, i: usize, j: usize) -> bool {
        let (length_a, length_b) = (self.pair.a.tokens.len(), self.pair.b.tokens.len());
        if i == length_a && j == length_b {
            return true;
        }
        let place = i * (length_b + 1) + j;
        if self.failed[place] {
            return false;
        }
        for step in moves(&self.pair, i, j) {
            let (next_i, next_j) = (i + step.a, j + step.b);
            if next_i <= length_a && next_j <= length_b && self.go(next_i, next_j) {
                self.found.extend(step.by.into_iter().rev());
                return true;
            }
        }
        self.failed[place] = true;
        false
    }
}

/// What is permitted at a place. Everything is asked both ways round.
fn moves(pair: &Pair, i: usize, j: usize) -> Vec<Move> {
    let mut moves = Vec::new();
    if let Some(by) = surface::equal(pair, i, j) {
        moves.push(Move { a: 1, b: 1, by });
    }
    let mut ask = |offers: fn(&Pair, usize, usize, &mut Vec<Move>)| {
        offers(pair, i, j, &mut moves);
        let first = moves.len();
        offers(&pair.turned(), j, i, &mut moves);
        for step in &mut moves[first..] {
            (step.a, step.b) = (step.b, step.a);
        }
    };
    ask(surface::offers);
    ask(wording::offers);
    ask(structure::offers);
    moves
}
