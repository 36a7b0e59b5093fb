//! Gives the passages of a source their vectors, if `search.passages.vectors` is on: each that of its words with the title.
//!
//! As with concepts, a vector is called by the text that it was made of, and before it is asked for, it is written down whose it
//! will be. So a passage that reads otherwise by now gets another one, and one that is in the store is not paid for again.

use std::collections::HashSet;
use std::time::Duration;

use okt_ai::{BUDGET_RETRY, Billing, Embedder, SubjectBudget, waiting_for_budget};
use okt_model::{
    Cost, EmbedPassages, EmbeddingSpace, Error, Operation, Progress, Repository, RepositoryId, Result,
    SourceId, Waiting,
};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::passage_vectors::{self, PassageSource};
use okt_store::{Databases, sources};
use okt_vectors::{Tenant, Vectors};
use uuid::Uuid;

use crate::Tools;
use crate::embed_facts::{Embeddable, Embedded, Filled, current, fill, max_cost, or_wait, still};
use crate::index_source::byte_ranges;
use crate::tools::billing;

const PAGE: i64 = 500;
/// Until the facts of a source were looked for.
const FACTS_FIRST: Duration = Duration::from_secs(10);
/// No more characters of a passage are embedded: those of a very long source are longer, and models take no more than so much.
const LONGEST: usize = 2_000;

/// Whether passages are to have vectors.
pub(crate) fn is_on(tools: &Tools) -> bool {
    tools.config().search.passages.vectors && tools.vectors().is_some()
}

pub(crate) async fn run(payload: EmbedPassages, ctx: JobContext, tools: Tools) -> Result<Finished, JobError> {
    // Two for one source would pay for the same.
    ctx.one_at_a_time().await?;
    let place = if is_on(&tools) { current(&tools).await? } else { None };
    let Some((space, vectors)) = place else { return ctx.begin().await?.commit(None).await };
    let source = Some(payload.source);
    let most = max_cost(&ctx, source).await?;
    // What may be spent on a source is for its facts first. Two that pay at once would not see each other's.
    if most.is_some() && is_on_its_way(&ctx, payload.source).await? {
        return Err(JobError::Waits { why: Waiting::Dependency, delay: FACTS_FIRST });
    }
    let billing = billing(&ctx, source);
    let budget = SubjectBudget::open(tools.ai(), &billing, most).await?;
    let maker = VectorMaker::new(&tools, &vectors, &space, billing, budget)?;
    vectors.store().prepare(&maker.place, false).await.map_err(or_wait)?;
    let Some(due) = maker.due(ctx.databases(), payload.source).await? else {
        return ctx.begin().await?.commit(None).await;
    };
    let (mut done, mut cost, mut given_up) = (0, Cost::default(), None);
    for some in due.passages.chunks(maker.batch) {
        still(&tools, &space).await?;
        match maker.fill(ctx.databases(), some).await? {
            Filled::For(filled) => {
                ctx.spent(filled.cost);
                cost.usd += filled.cost.usd;
                done += count(filled.numbers.len());
            }
            Filled::OverMaxCost => {
                given_up = Some(space.no);
                break;
            }
            Filled::OverBudget(budget) => {
                ctx.progress(waiting_for_budget("passages", done, budget));
                return Err(JobError::Waits { why: Waiting::Budget, delay: BUDGET_RETRY });
            }
        }
        let total = Some(count(due.passages.len()));
        ctx.progress(Progress { stage: "passages".to_owned(), done, total, message: None });
    }
    maker.forget(&due.old).await?;
    vectors.store().index(&maker.tenant, &maker.place).await.map_err(or_wait)?;
    let mut tx = ctx.begin().await?;
    if given_up.is_some() {
        passage_vectors::note(&mut tx, ctx.repository(), due.source_no, given_up).await?;
    } else {
        passage_vectors::finish(&mut tx, ctx.repository(), due.source_no, space.no).await?;
    }
    tx.commit(Some(serde_json::json!({ "passages": done, "model": space.model, "usd": cost.usd }))).await
}

async fn is_on_its_way(ctx: &JobContext, source: SourceId) -> Result<bool, JobError> {
    let mut tx = ctx.read().await?;
    let source = sources::find(&mut tx, ctx.repository(), source).await?;
    tx.commit().await?;
    Ok(source.is_some_and(|source| source.status.is_on_its_way()))
}

/// Sees that all passages of a repository have a vector in a space, if they are to have any. Over budget, the others wait for the
/// next that comes for them.
pub(crate) async fn fill_all(
    databases: &Databases,
    tools: &Tools,
    vectors: &Vectors,
    repository: &Repository,
    space: &EmbeddingSpace,
) -> Result<(), JobError> {
    if !is_on(tools) {
        return Ok(());
    }
    let Repository { id, database, .. } = repository;
    let billing = Billing { repository: *id, database: database.clone(), subject: None, job: None };
    let maker = VectorMaker::new(tools, vectors, space, billing, SubjectBudget::unlimited())?;
    vectors.store().prepare(&maker.place, false).await?;
    let mut after = 0;
    loop {
        let mut tx = databases.begin_to_read(database, *id).await?;
        let (sources, last) = passage_vectors::list_missing(&mut tx, *id, space.no, after, PAGE).await?;
        tx.commit().await?;
        for source in sources {
            let Some(due) = maker.due(databases, source).await? else { continue };
            for some in due.passages.chunks(maker.batch) {
                if !matches!(maker.fill(databases, some).await?, Filled::For(_)) {
                    return Err(JobError::Waits { why: Waiting::Budget, delay: BUDGET_RETRY });
                }
            }
            maker.forget(&due.old).await?;
            let mut tx = databases.begin(database, *id).await?;
            passage_vectors::finish(&mut tx, *id, due.source_no, space.no).await?;
            tx.commit().await?;
        }
        let Some(last) = last else { break };
        after = last;
    }
    vectors.store().index(&maker.tenant, &maker.place).await?;
    Ok(())
}

/// Compares passages and vectors of a repository, and makes them fit: removes vectors of nobody, and, where passages are to have some,
/// forgets those that are gone. A sweep comes for passages that have lost theirs.
pub(crate) async fn reconcile(
    databases: &Databases,
    tools: &Tools,
    database: &str,
    repository: RepositoryId,
    vectors: &Vectors,
    space: &EmbeddingSpace,
) -> Result<()> {
    let (tenant, place) = (Tenant::new(repository, database), vectors.passage_space(space));
    let mut after = None;
    loop {
        let ids =
            vectors.store().list(&tenant, &place, after, u32::try_from(PAGE).unwrap_or(u32::MAX)).await?;
        let Some(last) = ids.last() else { break };
        after = Some(*last);
        let mut tx = databases.begin_to_read(database, repository).await?;
        let live = passage_vectors::find(&mut tx, repository, &ids).await?;
        tx.commit().await?;
        let live: HashSet<Uuid> = live.into_iter().map(|(vector, _)| vector).collect();
        let gone: Vec<Uuid> = ids.into_iter().filter(|id| !live.contains(id)).collect();
        if !gone.is_empty() {
            vectors.store().remove(&tenant, &place, &gone).await?;
        }
    }
    let mut after = 0;
    while is_on(tools) {
        let mut tx = databases.begin_to_read(database, repository).await?;
        let (ids, next) = passage_vectors::list_marked(&mut tx, repository, space.no, after, PAGE).await?;
        tx.commit().await?;
        let Some(next) = next else { break };
        after = next;
        let there: HashSet<Uuid> =
            vectors.store().existing(&tenant, &place, &ids).await?.into_iter().collect();
        let missing: Vec<Uuid> = ids.into_iter().filter(|vector| !there.contains(vector)).collect();
        if !missing.is_empty() {
            let mut tx = databases.begin(database, repository).await?;
            passage_vectors::unmark(&mut tx, repository, &missing).await?;
            tx.commit().await?;
        }
    }
    Ok(())
}

/// What is to be done for a source.
struct Due {
    source_no: i64,
    passages: Vec<Embeddable>,
    /// Vectors of what passages were before.
    old: Vec<Uuid>,
}

/// Gives passages of one repository their vectors in one space.
struct VectorMaker<'v> {
    vectors: &'v Vectors,
    place: okt_vectors::Space,
    space: i16,
    tenant: Tenant,
    embedder: Embedder,
    batch: usize,
}

impl<'v> VectorMaker<'v> {
    fn new(
        tools: &Tools,
        vectors: &'v Vectors,
        space: &EmbeddingSpace,
        billing: Billing,
        budget: SubjectBudget,
    ) -> Result<Self> {
        let batch = usize::try_from(tools.config().providers.ai.embed_batch_size.max(1)).unwrap_or(1);
        let tenant = Tenant::new(billing.repository, &billing.database);
        let embedder = Embedder::new(tools.ai(), billing, budget, Operation::PassageEmbedding, space)?;
        Ok(Self { vectors, place: vectors.passage_space(space), space: space.no, tenant, embedder, batch })
    }

    /// The passages of a source that read otherwise than when their vectors were made. `None` if it is gone, or is read anew first,
    /// after which somebody asks again.
    async fn due(&self, databases: &Databases, source: SourceId) -> Result<Option<Due>> {
        let Billing { repository, database, .. } = self.embedder.billing();
        let mut tx = databases.begin_to_read(database, *repository).await?;
        let source = passage_vectors::read_source(&mut tx, *repository, source).await?;
        tx.commit().await?;
        let Some(source) = source else { return Ok(None) };
        let mut due = Due { source_no: source.no, passages: Vec::new(), old: Vec::new() };
        // A text may be long, and other jobs share this thread.
        let cut = tokio::task::spawn_blocking(move || {
            let texts: Vec<String> = texts(&source).collect();
            (source, texts)
        });
        let (source, texts) = cut.await.map_err(Error::internal)?;
        for (passage, text) in source.passages.iter().zip(texts) {
            let id = passage_vectors::vector_id(*repository, passage.no, &text);
            let is_here = passage.embedded_in.map(i16::abs) == Some(self.space);
            if passage.vector != Some(id) || !is_here {
                due.old.extend(passage.vector.filter(|vector| *vector != id));
                due.passages.push(Embeddable { id, no: passage.no, text });
            }
        }
        Ok(Some(due))
    }

    async fn fill(&self, databases: &Databases, passages: &[Embeddable]) -> Result<Filled, JobError> {
        let Billing { repository, database, .. } = self.embedder.billing();
        let ids: Vec<Uuid> = passages.iter().map(|passage| passage.id).collect();
        let mut tx = databases.begin(database, *repository).await?;
        let claimed = passage_vectors::claim(&mut tx, *repository, &ids).await?;
        tx.commit().await?;
        let passages: Vec<Embeddable> =
            passages.iter().filter(|passage| claimed.contains(&passage.id)).cloned().collect();
        if passages.is_empty() {
            return Ok(Filled::For(Embedded::default()));
        }
        let filled = match fill(&self.embedder, self.vectors, &self.place, &passages).await? {
            Filled::For(filled) => filled,
            over => return Ok(over),
        };
        let of = |numbers: &[i64]| -> Vec<Uuid> {
            passages.iter().filter(|one| numbers.contains(&one.no)).map(|one| one.id).collect()
        };
        let mut tx = databases.begin(database, *repository).await?;
        passage_vectors::mark(&mut tx, *repository, &of(&filled.numbers), self.space).await?;
        passage_vectors::mark(&mut tx, *repository, &of(&filled.without), -self.space).await?;
        tx.commit().await?;
        Ok(Filled::For(filled))
    }

    async fn forget(&self, old: &[Uuid]) -> Result<(), JobError> {
        if old.is_empty() {
            return Ok(());
        }
        self.vectors.store().remove(&self.tenant, &self.place, old).await.map_err(or_wait)
    }
}

/// What is embedded of each passage of a source.
fn texts(source: &PassageSource) -> impl Iterator<Item = String> {
    let bytes = byte_ranges(&source.text, &source.sentences);
    let byte = move |sentence: i32| usize::try_from(sentence).ok().and_then(|at| bytes.get(at).cloned());
    source.passages.iter().map(move |passage| {
        let (first, last) = passage.sentences;
        let range = byte(first).zip(byte(last)).map(|(first, last)| first.start..last.end);
        let text = range.and_then(|range| source.text.get(range)).unwrap_or_default();
        let text = match source.title.as_deref().map(str::trim) {
            Some(title) if !title.is_empty() => format!("{title}. {text}"),
            _ => text.to_owned(),
        };
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => text[..end].to_owned(),
            None => text,
        }
    })
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use okt_store::passage_vectors::Passage;

    use super::*;

    #[test]
    fn a_passage_is_embedded_with_the_title_of_its_source_and_not_without_end() {
        let passage = |sentences| Passage { no: 0, sentences, vector: None, embedded_in: None };
        let text = format!("Öl ist alt. Es brennt. {}", "ö".repeat(3_000));
        let mut source = PassageSource {
            no: 1,
            title: Some("Erdöl ".to_owned()),
            text,
            sentences: vec![(0, 11), (12, 22), (23, 3_023)],
            passages: vec![passage((0, 1)), passage((2, 2)), passage((2, 9))],
        };
        let all: Vec<String> = texts(&source).collect();
        assert_eq!(all[0], "Erdöl. Öl ist alt. Es brennt.");
        assert_eq!(all[1].chars().count(), LONGEST);
        assert_eq!(all[2], "Erdöl. ", "there is no such sentence");
        source.title = None;
        assert_eq!(texts(&source).next().unwrap(), "Öl ist alt. Es brennt.");
    }
}
