//! Gets hold of a source and reads it. Reads `pending`, `fetching` (of an earlier run) or `failed`, leaves `fetched` or
//! `failed`.
//!
//! Files are written before the rows that speak of them. What a run has written and no row speaks of is removed at its end;
//! what a run that died has left is found by `cleanup_files`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::NaiveDate;
use okt_config::Config;
use okt_model::{
    Blob, Error, FetchAttempt, ImageId, Progress, Result, RetrieveSource, Source, SourceDecomposition,
    SourceFailure, SourceFile, SourceId, SourceImage, SourceStage, SourceStatus, SourceText,
};
use okt_parse::{Document, Head, Hint, Image, Limits};
use okt_providers::resolution::{Attempt, End, Page, Provider, Resolver, Taker, Verdict, Wanted, auto_skip};
use okt_providers::{GuardedClient, Request, Timeouts};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::blobs::Blobs;
use okt_store::outbox::When;
use okt_store::sources::{self, Fetched};
use okt_store::{host_providers, repository_settings, source_images, source_texts};
use url::Url;

use crate::parsing::{Parsed, Parser, TakeImage};

/// Runs of the job after which a source that could not be had is given up.
const RUNS: i32 = 4;
/// Attempts that a source remembers.
const REMEMBERED: usize = 50;
const IMAGE_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    idle: Duration::from_secs(10),
    total: Duration::from_secs(20),
};

/// What retrieving needs beside the job.
#[derive(Clone)]
pub struct Tools(Arc<Inner>);

struct Inner {
    config: Config,
    blobs: Blobs,
    parser: Parser,
    /// Missing on a machine that trusts nobody.
    web: Option<(GuardedClient, Resolver)>,
}

impl Tools {
    pub fn new(config: &Config, blobs: Blobs, parser: Parser) -> Result<Self> {
        let client = GuardedClient::new(&config.providers.resolution.fetch.allow_private);
        let web = match client {
            Ok(client) => Some((client.clone(), Resolver::new(config, client)?)),
            // The reason was told when the service started.
            Err(_) => None,
        };
        Ok(Self(Arc::new(Inner { config: config.clone(), blobs, parser, web })))
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        &self.0.blobs
    }

    fn limits(&self) -> Limits {
        let images = &self.0.config.providers.decomposition.image_extraction;
        let count = if images.enabled { images.max_images_per_source } else { 0 };
        Limits { images: count, image_bytes: images.max_image_bytes, ..Limits::default() }
    }
}

pub(crate) async fn run(
    payload: RetrieveSource,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    let id = payload.source;
    let mut tx = ctx.step().await?;
    let ours = sources::mark(&mut tx, ctx.repository(), id, ctx.id(), SourceStatus::Fetching).await?;
    let source = sources::find(&mut tx, ctx.repository(), id).await?;
    tx.commit().await?;
    let Some(source) = source.filter(|_| ours) else {
        // Deleted, or taken on by another job meanwhile.
        return ctx.begin().await?.commit(None).await;
    };
    // A registry that knows the source is to be asked here, before anybody is bothered for it.
    let mut keeper = Keeper::new(&tools, &ctx, id);
    let ended = if source.body.is_some() {
        keeper.read_stored(&source).await.map(|failed| (Vec::new(), failed))
    } else {
        fetch(&tools, &ctx, &source, &mut keeper).await
    };
    let ended = match ended {
        Ok((attempts, None)) => match keeper.fetch_images().await {
            Ok(()) => settle(&ctx, &source, &mut keeper, attempts).await,
            Err(error) => Err(error.into()),
        },
        Ok((attempts, Some(failed))) => give_up(&ctx, &source, attempts, failed).await,
        Err(error) => Err(error.into()),
    };
    keeper.tidy().await;
    ended
}

/// What was not to be had, and when it may be asked for again.
struct Failed {
    failure: SourceFailure,
    after: Option<Duration>,
}

impl From<SourceFailure> for Failed {
    fn from(failure: SourceFailure) -> Self {
        Self { failure, after: None }
    }
}

async fn fetch(
    tools: &Tools,
    ctx: &JobContext,
    source: &Source,
    keeper: &mut Keeper<'_>,
) -> Result<(Vec<FetchAttempt>, Option<Failed>)> {
    let Some((_, resolver)) = &tools.0.web else {
        return Err(Error::NotConfigured("nothing can be fetched: the certificates of authorities are missing"));
    };
    let Ok(url) = Url::parse(&source.url) else {
        let failure = SourceFailure::new(SourceStage::Fetch, "malformed", "its address can't be read", false);
        return Ok((Vec::new(), Some(failure.into())));
    };
    let host = url.host_str().unwrap_or_default().to_owned();
    let wanted = Wanted {
        providers: enabled(ctx).await?,
        skipped: skipped(tools, ctx, &host).await?,
        validators: okt_providers::resolution::Validators::default(),
        doi: source.doi.clone(),
        url,
    };
    ctx.progress(Progress { stage: "fetch".to_owned(), ..Progress::default() });
    let resolution = resolver.resolve(&wanted, keeper).await?;
    remember(ctx, &resolution.attempts).await;
    let attempts: Vec<FetchAttempt> = resolution.attempts.iter().map(told).collect();
    let failed = match resolution.end {
        End::Taken | End::NotModified => None,
        End::Failed { code, message, retryable, retry_after } => Some(Failed {
            failure: SourceFailure::new(SourceStage::Fetch, code, message, retryable),
            after: retry_after,
        }),
    };
    Ok((attempts, failed))
}

/// The providers that the repository uses.
async fn enabled(ctx: &JobContext) -> Result<BTreeSet<Provider>> {
    let mut conn = ctx.databases().acquire_system().await?;
    let settings = repository_settings::find(&mut conn, ctx.repository()).await?;
    conn.done();
    let named = settings.map(|settings| settings.resolution).unwrap_or_default();
    Ok(Provider::ALL.iter().copied().filter(|provider| named.iter().any(|name| name == provider.as_str())).collect())
}

/// Those that have kept failing for the host.
async fn skipped(tools: &Tools, ctx: &JobContext, host: &str) -> Result<BTreeSet<Provider>> {
    let mut conn = ctx.databases().acquire_system().await?;
    let records = host_providers::list(&mut conn, host).await?;
    conn.done();
    let settings = &tools.0.config.providers.resolution.auto_skip;
    let skipped = records.iter().filter(|record| {
        auto_skip::judge(settings, record.attempts, record.failures, record.since_last_failure).is_some()
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
    for ((host, provider), (attempts, failures)) in counts {
        let Ok(mut conn) = ctx.databases().acquire_system().await else { return };
        match host_providers::add(&mut conn, &host, provider, attempts, failures).await {
            Ok(()) => conn.done(),
            Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "attempts were not counted"),
        }
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

/// The effect of a source that was had.
async fn settle(
    ctx: &JobContext,
    source: &Source,
    keeper: &mut Keeper<'_>,
    attempts: Vec<FetchAttempt>,
) -> Result<Finished, JobError> {
    let Some(taken) = keeper.best.take() else {
        return Err(Error::internal("a source was taken and is not there").into());
    };
    let (repository, id) = (ctx.repository(), source.id);
    let Taken { document, body, validators, images, .. } = taken;
    let fetched = Fetched {
        kind: document.kind.as_str().to_owned(),
        content_type: document.content_type.clone(),
        title: document.title.clone(),
        author: document.author.clone(),
        site_name: document.site_name.clone(),
        published_at: document.published_at.as_deref().and_then(date),
        language: document.language.clone(),
        license: document.license.clone(),
        doi: document.doi.clone(),
        body: Some(body),
        etag: validators.etag,
        last_modified: validators.last_modified,
        attempts: story(source, attempts),
    };
    let text = text_of(*document)?;
    let mut effect = ctx.begin().await?;
    if !sources::mark_fetched(&mut effect, repository, id, ctx.id(), &fetched).await? {
        return effect.commit(None).await;
    }
    source_texts::put(&mut effect, repository, id, &text).await?;
    source_images::replace(&mut effect, repository, id, &images).await?;
    let next = effect.push(&SourceDecomposition { source: id }, When::default()).await?;
    sources::hand_over(&mut effect, repository, id, next, SourceStatus::Fetched).await?;
    let output = serde_json::json!({
        "status": "fetched", "kind": fetched.kind, "sentences": text.sentences.len(), "images": images.len()
    });
    let finished = effect.commit(Some(output)).await?;
    keeper.wanted = images.iter().filter_map(|image| image.blob).chain([body]).collect();
    Ok(finished)
}

/// The effect of a source that was not to be had, unless it is worth another run.
async fn give_up(
    ctx: &JobContext,
    source: &Source,
    attempts: Vec<FetchAttempt>,
    failed: Failed,
) -> Result<Finished, JobError> {
    let (repository, id) = (ctx.repository(), source.id);
    let story = story(source, attempts);
    let Failed { failure, after } = failed;
    if failure.retryable && ctx.attempt() < RUNS {
        let mut tx = ctx.step().await?;
        sources::note_attempts(&mut tx, repository, id, ctx.id(), &story).await?;
        tx.commit().await?;
        let error = Error::Unavailable { service: "the source", cause: failure.message.into() };
        return Err(match after {
            Some(after) => JobError::Later { error, after },
            None => error.into(),
        });
    }
    let mut effect = ctx.begin().await?;
    sources::mark_failed(&mut effect, repository, id, ctx.id(), &failure, &story).await?;
    effect.commit(Some(serde_json::json!({ "status": "failed", "failure": failure }))).await
}

/// A source that is here and has been read.
struct Taken {
    document: Box<Document>,
    body: Blob,
    validators: okt_providers::resolution::Validators,
    images: Vec<SourceImage>,
}

/// Keeps what arrives, has it read, and judges whether it is enough.
struct Keeper<'a> {
    tools: &'a Tools,
    ctx: &'a JobContext,
    source: SourceId,
    /// The last that was enough.
    best: Option<Taken>,
    /// All files of this run, and those that rows speak of in the end.
    written: Vec<Blob>,
    wanted: Vec<Blob>,
}

impl<'a> Keeper<'a> {
    const fn new(tools: &'a Tools, ctx: &'a JobContext, source: SourceId) -> Self {
        Self { tools, ctx, source, best: None, written: Vec::new(), wanted: Vec::new() }
    }

    fn file(&self, blob: Blob) -> SourceFile {
        SourceFile { repository: self.ctx.repository(), source: self.source, hash: blob.hash }
    }

    /// Reads what somebody brought along.
    async fn read_stored(&mut self, source: &Source) -> Result<Option<Failed>> {
        let Some(body) = source.body else { return Err(Error::internal("a source without a body")) };
        // It is the source's own, whatever becomes of it.
        self.wanted.push(body);
        let hint = Hint {
            content_type: source.content_type.clone(),
            file_name: source.file_name.clone(),
            url: None,
        };
        match self.parse(body, hint).await? {
            (Parsed::Document(document), images) => {
                let validators = okt_providers::resolution::Validators::default();
                self.best = Some(Taken { document, body, validators, images });
                Ok(None)
            }
            (Parsed::Failed(failure), _) => Ok(Some(failure.into())),
        }
    }

    async fn parse(&mut self, body: Blob, hint: Hint) -> Result<(Parsed, Vec<SourceImage>)> {
        self.ctx.progress(Progress { stage: "parse".to_owned(), ..Progress::default() });
        let blobs = self.tools.blobs();
        let reading = blobs.read(self.file(body), None).await?;
        let reading = reading.ok_or(Error::NotFound("stored body of the source"))?;
        let head = Head { hint, limits: self.tools.limits() };
        let mut images = Images { keeper: self, kept: Vec::new() };
        let parser = images.keeper.tools.0.parser.clone();
        let parsed = parser.parse(&head, reading.bytes, &mut images).await?;
        let kept = images.kept;
        Ok((parsed, kept))
    }

    async fn write(&mut self, bytes: Bytes) -> Result<Blob> {
        let mut incoming = self.tools.blobs().begin(self.ctx.repository(), self.source);
        incoming.write(bytes).await?;
        let blob = incoming.finish().await?;
        self.written.push(blob);
        Ok(blob)
    }

    /// Gets the images that a page only points to. One that is not to be had is left as an address.
    async fn fetch_images(&mut self) -> Result<()> {
        let Some(mut taken) = self.best.take() else { return Ok(()) };
        let limits = self.tools.limits();
        let count = usize::try_from(limits.images).unwrap_or(0);
        for image in taken.images.iter_mut().filter(|image| image.blob.is_none()).take(count) {
            let Some((client, _)) = &self.tools.0.web else { break };
            let Some(url) = image.url.clone() else { continue };
            let Some((bytes, content_type)) = fetch_image(client, url, limits.image_bytes).await else { continue };
            image.blob = Some(self.write(bytes.into()).await?);
            image.content_type = Some(content_type.to_owned());
        }
        self.best = Some(taken);
        Ok(())
    }

    /// Removes what this run has written for nothing.
    async fn tidy(&self) {
        let stray = self.written.iter().filter(|blob| !self.wanted.contains(blob));
        let stray: Vec<SourceFile> = stray.map(|blob| self.file(*blob)).collect();
        if let Err(error) = self.tools.blobs().remove(&stray).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "files are left for the sweep");
        }
    }
}

impl Taker for Keeper<'_> {
    async fn take(&mut self, page: &mut Page) -> Result<Verdict, Error> {
        let mut incoming = self.tools.blobs().begin(self.ctx.repository(), self.source);
        while let Some(piece) = page.chunk().await? {
            incoming.write(piece).await?;
        }
        let body = incoming.finish().await?;
        self.written.push(body);
        let hint = Hint {
            content_type: page.content_type.clone(),
            file_name: None,
            url: Some(page.final_url.to_string()),
        };
        let (parsed, images) = self.parse(body, hint).await?;
        let least = self.tools.0.config.providers.resolution.min_content_chars;
        match parsed {
            Parsed::Document(document) if document.text.chars().count() >= least as usize => {
                self.best = Some(Taken { document, body, validators: page.validators.clone(), images });
                Ok(Verdict::Enough)
            }
            Parsed::Document(_) => Ok(Verdict::TooLittle),
            Parsed::Failed(failure) if failure.code == "no_text" => Ok(Verdict::TooLittle),
            Parsed::Failed(failure) => Ok(Verdict::Unusable { code: failure.code, message: failure.message }),
        }
    }
}

/// Keeps the images of a document.
struct Images<'a, 'b> {
    keeper: &'a mut Keeper<'b>,
    kept: Vec<SourceImage>,
}

impl TakeImage for Images<'_, '_> {
    async fn take(&mut self, image: Image) -> Result<()> {
        // A child is trusted with nothing, also not with counting.
        let limits = self.keeper.tools.limits();
        if self.kept.len() >= usize::try_from(limits.images).unwrap_or(0) * 2 {
            return Ok(());
        }
        let number = |number: u32| i32::try_from(number).ok();
        let blob = if image.bytes.is_empty() {
            None
        } else {
            if kind_of_image(&image.bytes).is_none() || image.bytes.len() > limits.image_bytes as usize {
                return Ok(());
            }
            Some(image.bytes)
        };
        let content_type = blob.as_deref().and_then(kind_of_image).map(str::to_owned);
        let blob = match blob {
            Some(bytes) => Some(self.keeper.write(bytes.into()).await?),
            None => None,
        };
        self.kept.push(SourceImage {
            id: ImageId::mint(),
            kind: match image.kind {
                okt_parse::ImageKind::Inline => "inline".to_owned(),
                okt_parse::ImageKind::Page => "page".to_owned(),
            },
            page_number: image.page_number.and_then(number),
            position: number(image.position).unwrap_or(i32::MAX),
            url: image.url,
            width: image.width.and_then(number),
            height: image.height.and_then(number),
            alt_text: image.alt_text,
            content_type,
            blob,
        });
        Ok(())
    }
}

async fn fetch_image(client: &GuardedClient, url: String, limit: u32) -> Option<(Vec<u8>, &'static str)> {
    let request = Request::get(url).follow_redirects().max_bytes(limit.into()).timeouts(IMAGE_TIMEOUTS);
    let answer = client.send(request).await.ok()?;
    if !answer.status.is_success() {
        return None;
    }
    let bytes = answer.bytes().await.ok()?;
    let kind = kind_of_image(&bytes)?;
    Some((bytes, kind))
}

/// By what is in it, whatever it is called. Nothing else is kept as an image.
fn kind_of_image(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// As much as is known of a date; the rest is its beginning.
fn date(text: &str) -> Option<NaiveDate> {
    let mut parts = text.splitn(3, '-');
    let year = parts.next()?.parse().ok().filter(|year| (1..=9999).contains(year))?;
    let month = parts.next().map_or(Some(1), |month| month.parse().ok())?;
    let day = parts.next().map_or(Some(1), |day| day.parse().ok())?;
    NaiveDate::from_ymd_opt(year, month, day)
}

fn text_of(document: Document) -> Result<SourceText> {
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let boxes: Vec<Vec<f32>> = document.boxes.iter().map(|rects| rects.iter().flat_map(numbers).collect()).collect();
    let boxes = if boxes.is_empty() { None } else { Some(serde_json::to_string(&boxes).map_err(Error::internal)?) };
    Ok(SourceText {
        text: document.text,
        markdown: document.markdown,
        sentences: document.sentences.iter().map(|(start, end)| (number(*start), number(*end))).collect(),
        boxes,
        segmenter: document.segmenter,
        segmenter_hash: document.segmenter_hash,
    })
}

/// To a hundredth of a point; pages are whole.
fn numbers(rect: &okt_parse::Rect) -> [f32; 5] {
    let rounded = |number: f32| (number * 100.0).round() / 100.0;
    #[expect(clippy::cast_precision_loss, reason = "pages are few")]
    let page = rect.page as f32;
    [page, rounded(rect.x0), rounded(rect.y0), rounded(rect.x1), rounded(rect.y1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_as_long_as_it_is_known() {
        let day = |year, month, day| NaiveDate::from_ymd_opt(year, month, day);
        for (text, expected) in [
            ("2026-03-14", day(2026, 3, 14)),
            ("2026-03", day(2026, 3, 1)),
            ("1905", day(1905, 1, 1)),
            ("2026-13-01", None),
            ("2026-02-30", None),
            ("soon", None),
            ("", None),
            ("999999", None),
        ] {
            assert_eq!(date(text), expected, "{text}");
        }
    }
}
