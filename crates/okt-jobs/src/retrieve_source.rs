//! Gets hold of a source and reads it. Reads `pending`, `fetching` (of an earlier run) or `failed`, leaves `fetched` or
//! `failed`, or `processed` where a registry has what is to be made of it.
//!
//! Files are written before the rows that speak of them. What a run has written and no row speaks of is removed at its end;
//! what a run that died has left is found by `cleanup_files`.

pub(crate) mod registry;
mod source_writer;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use okt_config::SearchProvider;
use okt_model::{
    Error, FetchAttempt, IndexSource, Locator, Progress, Result, RetrieveSource, Source, SourceDecomposition,
    SourceFailure, SourceStage, SourceStatus, parse_date,
};
use okt_providers::resolution::{Attempt, End, Provider, Validators, Wanted, auto_skip};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::outbox::When;
use okt_store::sources::{self, Fetched};
use okt_store::{
    host_providers, repository_settings, search_units, source_images, source_marks, source_texts,
};
use url::Url;

use self::source_writer::{Accepted, SourceWriter, text_of};
use crate::{Tools, check_reports};

/// Runs of the job after which a source that could not be had is given up.
const RUNS: i32 = 4;
/// Who wants to be left alone for longer is not waited for: a person decides.
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// Attempts that a source remembers.
const REMEMBERED: usize = 50;

pub(crate) async fn run(
    payload: RetrieveSource,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    let id = payload.source;
    let mut tx = ctx.checkpoint().await?;
    let ours = sources::mark(&mut tx, ctx.repository(), id, ctx.id(), SourceStatus::Fetching).await?;
    let source = sources::find(&mut tx, ctx.repository(), id).await?;
    tx.commit().await?;
    let Some(source) = source.filter(|_| ours) else {
        // Deleted, or taken on by another job meanwhile.
        return ctx.begin().await?.commit(None).await;
    };
    // What was brought along or read before is not asked for: it would be other sentences.
    if source.body.is_none()
        && source.fact_count == 0
        && let Some(hit) = registry::look_up(&ctx, &tools, &source).await?
        && let Some(finished) = registry::import(&ctx, &tools, &source, &hit).await?
    {
        return Ok(finished);
    }
    let mut writer = SourceWriter::new(&tools, &ctx, id);
    let ended = if source.body.is_some() {
        writer.read_stored(&source).await.map(|failed| (Vec::new(), failed))
    } else {
        let fetched = fetch(&tools, &ctx, &source, &mut writer).await;
        // Not for what somebody brought along: nobody outside needs to hear that it is being read.
        writer.fetch_images().await?;
        fetched
    };
    let ended = match ended {
        Ok((attempts, None)) => {
            let retracted = retracted(&tools, &ctx, &source, &writer).await;
            settle(&ctx, &source, &mut writer, attempts, retracted).await
        }
        Ok((attempts, Some(failed))) => give_up(&ctx, &source, attempts, failed).await,
        Err(error) => Err(error.into()),
    };
    // Another run of the same job may have written files of the same names, and be the one whose effect it is, also after this
    // one has given up: only who had the effect knows which files are nobody's. The rest is for the sweep.
    if writer.committed {
        writer.delete_unused().await;
    }
    ended
}

/// What was not to be had.
struct Failed {
    failure: SourceFailure,
    /// Whether the job should try once more, and not before when.
    again: bool,
    after: Option<Duration>,
}

impl Failed {
    const fn of(failure: SourceFailure) -> Self {
        Self { again: failure.retryable, failure, after: None }
    }
}

async fn fetch(
    tools: &Tools,
    ctx: &JobContext,
    source: &Source,
    writer: &mut SourceWriter<'_>,
) -> Result<(Vec<FetchAttempt>, Option<Failed>)> {
    let Some((_, resolver)) = tools.web() else {
        return Err(Error::NotConfigured("nothing can be fetched: no root CA certificates are installed"));
    };
    let Ok(url) = Url::parse(&source.url) else {
        let failure = SourceFailure::new(SourceStage::Fetch, "malformed", "its address can't be read", false);
        return Ok((Vec::new(), Some(Failed::of(failure))));
    };
    let host = url.host_str().unwrap_or_default().to_owned();
    let wanted = Wanted {
        providers: enabled(ctx).await?,
        skipped: skipped(tools, ctx, &host).await?,
        validators: Validators::default(),
        doi: source.doi.clone(),
        url,
    };
    ctx.progress(Progress { stage: "fetch".to_owned(), ..Progress::default() });
    let resolution = resolver.resolve(&wanted, writer).await?;
    remember(ctx, &resolution.attempts).await;
    let attempts: Vec<FetchAttempt> = resolution.attempts.iter().map(told).collect();
    let failed = match resolution.end {
        End::Taken | End::NotModified => None,
        End::Failed { code, message, retryable, retry_after } => {
            // One that is left out for now may be asked another day, which is longer than a job should wait.
            let another_day = attempts.is_empty() && !wanted.skipped.is_empty();
            let failure = SourceFailure::new(SourceStage::Fetch, code, message, retryable || another_day);
            Some(Failed { failure, again: retryable, after: retry_after })
        }
    };
    Ok((attempts, failed))
}

/// The providers that the repository uses.
async fn enabled(ctx: &JobContext) -> Result<BTreeSet<Provider>> {
    let mut conn = ctx.databases().acquire_system().await?;
    let settings = repository_settings::find(&mut conn, ctx.repository()).await?;
    let named = settings.map(|settings| settings.resolution).unwrap_or_default();
    Ok(Provider::ALL
        .iter()
        .copied()
        .filter(|provider| named.iter().any(|name| name == provider.as_str()))
        .collect())
}

/// Those that have kept failing for the host.
async fn skipped(tools: &Tools, ctx: &JobContext, host: &str) -> Result<BTreeSet<Provider>> {
    let mut conn = ctx.databases().acquire_system().await?;
    let records = host_providers::list(&mut conn, ctx.repository(), host).await?;
    let settings = &tools.config().providers.resolution.auto_skip;
    let skipped = records.iter().filter(|record| {
        auto_skip::skipped_for(settings, record.attempts, record.failures, record.since_last_failure)
            .is_some()
    });
    Ok(skipped.filter_map(|record| provider(&record.provider)).collect())
}

/// Counts what was tried. A count that is lost is no reason to fetch again.
async fn remember(ctx: &JobContext, attempts: &[Attempt]) {
    let mut counts: BTreeMap<(String, &str), (i64, i64)> = BTreeMap::new();
    for attempt in attempts {
        if let (Some(host), Some(failed)) = (attempt.host(), attempt.failed()) {
            let count = counts.entry((host, attempt.provider.as_str())).or_default();
            count.0 += 1;
            count.1 += i64::from(failed);
        }
    }
    let added = async {
        let mut conn = ctx.databases().acquire_system().await?;
        for ((host, provider), (attempts, failures)) in counts {
            host_providers::add(&mut conn, ctx.repository(), &host, provider, attempts, failures).await?;
        }
        Ok::<_, Error>(())
    };
    if let Err(error) = added.await {
        tracing::debug!(error = &error as &dyn std::error::Error, "failed to count fetch attempts");
    }
}

fn provider(name: &str) -> Option<Provider> {
    Provider::ALL.iter().copied().find(|provider| provider.as_str() == name)
}

fn told(attempt: &Attempt) -> FetchAttempt {
    FetchAttempt {
        provider: attempt.provider.as_str().to_owned(),
        url: attempt.url.clone(),
        status: attempt.status,
        ms: attempt.ms,
        outcome: attempt.outcome.code().to_owned(),
    }
}

/// The story so far, with what was tried now.
fn story(source: &Source, attempts: Vec<FetchAttempt>) -> Vec<FetchAttempt> {
    let mut story = source.fetch_attempts.clone();
    story.extend(attempts);
    let first = story.len().saturating_sub(REMEMBERED);
    story.split_off(first)
}

/// The DOI of a source that the academic search service lists as retracted, if the repository uses the service. A service that does not
/// answer is no reason to do without the source.
async fn retracted(
    tools: &Tools,
    ctx: &JobContext,
    source: &Source,
    writer: &SourceWriter<'_>,
) -> Option<String> {
    let told = writer.best.as_ref().and_then(|taken| taken.document.doi.as_deref());
    let doi = told.or(source.doi.as_deref()).and_then(|doi| Locator::parse(doi).ok()?.doi)?;
    let search = tools.search()?;
    let asked = async {
        let mut conn = ctx.databases().acquire_system().await?;
        let settings = repository_settings::find(&mut conn, ctx.repository()).await?;
        drop(conn);
        let is_on = |name: &String| name == SearchProvider::Academic.as_str();
        if !settings.is_some_and(|settings| settings.search.iter().any(is_on)) {
            return Ok(None);
        }
        Ok::<_, Error>(search.is_retracted(&doi).await?)
    };
    match asked.await {
        Ok(found) => (found == Some(true)).then_some(doi),
        Err(error) => {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "failed to look up whether a source was retracted"
            );
            None
        }
    }
}

/// The effect of a source that was had.
async fn settle(
    ctx: &JobContext,
    source: &Source,
    writer: &mut SourceWriter<'_>,
    attempts: Vec<FetchAttempt>,
    retracted: Option<String>,
) -> Result<Finished, JobError> {
    let Some(taken) = writer.best.take() else {
        return Err(Error::internal(format!("source {} was accepted without a document", source.id)).into());
    };
    let (repository, id) = (ctx.repository(), source.id);
    let Accepted { document, body, images } = taken;
    let fetched = Fetched {
        kind: document.kind.as_str().to_owned(),
        content_type: document.content_type.clone(),
        title: document.title.clone(),
        author: document.author.clone(),
        site_name: document.site_name.clone(),
        published_at: document.published_at.as_deref().and_then(parse_date),
        language: document.language.clone(),
        license: document.license.clone(),
        doi: document.doi.clone(),
        body: Some(body),
        attempts: story(source, attempts),
    };
    let text = text_of(*document);
    let mut tx = ctx.begin().await?;
    if !sources::mark_fetched(&mut tx, repository, id, ctx.id(), &fetched).await? {
        return tx.commit(None).await;
    }
    source_texts::put(&mut tx, repository, id, &text).await?;
    source_images::replace(&mut tx, repository, id, &images).await?;
    search_units::note_unread(&mut tx, repository, id).await?;
    if let Some(doi) = retracted
        && source_marks::mark_listed(&mut tx, repository, &[doi]).await? > 0
    {
        check_reports::push(&mut tx, repository).await?;
    }
    tx.push(&IndexSource::of(id), When::default()).await?;
    let next = tx.push(&SourceDecomposition { source: id }, When::default()).await?;
    sources::hand_over(&mut tx, repository, id, next, SourceStatus::Fetched).await?;
    let output = serde_json::json!({
        "status": "fetched", "kind": fetched.kind, "sentences": text.sentences.len(), "images": images.len()
    });
    let finished = tx.commit(Some(output)).await?;
    writer.wanted = images.iter().filter_map(|image| image.blob).chain([body]).collect();
    writer.committed = true;
    Ok(finished)
}

/// Gives up a source that was not to be had, unless it is worth another run. The job can be retried, and so can the source.
async fn give_up(
    ctx: &JobContext,
    source: &Source,
    attempts: Vec<FetchAttempt>,
    failed: Failed,
) -> Result<Finished, JobError> {
    let (repository, id) = (ctx.repository(), source.id);
    let story = story(source, attempts);
    let Failed { failure, again, after } = failed;
    if again && ctx.attempt() < RUNS && after.is_none_or(|after| after <= LONGEST_WAIT) {
        let mut tx = ctx.checkpoint().await?;
        sources::note_attempts(&mut tx, repository, id, ctx.id(), &story).await?;
        tx.commit().await?;
        let error = Error::Unavailable { service: "the source", cause: failure.message.into() };
        return Err(match after {
            Some(after) => JobError::RetryAfter { error, after },
            None => error.into(),
        });
    }
    let mut tx = ctx.begin_discardable().await?;
    if !sources::mark_failed(&mut tx, repository, id, ctx.id(), &failure, &story).await? {
        return tx.commit(None).await;
    }
    let output = serde_json::json!({ "status": "failed", "failure": failure });
    tx.discard(failure.message, Some(output)).await
}
