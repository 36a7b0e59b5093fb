//! Connections: HTTP/1.1, one request after the other, and what becomes of each.

use std::future::pending;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::answers::{Question, cut, tokens, vector};
use super::{Behaviour, Fate, Shared, State, fate};

const MAX_HEAD: usize = 64 * 1024;
const MAX_BODY: usize = 64 * 1024 * 1024;
const MODEL: &str = "okt-test-model";

pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // They are dropped with the server.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        shared.with(|state| state.stats.connections += 1);
        connections.spawn(converse(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

struct Request {
    line: String,
    body: Vec<u8>,
}

/// An answer that is ready to be sent.
struct Answer {
    status: u16,
    head: String,
    body: String,
    /// What it counts as when it is sent in full.
    good: Option<Good>,
    /// Of an answer that comes piece by piece: the pieces in place of the body, and how long between two.
    pieces: Option<(Vec<String>, std::time::Duration)>,
}

struct Good {
    name: u64,
    tokens_in: u64,
    tokens_out: u64,
}

async fn converse(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer).await {
        let mut parts = request.line.split(' ');
        let answer = match (parts.next(), parts.next()) {
            (Some("POST"), Some("/v1/chat/completions")) => ask(&stream, &shared, &request, chat).await,
            (Some("POST"), Some("/v1/embeddings")) => ask(&stream, &shared, &request, embed).await,
            (Some("POST"), Some("/v1/rerank")) => ask(&stream, &shared, &request, rerank).await,
            (Some("GET"), Some("/v1/models")) => {
                let models = json!({ "object": "list", "data": [{ "id": MODEL, "object": "model" }] });
                Some(Answer::json(200, &models))
            }
            (Some("GET"), Some("/stats")) => {
                Some(Answer::json(200, &shared.with(|state| json!(state.stats))))
            }
            _ => Some(Answer::trouble(404, "there is nothing here")),
        };
        let Some(answer) = answer else { return };
        if answer.send(&mut stream).await.is_err() {
            shared.with(|state| state.stats.left += u64::from(answer.pieces.is_some()));
            return;
        }
        if let Some(good) = answer.good {
            let moment = u64::try_from(shared.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            shared.with(|state| state.sent(&good, moment));
        }
    }
}

/// The next request; `None` when there is none, or none that is understood.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    let head = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        buffer.reserve(8 * 1024);
        if buffer.len() > MAX_HEAD || stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&buffer[..head]).into_owned();
    let length = text.lines().filter_map(|line| line.split_once(':'));
    let mut length = length.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.next().map_or(Some(0), |(_, value)| value.trim().parse().ok())?;
    if length > MAX_BODY {
        return None;
    }
    buffer.reserve((head + length).saturating_sub(buffer.len()));
    while buffer.len() < head + length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = buffer[head..head + length].to_vec();
    buffer.drain(..head + length);
    Some(Request { line: text.lines().next().unwrap_or_default().to_owned(), body })
}

/// In flight as long as it lives.
struct InFlight<'a>(&'a Shared);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.stats.in_flight -= 1);
    }
}

type Say = fn(&Value, &Behaviour, Fate, u64) -> (Answer, String);

/// Lets a request meet its fate; `None` when the connection is to end.
async fn ask(stream: &TcpStream, shared: &Shared, request: &Request, say: Say) -> Option<Answer> {
    let name = fate::name(&request.body);
    let (behaviour, fate, wait) = shared.with(|state| state.meet(name));
    let _in_flight = InFlight(shared);
    let Ok(body) = serde_json::from_slice(&request.body) else {
        return Some(Answer::trouble(400, "the body is no JSON"));
    };
    let (answer, asked) = say(&body, &behaviour, fate, name);
    if behaviour.keep {
        shared.with(|state| state.stats.asked.push(asked));
    }
    let at_once = matches!(fate, Fate::RateLimited | Fate::Refused | Fate::Down);
    let waited = async {
        if fate == Fate::Hang {
            pending::<()>().await;
        }
        if !at_once && !wait.is_zero() {
            sleep(wait).await;
        }
    };
    tokio::select! {
        biased;
        () = waited => {}
        () = gone(stream) => {
            shared.with(|state| state.stats.left += 1);
            return None;
        }
    }
    match fate {
        Fate::Down => None,
        Fate::RateLimited => {
            let head = format!("retry-after: {}\r\n", behaviour.retry_after_secs);
            Some(Answer { head, ..Answer::trouble(429, "you ask too often") })
        }
        Fate::Refused => Some(Answer::trouble(401, "nobody knows this key")),
        Fate::Error => Some(Answer::trouble(500, "the server had an error")),
        Fate::Html => {
            let head = "content-type: text/html\r\n".to_owned();
            let body = "<!doctype html><html><body>Please sign in</body></html>".to_owned();
            Some(Answer { status: 200, head, body, good: None, pieces: None })
        }
        Fate::Good | Fate::Garbage | Fate::Truncated | Fate::Hang => Some(answer),
    }
}

/// Until the client has left.
async fn gone(stream: &TcpStream) {
    match stream.peek(&mut [0]).await {
        Ok(0) | Err(_) => {}
        // The next request, early; nobody who is about to leave sends one.
        Ok(_) => pending().await,
    }
}

fn chat(asked: &Value, behaviour: &Behaviour, fate: Fate, name: u64) -> (Answer, String) {
    let question = Question::read(asked);
    let good = question.answer(behaviour);
    let (text, finish) = match fate {
        Fate::Garbage => ("Sure! Here is what I have found:", "stop"),
        Fate::Truncated => (cut(&good), "length"),
        _ => (good.as_str(), "stop"),
    };
    let (tokens_in, tokens_out) = (question.tokens, tokens(text));
    let body = json!({
        "id": format!("chatcmpl-{name:016x}"),
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": finish }],
        "usage": usage(tokens_in, tokens_out),
    });
    // What it is about stays the same when it is asked again in other words.
    let mut messages = asked["messages"].as_array().into_iter().flatten();
    let first = messages.find(|message| message["role"] == "user").map(Value::to_string);
    let name = fate::name(first.unwrap_or_default().as_bytes());
    let good = (fate == Fate::Good).then_some(Good { name, tokens_in, tokens_out });
    let mut answer = Answer { good, ..Answer::json(200, &body) };
    if asked["stream"] == true {
        answer.pieces =
            Some((pieces(text, finish, &body["usage"]), std::time::Duration::from_millis(behaviour.pace_ms)));
        "content-type: text/event-stream\r\n".clone_into(&mut answer.head);
    }
    (answer, question.user)
}

/// An answer a few letters at a time.
fn pieces(text: &str, finish: &str, usage: &Value) -> Vec<String> {
    let event = |event: &Value| format!("data: {event}\n\n");
    let letters: Vec<char> = text.chars().collect();
    let mut pieces: Vec<String> = letters
        .chunks(24)
        .map(|some| {
            let content: String = some.iter().collect();
            event(&json!({ "choices": [{ "index": 0, "delta": { "content": content } }] }))
        })
        .collect();
    pieces.push(event(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] })));
    pieces.push(event(&json!({ "choices": [], "usage": usage })));
    pieces.push("data: [DONE]\n\n".to_owned());
    pieces
}

fn embed(body: &Value, behaviour: &Behaviour, fate: Fate, name: u64) -> (Answer, String) {
    let texts: Vec<&str> = match &body["input"] {
        Value::String(text) => vec![text],
        input => input.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    };
    let mut vectors: Vec<_> = texts.iter().map(|text| vector(text, behaviour.dimensions)).collect();
    match fate {
        Fate::Garbage => vectors.clear(),
        Fate::Truncated => vectors.truncate(vectors.len().saturating_sub(1)),
        _ => {}
    }
    let tokens_in = texts.iter().map(|text| tokens(text)).sum();
    let vector = |(index, vector)| json!({ "object": "embedding", "index": index, "embedding": vector });
    let data: Vec<_> = vectors.into_iter().enumerate().map(vector).collect();
    let body = json!({ "object": "list", "model": MODEL, "data": data, "usage": usage(tokens_in, 0) });
    let good = (fate == Fate::Good).then_some(Good { name, tokens_in, tokens_out: 0 });
    (Answer { good, ..Answer::json(200, &body) }, texts.join("\n"))
}

fn rerank(body: &Value, behaviour: &Behaviour, fate: Fate, name: u64) -> (Answer, String) {
    let question = body["query"].as_str().unwrap_or_default();
    let texts: Vec<&str> =
        body["documents"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let result = |(index, text): (usize, &&str)| json!({ "index": index, "relevance_score": (behaviour.relevance)(question, text) });
    let mut results: Vec<Value> = texts.iter().enumerate().map(result).collect();
    match fate {
        // Only the second text is ranked, and that twice.
        Fate::Garbage => {
            let score = |index: Value, score: Value| json!({ "index": index, "relevance_score": score });
            let beyond = score(json!(texts.len()), json!(9));
            results = vec![beyond, score(json!(-1), json!(9)), score(json!(0), Value::Null), json!("first")];
            results.extend([score(json!(1), json!(0.5)), score(json!(1), json!(0.7))]);
        }
        Fate::Truncated => results.truncate(results.len() / 2),
        _ => {}
    }
    let tokens_in = texts.iter().map(|text| tokens(text) + tokens(question)).sum::<u64>();
    let body =
        json!({ "id": "rerank", "model": MODEL, "results": results, "usage": { "total_tokens": tokens_in } });
    let good = (fate == Fate::Good).then_some(Good { name, tokens_in, tokens_out: 0 });
    (Answer { good, ..Answer::json(200, &body) }, format!("{question}\n{}", texts.join("\n")))
}

fn usage(tokens_in: u64, tokens_out: u64) -> Value {
    json!({ "prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out })
}

impl State {
    /// A request has come.
    fn meet(&mut self, name: u64) -> (Arc<Behaviour>, Fate, std::time::Duration) {
        let times = self.times.entry(name).or_default();
        let (fate, wait) = fate::draw(&self.behaviour, name, *times);
        *times += 1;
        self.stats.requests += 1;
        *self.stats.fates.entry(fate).or_default() += 1;
        self.stats.in_flight += 1;
        self.stats.most_in_flight = self.stats.most_in_flight.max(self.stats.in_flight);
        (Arc::clone(&self.behaviour), fate, wait)
    }

    fn sent(&mut self, good: &Good, moment: u64) {
        self.stats.good.entry(good.name).or_default().push(moment);
        self.stats.tokens_in += good.tokens_in;
        self.stats.tokens_out += good.tokens_out;
    }
}

impl Answer {
    fn json(status: u16, body: &Value) -> Self {
        let head = "content-type: application/json\r\n".to_owned();
        Self { status, head, body: body.to_string(), good: None, pieces: None }
    }

    fn trouble(status: u16, message: &str) -> Self {
        let error = json!({ "message": message, "type": "test", "param": null, "code": null });
        Self::json(status, &json!({ "error": error }))
    }

    async fn send(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let Some((pieces, pause)) = &self.pieces else { return stream.write_all(&self.bytes()).await };
        let head = format!("HTTP/1.1 {} X\r\n{}transfer-encoding: chunked\r\n\r\n", self.status, self.head);
        stream.write_all(head.as_bytes()).await?;
        for piece in pieces {
            stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).await?;
            sleep(*pause).await;
        }
        stream.write_all(b"0\r\n\r\n").await
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { status, head, body, .. } = self;
        format!("HTTP/1.1 {status} X\r\n{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }
}
