//! Having a file read: by a child that has locked itself in, so that whatever is in the file can hurt nobody else.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use okt_model::{Error, Locator, Result, SourceFailure, SourceStage};
use okt_parse::worker::{Head, NOT_LOCKED, WORDS_BYTES};
use okt_parse::{Document, Frame, Image, ParseError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

/// For everything, from the first byte in to the last byte out, without the recognition of text.
const WALL: Duration = Duration::from_mins(1);
/// For the recognition of text in the pictures of one file. Pages that come later stay without text.
const OCR_WALL: Duration = Duration::from_mins(5);
/// For one picture.
const PICTURE_WALL: Duration = Duration::from_mins(1);
/// Of what is shown in lists.
const LONGEST_LINE: usize = 2_000;
/// In pages; more are refused before they are read.
const LONGEST_BOOK: usize = 3_000;
/// What a child may say at once: texts of the longest that is read, with their sentences and places.
const LONGEST_FRAME: u32 = 64 * 1024 * 1024;

/// What [`ParseError::NoPdfEngine`] is called.
const NO_PDF_ENGINE: &str = "no_pdf_engine";
/// What it is called when the child did not live to say it.
const UNPROCESSABLE: &str = "unprocessable";

/// Has files read. Cheap to clone.
#[derive(Clone)]
pub struct Parser {
    program: Arc<PathBuf>,
    pdfium: Option<Arc<PathBuf>>,
    ocr: Option<Arc<Ocr>>,
    /// As many children at once as there are processors: more would only take memory from each other.
    turns: Arc<Semaphore>,
    /// For recognising text, which takes minutes: files without pictures do not wait for it.
    ocr_turns: Arc<Semaphore>,
}

/// What recognises text in pictures.
#[derive(Debug)]
pub struct Ocr {
    /// Path of tesseract.
    pub program: PathBuf,
    /// As tesseract calls them: `eng`, `eng+deu`.
    pub languages: String,
}

/// Whether files can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParserState {
    Ok,
    /// All but PDFs, and why.
    NoPdf(String),
    /// None, and why.
    Broken(String),
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
    /// `program` is this one, which can be told to be the child; `pdfium` the library that reads PDFs, `ocr` what reads pages
    /// that are pictures.
    pub fn new(program: PathBuf, pdfium: Option<PathBuf>, ocr: Option<Ocr>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            program: Arc::new(program),
            pdfium: pdfium.map(Arc::new),
            ocr: ocr.map(Arc::new),
            turns: Arc::new(Semaphore::new(processors)),
            ocr_turns: Arc::new(Semaphore::new((processors / 2).max(1))),
        }
    }

    /// Reads a file. An error is ours: what is wrong with the file is an answer.
    pub(crate) async fn parse(
        &self,
        head: &Head,
        bytes: impl Stream<Item = Result<Bytes>> + Send,
        images: &mut impl TakeImage,
    ) -> Result<Parsed> {
        let turn = self.turns.acquire().await.map_err(Error::internal)?;
        let mut child = self.spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::internal("the parser process has no stdin or stdout"));
        };
        let clock = Clock::new(WALL);
        let talk = async {
            let (answers, answered) = oneshot::channel();
            let recogniser = Recogniser::new(self, turn, &clock, answered);
            let (fed, said) = tokio::join!(feed(to, head, bytes, answers), hear(from, images, recogniser));
            // Whoever has heard enough does not listen to the end.
            match said? {
                Some(parsed) => Ok(Some(parsed)),
                None => fed.map(|()| None),
            }
        };
        // Dropping the child ends it.
        let talked: Result<Option<Parsed>> = tokio::select! {
            talked = talk => talked,
            () = clock.run_out() => Ok(Some(Parsed::Failed(unreadable("reading it takes too long")))),
        };
        match talked? {
            Some(parsed) => Ok(parsed),
            None => died(&mut child).await.map(Parsed::Failed),
        }
    }

    /// Whether a child starts, locks itself in and loads the library for PDFs. It is given the first line of one, which
    /// says nothing, so that all it does is to get ready.
    pub async fn check(&self) -> ParserState {
        let bytes = futures_util::stream::iter([Ok(Bytes::from_static(b"%PDF-1.7\n"))]);
        match self.parse(&Head::default(), bytes, &mut NoImages).await {
            Ok(Parsed::Failed(failed)) if failed.code == NO_PDF_ENGINE => ParserState::NoPdf(match &self.pdfium {
                Some(library) => format!("{} can't be loaded; {}", library.display(), failed.message),
                None => "PDFs can't be read: name a libpdfium.so in providers.parsing.pdfium, or put it beside the program"
                    .to_owned(),
            }),
            Ok(Parsed::Failed(failed)) if failed.code == UNPROCESSABLE => ParserState::Broken(failed.message),
            Ok(_) => ParserState::Ok,
            Err(Error::Unavailable { cause, .. }) => {
                ParserState::Broken(format!("the reader of files can't be started: {cause}"))
            }
            Err(error) => ParserState::Broken(error.to_string()),
        }
    }

    fn spawn(&self) -> Result<Child> {
        let mut command = Command::new(&*self.program);
        command.arg("parse-worker");
        if let Some(pdfium) = &self.pdfium {
            command.arg("--pdfium").arg(&**pdfium);
        }
        if self.ocr.is_some() {
            command.arg("--ocr");
        }
        started(&mut command)
    }

    /// The words in a picture; none if they can't be found.
    async fn recognise(&self, ocr: &Ocr, picture: &[u8], limit: Duration) -> Result<Vec<u8>> {
        let mut command = Command::new(&*self.program);
        command.arg("ocr-worker").arg("--program").arg(&ocr.program).arg("--languages").arg(&ocr.languages);
        let mut child = started(&mut command)?;
        let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::internal("the process that recognises text has no stdin or stdout"));
        };
        let talk = async {
            let mut words = Vec::new();
            let mut from = from.take(u64::from(WORDS_BYTES));
            let give = async move { to.write_all(picture).await };
            let (given, heard) = tokio::join!(give, from.read_to_end(&mut words));
            let ended = child.wait().await;
            (given.and(heard).is_ok() && ended.as_ref().is_ok_and(ExitStatus::success), words, ended)
        };
        match tokio::time::timeout(limit, talk).await {
            Ok((true, words, _)) => Ok(words),
            Ok((false, _, ended)) => {
                tracing::warn!(program = %ocr.program.display(), ?ended, "text recognition failed; the page stays without text");
                Ok(Vec::new())
            }
            Err(_) => {
                tracing::warn!(program = %ocr.program.display(), "text recognition took too long; the page stays without text");
                Ok(Vec::new())
            }
        }
    }
}

fn started(command: &mut Command) -> Result<Child> {
    command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().map_err(|error| Error::Unavailable { service: "the parser", cause: error.into() })
}

/// Time that is left, and stands still while text is recognised.
struct Clock(Mutex<Left>);

#[derive(Clone, Copy)]
enum Left {
    Until(Instant),
    Still(Duration),
}

impl Clock {
    fn new(limit: Duration) -> Self {
        Self(Mutex::new(Left::Until(Instant::now() + limit)))
    }

    fn stop(&self) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Left::Until(end) = *left {
            *left = Left::Still(end.saturating_duration_since(Instant::now()));
        }
    }

    fn go_on(&self) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Left::Still(rest) = *left {
            *left = Left::Until(Instant::now() + rest);
        }
    }

    async fn run_out(&self) {
        loop {
            let left = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match left {
                Left::Until(end) if end <= Instant::now() => return,
                Left::Until(end) => tokio::time::sleep_until(end.into()).await,
                Left::Still(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

/// Answers a child that asks for the words in a picture.
struct Recogniser<'a> {
    parser: &'a Parser,
    /// To read files at first; to recognise text from the first picture on.
    turn: Option<SemaphorePermit<'a>>,
    clock: &'a Clock,
    recognises: bool,
    /// The child's input, once the file is in it.
    input: Option<oneshot::Receiver<ChildStdin>>,
    open: Option<ChildStdin>,
    spent: Duration,
}

impl<'a> Recogniser<'a> {
    fn new(
        parser: &'a Parser,
        turn: SemaphorePermit<'a>,
        clock: &'a Clock,
        input: oneshot::Receiver<ChildStdin>,
    ) -> Self {
        Self {
            parser,
            turn: Some(turn),
            recognises: false,
            clock,
            input: Some(input),
            open: None,
            spent: Duration::ZERO,
        }
    }

    async fn answer(&mut self, picture: &[u8]) -> Result<()> {
        self.clock.stop();
        if !std::mem::replace(&mut self.recognises, true) {
            drop(self.turn.take());
            self.turn = Some(self.parser.ocr_turns.acquire().await.map_err(Error::internal)?);
        }
        let began = Instant::now();
        let limit = PICTURE_WALL.min(OCR_WALL.saturating_sub(self.spent));
        let words = match &self.parser.ocr {
            Some(ocr) if !limit.is_zero() => self.parser.recognise(ocr, picture, limit).await?,
            _ => Vec::new(),
        };
        self.spent += began.elapsed();
        self.clock.go_on();
        if let Some(input) = self.input.take() {
            self.open = input.await.ok();
        }
        let len = u32::try_from(words.len()).map_err(Error::internal)?;
        if let Some(to) = &mut self.open {
            // It may be gone; what it said then is what counts.
            let _ = to.write_all(&Frame::Words.encode(len)).await;
            let _ = to.write_all(&words).await;
        }
        Ok(())
    }
}

struct NoImages;

impl TakeImage for NoImages {
    async fn take(&mut self, _: Image) -> Result<()> {
        Ok(())
    }
}

/// Gives the child its file, and its input to whoever answers it.
async fn feed(
    mut to: ChildStdin,
    head: &Head,
    bytes: impl Stream<Item = Result<Bytes>> + Send,
    answers: oneshot::Sender<ChildStdin>,
) -> Result<()> {
    let head = serde_json::to_vec(head).map_err(Error::internal)?;
    let len = u32::try_from(head.len()).map_err(Error::internal)?;
    // It may have seen enough and be gone; what it said then is what counts.
    if to.write_all(&Frame::Head.encode(len)).await.is_err() || to.write_all(&head).await.is_err() {
        return Ok(());
    }
    let mut bytes = std::pin::pin!(bytes);
    while let Some(piece) = bytes.next().await {
        let piece = piece?;
        let len = u32::try_from(piece.len()).map_err(Error::internal)?;
        // An empty piece is the end.
        if len > 0
            && (to.write_all(&Frame::Bytes.encode(len)).await.is_err() || to.write_all(&piece).await.is_err())
        {
            return Ok(());
        }
    }
    if to.write_all(&Frame::Bytes.encode(0)).await.is_ok() {
        // Nobody may be interested any more.
        let _ = answers.send(to);
    }
    Ok(())
}

/// What the child says; `None` when it ended before it was done.
async fn hear(
    from: ChildStdout,
    images: &mut impl TakeImage,
    mut recogniser: Recogniser<'_>,
) -> Result<Option<Parsed>> {
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
            Frame::Scan => recogniser.answer(&payload).await?,
            Frame::Head | Frame::Words => return Ok(None),
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
    let sized = |page: &okt_parse::PageSize| {
        page.number > 0 && page.width.is_finite() && page.height.is_finite() && page.rotation < 360
    };
    let sized = document.pages.len() <= LONGEST_BOOK && document.pages.iter().all(sized);
    in_order && boxed && finite && sized && clean(&document.text) && clean(&document.markdown)
}

async fn died(child: &mut Child) -> Result<Unreadable> {
    use std::os::unix::process::ExitStatusExt as _;
    let ended = child.wait().await.map_err(Error::internal)?;
    if ended.code() == Some(NOT_LOCKED.into()) {
        // Not the file's fault, and nothing is read without the locks.
        return Err(Error::Operator(
            "the parser process could not enter its sandbox; run `okt parse-worker` in a shell to see why"
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
    Unreadable { code: UNPROCESSABLE, message: format!("the file can't be read: {why}"), retryable: false }
}

fn of(error: &ParseError) -> Unreadable {
    let retryable = matches!(error, ParseError::NoPdfEngine(_));
    Unreadable { code: error.code(), message: plain(error.to_string()), retryable }
}
