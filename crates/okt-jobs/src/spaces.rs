//! Which vectors are searched, and how others take their place without a moment in which nothing is found.
//!
//! The configuration says which model is wanted; what was made by which model is written down beside it. While the two differ,
//! the old vectors are searched, until `okt reembed` has made the new ones.

use std::collections::BTreeSet;
use std::time::Duration;

use okt_ai::{BUDGET_RETRY, Billing, Embedder, SubjectBudget};
use okt_model::{
    DeduplicateFacts, EmbedConcepts, EmbedFacts, EmbeddingSpace, Error, JobId, Operation, Payload,
    Repository, RepositoryId, Result, SpaceKind, SpaceState, Waiting,
};
use okt_queue::{JobError, jobs};
use okt_store::outbox::{self, When};
use okt_store::{Databases, Listener, embedding_spaces, fact_merges, fact_vectors, repositories};
use okt_vectors::{Tenant, Vectors};
use tokio::sync::watch;

use crate::Tools;
use crate::cleanup_facts::{Reconciled, reconcile};
use crate::embed_concepts;
use crate::embed_facts::{Embeddable, Filled, fill};
use crate::embed_passages;
use crate::refill_vectors::RefillVectors;

/// Whoever has just asked which vectors are searched may be searching still.
const SEARCHERS: Duration = Duration::from_secs(10);
const PAGE: i64 = 500;
const KIND: SpaceKind = SpaceKind::Facts;
/// How often facts and vectors are compared before they are said not to fit: what jobs change meanwhile looks like that.
const LOOKS: u32 = 3;

/// Sees at the start that there is a place for vectors, and that what is there was made by a model that can be asked.
pub async fn start(databases: &Databases, tools: &Tools) -> Result<()> {
    let Some(vectors) = tools.vectors() else { return Ok(()) };
    let wanted = &tools.config().providers.embedding;
    let recreate = tools.config().providers.vector_store.allow_recreate;
    // Whoever makes vectors again waits until nobody deletes any, and finds what they made.
    let alone = if recreate { Some(take_vectors(databases).await?) } else { None };
    let mut space = match tools.ai().current_space(KIND).await? {
        Some(space) => space,
        None => first(databases, tools).await?,
    };
    if !is_wanted(tools, &space) {
        if recreate {
            let old = space;
            let new = filling(databases, tools).await?;
            refill(databases).await?;
            switch(databases, &new).await?;
            space = new;
            match drop_space(vectors, &old).await {
                // Nobody searches them any more, so they are no reason not to start.
                Err(error) if error.retryable() => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        model = old.model,
                        "failed to delete the vectors of the previous model from a database that does not answer"
                    );
                }
                dropped => dropped?,
            }
        } else if tools.ai().model(&space.model).is_ok() {
            tracing::warn!(
                model = space.model,
                "searching the vectors of another model than providers.embedding.model, or with another passage_prefix; \
                 run `okt reembed` to switch"
            );
        } else {
            return Err(Error::Operator(format!(
                "the vectors of this installation were made by {:?} ({} dimensions), which is not configured any more, and \
                 providers.embedding names {:?} ({}); put the old model back into providers.ai.models and run \
                 `okt reembed`, or set providers.vector_store.allow_recreate = true to re-embed everything",
                space.model, space.dimensions, wanted.model, wanted.dimensions,
            )));
        }
    }
    let place = vectors.space(&space);
    let mut prepared = vectors.store().prepare(&place, false).await;
    if recreate && matches!(prepared, Err(Error::Operator(_))) {
        refill(databases).await?;
        for place in vectors.spaces(&space) {
            prepared = vectors.store().prepare(&place, true).await;
            if prepared.is_err() {
                break;
            }
        }
    }
    drop(alone);
    match prepared {
        // Everything else works without it, and the jobs that need it wait for it.
        Err(error) if error.retryable() => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the vector store does not answer; embedding waits until it does");
            Ok(())
        }
        prepared => prepared.map(drop),
    }
}

async fn take_vectors(databases: &Databases) -> Result<Listener> {
    loop {
        if let Some(alone) = databases.take_vectors().await? {
            return Ok(alone);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Asks for the vectors of all facts, before any are deleted.
async fn refill(databases: &Databases) -> Result<()> {
    tracing::warn!(
        "deleting all vectors; the facts of all repositories will be embedded, and paid for, again"
    );
    Ok(jobs::push(databases, &RefillVectors::default(), Duration::ZERO).await?)
}

pub(crate) async fn push<P: Payload>(
    databases: &Databases,
    repository: &Repository,
    payload: &P,
) -> Result<()> {
    let mut tx = databases.begin(&repository.database, repository.id).await?;
    outbox::push(&mut tx, repository.id, JobId::mint(), payload, When::default()).await?;
    Ok(tx.commit().await?)
}

/// As [`start`], for every database that is opened later.
pub async fn follow(mut opened_late: watch::Receiver<usize>, databases: Databases, tools: Tools) {
    while opened_late.changed().await.is_ok() {
        if let Err(error) = start(&databases, &tools).await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(
                error,
                "failed to prepare vector storage in a database that became available after the start"
            );
        }
    }
}

/// What one repository came to.
pub struct Checked {
    pub repository: Repository,
    pub found: Reconciled,
}

/// Repositories that were passed over: their database does not answer, or they are being moved.
#[derive(Debug, Default)]
pub(crate) struct PassedOver {
    repositories: Vec<Repository>,
    /// Those that do not answer are asked once.
    databases: BTreeSet<String>,
}

impl PassedOver {
    /// What came of a repository; `None` where it is passed over. Any other error ends it all.
    pub(crate) async fn or<T>(
        &mut self,
        databases: &Databases,
        repository: &Repository,
        work: impl Future<Output = Result<T, JobError>>,
    ) -> Result<Option<T>, JobError> {
        if !self.databases.contains(&repository.database) {
            match work.await {
                Err(JobError::Failed(Error::Moving)) => {}
                Ok(done) => return Ok(Some(done)),
                // A model or a store that is away, or two who waited for each other, says nothing about the database.
                Err(error) => match databases.begin_to_read(&repository.database, repository.id).await {
                    Err(away) if away.retryable() => {
                        let error = &away as &dyn std::error::Error;
                        tracing::warn!(
                            database = repository.database,
                            error,
                            "skipping the repositories of a database that does not answer"
                        );
                        self.databases.insert(repository.database.clone());
                    }
                    _ => return Err(error),
                },
            }
        }
        self.repositories.push(repository.clone());
        Ok(None)
    }

    pub(crate) fn into_repositories(self) -> Vec<Repository> {
        self.repositories
    }
}

/// Compares facts and vectors of all repositories, and with `mend` makes them fit; tells of each. Returns those that could not
/// be looked at, because their database does not answer or they are being moved.
pub async fn doctor(
    databases: &Databases,
    tools: &Tools,
    mend: bool,
    mut tell: impl FnMut(&Checked),
) -> Result<Vec<Repository>, JobError> {
    let vectors = tools.vectors().ok_or(OFF)?;
    vectors.store().ping().await?;
    let space = tools.ai().current_space(KIND).await?.ok_or(NOT_YET)?;
    if mend {
        vectors.store().prepare(&vectors.space(&space), false).await?;
    }
    let (mut before, mut passed_over) = (None, PassedOver::default());
    while let Some(repository) = next(databases, &mut before).await? {
        let checked = check(databases, tools, vectors, &space, &repository, mend);
        if let Some(found) = passed_over.or(databases, &repository, checked).await? {
            tell(&Checked { repository, found });
        }
    }
    Ok(passed_over.repositories)
}

async fn check(
    databases: &Databases,
    tools: &Tools,
    vectors: &Vectors,
    space: &EmbeddingSpace,
    repository: &Repository,
    mend: bool,
) -> Result<Reconciled, JobError> {
    let Repository { id, database, .. } = repository;
    let mut found = reconcile(databases, database, *id, vectors, space, mend).await?;
    for _ in 1..LOOKS {
        if mend || found.orphaned + found.missing == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        found = reconcile(databases, database, *id, vectors, space, false).await?;
    }
    if mend {
        fill_all(databases, tools, repository, space).await?;
        compare(databases, repository).await?;
        embed_concepts::reconcile(databases, database, *id, vectors, space).await?;
        embed_concepts::fill_all(databases, tools, vectors, repository, space).await?;
        embed_passages::reconcile(databases, database, *id, vectors, space).await?;
        embed_passages::fill_all(databases, tools, vectors, repository, space).await?;
        vectors.store().index(&Tenant::new(*id, database), &vectors.space(space)).await?;
    }
    Ok(found)
}

/// What came of changing to the model that is wanted.
#[derive(Debug, Default)]
pub struct Reembedded {
    /// False when there was nothing to change.
    pub changed: bool,
    /// Repositories whose budget is spent. Their facts are found by vectors again when a job could make these.
    pub skipped: Vec<Repository>,
    /// Repositories whose database does not answer, or that are being moved; a job comes back for them.
    pub away: Vec<Repository>,
    /// Whether old vectors are left where a database does not answer.
    pub old_left: bool,
}

/// Makes the vectors of the model that is wanted, searches those, and drops the old ones; tells of each repository how many were
/// made. Can be cut off and run again. A repository that may spend no more, or does not answer, does not hold up the others.
pub async fn reembed(
    databases: &Databases,
    tools: &Tools,
    mut tell: impl FnMut(&Repository, u64),
) -> Result<Reembedded, JobError> {
    let vectors = tools.vectors().ok_or(OFF)?;
    if tools.ai().current_space(KIND).await?.is_some_and(|space| is_wanted(tools, &space)) {
        let old_left = drop_retired(databases, tools).await?;
        return Ok(Reembedded { old_left, ..Reembedded::default() });
    }
    let new = filling(databases, tools).await?;
    vectors.store().prepare(&vectors.space(&new), false).await?;
    let (mut before, mut passed_over) = (None, PassedOver::default());
    while let Some(repository) = next(databases, &mut before).await? {
        let filled = async {
            let made = fill_within_budget(databases, tools, &repository, &new).await?;
            if made.is_some() {
                let tenant = Tenant::new(repository.id, &repository.database);
                vectors.store().index(&tenant, &vectors.space(&new)).await?;
            }
            Ok(made)
        };
        if let Some(Some(made)) = passed_over.or(databases, &repository, filled).await? {
            tell(&repository, made);
        }
    }
    switch(databases, &new).await?;
    tokio::time::sleep(SEARCHERS).await;
    // What came in while the others were made, and what was passed over.
    let (mut before, mut skipped, mut passed_over) = (None, Vec::new(), PassedOver::default());
    while let Some(repository) = next(databases, &mut before).await? {
        let filled = async {
            let made = fill_within_budget(databases, tools, &repository, &new).await?;
            if made.is_none() {
                // It waits for the budget, and says so. A sweep comes for passages.
                push(databases, &repository, &EmbedFacts { source: None }).await?;
                push(databases, &repository, &EmbedConcepts::default()).await?;
            }
            Ok(made)
        };
        match passed_over.or(databases, &repository, filled).await? {
            None | Some(Some(0)) => {}
            Some(Some(made)) => tell(&repository, made),
            Some(None) => skipped.push(repository),
        }
    }
    let away = passed_over.repositories;
    if !away.is_empty() {
        let moving = away.iter().filter(|one| !passed_over.databases.contains(&one.database));
        let repositories = moving.map(|one| one.id).collect();
        let refill = RefillVectors { databases: passed_over.databases.clone(), repositories };
        jobs::push(databases, &refill, Duration::ZERO).await?;
    }
    let old_left = drop_retired(databases, tools).await?;
    Ok(Reembedded { changed: true, skipped, away, old_left })
}

/// As [`fill_all`], and for concepts and passages; `None` when the repository may spend no more.
async fn fill_within_budget(
    databases: &Databases,
    tools: &Tools,
    repository: &Repository,
    space: &EmbeddingSpace,
) -> Result<Option<u64>, JobError> {
    let vectors = tools.vectors().ok_or(OFF)?;
    let filled = async {
        let made = fill_all(databases, tools, repository, space).await?;
        embed_concepts::fill_all(databases, tools, vectors, repository, space).await?;
        embed_passages::fill_all(databases, tools, vectors, repository, space).await?;
        Ok(made)
    };
    match filled.await {
        Err(JobError::Waits { why: Waiting::Budget, .. }) => Ok(None),
        made => made.map(Some),
    }
}

const OFF: Error = Error::NotConfigured(
    "vectors are off: providers.embedding.model is empty, or no vector store is available",
);
const NOT_YET: Error =
    Error::NotConfigured("there are no vectors yet: start `okt serve` with providers.embedding.model set");

/// Whether they are those of the model that the configuration names.
fn is_wanted(tools: &Tools, space: &EmbeddingSpace) -> bool {
    (space.model.as_str(), space.dimensions, space.passage_prefix.as_str()) == wanted(tools)
}

/// The model that the configuration names, its dimensions, and what it wants before each text.
fn wanted(tools: &Tools) -> (&str, u32, &str) {
    let providers = &tools.config().providers;
    (&providers.embedding.model, providers.embedding.dimensions, providers.passage_prefix())
}

/// Where nothing was ever searched; of several processes that start together one makes it.
async fn first(databases: &Databases, tools: &Tools) -> Result<EmbeddingSpace> {
    let mut conn = databases.acquire_system().await?;
    embedding_spaces::insert(&mut conn, KIND, wanted(tools), SpaceState::Current).await?;
    drop(conn);
    tools.ai().current_space(KIND).await?.ok_or_else(|| {
        Error::internal(format!(
            "the embedding space of {:?} was removed while it was created",
            wanted(tools).0
        ))
    })
}

/// Searches these from now on.
async fn switch(databases: &Databases, space: &EmbeddingSpace) -> Result<()> {
    let mut tx = databases.begin_system().await?;
    embedding_spaces::make_current(&mut tx, space.no).await?;
    Ok(tx.commit().await?)
}

/// The place that is being filled, for the model that is wanted; what was begun for another one is given up.
async fn filling(databases: &Databases, tools: &Tools) -> Result<EmbeddingSpace> {
    for _ in 0..3 {
        let mut conn = databases.acquire_system().await?;
        embedding_spaces::insert(&mut conn, KIND, wanted(tools), SpaceState::Filling).await?;
        let spaces = embedding_spaces::list(&mut conn).await?;
        drop(conn);
        let Some(space) =
            spaces.into_iter().find(|space| (space.kind, space.state) == (KIND, SpaceState::Filling))
        else {
            continue;
        };
        if is_wanted(tools, &space) {
            return Ok(space);
        }
        remove(databases, tools, &space).await?;
    }
    Err(Error::Overloaded("another process is switching embedding spaces; try again"))
}

/// Returns whether some are left, because a database does not answer.
async fn drop_retired(databases: &Databases, tools: &Tools) -> Result<bool> {
    let mut conn = databases.acquire_system().await?;
    let spaces = embedding_spaces::list(&mut conn).await?;
    drop(conn);
    let mut left = false;
    for space in spaces.iter().filter(|space| (space.kind, space.state) == (KIND, SpaceState::Retired)) {
        match remove(databases, tools, space).await {
            Err(error) if error.retryable() => left = true,
            removed => removed?,
        }
    }
    Ok(left)
}

async fn remove(databases: &Databases, tools: &Tools, space: &EmbeddingSpace) -> Result<()> {
    if let Some(vectors) = tools.vectors() {
        drop_space(vectors, space).await?;
    }
    let mut conn = databases.acquire_system().await?;
    embedding_spaces::delete(&mut conn, space.no).await?;
    Ok(())
}

/// Drops all vectors that one model made. Where a database does not answer, those of the others go.
async fn drop_space(vectors: &Vectors, space: &EmbeddingSpace) -> Result<()> {
    let mut dropped = Ok(());
    for place in vectors.spaces(space) {
        let gone = vectors.store().drop_space(&place).await;
        dropped = dropped.and(gone);
    }
    dropped
}

/// Asks for facts to be compared that nobody came for.
async fn compare(databases: &Databases, repository: &Repository) -> Result<()> {
    let mut tx = databases.begin(&repository.database, repository.id).await?;
    if !fact_merges::list_new(&mut tx, repository.id, None, 0, 1).await?.is_empty() {
        let payload = DeduplicateFacts { source: None };
        outbox::push(&mut tx, repository.id, JobId::mint(), &payload, When::default()).await?;
    }
    Ok(tx.commit().await?)
}

/// One repository after the other.
pub(crate) async fn next(
    databases: &Databases,
    before: &mut Option<RepositoryId>,
) -> Result<Option<Repository>> {
    let mut conn = databases.acquire_system().await?;
    let found = repositories::list(&mut conn, *before, 1).await?.into_iter().next();
    *before = found.as_ref().map(|repository| repository.id);
    Ok(found)
}

/// Sees that all facts of a repository have a vector; returns how many were looked at because they had none.
async fn fill_all(
    databases: &Databases,
    tools: &Tools,
    repository: &Repository,
    space: &EmbeddingSpace,
) -> Result<u64, JobError> {
    let vectors = tools.vectors().ok_or(OFF)?;
    let Repository { id, database, .. } = repository;
    let billing = Billing { repository: *id, database: database.clone(), subject: None, job: None };
    let budget = SubjectBudget::unlimited();
    let embedder = Embedder::new(tools.ai(), billing, budget, Operation::FactEmbedding, space)?;
    let batch = usize::try_from(tools.config().providers.ai.embed_batch_size.max(1)).unwrap_or(1);
    let (mut after, mut made) = (0, 0);
    loop {
        let mut tx = databases.begin_to_read(database, *id).await?;
        let facts = fact_vectors::list_missing(&mut tx, *id, None, space.no, after, PAGE).await?;
        tx.commit().await?;
        let Some(last) = facts.last() else { return Ok(made) };
        after = last.no;
        for facts in facts.chunks(batch) {
            let things: Vec<Embeddable> = facts.iter().map(Into::into).collect();
            let filled = match fill(&embedder, vectors, &vectors.space(space), &things).await? {
                Filled::For(filled) => filled,
                Filled::OverMaxCost => continue,
                Filled::OverBudget(_) => {
                    return Err(JobError::Waits { why: Waiting::Budget, delay: BUDGET_RETRY });
                }
            };
            let mut tx = databases.begin(database, *id).await?;
            made += filled.mark(&mut tx, *id, space).await?;
            tx.commit().await?;
        }
    }
}
