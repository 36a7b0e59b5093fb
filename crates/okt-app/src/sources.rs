//! Sources: adding, seeing, bringing on and removing them.

use std::collections::HashSet;

use okt_auth::permissions::{SourceDelete, SourceRead, SourceUpdate, SourceWrite};
use okt_auth::{RepoAccess, RepoScope};
use okt_model::{
    Blob, CleanupFacts, Error, ImageId, InvestigationId, JobId, Locator, Money, ResourceType, Result,
    RetrieveSource, Source, SourceDecomposition, SourceFile, SourceFilter, SourceId, SourceImage,
    SourceStatus, UnitKind, checked_name, upload_url,
};
use okt_queue::jobs::{self, TenantFilter};
use okt_store::blobs::{Incoming, Reading};
use okt_store::outbox::{self, When};
use okt_store::sources::{self, NewSource};
use okt_store::{Tx, counters, facts, investigations, source_images, source_marks, source_texts, user_usage};

use crate::investigations::{link, unknown};
use crate::{App, Origin};

const TITLE_LIMIT: usize = 1_000;
pub(crate) const COUNTER: &str = "sources";
/// Sources without a text, of each status, whose titles and addresses are looked at.
const LOOKED_AT: i64 = 10_000;
/// Until vectors of facts that are gone are swept up.
const VECTORS_LEFT_MS: i64 = 10 * 60 * 1_000;

/// What somebody wants to add.
#[derive(Clone, Debug)]
pub struct SourceRequest {
    pub locator: Locator,
    pub max_cost_usd: Option<f64>,
    /// The investigation that it is for.
    pub investigation: Option<InvestigationId>,
}

/// A source that was added, or was there already.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    pub source: SourceId,
    pub job: JobId,
    /// `None` for what somebody brought along themselves.
    pub resource_type: Option<ResourceType>,
    pub existing: bool,
    /// Whether the investigation that was named, if any, did not have it before.
    pub linked: bool,
}

/// A file that somebody brought along, once it is here.
pub struct Upload {
    pub source: SourceId,
    pub blob: Blob,
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    pub title: Option<String>,
    pub max_cost_usd: Option<f64>,
    /// The investigation that it is for.
    pub investigation: Option<InvestigationId>,
}

/// What goes with a source.
#[derive(Clone, Copy, Debug)]
pub struct SourceContents {
    pub facts: i64,
    pub images: usize,
    pub bytes: u64,
}

impl App {
    /// Adds a source by its address or DOI, and asks for it to be fetched.
    pub async fn add_source(
        &self,
        scope: &RepoScope<SourceWrite>,
        request: &SourceRequest,
    ) -> Result<Accepted> {
        let max_cost_usd = checked_cost(request.max_cost_usd)?;
        let locator = &request.locator;
        let new = NewSource {
            locator: Some(locator.normalized.clone()),
            doi: locator.doi.clone(),
            max_cost_usd,
            ..NewSource::new(SourceId::mint(), JobId::mint(), locator.url.clone())
        };
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        known(&mut tx, scope, request.investigation).await?;
        let (source, job, existing) = accept(&mut tx, scope, &new, self.most_sources()).await?;
        let linked = link(&mut tx, scope, request.investigation, source).await?;
        tx.commit().await?;
        Ok(Accepted { source, job, resource_type: Some(locator.resource_type), existing, linked })
    }

    /// Begins to take a file. Once it is here, [`Self::add_upload`] makes it a source.
    pub fn begin_upload(&self, scope: &RepoScope<SourceWrite>) -> (SourceId, Incoming) {
        let source = SourceId::mint();
        (source, self.blobs().begin(scope.repository(), source))
    }

    /// Makes a source of a file that is here, unless its like was brought along before.
    pub async fn add_upload(&self, scope: &RepoScope<SourceWrite>, upload: Upload) -> Result<Accepted> {
        let id = upload.source;
        if let Err(error) = self.count_upload(scope, &upload).await {
            self.give_up_upload(scope, id).await;
            return Err(error);
        }
        let (tx, accepted) = match self.insert_upload(scope, upload).await {
            Ok(inserted) => inserted,
            Err(error) => {
                self.forget_upload(scope, id).await;
                return Err(error);
            }
        };
        // When this fails nobody knows whether the row is there: the file stays, for it or for the sweep.
        tx.commit().await?;
        if accepted.existing {
            self.forget_upload(scope, id).await;
        }
        Ok(accepted)
    }

    /// Leaves nothing behind of a file that does not become a source.
    pub async fn give_up_upload(&self, scope: &RepoScope<SourceWrite>, source: SourceId) {
        // What can't be removed now is found by the sweep.
        drop(self.blobs().remove_source(scope.repository(), source).await);
    }

    /// The bytes count for whoever brings them, from before they are a source until after they were one. Of two who would pass
    /// the limit together, one waits for the other and is refused.
    async fn count_upload(&self, scope: &RepoAccess, upload: &Upload) -> Result<()> {
        if upload.investigation.is_some() {
            let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
            known(&mut tx, scope, upload.investigation).await?;
            tx.commit().await?;
        }
        let (user, size) = (scope.caller().user(), upload.blob.size);
        let mut tx = self.databases().begin_system().await?;
        let before = user_usage::lock(&mut tx, user).await?.bytes;
        let limit = self.config().limits.bytes_per_user;
        Error::check_quota(("you have uploaded", "bytes"), (before, size), ("limits.bytes_per_user", limit))?;
        user_usage::insert_upload(&mut tx, scope.repository(), upload.source, user, size).await?;
        Ok(tx.commit().await?)
    }

    /// Gives back what an upload took, then removes its files. Where the first fails the files stay: by them the sweep finds
    /// what else is left.
    async fn forget_upload(&self, scope: &RepoAccess, source: SourceId) {
        let forgotten = async {
            let mut conn = self.databases().acquire_system().await?;
            user_usage::delete_uploads(&mut conn, scope.repository(), &[source]).await?;
            drop(conn);
            self.blobs().remove_source(scope.repository(), source).await
        };
        if let Err(error) = forgotten.await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(source.id = %source, error, "failed to delete the files of a deleted source; cleanup_files will");
        }
    }

    fn most_sources(&self) -> u64 {
        self.config().limits.sources_per_repository
    }

    async fn insert_upload(&self, scope: &RepoAccess, upload: Upload) -> Result<(Tx, Accepted)> {
        let investigation = upload.investigation;
        let title =
            upload.title.as_deref().map(|title| checked_name("title", title, 1, TITLE_LIMIT)).transpose()?;
        let new = NewSource {
            title,
            max_cost_usd: checked_cost(upload.max_cost_usd)?,
            body: Some(upload.blob),
            content_type: upload.content_type,
            file_name: upload.file_name,
            ..NewSource::new(upload.source, JobId::mint(), upload_url(upload.source))
        };
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        let (source, job, existing) = accept(&mut tx, scope, &new, self.most_sources()).await?;
        let linked = link(&mut tx, scope, investigation, source).await?;
        Ok((tx, Accepted { source, job, resource_type: None, existing, linked }))
    }

    pub async fn list_sources(
        &self,
        scope: &RepoScope<SourceRead>,
        mut filter: SourceFilter,
        q: Option<&str>,
        oldest_first: bool,
        after: Option<SourceId>,
        limit: i64,
    ) -> Result<Vec<Source>> {
        let repository = scope.repository();
        if let Some(q) = q {
            filter.among = Some(self.having(scope, UnitKind::Source, q, None).await?.numbers);
        }
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        known(&mut tx, scope, filter.investigation).await?;
        if let (Some(q), Some(among)) = (q, &mut filter.among) {
            let name = Locator::parse(q).ok().map(|locator| locator.normalized);
            // No text of a row has such a character, and none may be asked for.
            let part = q.replace('\0', "");
            among.extend(sources::list_named(&mut tx, repository, name.as_deref(), &part, LOOKED_AT).await?);
        }
        if let Some(investigation) = filter.investigation {
            let theirs = investigations::list_sources(&mut tx, repository, investigation).await?;
            let theirs: HashSet<i64> = theirs.into_iter().map(|(no, _)| no).collect();
            filter.among = Some(match filter.among {
                Some(among) => among.into_iter().filter(|no| theirs.contains(no)).collect(),
                None => theirs.into_iter().collect(),
            });
        }
        let mut found = sources::list(&mut tx, repository, &filter, oldest_first, after, limit).await?;
        let ids: Vec<SourceId> = found.iter().map(|source| source.id).collect();
        let mut marks = source_marks::get(&mut tx, repository, &ids).await?;
        tx.commit().await?;
        for source in &mut found {
            source.mark = marks.remove(&source.id);
        }
        Ok(found)
    }

    /// The original of a source, or an image of it: where it is, and what it is.
    pub async fn find_body(
        &self,
        scope: &RepoScope<SourceRead>,
        id: SourceId,
    ) -> Result<(SourceFile, Source, Blob)> {
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let source = sources::find(&mut tx, scope.repository(), id).await?;
        tx.commit().await?;
        let source = source.ok_or(Error::NotFound("source"))?;
        let body = source.body.ok_or(Error::NotFound("stored body of the source"))?;
        Ok((SourceFile { repository: scope.repository(), source: id, hash: body.hash }, source, body))
    }

    pub async fn find_image(
        &self,
        scope: &RepoScope<SourceRead>,
        source: SourceId,
        id: ImageId,
    ) -> Result<(SourceFile, SourceImage, Blob)> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let image = source_images::find(&mut tx, repository, source, id).await?;
        tx.commit().await?;
        let image = image.ok_or(Error::NotFound("image"))?;
        let blob = image.blob.ok_or(Error::NotFound("stored copy of the image"))?;
        Ok((SourceFile { repository, source, hash: blob.hash }, image, blob))
    }

    /// Reads a file that was found in the repository.
    pub async fn read_file(
        &self,
        scope: &RepoScope<SourceRead>,
        file: SourceFile,
        range: Option<std::ops::Range<u64>>,
    ) -> Result<Reading> {
        let ours = file.repository == scope.repository();
        let found = if ours { self.blobs().read(file, range).await? } else { None };
        found.ok_or(Error::NotFound("file"))
    }

    /// Asks for the text of a source to be turned into facts, again if need be.
    pub async fn process_source(&self, scope: &RepoScope<SourceUpdate>, id: SourceId) -> Result<JobId> {
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        let (status, _) = sources::hold(&mut tx, repository, id).await?.ok_or(Error::NotFound("source"))?;
        let text = source_texts::is_there(&mut tx, repository, id).await?;
        let ready = matches!(status, SourceStatus::Fetched | SourceStatus::Processed | SourceStatus::Failed);
        if !ready || !text {
            return Err(Error::Conflict(if status.is_on_its_way() {
                "the source is still being worked on; wait for its job to end"
            } else {
                "the source has no text yet; retry it first"
            }));
        }
        let job = decompose(&mut tx, scope, id).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Takes up a failed source again where it failed.
    pub async fn retry_source(&self, scope: &RepoScope<SourceUpdate>, id: SourceId) -> Result<JobId> {
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        let (status, _) = sources::hold(&mut tx, repository, id).await?.ok_or(Error::NotFound("source"))?;
        if status != SourceStatus::Failed {
            return Err(Error::Conflict("only a failed source can be retried"));
        }
        let job = if source_texts::is_there(&mut tx, repository, id).await? {
            decompose(&mut tx, scope, id).await?
        } else {
            let job = JobId::mint();
            sources::hand_over(&mut tx, repository, id, job, SourceStatus::Pending).await?;
            outbox::push(&mut tx, repository, job, &RetrieveSource { source: id }, When::default()).await?;
            job
        };
        tx.commit().await?;
        Ok(job)
    }

    /// What [`Self::delete_source`] would take away.
    pub async fn source_contents(
        &self,
        scope: &RepoScope<SourceDelete>,
        id: SourceId,
    ) -> Result<SourceContents> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let source = sources::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("source"))?;
        let images = source_images::list(&mut tx, repository, id).await?;
        let facts = facts::count_alone(&mut tx, repository, id).await?;
        tx.commit().await?;
        let files = images.iter().filter_map(|image| image.blob).chain(source.body);
        Ok(SourceContents { facts, images: images.len(), bytes: files.map(|blob| blob.size).sum() })
    }

    /// Removes a source with what only it supports.
    pub async fn delete_source(
        &self,
        origin: &Origin,
        scope: &RepoScope<SourceDelete>,
        id: SourceId,
    ) -> Result<()> {
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        // First of all, as whoever adds one does.
        counters::add(&mut tx, repository, COUNTER, -1).await?;
        let (status, job) = sources::hold(&mut tx, repository, id).await?.ok_or(Error::NotFound("source"))?;
        sources::delete(&mut tx, repository, id).await?;
        if self.vectors().is_some() {
            // Those of facts that only it made; no hurry, for they lead nowhere.
            let when = When { delay_ms: VECTORS_LEFT_MS, ..When::default() };
            outbox::push(&mut tx, repository, JobId::mint(), &CleanupFacts { soon: true }, when).await?;
        }
        self.ask_for_relations(&mut tx, scope).await?;
        self.commit_recorded(tx, origin, scope, "source.deleted", &id.to_string()).await?;
        // From here on it is gone. A job that still works on it finds nothing, and files are found by the sweep.
        if status.is_on_its_way() {
            drop(jobs::cancel(self.databases(), TenantFilter::Repository(repository), job).await);
        }
        self.forget_upload(scope, id).await;
        Ok(())
    }
}

/// Refuses a name of an investigation that there is none of, before anything is stored.
pub(crate) async fn known(
    tx: &mut Tx,
    scope: &RepoAccess,
    investigation: Option<InvestigationId>,
) -> Result<()> {
    let Some(investigation) = investigation else { return Ok(()) };
    let found = investigations::find(tx, scope.repository(), investigation).await?;
    found.map(drop).ok_or_else(unknown)
}

/// The source, its job, and whether both were there before. `most` is how many the repository may have; 0 is no limit.
pub(crate) async fn accept(
    tx: &mut Tx,
    scope: &RepoAccess,
    new: &NewSource,
    most: u64,
) -> Result<(SourceId, JobId, bool)> {
    let repository = scope.repository();
    // First of all, so that whoever adds several waits for whoever adds one, and never the other way round as well.
    let used = u64::try_from(counters::add(tx, repository, COUNTER, 0).await?).unwrap_or(0);
    let quota = Error::check_quota(
        ("the repository has", "sources"),
        (used, 1),
        ("limits.sources_per_repository", most),
    );
    if quota.is_ok() && sources::insert(tx, repository, new).await? {
        counters::add(tx, repository, COUNTER, 1).await?;
        let payload = RetrieveSource { source: new.id };
        outbox::push(tx, repository, new.job, &payload, When::default()).await?;
        return Ok((new.id, new.job, false));
    }
    let same = sources::find_same(tx, repository, new).await?;
    // What is there already may be added to a repository that is full.
    if same.is_none() {
        quota?;
    }
    // It was there a moment ago.
    let (source, job) = same.ok_or(Error::Overloaded("the same source is just being deleted"))?;
    Ok((source, job, true))
}

async fn decompose(tx: &mut Tx, scope: &RepoAccess, id: SourceId) -> Result<JobId> {
    let (repository, job) = (scope.repository(), JobId::mint());
    sources::hand_over(tx, repository, id, job, SourceStatus::Processing).await?;
    outbox::push(tx, repository, job, &SourceDecomposition { source: id }, When::default()).await?;
    Ok(job)
}

fn checked_cost(usd: Option<f64>) -> Result<Option<Money>> {
    let invalid = || Error::invalid("max_cost_usd", "must be from 0 to 1000000000");
    usd.map(|usd| Money::from_usd(usd).ok_or_else(invalid)).transpose()
}
