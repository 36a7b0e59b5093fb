//! What is kept of a source on its way: files as they arrive, the document that they hold, its images.

use std::time::Duration;

use bytes::Bytes;
use okt_model::{
    Blob, Error, ImageId, Progress, Result, Source, SourceFile, SourceId, SourceImage, SourcePage, SourceText,
};
use okt_parse::worker::Head;
use okt_parse::{Document, Hint, Image};
use okt_providers::resolution::{Page, PageQuality, Taker};
use okt_providers::{GuardedClient, Request, Timeouts};
use okt_queue::JobContext;
use tokio::time::Instant;

use super::{Failed, Tools};
use crate::parsing::{Parsed, TakeImage, Unreadable, plain};

/// For all images of a source; one that comes later is left as an address.
const IMAGES: Duration = Duration::from_mins(1);
const IMAGE_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    idle: Duration::from_secs(10),
    total: Duration::from_secs(20),
};

/// A source that is here and has been read.
pub(super) struct Accepted {
    pub document: Box<Document>,
    pub body: Blob,
    pub images: Vec<SourceImage>,
}

/// Stores what arrives, has it parsed, and decides whether it is enough.
pub(super) struct SourceWriter<'a> {
    tools: &'a Tools,
    ctx: &'a JobContext,
    source: SourceId,
    /// The last that was enough.
    pub best: Option<Accepted>,
    /// All files of this run, and those that rows speak of in the end.
    written: Vec<Blob>,
    pub wanted: Vec<Blob>,
    /// What became of the source is known, by an effect of this run.
    pub committed: bool,
}

impl<'a> SourceWriter<'a> {
    pub(super) const fn new(tools: &'a Tools, ctx: &'a JobContext, source: SourceId) -> Self {
        Self { tools, ctx, source, best: None, written: Vec::new(), wanted: Vec::new(), committed: false }
    }

    fn file(&self, blob: Blob) -> SourceFile {
        SourceFile { repository: self.ctx.repository(), source: self.source, hash: blob.hash }
    }

    /// Reads what somebody brought along.
    pub(super) async fn read_stored(&mut self, source: &Source) -> Result<Option<Failed>> {
        let Some(body) = source.body else {
            return Err(Error::internal(format!("uploaded source {} has no stored body", source.id)));
        };
        // It is the source's own, whatever becomes of it.
        self.wanted.push(body);
        let hint = Hint {
            content_type: source.content_type.clone(),
            file_name: source.file_name.clone(),
            url: None,
        };
        match self.parse(body, hint).await? {
            (Parsed::Document(document), images) => {
                self.best = Some(Accepted { document, body, images });
                Ok(None)
            }
            (Parsed::Failed(unreadable), _) => Ok(Some(Failed::of(unreadable.into()))),
        }
    }

    async fn parse(&mut self, body: Blob, hint: Hint) -> Result<(Parsed, Vec<SourceImage>)> {
        self.ctx.progress(Progress { stage: "parse".to_owned(), ..Progress::default() });
        let blobs = self.tools.blobs();
        let reading = blobs.read(self.file(body), None).await?;
        let reading = reading.ok_or(Error::NotFound("stored body of the source"))?;
        let head = Head { hint, limits: self.tools.limits() };
        let mut images = Images { writer: self, kept: Vec::new() };
        let parser = images.writer.tools.parser().clone();
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
    pub(super) async fn fetch_images(&mut self) -> Result<()> {
        let Some(mut taken) = self.best.take() else { return Ok(()) };
        let limits = self.tools.limits();
        let count = usize::try_from(limits.images).unwrap_or(0);
        let deadline = Instant::now() + IMAGES;
        for image in taken.images.iter_mut().filter(|image| image.blob.is_none()).take(count) {
            let Some((client, _)) = &self.tools.web() else { break };
            let Some(url) = image.url.clone().filter(|_| Instant::now() < deadline) else { continue };
            let Some((bytes, content_type)) = fetch_image(client, url, limits.image_bytes).await else {
                continue;
            };
            image.blob = Some(self.write(bytes.into()).await?);
            image.content_type = Some(content_type.to_owned());
        }
        self.best = Some(taken);
        Ok(())
    }

    /// Removes what this run has written for nothing.
    pub(super) async fn delete_unused(&self) {
        let stray = self.written.iter().filter(|blob| !self.wanted.contains(blob));
        let stray: Vec<SourceFile> = stray.map(|blob| self.file(*blob)).collect();
        if let Err(error) = self.tools.blobs().remove(&stray).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "failed to delete unused files; cleanup_files will"
            );
        }
    }
}

impl Taker for SourceWriter<'_> {
    async fn take(&mut self, page: &mut Page) -> Result<PageQuality, Error> {
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
        let least = self.tools.config().providers.resolution.min_content_chars;
        match parsed {
            Parsed::Document(document) if document.text.chars().count() >= least as usize => {
                self.best = Some(Accepted { document, body, images });
                Ok(PageQuality::Enough)
            }
            Parsed::Document(_) | Parsed::Failed(Unreadable { code: "no_text", .. }) => {
                Ok(PageQuality::TooLittle)
            }
            Parsed::Failed(Unreadable { code, message, .. }) => Ok(PageQuality::Unusable { code, message }),
        }
    }
}

/// Keeps the images of a document.
struct Images<'a, 'b> {
    writer: &'a mut SourceWriter<'b>,
    kept: Vec<SourceImage>,
}

impl TakeImage for Images<'_, '_> {
    async fn take(&mut self, image: Image) -> Result<()> {
        // A child is trusted with nothing, also not with counting.
        let limits = self.writer.tools.limits();
        let most = match image.kind {
            okt_parse::ImageKind::Inline => limits.images,
            okt_parse::ImageKind::Page => limits.page_images,
        };
        let alike = self.kept.iter().filter(|kept| kept.kind == image.kind.as_str()).count();
        if alike >= usize::try_from(most).unwrap_or(0) {
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
            Some(bytes) => Some(self.writer.write(bytes.into()).await?),
            None => None,
        };
        self.kept.push(SourceImage {
            id: ImageId::mint(),
            kind: image.kind.as_str().to_owned(),
            page_number: image.page_number.and_then(number),
            position: number(image.position).unwrap_or(i32::MAX),
            url: image.url.filter(|url| is_web_address(url)),
            width: image.width.and_then(number),
            height: image.height.and_then(number),
            alt_text: image.alt_text.map(plain),
            content_type,
            blob,
        });
        Ok(())
    }
}

fn is_web_address(url: &str) -> bool {
    url.len() <= 5_000 && (url.starts_with("https://") || url.starts_with("http://"))
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

pub(super) fn text_of(document: Document) -> SourceText {
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let pages = document.pages.iter().map(|page| SourcePage {
        number: page.number,
        width: rounded(page.width),
        height: rounded(page.height),
        rotation: page.rotation,
        ocr: page.ocr,
    });
    SourceText {
        text: document.text,
        markdown: document.markdown,
        sentences: document.sentences.iter().map(|(start, end)| (number(*start), number(*end))).collect(),
        boxes: boxes(&document.boxes),
        pages: pages.collect(),
        segmenter: document.segmenter,
        segmenter_hash: document.segmenter_hash,
    }
}

/// As they are handed out: `[[page, x0, y0, x1, y1, …], …]`. Written here, because a list of mixed numbers is none of Rust's:
/// the page is whole, the others are not.
fn boxes(places: &[Vec<okt_parse::Rect>]) -> Option<String> {
    if places.is_empty() {
        return None;
    }
    let sentences = places.iter().map(|rects| {
        let rects = rects.iter().map(|rect| {
            let [x0, y0, x1, y1] = [rect.x0, rect.y0, rect.x1, rect.y1].map(rounded);
            format!("{},{x0},{y0},{x1},{y1}", rect.page)
        });
        format!("[{}]", rects.collect::<Vec<_>>().join(","))
    });
    Some(format!("[{}]", sentences.collect::<Vec<_>>().join(",")))
}

/// To a hundredth of a point.
fn rounded(number: f32) -> f32 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use okt_parse::Rect;

    use super::*;

    #[test]
    fn pages_are_whole_numbers_and_places_are_to_a_hundredth() {
        let rect = |page| Rect { page, x0: 72.0, y0: 1.005_1, x1: 300.256, y1: 12.5 };
        let written = boxes(&[vec![rect(1), rect(2)], vec![]]).unwrap();
        assert_eq!(written, "[[1,72,1.01,300.26,12.5,2,72,1.01,300.26,12.5],[]]");
        assert!(serde_json::from_str::<Vec<Vec<f64>>>(&written).is_ok());
        assert_eq!(boxes(&[]), None);
    }
}
