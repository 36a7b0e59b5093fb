//! Readers that take a few bytes of a large answer and then nothing more.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::frames::{
    DATA, GOAWAY, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, answer, frame, read_frame,
    request,
};
use super::shelf::Shelf;

const READERS: u32 = 100;
/// What a hundred of them may add, in KiB.
const MEMORY: u64 = 64 * 1024;
/// How long they may stay.
const STAY: Duration = Duration::from_secs(30);

/// The most that the process had while `meanwhile` went on, over what it had before.
async fn grown<T>(shelf: &Shelf, meanwhile: impl Future<Output = T>) -> (u64, T) {
    let before = shelf.process.memory();
    let mut most = before;
    tokio::pin!(meanwhile);
    loop {
        tokio::select! {
            done = &mut meanwhile => return (most.max(shelf.process.memory()) - before, done),
            () = tokio::time::sleep(Duration::from_millis(100)) => most = most.max(shelf.process.memory()),
        }
    }
}

#[tokio::test]
async fn a_hundred_stalled_readers_over_http_1_hold_little_and_are_let_go() {
    let shelf = Shelf::start(&[]).await;
    let whole = shelf.whole().await;
    assert_eq!(whole.status, 200, "{:?}", whole.status);
    assert!((6_500_000..8_000_000).contains(&whole.text.len()), "{}", whole.text.len());

    let started = Instant::now();
    let (grown, mut readers) = grown(&shelf, async {
        let mut readers = Vec::new();
        for _ in 0..READERS {
            readers.push(shelf.ask_as_owner(&shelf.path).await);
        }
        tokio::time::sleep(STAY.saturating_sub(started.elapsed())).await;
        readers
    })
    .await;
    let served = readers.iter().filter(|(status, _)| *status == 200).count();
    println!("{served} of {READERS} were served, {grown} KiB more");
    assert!(served >= 1, "{:?}", readers.iter().map(|(status, _)| status).collect::<Vec<_>>());
    assert!(readers.iter().all(|(status, _)| matches!(status, 200 | 429)));
    assert!(grown <= MEMORY, "{grown} KiB");
    for (status, stream) in &mut readers {
        let (mut read, mut buffer) = (0, vec![0; 64 * 1024]);
        let ended = tokio::time::timeout(Duration::from_secs(5), async {
            while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
                read += bytes;
            }
        });
        assert!(ended.await.is_ok(), "{status} is still open after {read} bytes");
        assert!(read < 6_000_000, "{status}: {read} bytes");
    }
    assert_eq!(shelf.whole().await.text.len(), whole.text.len(), "who reads is served as before");
}

/// The connection is read all the time; only the streams are not.
#[tokio::test]
async fn a_hundred_stalled_readers_over_http_2_hold_little_and_are_let_go() {
    let shelf = Shelf::start(&[]).await;
    shelf.whole().await;
    let started = Instant::now();
    let (grown, (served, over)) = grown(&shelf, async {
        #[expect(clippy::disallowed_methods, reason = "a reader that no HTTP client would be")]
        let mut stream = TcpStream::connect(shelf.address()).await.unwrap();
        let mut frames = PREFACE.to_vec();
        frame(&mut frames, SETTINGS, 0, 0, &[]);
        // Room for the connection, so that each stream stands still by itself.
        frame(&mut frames, WINDOW_UPDATE, 0, 0, &0x3fff_0000_u32.to_be_bytes());
        let headers = request("GET", &shelf.path, Some(&shelf.token));
        for n in 0..READERS {
            frame(&mut frames, HEADERS, 0x5, 2 * n + 1, &headers);
        }
        stream.write_all(&frames).await.unwrap();
        let (mut served, mut over) = (std::collections::BTreeMap::<u32, usize>::new(), Vec::new());
        while over.len() < READERS as usize {
            let next = tokio::time::timeout(Duration::from_secs(40), read_frame(&mut stream)).await;
            let (kind, flags, id, payload) = next.expect("something goes on");
            match kind {
                DATA => *served.entry(id).or_default() += payload.len(),
                SETTINGS if flags & 1 == 0 => answer(&mut stream, SETTINGS, &[]).await,
                PING if flags & 1 == 0 => answer(&mut stream, PING, &payload).await,
                RST_STREAM => over.push((id, true)),
                GOAWAY => panic!("the connection is not at fault: {payload:?}"),
                _ => {}
            }
            if matches!(kind, DATA | HEADERS) && flags & 1 == 1 {
                over.push((id, false));
            }
        }
        (served, over)
    })
    .await;
    let reset = over.iter().filter(|(_, reset)| *reset).count();
    let large = served.values().filter(|bytes| **bytes > 10_000).count();
    println!("{large} of {READERS} were served, {reset} reset, {grown} KiB more, {:?}", started.elapsed());
    assert!(large >= 1 && reset == large, "{large} served, {reset} reset");
    assert!(grown <= MEMORY, "{grown} KiB");
    assert!(started.elapsed() < STAY, "{:?}", started.elapsed());
}

/// Even the smallest answer, whoever gives it.
#[tokio::test]
async fn no_answer_is_left_lying_over_http_2() {
    let shelf = Shelf::start(&[("SVC__SERVER__WRITE_STALL_TIMEOUT", "1s")]).await;
    #[expect(clippy::disallowed_methods, reason = "a reader that no HTTP client would be")]
    let mut stream = TcpStream::connect(shelf.address()).await.unwrap();
    let mut frames = PREFACE.to_vec();
    // No room for a single byte.
    frame(&mut frames, SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let asked = [
        ("GET", "/nowhere"),
        ("DELETE", "/api/v1/openapi.json"),
        ("GET", "/readyz"),
        ("GET", "/api/v1/setup?x=%00"),
        ("GET", "/api/v1/users/me"),
        ("GET", "/api/v1/setup"),
    ];
    for (n, (method, path)) in (0_u32..).zip(asked) {
        frame(&mut frames, HEADERS, 0x5, 2 * n + 1, &request(method, path, None));
    }
    stream.write_all(&frames).await.unwrap();
    let mut reset = std::collections::BTreeSet::new();
    while reset.len() < asked.len() {
        let next = tokio::time::timeout(Duration::from_secs(10), read_frame(&mut stream)).await;
        let (kind, flags, id, payload) = next.unwrap_or_else(|_| panic!("only {reset:?} were reset"));
        match kind {
            SETTINGS if flags & 1 == 0 => answer(&mut stream, SETTINGS, &[]).await,
            PING if flags & 1 == 0 => answer(&mut stream, PING, &payload).await,
            RST_STREAM => drop(reset.insert(id)),
            _ => assert!(flags & 1 == 0 || kind == SETTINGS || kind == PING, "{id} is over"),
        }
    }
}

/// The kernel keeps much more than they take in the time of a stall, and tells of room only when a third of it is free.
#[tokio::test]
async fn a_slow_reader_is_left_alone() {
    let shelf = Shelf::start(&[("SVC__SERVER__WRITE_STALL_TIMEOUT", "3s")]).await;
    let (status, mut stream) = shelf.ask_as_owner(&shelf.path).await;
    assert_eq!(status, 200);
    let (started, mut read, mut buffer) = (Instant::now(), 0, [0; 1024]);
    while started.elapsed() < Duration::from_secs(20) {
        let bytes = tokio::time::timeout(Duration::from_secs(2), stream.read(&mut buffer)).await;
        match bytes.expect("there is more") {
            Ok(bytes @ 1..) => read += bytes,
            ended => panic!("{ended:?} after {:?} and {read} bytes", started.elapsed()),
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    println!("{read} bytes in {:?}", started.elapsed());
    assert!((20 * 1024..100 * 1024).contains(&read), "{read} bytes");
    // Until they stop.
    tokio::time::sleep(Duration::from_secs(8)).await;
    let ended = tokio::time::timeout(Duration::from_secs(5), async {
        while let Ok(1..) = stream.read(&mut buffer).await {}
    });
    assert!(ended.await.is_ok(), "it is still open");
}
