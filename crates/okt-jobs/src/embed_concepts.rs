//! Gives concepts their vectors. Reads the concepts that the facts of a source speak of, those that were changed, or all of
//! the repository, and leaves each with the vector of its description: names, context, and a few facts.
//!
//! A vector is called by the text that it was made of. So a concept that is described otherwise by now gets another one, and a
//! run that finds it in the store does not ask for it again. Before it is asked for, it is written down whose it will be: of
//! two runs one asks, and nobody takes it for one of nobody.

use std::collections::HashSet;

use okt_ai::{BUDGET_RETRY, Billing, Embedder, SubjectBudget, waiting_for_budget};
use okt_model::{
    Cost, EmbedConcepts, EmbeddingSpace, Operation, Progress, Repository, RepositoryId, Result, Waiting,
    content_hash,
};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::concept_vectors::{self, DescribedConcept};
use okt_store::{Databases, Tx};
use okt_vectors::{Tenant, Vectors};
use uuid::Uuid;

use crate::Tools;
use crate::contribute_source;
use crate::embed_facts::{Embeddable, Embedded, Filled, current, fill, max_cost, or_wait, still};
use crate::refine_concepts;
use crate::tools::billing;

const PAGE: i64 = 500;
/// A description is not longer, in characters: what follows says little more, and models cut it off somewhere else each.
const LONGEST: usize = 1_000;

pub(crate) async fn run(payload: EmbedConcepts, ctx: JobContext, tools: Tools) -> Result<Finished, JobError> {
    let Some((space, vectors)) = current(&tools).await? else { return ctx.begin().await?.commit(None).await };
    let billing = billing(&ctx, payload.source);
    let budget = SubjectBudget::open(tools.ai(), &billing, max_cost(&ctx, payload.source).await?).await?;
    let is_for_all = payload.source.is_none() && payload.concepts.is_empty();
    let again = is_for_all || ctx.attempt() > 1;
    let maker = VectorMaker::new(&tools, &vectors, &space, (billing, budget), again)?;
    vectors.store().prepare(&maker.place, false).await.map_err(or_wait)?;
    let (mut after, mut done, mut cost) = (0, 0_u64, Cost::default());
    loop {
        let mut tx = ctx.checkpoint().await?;
        let concepts = match payload.source {
            Some(_) if after > 0 => Vec::new(),
            Some(source) => concept_vectors::list_of_source(&mut tx, ctx.repository(), source).await?,
            None if payload.concepts.is_empty() => {
                concept_vectors::list(&mut tx, ctx.repository(), after, PAGE).await?
            }
            None if after > 0 => Vec::new(),
            None => concept_vectors::list_of(&mut tx, ctx.repository(), &payload.concepts).await?,
        };
        tx.commit().await?;
        let Some(last) = concepts.last() else { break };
        after = *last;
        for some in concepts.chunks(maker.batch) {
            still(&tools, &space).await?;
            match maker.fill(ctx.databases(), some).await? {
                Filled::For(filled) => {
                    ctx.spent(filled.cost);
                    cost.usd += filled.cost.usd;
                    done += u64::try_from(filled.numbers.len()).unwrap_or(0);
                }
                Filled::OverMaxCost => break,
                Filled::OverBudget(budget) => {
                    ctx.progress(waiting_for_budget("concepts", done, budget));
                    return Err(JobError::Waits { why: Waiting::Budget, delay: BUDGET_RETRY });
                }
            }
            ctx.progress(Progress { stage: "concepts".to_owned(), done, total: None, message: None });
        }
    }
    vectors.store().index(&maker.tenant, &maker.place).await.map_err(or_wait)?;
    let mut tx = ctx.begin().await?;
    // Those that others changed are compared already.
    if payload.concepts.is_empty() {
        refine_concepts::push(&mut tx, &ctx, &tools).await?;
    }
    if let Some(source) = payload.source {
        contribute_source::push(&mut tx, &tools, source).await?;
    }
    tx.commit(Some(serde_json::json!({ "concepts": done, "model": space.model, "usd": cost.usd }))).await
}

/// Sees that all concepts of a repository have a vector in a space; returns how many got one. Over budget, the others wait for
/// the next that comes for them.
pub(crate) async fn fill_all(
    databases: &Databases,
    tools: &Tools,
    vectors: &Vectors,
    repository: &Repository,
    space: &EmbeddingSpace,
) -> Result<u64, JobError> {
    let Repository { id, database, .. } = repository;
    let billing = Billing { repository: *id, database: database.clone(), subject: None, job: None };
    let maker = VectorMaker::new(tools, vectors, space, (billing, SubjectBudget::unlimited()), true)?;
    vectors.store().prepare(&maker.place, false).await?;
    let (mut after, mut made) = (0, 0);
    loop {
        let mut tx = databases.begin_to_read(database, *id).await?;
        let concepts = concept_vectors::list(&mut tx, *id, after, PAGE).await?;
        tx.commit().await?;
        let Some(last) = concepts.last() else { break };
        after = *last;
        for some in concepts.chunks(maker.batch) {
            match maker.fill(databases, some).await? {
                Filled::For(filled) => made += u64::try_from(filled.numbers.len()).unwrap_or(0),
                Filled::OverMaxCost | Filled::OverBudget(_) => {
                    return Err(JobError::Waits { why: Waiting::Budget, delay: BUDGET_RETRY });
                }
            }
        }
    }
    vectors.store().index(&maker.tenant, &maker.place).await?;
    Ok(made)
}

/// Compares concepts and vectors of a repository, and makes them fit: removes vectors of nobody, and forgets those that are gone.
/// Returns how many concepts have lost theirs.
pub(crate) async fn reconcile(
    databases: &Databases,
    database: &str,
    repository: RepositoryId,
    vectors: &Vectors,
    space: &EmbeddingSpace,
) -> Result<u64> {
    let (tenant, place) = (Tenant::new(repository, database), vectors.concept_space(space));
    let mut after = None;
    loop {
        let ids =
            vectors.store().list(&tenant, &place, after, u32::try_from(PAGE).unwrap_or(u32::MAX)).await?;
        let Some(last) = ids.last() else { break };
        after = Some(*last);
        let mut tx = databases.begin_to_read(database, repository).await?;
        let live = concept_vectors::find(&mut tx, repository, &ids).await?;
        tx.commit().await?;
        let live: HashSet<Uuid> = live.into_iter().map(|(vector, _)| vector).collect();
        let gone: Vec<Uuid> = ids.into_iter().filter(|id| !live.contains(id)).collect();
        if !gone.is_empty() {
            vectors.store().remove(&tenant, &place, &gone).await?;
            // Those of merged concepts: should a merge be undone, they are made again.
            let mut tx = databases.begin(database, repository).await?;
            concept_vectors::unmark(&mut tx, repository, &gone).await?;
            tx.commit().await?;
        }
    }
    let (mut after, mut forgotten) = (0, 0);
    loop {
        let mut tx = databases.begin_to_read(database, repository).await?;
        let marked = concept_vectors::list_marked(&mut tx, repository, space.no, after, PAGE).await?;
        tx.commit().await?;
        let Some(last) = marked.last() else { return Ok(forgotten) };
        after = last.0;
        let ids: Vec<Uuid> = marked.iter().map(|(_, vector)| *vector).collect();
        let there: HashSet<Uuid> =
            vectors.store().existing(&tenant, &place, &ids).await?.into_iter().collect();
        let missing: Vec<Uuid> = ids.into_iter().filter(|vector| !there.contains(vector)).collect();
        if !missing.is_empty() {
            let mut tx = databases.begin(database, repository).await?;
            forgotten += concept_vectors::unmark(&mut tx, repository, &missing).await?;
            tx.commit().await?;
        }
    }
}

/// Gives concepts of one repository their vectors in one space.
struct VectorMaker<'v> {
    vectors: &'v Vectors,
    place: okt_vectors::Space,
    space: i16,
    tenant: Tenant,
    embedder: Embedder,
    batch: usize,
    /// Also what another run has begun: it may have died.
    again: bool,
}

impl<'v> VectorMaker<'v> {
    fn new(
        tools: &Tools,
        vectors: &'v Vectors,
        space: &EmbeddingSpace,
        (billing, budget): (Billing, SubjectBudget),
        again: bool,
    ) -> Result<Self> {
        let batch = usize::try_from(tools.config().providers.ai.embed_batch_size.max(1)).unwrap_or(1);
        let tenant = Tenant::new(billing.repository, &billing.database);
        let embedder = Embedder::new(tools.ai(), billing, budget, Operation::ConceptEmbedding, space)?;
        Ok(Self {
            vectors,
            place: vectors.concept_space(space),
            space: space.no,
            tenant,
            embedder,
            batch,
            again,
        })
    }

    /// Those of these that are described otherwise than when their vectors were made.
    async fn fill(&self, databases: &Databases, concepts: &[i64]) -> Result<Filled, JobError> {
        let Billing { repository, database, .. } = self.embedder.billing();
        let mut tx = databases.begin_to_read(database, *repository).await?;
        let described = concept_vectors::describe(&mut tx, *repository, concepts).await?;
        tx.commit().await?;
        let (mut due, mut old) = (Vec::new(), Vec::new());
        for concept in described {
            let text = description(&concept);
            let id = vector_id(&concept, &text);
            let is_here = concept.embedded_in.map(i16::abs) == Some(self.space);
            if concept.vector != Some(id) || !is_here {
                old.extend(concept.vector.filter(|vector| *vector != id && is_here));
                due.push(Embeddable { id, no: concept.no, text });
            }
        }
        let wanted: Vec<(i64, Uuid)> = due.iter().map(|one| (one.no, one.id)).collect();
        let mut tx = databases.begin(database, *repository).await?;
        let claimed = concept_vectors::claim(&mut tx, *repository, &wanted, self.again).await?;
        tx.commit().await?;
        due.retain(|one| claimed.contains(&one.no));
        if due.is_empty() {
            return Ok(Filled::For(Embedded::default()));
        }
        let filled = match fill(&self.embedder, self.vectors, &self.place, &due).await? {
            Filled::For(filled) => filled,
            over => return Ok(over),
        };
        let mut tx = databases.begin(database, *repository).await?;
        self.mark(&mut tx, *repository, &due, &filled).await?;
        tx.commit().await?;
        if !old.is_empty() {
            self.vectors.store().remove(&self.tenant, &self.place, &old).await.map_err(or_wait)?;
        }
        Ok(Filled::For(filled))
    }

    async fn mark(
        &self,
        tx: &mut Tx,
        repository: RepositoryId,
        due: &[Embeddable],
        filled: &Embedded,
    ) -> Result<()> {
        let of = |numbers: &[i64]| -> Vec<(i64, Uuid)> {
            due.iter().filter(|one| numbers.contains(&one.no)).map(|one| (one.no, one.id)).collect()
        };
        concept_vectors::mark(tx, repository, &of(&filled.numbers), self.space).await?;
        concept_vectors::mark(tx, repository, &of(&filled.without), -self.space).await?;
        Ok(())
    }
}

/// What a concept is told from others by.
fn description(concept: &DescribedConcept) -> String {
    let mut text = format!("{} ({})", concept.name, concept.context);
    if !concept.aliases.is_empty() {
        text = format!("{text}, also {}", concept.aliases.join(", "));
    }
    text.push('.');
    for fact in &concept.facts {
        text = format!("{text} {fact}");
    }
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}

/// What the vector of a concept is called, as the concept is described now.
pub(crate) fn vector_of(concept: &DescribedConcept) -> Uuid {
    vector_id(concept, &description(concept))
}

/// What the vector of a concept is called that is made of this text.
fn vector_id(concept: &DescribedConcept, text: &str) -> Uuid {
    let hash = content_hash(&format!("{}\n{text}", concept.id)).0;
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Uuid::from_bytes(bytes)
}
