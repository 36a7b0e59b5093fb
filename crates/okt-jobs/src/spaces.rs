//! Which vectors are searched, and how others take their place without a moment in which nothing is found.
//!
//! The configuration says which model is wanted; what was made by which model is written down beside it. While the two differ,
//! the old vectors are searched, until `okt reembed` has made the new ones.

use std::time::Duration;

use okt_model::{
    DeduplicateFacts, EmbeddingSpace, Error, JobId, Repository, RepositoryId, Result, SpaceState,
};
use okt_queue::JobError;
use okt_store::outbox::{self, When};
use okt_store::{Databases, embedding_spaces, fact_merges, fact_vectors, repositories};
use okt_vectors::Tenant;

use crate::Tools;
use crate::cleanup_facts::{Reconciled, reconcile};
use crate::embed_facts::fill;
use crate::embedding::Embedder;

/// Whoever has just asked which vectors are searched may be searching still.
const SEARCHERS: Duration = Duration::from_secs(10);
const PAGE: i64 = 500;

/// Sees at the start that there is a place for vectors, and that what is there was made by a model that can be asked.
pub async fn start(databases: &Databases, tools: &Tools) -> Result<()> {
    let Some(vectors) = tools.vectors() else { return Ok(()) };
    let wanted = &tools.config().providers.embedding;
    let recreate = tools.config().providers.vector_store.allow_recreate;
    let mut space = match current(databases).await? {
        Some(space) => space,
        None => first(databases, tools).await?,
    };
    if !is_wanted(tools, &space) {
        if recreate {
            let old = vectors.space(&space);
            let new = filling(databases, tools).await?;
            switch(databases, &new).await?;
            space = new;
            vectors.store().drop_space(&old).await?;
        } else if tools.model(&space.model).is_ok() {
            tracing::warn!(
                model = space.model,
                "facts are searched by the vectors of another model than providers.embedding.model; \
                 run `okt reembed` to change over"
            );
        } else {
            return Err(Error::Operator(format!(
                "the vectors of this installation were made by {:?} ({} numbers each), which can't be asked any more, and \
                 providers.embedding names {:?} ({}); put the old model back into providers.ai.models and run \
                 `okt reembed`, or set providers.vector_store.allow_recreate = true to begin anew",
                space.model, space.dimensions, wanted.model, wanted.dimensions,
            )));
        }
    }
    match vectors.store().prepare(&vectors.space(&space), recreate).await {
        // Everything else works without it, and the jobs that need it wait for it.
        Err(error) if error.retryable() => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the vector store does not answer; facts get their vectors when it does");
            Ok(())
        }
        prepared => prepared,
    }
}

/// What one repository came to.
pub struct Checked {
    pub repository: Repository,
    pub found: Reconciled,
}

/// Compares facts and vectors of all repositories, and with `mend` makes them fit; tells of each.
pub async fn doctor(
    databases: &Databases,
    tools: &Tools,
    mend: bool,
    mut tell: impl FnMut(&Checked),
) -> Result<(), JobError> {
    let vectors = tools.vectors().ok_or(OFF)?;
    vectors.store().ping().await?;
    let space = current(databases).await?.ok_or(NOT_YET)?;
    if mend {
        vectors.store().prepare(&vectors.space(&space), false).await?;
    }
    let mut before = None;
    while let Some(repository) = next(databases, &mut before).await? {
        let found = reconcile(databases, &repository.database, repository.id, vectors, &space, mend).await?;
        if mend {
            fill_all(databases, tools, &repository, &space).await?;
            compare(databases, &repository).await?;
            let tenant = Tenant::new(repository.id, &repository.database);
            vectors.store().index(&tenant, &vectors.space(&space)).await?;
        }
        tell(&Checked { repository, found });
    }
    Ok(())
}

/// Makes the vectors of the model that is wanted, searches those, and drops the old ones; tells of each repository how many were
/// made. Can be cut off and run again. `false` when there is nothing to change.
pub async fn reembed(
    databases: &Databases,
    tools: &Tools,
    mut tell: impl FnMut(&Repository, u64),
) -> Result<bool, JobError> {
    let vectors = tools.vectors().ok_or(OFF)?;
    if current(databases).await?.is_some_and(|space| is_wanted(tools, &space)) {
        return Ok(false);
    }
    let new = filling(databases, tools).await?;
    vectors.store().prepare(&vectors.space(&new), false).await?;
    let mut before = None;
    while let Some(repository) = next(databases, &mut before).await? {
        let made = fill_all(databases, tools, &repository, &new).await?;
        let tenant = Tenant::new(repository.id, &repository.database);
        vectors.store().index(&tenant, &vectors.space(&new)).await?;
        tell(&repository, made);
    }
    switch(databases, &new).await?;
    tokio::time::sleep(SEARCHERS).await;
    // What came in while the others were made.
    let mut before = None;
    while let Some(repository) = next(databases, &mut before).await? {
        let made = fill_all(databases, tools, &repository, &new).await?;
        if made > 0 {
            tell(&repository, made);
        }
    }
    drop_retired(databases, tools).await?;
    Ok(true)
}

const OFF: Error =
    Error::NotConfigured("there are no vectors: providers.embedding.model is empty, or no store is there");
const NOT_YET: Error =
    Error::NotConfigured("there are no vectors yet: `okt serve` was never started with them");

/// The vectors that are searched.
pub(crate) async fn current(databases: &Databases) -> Result<Option<EmbeddingSpace>> {
    let mut conn = databases.acquire_system().await?;
    let space = embedding_spaces::find_current(&mut conn).await?;
    conn.done();
    Ok(space)
}

/// Whether they are those of the model that the configuration names.
fn is_wanted(tools: &Tools, space: &EmbeddingSpace) -> bool {
    let wanted = &tools.config().providers.embedding;
    space.model == wanted.model && space.dimensions == wanted.dimensions
}

/// Where nothing was ever searched; of several processes that start together one makes it.
async fn first(databases: &Databases, tools: &Tools) -> Result<EmbeddingSpace> {
    let wanted = &tools.config().providers.embedding;
    let mut conn = databases.acquire_system().await?;
    embedding_spaces::insert(&mut conn, &wanted.model, wanted.dimensions, SpaceState::Current).await?;
    conn.done();
    current(databases).await?.ok_or_else(|| Error::internal("the vectors are gone again"))
}

/// Searches these from now on.
async fn switch(databases: &Databases, space: &EmbeddingSpace) -> Result<()> {
    let mut tx = databases.begin_system().await?;
    embedding_spaces::make_current(&mut tx, space.no).await?;
    tx.commit().await
}

/// The place that is being filled, for the model that is wanted; what was begun for another one is given up.
async fn filling(databases: &Databases, tools: &Tools) -> Result<EmbeddingSpace> {
    let wanted = &tools.config().providers.embedding;
    for _ in 0..3 {
        let mut conn = databases.acquire_system().await?;
        embedding_spaces::insert(&mut conn, &wanted.model, wanted.dimensions, SpaceState::Filling).await?;
        let spaces = embedding_spaces::list(&mut conn).await?;
        conn.done();
        let Some(space) = spaces.into_iter().find(|space| space.state == SpaceState::Filling) else {
            continue;
        };
        if is_wanted(tools, &space) {
            return Ok(space);
        }
        remove(databases, tools, &space).await?;
    }
    Err(Error::Overloaded("somebody else is changing which vectors are searched; try again"))
}

async fn drop_retired(databases: &Databases, tools: &Tools) -> Result<()> {
    let mut conn = databases.acquire_system().await?;
    let spaces = embedding_spaces::list(&mut conn).await?;
    conn.done();
    for space in spaces.iter().filter(|space| space.state == SpaceState::Retired) {
        remove(databases, tools, space).await?;
    }
    Ok(())
}

async fn remove(databases: &Databases, tools: &Tools, space: &EmbeddingSpace) -> Result<()> {
    if let Some(vectors) = tools.vectors() {
        vectors.store().drop_space(&vectors.space(space)).await?;
    }
    let mut conn = databases.acquire_system().await?;
    embedding_spaces::delete(&mut conn, space.no).await?;
    conn.done();
    Ok(())
}

/// Asks for facts to be compared that nobody came for.
async fn compare(databases: &Databases, repository: &Repository) -> Result<()> {
    let mut tx = databases.begin(&repository.database, repository.id).await?;
    if !fact_merges::list_new(&mut tx, repository.id, None, 0, 1).await?.is_empty() {
        let payload = DeduplicateFacts { source: None };
        outbox::push(&mut tx, repository.id, JobId::mint(), &payload, When::default()).await?;
    }
    tx.commit().await
}

/// One repository after the other.
async fn next(databases: &Databases, before: &mut Option<RepositoryId>) -> Result<Option<Repository>> {
    let mut conn = databases.acquire_system().await?;
    let found = repositories::list(&mut conn, *before, 1).await?.into_iter().next();
    conn.done();
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
    let embedder = Embedder::new(tools, databases, (*id, database), None, JobId::mint(), space)?;
    let batch = usize::try_from(tools.config().providers.ai.embed_batch_size.max(1)).unwrap_or(1);
    let (mut after, mut made) = (0, 0);
    loop {
        let mut tx = databases.begin_to_read(database, *id).await?;
        let facts = fact_vectors::list_missing(&mut tx, *id, None, space.no, after, PAGE).await?;
        tx.commit().await?;
        let Some(last) = facts.last() else { return Ok(made) };
        after = last.no;
        for facts in facts.chunks(batch) {
            fill(&embedder, vectors, space, facts).await?;
            let numbers: Vec<i64> = facts.iter().map(|fact| fact.no).collect();
            let mut tx = databases.begin(database, *id).await?;
            made += fact_vectors::mark(&mut tx, *id, &numbers, Some(space.no)).await?;
            tx.commit().await?;
        }
    }
}
