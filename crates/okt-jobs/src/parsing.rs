//! Having a file read: by a child that has locked itself in, so that whatever is in the file can hurt nobody else.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use okt_model::{Error, Locator, Result, SourceFailure, SourceStage};
use okt_parse::worker::{Head, NOT_LOCKED};
use okt_parse::{Document, Frame, Image, ParseError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Semaphore;

/// For everything, from the first byte in to the last byte out.
const WALL: Duration = Duration::from_mins(1);
/// Of what is shown in lists.
const LONGEST_LINE: usize = 2_000;
/// What a child may say at once: texts of the longest that is read, with their sentences and places.
const LONGEST_FRAME: u32 = 64 * 1024 * 1024;

/// Has files read. Cheap to clone.
#[derive(Clone)]
pub struct Parser {
    program: Arc<PathBuf>,
    pdfium: Option<Arc<PathBuf>>,
    /// As many children at once as there are processors: more would only take memory from each other.
    turns: Arc<Semaphore>,
}

/// What came of reading a file.
pub(crate) enum Parsed {
    Document(Box<Document>),
    Failed(Unreadable),
}

/// What is wrong with a file.
pub(crate) struct Unreadable {
    pub code: &'static str,
    pub message: String,
    pub retryable: bool,
}

impl From<Unreadable> for SourceFailure {
    fn from(unreadable: Unreadable) -> Self {
        Self::new(SourceStage::Parse, unreadable.code, unreadable.message, unreadable.retryable)
    }
}

/// What happens to the images of a file, one by one.
pub(crate) trait TakeImage: Send {
    fn take(&mut self, image: Image) -> impl Future<Output = Result<()>> + Send;
}

impl Parser {
    /// `program` is this one, which can be told to be the child; `pdfium` the library that reads PDFs.
    pub fn new(program: PathBuf, pdfium: Option<PathBuf>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            program: Arc::new(program),
            pdfium: pdfium.map(Arc::new),
            turns: Arc::new(Semaphore::new(processors)),
        }
    }

    /// Reads a file. An error is ours: what is wrong with the file is an answer.
    pub(crate) async fn parse(
        &self,
        head: &Head,
        bytes: impl Stream<Item = Result<Bytes>> + Send,
        images: &mut impl TakeImage,
    ) -> Result<Parsed> {
        let _turn = self.turns.acquire().await.map_err(Error::internal)?;
        let mut child = self.spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::internal("a child without pipes"));
        };
        // Dropping the child ends it.
        let talked = tokio::time::timeout(WALL, async {
            let (fed, said) = tokio::join!(feed(to, head, bytes), hear(from, images));
            // Whoever has heard enough does not listen to the end.
            match said? {
                Some(parsed) => Ok(Some(parsed)),
                None => fed.map(|()| None),
            }
        });
        match talked.await {
            Ok(Ok(Some(parsed))) => Ok(parsed),
            Ok(Ok(None)) => died(&mut child).await.map(Parsed::Failed),
            Ok(Err(error)) => Err(error),
            Err(_) => Ok(Parsed::Failed(unreadable("reading it takes too long"))),
        }
    }

    fn spawn(&self) -> Result<Child> {
        let mut command = Command::new(&*self.program);
        command.arg("parse-worker");
        if let Some(pdfium) = &self.pdfium {
            command.arg("--pdfium").arg(&**pdfium);
        }
        command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.kill_on_drop(true);
        let spawned = command.spawn();
        spawned.map_err(|error| Error::Unavailable { service: "the parser", cause: error.into() })
    }
}

async fn feed(
    mut to: ChildStdin,
    head: &Head,
    bytes: impl Stream<Item = Result<Bytes>> + Send,
) -> Result<()> {
    let head = serde_json::to_vec(head).map_err(Error::internal)?;
    let len = u32::try_from(head.len()).map_err(Error::internal)?;
    // It may have seen enough and be gone; what it said then is what counts.
    if to.write_all(&Frame::Head.encode(len)).await.is_err() || to.write_all(&head).await.is_err() {
        return Ok(());
    }
    let mut bytes = std::pin::pin!(bytes);
    while let Some(piece) = bytes.next().await {
        if to.write_all(&piece?).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// What the child says; `None` when it ended before it was done.
async fn hear(from: ChildStdout, images: &mut impl TakeImage) -> Result<Option<Parsed>> {
    let mut from = BufReader::new(from);
    let mut image: Option<Image> = None;
    while let Some((frame, payload)) = next(&mut from).await {
        match frame {
            Frame::Image => image = serde_json::from_slice(&payload).ok(),
            Frame::Bytes => {
                if let Some(image) = image.take() {
                    images.take(Image { bytes: payload, ..image }).await?;
                }
            }
            Frame::Document => {
                let document: Option<Box<Document>> = serde_json::from_slice(&payload).ok();
                return Ok(document
                    .filter(|document| is_sound(document))
                    .map(made_plain)
                    .map(Parsed::Document));
            }
            Frame::Error => {
                let error: Option<ParseError> = serde_json::from_slice(&payload).ok();
                return Ok(error.map(|error| Parsed::Failed(of(&error))));
            }
            Frame::Head => return Ok(None),
        }
    }
    Ok(None)
}

async fn next(from: &mut (impl AsyncRead + Unpin)) -> Option<(Frame, Vec<u8>)> {
    let mut head = [0; Frame::HEAD_LEN];
    from.read_exact(&mut head).await.ok()?;
    let (frame, len) = Frame::decode(head).filter(|(_, len)| *len <= LONGEST_FRAME)?;
    // Grows with what really arrives, not with what was announced.
    let mut payload = Vec::new();
    let read = from.take(u64::from(len)).read_to_end(&mut payload).await.ok()?;
    (read == usize::try_from(len).ok()?).then_some((frame, payload))
}

/// One line of a length that a title has.
pub(crate) fn plain(text: String) -> String {
    if text.len() <= LONGEST_LINE && !text.contains(char::is_control) {
        return text;
    }
    let mut line: String = text.chars().filter(|c| !c.is_control()).collect();
    line.truncate(line.floor_char_boundary(LONGEST_LINE));
    line
}

/// What a document says of itself goes into lists.
fn made_plain(mut document: Box<Document>) -> Box<Document> {
    document.content_type = plain(std::mem::take(&mut document.content_type));
    for said in [&mut document.title, &mut document.author, &mut document.site_name, &mut document.license] {
        *said = said.take().map(plain);
    }
    document.language = document.language.take().filter(|code| code.len() <= 3);
    document.doi = document.doi.take().and_then(|doi| Locator::parse(&doi).ok()?.doi);
    document
}

/// A child is trusted with nothing, so what it says has to be possible.
fn is_sound(document: &Document) -> bool {
    let length = u32::try_from(document.text.chars().count()).unwrap_or(u32::MAX);
    let mut at = 0;
    let in_order = document.sentences.iter().all(|(start, end)| {
        let sound = at <= *start && start < end && *end <= length;
        at = *end;
        sound
    });
    let clean = |text: &str| !text.contains('\0');
    let boxed = document.boxes.is_empty() || document.boxes.len() == document.sentences.len();
    let finite = document
        .boxes
        .iter()
        .flatten()
        .all(|rect| [rect.x0, rect.y0, rect.x1, rect.y1].iter().all(|number| number.is_finite()));
    in_order && boxed && finite && clean(&document.text) && clean(&document.markdown)
}

async fn died(child: &mut Child) -> Result<Unreadable> {
    use std::os::unix::process::ExitStatusExt as _;
    let ended = child.wait().await.map_err(Error::internal)?;
    if ended.code() == Some(NOT_LOCKED.into()) {
        // Not the file's fault, and nothing is read without the locks.
        return Err(Error::Operator(
            "the reader of files could not lock itself in; `okt parse-worker` at a prompt says why"
                .to_owned(),
        ));
    }
    Ok(match ended.signal() {
        // SIGXCPU, and SIGKILL when that is not heeded.
        Some(24 | 9) => unreadable("reading it takes too long"),
        _ => unreadable("reading it takes too much memory, or it is broken in a way that can't be read"),
    })
}

fn unreadable(why: &str) -> Unreadable {
    Unreadable { code: "unprocessable", message: format!("the file can't be read: {why}"), retryable: false }
}

fn of(error: &ParseError) -> Unreadable {
    let retryable = matches!(error, ParseError::NoPdfEngine(_));
    Unreadable { code: error.code(), message: plain(error.to_string()), retryable }
}
