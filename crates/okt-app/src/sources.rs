//! Sources: adding, seeing, bringing on and removing them.

use okt_auth::RepoScope;
use okt_extract::Text;
use okt_model::{
    Blob, CleanupFacts, Error, ImageId, JobId, Locator, ResourceType, Result, RetrieveSource, Source,
    SourceDecomposition, SourceFile, SourceFilter, SourceId, SourceImage, SourceStatus, SourceText,
    upload_url,
};
use okt_queue::jobs::{self, Whose};
use okt_store::blobs::{Incoming, Reading};
use okt_store::facts::Resting;
use okt_store::outbox::{self, When};
use okt_store::sources::{self, NewSource};
use okt_store::{Tx, counters, facts, source_images, source_texts};

use crate::{App, Origin};

const TITLE_LIMIT: usize = 1_000;
const COUNTER: &str = "sources";
/// Until vectors of facts that are gone are swept up.
const VECTORS_LEFT_MS: i64 = 10 * 60 * 1_000;

/// What somebody wants to add.
#[derive(Clone, Debug)]
pub struct SourceRequest {
    pub locator: Locator,
    pub max_cost_usd: Option<f64>,
}

/// A source that was added, or was there already.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    pub source: SourceId,
    pub job: JobId,
    /// `None` for what somebody brought along themselves.
    pub resource_type: Option<ResourceType>,
    pub existing: bool,
}

/// A file that somebody brought along, once it is here.
pub struct Upload {
    pub source: SourceId,
    pub blob: Blob,
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    pub title: Option<String>,
    pub max_cost_usd: Option<f64>,
}

/// A source with all that is known of it.
pub struct SeenSource {
    pub source: Source,
    pub text: Option<SourceText>,
    pub images: Vec<SourceImage>,
}

/// A sentence of a source.
pub struct Sentence {
    pub index: usize,
    pub start: i32,
    pub end: i32,
    pub text: String,
    /// For PDFs.
    pub page: Option<u32>,
    /// What rests on it.
    pub facts: Vec<Resting>,
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
    pub async fn add_source(&self, scope: &RepoScope, request: &SourceRequest) -> Result<Accepted> {
        let max_cost_usd = checked_cost(request.max_cost_usd)?;
        let locator = &request.locator;
        let new = NewSource {
            locator: Some(locator.normalized.clone()),
            doi: locator.doi.clone(),
            max_cost_usd,
            ..NewSource::new(SourceId::mint(), JobId::mint(), locator.url.clone())
        };
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        let (source, job, existing) = accept(&mut tx, scope, &new).await?;
        tx.commit().await?;
        Ok(Accepted { source, job, resource_type: Some(locator.resource_type), existing })
    }

    /// Begins to take a file. Once it is here, [`Self::add_upload`] makes it a source.
    pub fn begin_upload(&self, scope: &RepoScope) -> (SourceId, Incoming) {
        let source = SourceId::mint();
        (source, self.blobs().begin(scope.repository(), source))
    }

    /// Makes a source of a file that is here, unless its like was brought along before.
    pub async fn add_upload(&self, scope: &RepoScope, upload: Upload) -> Result<Accepted> {
        let id = upload.source;
        let (tx, accepted) = match self.insert_upload(scope, upload).await {
            Ok(inserted) => inserted,
            Err(error) => {
                self.give_up_upload(scope, id).await;
                return Err(error);
            }
        };
        // When this fails nobody knows whether the row is there: the file stays, for it or for the sweep.
        tx.commit().await?;
        if accepted.existing {
            self.give_up_upload(scope, id).await;
        }
        Ok(accepted)
    }

    /// Leaves nothing behind of a file that does not become a source.
    pub async fn give_up_upload(&self, scope: &RepoScope, source: SourceId) {
        // What can't be removed now is found by the sweep.
        drop(self.blobs().remove_source(scope.repository(), source).await);
    }

    async fn insert_upload(&self, scope: &RepoScope, upload: Upload) -> Result<(Tx, Accepted)> {
        let title = upload.title.as_deref().map(checked_title).transpose()?;
        let new = NewSource {
            title: title.map(str::to_owned),
            max_cost_usd: checked_cost(upload.max_cost_usd)?,
            body: Some(upload.blob),
            content_type: upload.content_type,
            file_name: upload.file_name,
            ..NewSource::new(upload.source, JobId::mint(), upload_url(upload.source))
        };
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        let (source, job, existing) = accept(&mut tx, scope, &new).await?;
        Ok((tx, Accepted { source, job, resource_type: None, existing }))
    }

    pub async fn list_sources(
        &self,
        scope: &RepoScope,
        filter: &SourceFilter,
        oldest_first: bool,
        after: Option<SourceId>,
        limit: i64,
    ) -> Result<Vec<Source>> {
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let found = sources::list(&mut tx, scope.repository(), filter, oldest_first, after, limit).await?;
        tx.commit().await?;
        Ok(found)
    }

    pub async fn find_source(&self, scope: &RepoScope, id: SourceId) -> Result<SeenSource> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let source = sources::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("source"))?;
        let text = source_texts::find(&mut tx, repository, id).await?;
        let images = source_images::list(&mut tx, repository, id).await?;
        tx.commit().await?;
        Ok(SeenSource { source, text, images })
    }

    /// The sentences of a source from this one on: all, those that some fact rests on, or those that none does.
    pub async fn list_sentences(
        &self,
        scope: &RepoScope,
        id: SourceId,
        cited: Option<bool>,
        from: usize,
        limit: usize,
    ) -> Result<Vec<Sentence>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        sources::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("source"))?;
        let text = source_texts::find(&mut tx, repository, id).await?.unwrap_or_default();
        let wanted: Vec<usize> = match cited {
            None => (from..text.sentences.len()).take(limit).collect(),
            Some(cited) => {
                let rested_on = facts::list_cited(&mut tx, repository, id).await?;
                let is = |index: &usize| i32::try_from(*index).is_ok_and(|index| rested_on.contains(&index));
                (from..text.sentences.len()).filter(|index| is(index) == cited).take(limit).collect()
            }
        };
        let indexes: Vec<i32> = wanted.iter().filter_map(|index| i32::try_from(*index).ok()).collect();
        let resting = facts::list_resting(&mut tx, repository, id, &indexes).await?;
        tx.commit().await?;
        // It may have megabytes, and others wait for this thread.
        let found = tokio::task::spawn_blocking(move || sentences_of(&text, &wanted, &resting));
        found.await.map_err(Error::internal)?
    }

    /// The original of a source, or an image of it: where it is, and what it is.
    pub async fn find_body(&self, scope: &RepoScope, id: SourceId) -> Result<(SourceFile, Source, Blob)> {
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let source = sources::find(&mut tx, scope.repository(), id).await?;
        tx.commit().await?;
        let source = source.ok_or(Error::NotFound("source"))?;
        let body = source.body.ok_or(Error::NotFound("stored body of the source"))?;
        Ok((SourceFile { repository: scope.repository(), source: id, hash: body.hash }, source, body))
    }

    pub async fn find_image(
        &self,
        scope: &RepoScope,
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

    /// Reads a file that was found; the scope of the finding is in its address.
    pub async fn read_file(&self, file: SourceFile, range: Option<std::ops::Range<u64>>) -> Result<Reading> {
        self.blobs().read(file, range).await?.ok_or(Error::NotFound("file"))
    }

    /// Asks for the text of a source to be turned into facts, again if need be.
    pub async fn process_source(&self, scope: &RepoScope, id: SourceId) -> Result<JobId> {
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
    pub async fn retry_source(&self, scope: &RepoScope, id: SourceId) -> Result<JobId> {
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
    pub async fn source_contents(&self, scope: &RepoScope, id: SourceId) -> Result<SourceContents> {
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
    pub async fn delete_source(&self, origin: &Origin, scope: &RepoScope, id: SourceId) -> Result<()> {
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
        tx.commit().await?;
        // From here on it is gone. A job that still works on it finds nothing, and files are found by the sweep.
        if status.is_on_its_way() {
            drop(jobs::cancel(self.databases(), Whose::Repository(repository), job).await);
        }
        if let Err(error) = self.blobs().remove_source(repository, id).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(source.id = %id, error, "files of a deleted source are left for the sweep");
        }
        // It is gone whether or not this can be written down.
        if let Err(error) = self.record_after(origin, scope, "source.deleted", &id.to_string()).await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(source.id = %id, error, "the audit does not know of a deleted source");
        }
        Ok(())
    }
}

/// The source, its job, and whether both were there before.
pub(crate) async fn accept(
    tx: &mut Tx,
    scope: &RepoScope,
    new: &NewSource,
) -> Result<(SourceId, JobId, bool)> {
    let repository = scope.repository();
    // First of all, so that whoever adds several waits for whoever adds one, and never the other way round as well.
    counters::add(tx, repository, COUNTER, 0).await?;
    if sources::insert(tx, repository, new).await? {
        counters::add(tx, repository, COUNTER, 1).await?;
        let payload = RetrieveSource { source: new.id };
        outbox::push(tx, repository, new.job, &payload, When::default()).await?;
        return Ok((new.id, new.job, false));
    }
    let same = sources::find_same(tx, repository, new).await?;
    // It was there a moment ago.
    let (source, job) = same.ok_or(Error::Overloaded("the same source is just being deleted"))?;
    Ok((source, job, true))
}

async fn decompose(tx: &mut Tx, scope: &RepoScope, id: SourceId) -> Result<JobId> {
    let (repository, job) = (scope.repository(), JobId::mint());
    sources::hand_over(tx, repository, id, job, SourceStatus::Processing).await?;
    outbox::push(tx, repository, job, &SourceDecomposition { source: id }, When::default()).await?;
    Ok(job)
}

fn sentences_of(text: &SourceText, wanted: &[usize], resting: &[Resting]) -> Result<Vec<Sentence>> {
    let pages = pages_of(text.boxes.as_deref())?;
    let cut = Text::new(&text.text, &text.sentences);
    let found = wanted.iter().filter_map(|&index| {
        let (start, end) = text.sentences.get(index).copied()?;
        let rests =
            |fact: &&Resting| fact.sentences.iter().any(|sentence| usize::try_from(*sentence) == Ok(index));
        Some(Sentence {
            index,
            start,
            end,
            text: cut.sentence(index).to_owned(),
            page: pages.get(index).copied().flatten(),
            facts: resting.iter().filter(rests).cloned().collect(),
        })
    });
    Ok(found.collect())
}

/// On which page each sentence begins.
fn pages_of(boxes: Option<&str>) -> Result<Vec<Option<u32>>> {
    let Some(boxes) = boxes else { return Ok(Vec::new()) };
    let boxes: Vec<Vec<f64>> = serde_json::from_str(boxes).map_err(Error::internal)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number of a page")]
    let pages = boxes.iter().map(|places| places.first().map(|page| *page as u32));
    Ok(pages.collect())
}

fn checked_title(title: &str) -> Result<&str> {
    let title = title.trim();
    if title.is_empty() || title.chars().count() > TITLE_LIMIT || title.chars().any(char::is_control) {
        return Err(Error::invalid("title", "must be 1 to 1000 characters without control characters"));
    }
    Ok(title)
}

fn checked_cost(usd: Option<f64>) -> Result<Option<f64>> {
    if usd.is_some_and(|usd| !usd.is_finite() || usd < 0.0) {
        return Err(Error::invalid("max_cost_usd", "must be 0 or more"));
    }
    Ok(usd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_cut_by_code_points() {
        let text = SourceText {
            text: "Bienen fliegen. Öfter 🐝. 蜂。".to_owned(),
            sentences: vec![(0, 15), (16, 24), (25, 27)],
            boxes: Some("[[1,0,0,1,1],[2,0,0,1,1,3,0,0,1,1],[]]".to_owned()),
            ..SourceText::default()
        };
        let all: Vec<_> = sentences_of(&text, &[0, 1, 2], &[]).unwrap();
        let texts: Vec<_> = all.iter().map(|sentence| (&*sentence.text, sentence.page)).collect();
        assert_eq!(texts, [("Bienen fliegen.", Some(1)), ("Öfter 🐝.", Some(2)), ("蜂。", None)]);
        assert_eq!(sentences_of(&text, &[1], &[]).unwrap()[0].text, "Öfter 🐝.");
        assert!(sentences_of(&text, &[7], &[]).unwrap().is_empty());
    }
}
