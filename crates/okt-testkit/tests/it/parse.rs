//! `okt parse-worker`, the real program: what it answers, and what hostile files do to it.
mod hostile;
pub(crate) mod made;

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use okt_parse::worker::Head;
use okt_parse::{Document, Frame, Hint, Image, ImageKind, Limits, ParseError, read_frame, write_frame};

/// As long as the service waits.
const WALL: Duration = Duration::from_mins(1);

#[derive(Debug)]
enum Answer {
    Document(Box<Document>),
    Error(ParseError),
    /// It ended without an answer; how.
    Death(String),
}

#[derive(Debug)]
struct Run {
    answer: Answer,
    images: Vec<Image>,
    took: Duration,
    peak_mib: u64,
}

fn library() -> std::ffi::OsString {
    std::env::var_os("OKT_PDFIUM").expect("first: export OKT_PDFIUM=$(scripts/pdfium)")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../okt-parse/fixtures/pdf").join(name)).unwrap()
}

fn worker(pdfium: bool) -> Command {
    let mut command = Command::new(okt_testkit::jobs::program());
    command.arg("parse-worker").env_clear().current_dir("/");
    if pdfium {
        command.arg("--pdfium").arg(library());
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A file as the service gives it.
fn give(to: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    for piece in bytes.chunks(1024 * 1024) {
        write_frame(to, Frame::Bytes, piece)?;
    }
    write_frame(to, Frame::Bytes, &[])
}

fn parse(bytes: &[u8]) -> Run {
    parse_with(worker(true), &Head { hint: Hint::default(), limits: Limits::default() }, bytes)
}

fn parse_with(mut command: Command, head: &Head, bytes: &[u8]) -> Run {
    let started = Instant::now();
    let mut child = command.spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let head = serde_json::to_vec(head).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // It may have ended before it read everything.
            let _ = write_frame(&mut stdin, Frame::Head, &head).and_then(|()| give(&mut stdin, bytes));
        });
        let (send, receive) = channel();
        scope.spawn(move || {
            let (mut images, mut last) = (Vec::<Image>::new(), None);
            while let Ok(Some((frame, payload))) = read_frame(&mut stdout, 64 * 1024 * 1024) {
                match frame {
                    Frame::Image => images.push(serde_json::from_slice(&payload).unwrap()),
                    Frame::Bytes => images.last_mut().unwrap().bytes = payload,
                    Frame::Document => {
                        last = Some(Answer::Document(serde_json::from_slice(&payload).unwrap()));
                    }
                    Frame::Error => last = Some(Answer::Error(serde_json::from_slice(&payload).unwrap())),
                    Frame::Head | Frame::Scan | Frame::Words => panic!("{frame:?} came back"),
                }
            }
            send.send((images, last)).unwrap();
        });
        let mut peak_mib = 0;
        let (images, last) = loop {
            peak_mib = peak_mib.max(peak(&child));
            match receive.recv_timeout(Duration::from_millis(5)) {
                Ok(read) => break read,
                Err(RecvTimeoutError::Timeout) if started.elapsed() < WALL => {}
                Err(_) => {
                    let _ = child.kill();
                    panic!("still at work after {WALL:?}");
                }
            }
        };
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let answer = match last {
            Some(answer) if output.status.success() => answer,
            _ => Answer::Death(format!("{} {said}", output.status)),
        };
        Run { answer, images, took: started.elapsed(), peak_mib }
    })
}

/// The most memory that a process has had so far, in MiB.
fn peak(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

#[test]
fn a_pdf_goes_in_and_its_document_comes_out_with_its_pictures() {
    let run = parse(&fixture("paper.pdf"));
    println!("paper.pdf: {:?}, peak {} MiB", run.took, run.peak_mib);
    let Answer::Document(document) = run.answer else { panic!("{:?}", run.answer) };
    assert_eq!(document.doi.as_deref(), Some("10.5555/swifts.12.3"));
    assert_eq!(document.sentences.len(), document.boxes.len());
    assert_eq!(run.images.iter().filter(|image| image.kind == ImageKind::Page).count(), 3);
    assert!(
        run.images
            .iter()
            .all(|image| image.bytes.starts_with(b"\x89PNG") || image.bytes.starts_with(b"\xff\xd8"))
    );
}

#[test]
fn a_font_that_is_not_in_the_file_is_drawn_with_the_engines_own() {
    let run = parse(&made::page("BT /F 40 Tf 60 700 Td (Sphinx of black quartz) Tj ET"));
    let Answer::Document(document) = run.answer else { panic!("{:?}", run.answer) };
    assert_eq!(document.text, "Sphinx of black quartz");
    let blank = parse(&made::page("BT /F 40 Tf 3 Tr 60 700 Td (Sphinx of black quartz) Tj ET"));
    assert!(
        run.images[0].bytes.len() > blank.images[0].bytes.len() + 1_000,
        "the page is drawn without its letters"
    );
}

#[test]
fn without_an_engine_pdfs_are_refused_in_words() {
    for command in [worker(false), {
        let mut command = worker(false);
        command.args(["--pdfium", "/nowhere/libpdfium.so"]);
        command
    }] {
        let run = parse_with(command, &Head::default(), &fixture("article.pdf"));
        assert!(matches!(run.answer, Answer::Error(ParseError::NoPdfEngine(_))), "{:?}", run.answer);
    }
}

#[test]
fn a_file_beyond_the_limit_is_too_much() {
    let mut bytes = fixture("article.pdf");
    bytes.resize(usize::try_from(okt_parse::worker::FILE_BYTES).unwrap() + 1, b' ');
    assert!(matches!(parse(&bytes).answer, Answer::Error(ParseError::TooMuch(_))));
}

#[test]
fn what_recognises_text_reaches_nothing_but_what_is_installed() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("tesseract");
    // In place of tesseract: what somebody would try who had got hold of it.
    let script = "#!/bin/sh\nread -r line </etc/passwd && echo 'read a file'\necho x >\"$0.out\" && echo 'wrote a file'\n\
                  echo \"$1 $2 $4\"\n/bin/true && echo 'started a program'\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = Command::new(okt_testkit::jobs::program());
    command.args(["ocr-worker", "--languages", "eng", "--program"]).arg(&program).env_clear();
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "stdin stdout eng\n", "{output:?}");
}

#[test]
fn a_file_that_is_cut_off_is_not_taken_for_a_whole_one() {
    let mut child = worker(true).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    write_frame(&mut to, Frame::Head, &serde_json::to_vec(&Head::default()).unwrap()).unwrap();
    write_frame(&mut to, Frame::Bytes, b"The tide was out").unwrap();
    drop(to);
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
}

#[test]
fn what_is_no_head_ends_the_worker_without_an_answer() {
    let mut child = worker(true).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
}
