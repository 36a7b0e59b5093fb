//! Facts and passages by their vectors.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::sync::Cache;
use okt_ai::{Billing, Embedder, SubjectBudget, Unanswered, Vectors as Embedded};
use okt_auth::RepoAccess;
use okt_model::{EmbeddingSpace, Operation, PASSAGES_OF_SOURCE, RepositoryId, SearchType, SpaceKind};
use okt_store::{passage_vectors, search_hits};
use okt_vectors::{Near, Point, Space, Tenant, Vectors, cosine};
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
/// Where filters leave no more facts or passages than this, all of them are compared with the question.
const FEW: usize = 1_000;
/// So many of the first passages of a source say how near it is, for a source that was reached and not found.
const FIRST: i64 = 4;

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
    /// Passages likewise, where they have vectors.
    passages: Vec<(i64, f64)>,
    /// The first source of each.
    pub sources: HashMap<Id, i64>,
    /// Of the question.
    pub vector: Arc<Vec<f32>>,
    pub space: EmbeddingSpace,
}

impl Nearest {
    /// The texts of these types: facts and passages by their own vectors, sources by the best of their facts and passages. A passage
    /// that words have found and vectors have not goes by the best of its source's facts.
    pub fn scores(&self, ranked: &Ranked, types: &[SearchType]) -> Vec<(Id, f64)> {
        let mut of_facts: HashMap<i64, f64> = HashMap::new();
        let mut scores: Vec<(Id, f64)> = Vec::new();
        for (no, cosine) in &self.facts {
            let id = (SearchType::Facts, *no);
            if let Some(source) = self.sources.get(&id) {
                improve(&mut of_facts, *source, *cosine);
            }
            if types.contains(&SearchType::Facts) {
                scores.push((id, *cosine));
            }
        }
        let own: HashMap<Id, f64> =
            self.passages.iter().map(|(no, cosine)| ((SearchType::Passages, *no), *cosine)).collect();
        if types.contains(&SearchType::Sources) {
            let mut of_source = of_facts.clone();
            for (id, cosine) in &own {
                if let Some(source) = self.sources.get(id) {
                    improve(&mut of_source, *source, *cosine);
                }
            }
            scores.extend(of_source.iter().map(|(source, cosine)| ((SearchType::Sources, *source), *cosine)));
        }
        let lexical = ranked.sources.iter().filter(|(id, _)| id.0 == SearchType::Passages);
        let lexical = lexical.filter(|(id, _)| !own.contains_key(id));
        scores.extend(lexical.filter_map(|(id, source)| Some((*id, *of_facts.get(source)?))));
        if types.contains(&SearchType::Passages) {
            scores.extend(own);
        }
        scores.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        scores
    }
}

/// Keeps the nearest of each source.
pub(super) fn improve(best: &mut HashMap<i64, f64>, source: i64, cosine: f64) {
    let most = best.entry(source).or_insert(cosine);
    *most = most.max(cosine);
}

/// What a store is asked.
struct Asked<'a> {
    vectors: &'a Vectors,
    tenant: Tenant,
    queries: [Vec<f32>; 1],
    limit: u32,
    least: f32,
}

impl Asked<'_> {
    /// The nearest of a place, or of these points there.
    async fn near(&self, place: &Space, among: Option<&[Uuid]>) -> okt_model::Result<Vec<Near>> {
        let store = self.vectors.store();
        let Some(ids) = among else {
            let near = store.nearest(&self.tenant, place, &self.queries, self.limit, self.least).await?;
            return Ok(near.into_iter().flatten().collect());
        };
        let points = store.find(&self.tenant, place, ids).await?;
        Ok(compared(&points, &self.queries[0], self.least))
    }
}

impl App {
    /// The facts and passages that are nearest to a question; why there are none, where there are none.
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
        let least = self.config().search.hybrid.min_score;
        #[expect(clippy::cast_possible_truncation, reason = "cosines have no more digits than that")]
        let least = if least > 0.0 { least as f32 } else { -1.0 };
        let fetched = self.config().search.hybrid.over_fetch_multiplier;
        let fetched =
            fetched.saturating_mul(u32::try_from(limit).unwrap_or(u32::MAX)).clamp(NEAREST, 2 * NEAREST);
        let (few_facts, few_passages) = match narrow {
            Some(narrow) => self.ids_of(scope, narrow).await.map_err(away)?,
            None => (None, None),
        };
        let asked = Asked {
            vectors,
            tenant: Tenant::new(scope.repository(), scope.database()),
            queries: [vector.to_vec()],
            limit: fetched,
            least,
        };
        let (of_facts, of_passages) = (vectors.space(&space), vectors.passage_space(&space));
        let passages = async {
            if self.config().search.passages.vectors {
                asked.near(&of_passages, few_passages.as_deref()).await
            } else {
                Ok(Vec::new())
            }
        };
        let both = async { tokio::try_join!(asked.near(&of_facts, few_facts.as_deref()), passages) };
        let (near_facts, near_passages) = match tokio::time::timeout(PATIENCE, both).await {
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
        // What the store says is looked up here, so nothing is shown that is not this repository's.
        let facts = self.facts_of(scope, &near_facts).await.map_err(away)?;
        let passages = self.passages_of(scope, &near_passages).await.map_err(away)?;
        let mut found =
            Nearest { facts: Vec::new(), passages: Vec::new(), sources: HashMap::new(), vector, space };
        for near in near_facts {
            let Some((no, source)) = facts.get(&near.id) else { continue };
            found.facts.push((*no, f64::from(near.cosine)));
            found.sources.insert((SearchType::Facts, *no), *source);
            found.sources.insert((SearchType::Sources, *source), *source);
        }
        for near in near_passages {
            let Some(no) = passages.get(&near.id) else { continue };
            found.passages.push((*no, f64::from(near.cosine)));
            found.sources.insert((SearchType::Passages, *no), no / PASSAGES_OF_SOURCE);
            found.sources.insert((SearchType::Sources, no / PASSAGES_OF_SOURCE), no / PASSAGES_OF_SOURCE);
        }
        Ok(found)
    }

    /// How near the first passages of each of these sources are to a question: the best of each. `None` where passages have no
    /// vectors, or the store does not answer.
    pub(super) async fn passage_cosines(
        &self,
        scope: &RepoAccess,
        nearest: &Nearest,
        sources: &[i64],
    ) -> okt_model::Result<Option<HashMap<i64, f64>>> {
        let is_on = self.config().search.passages.vectors;
        let Some(vectors) = self.vectors().filter(|_| is_on) else { return Ok(None) };
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let known = passage_vectors::list(&mut tx, scope.repository(), sources, FIRST, i64::MAX).await?;
        tx.commit().await?;
        let numbers: HashMap<Uuid, i64> = known.into_iter().collect();
        let ids: Vec<Uuid> = numbers.keys().copied().collect();
        let (tenant, place) =
            (Tenant::new(scope.repository(), scope.database()), vectors.passage_space(&nearest.space));
        let points = tokio::time::timeout(PATIENCE, vectors.store().find(&tenant, &place, &ids)).await;
        let Ok(Ok(points)) = points else { return Ok(None) };
        let mut best = HashMap::new();
        for point in points {
            if let Some(no) = numbers.get(&point.id) {
                improve(&mut best, no / PASSAGES_OF_SOURCE, cosine(&point.vector, &nearest.vector));
            }
        }
        Ok(Some(best))
    }

    /// The vectors of the facts and of the passages that are asked for, where these are few.
    async fn ids_of(
        &self,
        scope: &RepoAccess,
        narrow: &Narrow,
    ) -> okt_model::Result<(Option<Vec<Uuid>>, Option<Vec<Uuid>>)> {
        let (mut of_facts, mut of_passages) = (None, None);
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        if narrow.facts.len() <= FEW {
            let facts: Vec<i64> = narrow.facts.iter().copied().collect();
            let ids = search_hits::identify_facts(&mut tx, scope.repository(), &facts).await?;
            of_facts = Some(ids.into_keys().collect());
        }
        if self.config().search.passages.vectors {
            let sources: Vec<i64> = narrow.sources.iter().copied().collect();
            let limit = i64::try_from(FEW + 1).unwrap_or(i64::MAX);
            let ids = passage_vectors::list(&mut tx, scope.repository(), &sources, PASSAGES_OF_SOURCE, limit)
                .await?;
            if ids.len() <= FEW {
                of_passages = Some(ids.into_iter().map(|(id, _)| id).collect());
            }
        }
        tx.commit().await?;
        Ok((of_facts, of_passages))
    }

    /// The numbers of facts and of their first sources, by their ids.
    async fn facts_of(
        &self,
        scope: &RepoAccess,
        near: &[Near],
    ) -> okt_model::Result<HashMap<Uuid, (i64, i64)>> {
        let ids: Vec<Uuid> = near.iter().map(|near| near.id).collect();
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let numbers = search_hits::number_facts(&mut tx, scope.repository(), &ids).await?;
        tx.commit().await?;
        Ok(numbers)
    }

    /// The numbers of passages by their vectors.
    async fn passages_of(&self, scope: &RepoAccess, near: &[Near]) -> okt_model::Result<HashMap<Uuid, i64>> {
        if near.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<Uuid> = near.iter().map(|near| near.id).collect();
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let numbers = passage_vectors::find(&mut tx, scope.repository(), &ids).await?;
        tx.commit().await?;
        Ok(numbers.into_iter().collect())
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
            // The rest is for the answer: who came late would pay for a vector that nobody waits for.
            .within(PATIENCE / 2);
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
