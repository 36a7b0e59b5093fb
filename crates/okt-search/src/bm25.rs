//! BM25 as Lucene computes it.

/// How many texts there are, and how many words they have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    pub documents: u64,
    pub words: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bm25 {
    /// How soon a repeated word stops counting.
    pub k1: f64,
    /// How much a long text is held against it.
    pub b: f64,
}

impl Bm25 {
    /// Sentences, which are about equally long.
    pub const FACTS: Self = Self { k1: 0.9, b: 0.4 };
    /// Passages and documents.
    pub const PASSAGES: Self = Self { k1: 1.2, b: 0.75 };

    /// What a term counts that so many texts have. Without the constant factor `k1 + 1`, which changes no order.
    pub fn weight(self, statistics: Statistics, documents: u64) -> Weight {
        let average = float(statistics.words) / float(statistics.documents.max(1));
        let (fixed, of_length) = if average > 0.0 { (1.0 - self.b, self.b / average) } else { (1.0, 0.0) };
        Weight {
            idf: idf(statistics.documents, documents),
            fixed: self.k1 * fixed,
            of_length: self.k1 * of_length,
        }
    }
}

/// What a term of a question counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weight {
    idf: f64,
    fixed: f64,
    of_length: f64,
}

impl Weight {
    /// What it adds to the score of a text of so many words that has it so often.
    pub fn score(self, count: u32, length: u32) -> f64 {
        let count = f64::from(count);
        self.idf * count / (count + self.fixed + self.of_length * f64::from(length))
    }
}

/// Never negative. A count that is older than the text makes a term rarer than one text has it, never than
/// none.
fn idf(documents: u64, with_term: u64) -> f64 {
    let with_term = with_term.max(1);
    let without = documents.saturating_sub(with_term);
    (1.0 + (float(without) + 0.5) / (float(with_term) + 0.5)).ln()
}

#[expect(clippy::cast_precision_loss, reason = "counts of texts and words are far below 2^52")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-9, "{one} {other}");
    }

    #[test]
    fn the_score_is_the_one_computed_by_hand() {
        // Ten texts of 10 words on average; this one has 20. A term is in it twice and in three texts.
        let statistics = Statistics { documents: 10, words: 100 };
        // ln(1 + 7.5 / 3.5) = ln(22 / 7)
        let idf = (22.0_f64 / 7.0).ln();
        // 1.2 · (.25 + .75 · 2) = 2.1; 2 / 4.1.
        near(Bm25::PASSAGES.weight(statistics, 3).score(2, 20), idf * 2.0 / 4.1);
        near(Bm25::PASSAGES.weight(statistics, 3).score(2, 20), 0.558_601_124_050);
        // .9 · (.6 + .4 · 2) = 1.26; 2 / 3.26. The second: ln(1 + 9.5 / 1.5) = ln(22 / 3), 1 / 2.26.
        near(Bm25::FACTS.weight(statistics, 3).score(2, 20), idf * 2.0 / 3.26);
        near(Bm25::FACTS.weight(statistics, 1).score(1, 20), (22.0_f64 / 3.0).ln() / 2.26);
    }

    #[test]
    fn statistics_that_lag_behind_do_no_harm() {
        for (documents, words, with_term) in [(0, 0, 0), (0, 0, 9), (5, 0, 9), (5, 50, 0)] {
            let score = Bm25::FACTS.weight(Statistics { documents, words }, with_term).score(3, 7);
            assert!(score.is_finite() && score > 0.0, "{documents} {words} {with_term}");
        }
    }
}
