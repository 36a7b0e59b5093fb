//! Facts by their vectors.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::sync::Cache;
use okt_ai::{Billing, Embedder, SubjectBudget, Unanswered, Vectors as Embedded};
use okt_auth::RepoAccess;
use okt_model::{EmbeddingSpace, Operation, RepositoryId, SearchType, SpaceKind};
use okt_store::search_hits;
use okt_vectors::{Near, Point, Tenant, cosine};
use uuid::Uuid;

use super::Id;
use super::breaker::Breaker;
use super::filters::Narrow;
use super::lexical::Ranked;
use crate::App;

/// A question waits no longer than this for a model or for the store; then it is answered without them.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// So many are looked at, or more for a long page.
const NEAREST: u32 = 500;
/// Where filters leave no more facts than this, all of them are compared with the question.
const FEW: usize = 1_000;

/// What is kept between questions.
pub(crate) struct QuestionVectors {
    /// By space and text.
    known: Cache<(RepositoryId, i16, String), Arc<Vec<f32>>>,
    model: Breaker,
    /// By the named database: where vectors are in the database of a repository, others have nothing to do with it.
    stores: Cache<String, Arc<Breaker>>,
}

impl Default for QuestionVectors {
    fn default() -> Self {
        Self { known: Cache::new(2_000), model: Breaker::default(), stores: Cache::new(1_000) }
    }
}

/// What vectors have found.
pub(super) struct Nearest {
    /// Facts by their cosines, the best first.
    facts: Vec<(i64, f64)>,
    /// The first source of each.
    pub sources: HashMap<Id, i64>,
    /// Of the question.
    pub vector: Arc<Vec<f32>>,
    pub space: EmbeddingSpace,
}

impl Nearest {
    /// The texts of these types: facts by their own vectors, and sources and passages that words have found by the best of the
    /// source's facts.
    pub fn scores(&self, ranked: &Ranked, types: &[SearchType]) -> Vec<(Id, f64)> {
        let mut of_source: HashMap<i64, f64> = HashMap::new();
        let mut scores: Vec<(Id, f64)> = Vec::new();
        for (no, cosine) in &self.facts {
            let id = (SearchType::Facts, *no);
            if let Some(source) = self.sources.get(&id) {
                let most = of_source.entry(*source).or_insert(*cosine);
                *most = most.max(*cosine);
            }
            if types.contains(&SearchType::Facts) {
                scores.push((id, *cosine));
            }
        }
        if types.contains(&SearchType::Sources) {
            scores.extend(of_source.iter().map(|(source, cosine)| ((SearchType::Sources, *source), *cosine)));
        }
        let passages = ranked.sources.iter().filter(|((kind, _), _)| *kind == SearchType::Passages);
        scores.extend(passages.filter_map(|(id, source)| Some((*id, *of_source.get(source)?))));
        scores.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        scores
    }
}

impl App {
    /// The facts that are nearest to a question; why there are none, where there are none.
    pub(super) async fn nearest(
        &self,
        scope: &RepoAccess,
        text: &str,
        limit: usize,
        narrow: Option<&Narrow>,
    ) -> Result<Nearest, &'static str> {
        let vectors = self.vectors().ok_or("no_vectors")?;
        if text.trim().is_empty() {
            return Err("no_words");
        }
        let (space, vector) = self.question_vector(scope, text).await?;
        let breaker =
            self.questions().stores.get_with(scope.database().to_owned(), || Arc::new(Breaker::default()));
        if !breaker.lets_through(Instant::now()) {
            return Err("vectors_away");
        }
        let (tenant, place) = (Tenant::new(scope.repository(), scope.database()), vectors.space(&space));
        let least = self.config().search.hybrid.min_score;
        #[expect(clippy::cast_possible_truncation, reason = "cosines have no more digits than that")]
        let least = if least > 0.0 { least as f32 } else { -1.0 };
        let fetched = self.config().search.hybrid.over_fetch_multiplier;
        let fetched =
            fetched.saturating_mul(u32::try_from(limit).unwrap_or(u32::MAX)).clamp(NEAREST, 2 * NEAREST);
        let queries = [vector.to_vec()];
        let few = match narrow.filter(|narrow| narrow.facts.len() <= FEW) {
            Some(narrow) => Some(self.ids_of(scope, narrow).await.map_err(away)?),
            None => None,
        };
        let asked = async {
            let Some(ids) = &few else {
                let near = vectors.store().nearest(&tenant, &place, &queries, fetched, least).await?;
                return Ok(near.into_iter().flatten().collect());
            };
            let points = vectors.store().find(&tenant, &place, ids).await?;
            Ok::<_, okt_model::Error>(compared(&points, &vector, least))
        };
        let near: Vec<Near> = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(near)) => near,
            failed => {
                breaker.failed(Instant::now());
                if let Ok(Err(error)) = failed {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "the store of vectors did not answer a question");
                }
                return Err("vectors_away");
            }
        };
        breaker.succeeded();
        let ids: Vec<Uuid> = near.iter().map(|near| near.id).collect();
        // What the store says is looked up here, so nothing is shown that is not this repository's.
        let numbers = self.numbers_of(scope, &ids).await.map_err(away)?;
        let (mut facts, mut sources) = (Vec::new(), HashMap::new());
        for near in near {
            let Some((no, source)) = numbers.get(&near.id) else { continue };
            facts.push((*no, f64::from(near.cosine)));
            sources.insert((SearchType::Facts, *no), *source);
            sources.insert((SearchType::Sources, *source), *source);
        }
        Ok(Nearest { facts, sources, vector, space })
    }

    /// The ids of the few facts that are asked for.
    async fn ids_of(&self, scope: &RepoAccess, narrow: &Narrow) -> okt_model::Result<Vec<Uuid>> {
        let facts: Vec<i64> = narrow.facts.iter().copied().collect();
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let ids = search_hits::identify_facts(&mut tx, scope.repository(), &facts).await?;
        tx.commit().await?;
        Ok(ids.into_keys().collect())
    }

    /// The numbers of facts and of their first sources, by their ids.
    async fn numbers_of(
        &self,
        scope: &RepoAccess,
        ids: &[Uuid],
    ) -> okt_model::Result<HashMap<Uuid, (i64, i64)>> {
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let numbers = search_hits::number_facts(&mut tx, scope.repository(), ids).await?;
        tx.commit().await?;
        Ok(numbers)
    }

    /// A question as a vector, by the model that the facts were embedded by. Asked once for a text.
    async fn question_vector(
        &self,
        scope: &RepoAccess,
        text: &str,
    ) -> Result<(EmbeddingSpace, Arc<Vec<f32>>), &'static str> {
        let ai = self.ai();
        let away = |error: okt_model::Error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "a question could not be embedded");
            "vectors_away"
        };
        let space = ai.current_space(SpaceKind::Facts).await.map_err(away)?.ok_or("no_vectors")?;
        // By repository: whether somebody else has asked the same is nobody's business.
        let key = (scope.repository(), space.no, text.to_owned());
        if let Some(vector) = self.questions().known.get(&key) {
            return Ok((space, vector));
        }
        let billing = Billing {
            repository: scope.repository(),
            database: scope.database().to_owned(),
            subject: None,
            job: None,
        };
        let budget = SubjectBudget::unlimited();
        let embedder = Embedder::new(ai, billing, budget, Operation::QuestionEmbedding, &space)
            .map_err(away)?
            .within(PATIENCE);
        let breaker = &self.questions().model;
        if !breaker.lets_through(Instant::now()) {
            return Err("vectors_away");
        }
        match tokio::time::timeout(PATIENCE, embedder.embed(vec![text.to_owned()])).await {
            Ok(Ok(Embedded::Embedded(mut vectors, _))) => {
                breaker.succeeded();
                let vector = Arc::new(vectors.pop().ok_or("vectors_away")?);
                self.questions().known.insert(key, Arc::clone(&vector));
                Ok((space, vector))
            }
            Ok(
                Ok(Embedded::OverMaxCost | Embedded::OverBudget(_))
                | Err(Unanswered::Wait { budget: Some(_), .. }),
            ) => Err("budget"),
            failed => {
                // What a model says of one text, or asks one repository to wait for, tells nothing of other questions.
                if matches!(failed, Err(_) | Ok(Err(Unanswered::Retryable(_)))) {
                    breaker.failed(Instant::now());
                }
                if let Ok(Err(error)) = failed {
                    tracing::warn!(?error, "a question could not be embedded");
                }
                Err("vectors_away")
            }
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it takes the place of an error")]
fn away(error: okt_model::Error) -> &'static str {
    tracing::warn!(
        error = &error as &dyn std::error::Error,
        "what vectors have found could not be looked up"
    );
    "vectors_away"
}

/// Points by how near they are to a question, the nearest first.
fn compared(points: &[Point], question: &[f32], least: f32) -> Vec<Near> {
    #[expect(clippy::cast_possible_truncation, reason = "cosines have no more digits than that")]
    let near =
        points.iter().map(|point| Near { id: point.id, cosine: cosine(&point.vector, question) as f32 });
    let mut near: Vec<Near> = near.filter(|near| near.cosine >= least).collect();
    near.sort_by(|one, other| other.cosine.total_cmp(&one.cosine).then(one.id.cmp(&other.id)));
    near
}
