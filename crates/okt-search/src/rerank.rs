//! The order that a reranking model gives to texts.

/// The numbers of texts, the best first. Equal ones keep their order, and what has no score, or none that is a number, comes after
/// the others in the order that it had.
pub fn reranked(scores: &[Option<f64>]) -> Vec<usize> {
    let score = |at: usize| scores[at].filter(|score| score.is_finite()).unwrap_or(f64::NEG_INFINITY);
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|one, other| score(*other).total_cmp(&score(*one)));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_best_come_first_and_what_was_not_judged_last() {
        let scores = [None, Some(-3.0), Some(0.5), Some(f64::NAN), Some(0.5), Some(f64::INFINITY)];
        assert_eq!(reranked(&scores), [2, 4, 1, 0, 3, 5]);
        assert_eq!(reranked(&[Some(-0.0), Some(0.0)]), [1, 0], "a total order, whatever is said");
    }

    /// Whatever a model says, each text is there once, in the order of the scores.
    #[test]
    fn no_answer_loses_or_doubles_a_text() {
        let numbers =
            [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e308, -1e308, 0.5, 0.7];
        let mut random = Random::new(23);
        for _ in 0..20_000 {
            let count = random.below(12);
            let scores: Vec<Option<f64>> =
                (0..count).map(|_| numbers.get(random.below(numbers.len() + 3)).copied()).collect();
            let order = reranked(&scores);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..count).collect::<Vec<_>>(), "{scores:?}");
            let given = |at: usize| scores[at].filter(|score| score.is_finite());
            for pair in order.windows(2) {
                match (given(pair[0]), given(pair[1])) {
                    (Some(one), Some(other)) => assert!(one >= other, "{scores:?}: {order:?}"),
                    (None, Some(_)) => panic!("{scores:?}: {order:?}"),
                    (None, None) => assert!(pair[0] < pair[1], "{scores:?}: {order:?}"),
                    (Some(_), None) => {}
                }
            }
        }
    }
}
