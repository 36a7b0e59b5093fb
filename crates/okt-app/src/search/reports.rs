//! Reports by their words.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use okt_model::{FoundThrough, RepositoryId, Result, SearchType};
use okt_search::Query;
use okt_store::{Connection, report_words};

use super::{Candidate, Ranks};

/// So many sentences that have a word are looked at, and so many reports are found.
const HAVING: i64 = 5_000;
const REPORTS: usize = 20;
/// What the best of them counts beside facts, whose best is 1.
const WORTH: f64 = 0.9;

/// The reports that have words of a question, those first that have a sentence with the most and the rarest of them.
pub(super) async fn candidates(
    conn: &mut Connection,
    repository: RepositoryId,
    query: &Query,
) -> Result<Vec<Candidate>> {
    let terms = query.ranking();
    let words: BTreeSet<&String> = terms.iter().flat_map(|term| &term.alternatives).collect();
    let words: Vec<String> = words.into_iter().cloned().collect();
    let mut having: HashMap<String, Vec<(i64, i64)>> = HashMap::new();
    for one in report_words::list(conn, repository, &words, HAVING).await? {
        having.entry(one.word).or_default().push((one.report, one.sentence));
    }
    let mut scores: HashMap<(i64, i64), f64> = HashMap::new();
    let mut most = 0.0;
    for term in terms {
        let of_term: BTreeSet<&(i64, i64)> =
            term.alternatives.iter().filter_map(|word| having.get(word)).flatten().collect();
        if of_term.is_empty() {
            continue;
        }
        #[expect(clippy::cast_precision_loss, reason = "few sentences are looked at")]
        let rarity = 1.0 / (1.0 + of_term.len() as f64).ln_1p();
        most += rarity;
        for place in of_term {
            *scores.entry(*place).or_default() += rarity;
        }
    }
    let mut best: BTreeMap<i64, (f64, i64)> = BTreeMap::new();
    for ((report, sentence), score) in scores {
        let known = best.entry(report).or_insert((score, sentence));
        // Of equals the first one.
        if score > known.0 || (score >= known.0 && sentence < known.1) {
            *known = (score, sentence);
        }
    }
    let mut found: Vec<(i64, (f64, i64))> = best.into_iter().collect();
    found.sort_by(|one, other| other.1.0.total_cmp(&one.1.0).then(other.0.cmp(&one.0)));
    found.truncate(REPORTS);
    let candidate = |(report, (score, sentence)): (i64, (f64, i64))| Candidate {
        kind: SearchType::Reports,
        no: report,
        source: sentence,
        score: WORTH * score / most,
        found_by: vec![FoundThrough::Lexical],
        via: None,
        ranks: Ranks::default(),
    };
    Ok(found.into_iter().map(candidate).collect())
}
