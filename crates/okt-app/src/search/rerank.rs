//! A second look at the first hits, by a model that reads each of them together with the question.
//!
//! It moves texts among the places that texts have; concepts stay where they are. What it has looked at gets scores above all
//! others, so a cursor tells whether its page began among them: pages behind them are as they are without a model.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::sync::Cache;
use okt_ai::{Billing, Reranker, Scores, Unanswered};
use okt_auth::RepoAccess;
use okt_model::{RepositoryId, Result, SearchMode, SearchType};
use okt_search::Query;

use super::breaker::Breaker;
use super::{Candidate, Id, SearchHit, SearchPlace, SearchRequest, hits};
use crate::App;

/// Above any other score.
const FIRST: f64 = 10.0;
/// As long as somebody turns pages.
const KEPT: Duration = Duration::from_mins(5);

/// A question and what was shown to the model, with a hash of the texts: they may have changed since.
type Asked = (RepositoryId, String, Vec<Id>, u64);

/// What is kept between questions.
pub(crate) struct Rerankings {
    known: Cache<Asked, Arc<Vec<Option<f64>>>>,
    model: Breaker,
}

impl Default for Rerankings {
    fn default() -> Self {
        Self {
            known: Cache::builder().max_capacity(2_000).time_to_live(KEPT).build(),
            model: Breaker::default(),
        }
    }
}

impl App {
    /// Puts the first of candidates, which are in order, into a better one; why not, where it was wanted and could not be done.
    /// Of a page that goes on from one in that order nothing is left then: others would come twice.
    pub(super) async fn rerank(
        &self,
        scope: &RepoAccess,
        query: &Query,
        request: &SearchRequest<'_>,
        after: Option<SearchPlace>,
        candidates: &mut Vec<Candidate>,
    ) -> Result<Option<&'static str>> {
        let settings = &self.config().search.rerank;
        // Texts that lead to an answer without being one are what it would put last, and who still types has not asked yet.
        if settings.model.is_empty()
            || request.mode == SearchMode::Deep
            || request.prefix
            || query.text.trim().is_empty()
            || after.is_some_and(|after| after.score < FIRST)
        {
            return Ok(None);
        }
        let most = usize::try_from(settings.candidates).unwrap_or(usize::MAX).min(candidates.len());
        let first = &mut candidates[..most];
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let shown = hits::read(&mut tx, scope.repository(), query, first, request.mode, most).await?;
        tx.commit().await?;
        let places: HashMap<Id, usize> =
            first.iter().enumerate().map(|(at, candidate)| ((candidate.kind, candidate.no), at)).collect();
        let (places, texts): (Vec<usize>, Vec<String>) = shown
            .into_iter()
            .filter(|hit| !matches!(hit.place.kind, SearchType::Concepts | SearchType::Reports))
            .filter_map(|hit| Some((*places.get(&(hit.place.kind, hit.place.no))?, text(hit))))
            .unzip();
        if texts.len() < 2 {
            return Ok(None);
        }
        let ids = places.iter().map(|at| (first[*at].kind, first[*at].no)).collect();
        match self.scores(scope, &query.text, ids, texts).await {
            Ok(scores) => {
                reorder(first, &places, &scores);
                Ok(None)
            }
            Err(why) => {
                if after.is_some() {
                    candidates.clear();
                }
                Ok(Some(why))
            }
        }
    }

    /// What the model says of texts. Asked once for a question and what was found.
    async fn scores(
        &self,
        scope: &RepoAccess,
        question: &str,
        ids: Vec<Id>,
        texts: Vec<String>,
    ) -> Result<Arc<Vec<Option<f64>>>, &'static str> {
        const AWAY: &str = "rerank_unavailable";
        let mut hash = DefaultHasher::new();
        texts.hash(&mut hash);
        let key = (scope.repository(), question.to_owned(), ids, hash.finish());
        let kept = self.rerankings();
        if let Some(scores) = kept.known.get(&key) {
            return Ok(scores);
        }
        if !kept.model.lets_through(Instant::now()) {
            return Err(AWAY);
        }
        let billing = Billing {
            repository: scope.repository(),
            database: scope.database().to_owned(),
            subject: None,
            job: None,
        };
        let settings = &self.config().search.rerank;
        let reranker = Reranker::new(self.ai(), billing, &settings.model, settings.timeout.duration())
            .map_err(|error| {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "hits could not be ranked by a model"
                );
                AWAY
            })?;
        let asked = reranker.rerank(question.to_owned(), texts);
        match tokio::time::timeout(settings.timeout.duration(), asked).await {
            Ok(Ok(Scores::Given(scores))) => {
                kept.model.succeeded();
                let scores = Arc::new(scores);
                kept.known.insert(key, Arc::clone(&scores));
                Ok(scores)
            }
            Ok(Ok(Scores::OverBudget(_))) => Err("rerank_budget"),
            failed => {
                // What it says of some texts, or asks one repository to wait for, tells nothing of other questions.
                if matches!(failed, Err(_) | Ok(Err(Unanswered::Retryable(_) | Unanswered::Permanent { .. })))
                {
                    kept.model.failed(Instant::now());
                }
                if let Ok(Err(error)) = failed {
                    tracing::warn!(?error, "hits could not be ranked by a model");
                }
                Err(AWAY)
            }
        }
    }
}

/// As the model reads it: a sentence seldom says what it is about.
fn text(hit: SearchHit) -> String {
    match hit.title {
        Some(title) => format!("{title}. {}", hit.text),
        None => hit.text,
    }
}

/// Moves the texts at these places among them, by their scores, and numbers all.
fn reorder(first: &mut [Candidate], places: &[usize], scores: &[Option<f64>]) {
    let before: Vec<Candidate> = places.iter().map(|at| first[*at].clone()).collect();
    // In the order of their places, whatever order they were looked at in.
    let mut free = places.to_vec();
    free.sort_unstable();
    for (to, which) in free.into_iter().zip(okt_search::reranked(scores)) {
        let Some(moved) = before.get(which) else { continue };
        first[to] = moved.clone();
        first[to].ranks.rerank = scores[which].map(|score| (places[which] + 1, score));
    }
    let mut left = f64::from(u32::try_from(first.len()).unwrap_or(u32::MAX));
    let all = left;
    for candidate in first {
        candidate.score = FIRST + left / all;
        left -= 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Ranks;

    fn candidates(kinds: &[SearchType]) -> Vec<Candidate> {
        let candidate = |(no, kind): (i64, &SearchType)| Candidate {
            kind: *kind,
            no,
            source: 0,
            score: 1.0,
            found_by: Vec::new(),
            via: None,
            ranks: Ranks::default(),
        };
        (0..).zip(kinds).map(candidate).collect()
    }

    #[test]
    fn texts_move_among_their_places_and_concepts_stay() {
        use SearchType::{Concepts, Facts, Passages};
        let mut first = candidates(&[Facts, Concepts, Passages, Facts, Facts]);
        // The fourth is not shown, and so not judged; of the third nothing was said.
        reorder(&mut first, &[0, 2, 4], &[Some(0.1), None, Some(0.9)]);
        let order: Vec<i64> = first.iter().map(|candidate| candidate.no).collect();
        assert_eq!(order, [4, 1, 0, 3, 2]);
        let ranks: Vec<_> = first.iter().map(|candidate| candidate.ranks.rerank).collect();
        assert_eq!(ranks, [Some((5, 0.9)), None, Some((1, 0.1)), None, None]);
        assert!(first.is_sorted_by(|one, other| one.score > other.score));
        assert!(first.iter().all(|candidate| candidate.score > FIRST), "a cursor tells them from the others");
    }
}
