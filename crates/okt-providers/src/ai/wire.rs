//! What goes over the wire, and what comes back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::endpoint::Endpoint;
use super::{AiError, Chat, End, Part, Usage};
use crate::text::one_line;

/// The most of a service's own words that is repeated.
const WORDS: usize = 300;
/// What an image counts where the server does not say what it read.
const IMAGE: u64 = 1_000;

/// What a model said.
pub(super) struct Said {
    pub text: String,
    pub end: End,
    pub usage: Usage,
}

/// With how long it may think, if it `thinks`; `streamed`, if the answer is to come piece by piece.
pub(super) fn chat(model: &str, thinks: bool, chat: &Chat, streamed: bool) -> Bytes {
    let mut messages = Vec::with_capacity(4);
    if !chat.system.is_empty() {
        messages.push(Turn { role: "system", content: Content::Text(&chat.system) });
    }
    messages.push(Turn { role: "user", content: content(&chat.user) });
    if let Some(again) = &chat.again {
        messages.push(Turn { role: "assistant", content: Content::Text(&again.answer) });
        messages.push(Turn { role: "user", content: Content::Text(&again.complaint) });
    }
    let response_format = chat.schema.as_ref().map(|schema| ResponseFormat {
        kind: "json_schema",
        json_schema: JsonSchema {
            name: schema.name,
            strict: true,
            schema: serde_json::from_str(schema.schema).expect("a schema is a constant"),
        },
    });
    let reasoning_effort = chat.thinking.filter(|_| thinks);
    let body = Request {
        model,
        messages,
        temperature: 0,
        max_tokens: chat.max_tokens,
        reasoning_effort,
        response_format,
        stream: streamed.then_some(true),
        stream_options: streamed.then_some(StreamOptions { include_usage: true }),
    };
    serde_json::to_vec(&body).expect("texts and numbers can be written").into()
}

pub(super) fn embed(model: &str, texts: &[String]) -> Bytes {
    json!({ "model": model, "input": texts }).to_string().into()
}

/// Borrowed, because a question is long and goes out as it is.
#[derive(Serialize)]
struct Request<'c> {
    model: &'c str,
    messages: Vec<Turn<'c>>,
    temperature: u8,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'c>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Turn<'c> {
    role: &'static str,
    content: Content<'c>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'c> {
    Text(&'c str),
    Parts(Value),
}

#[derive(Serialize)]
struct ResponseFormat<'c> {
    #[serde(rename = "type")]
    kind: &'static str,
    json_schema: JsonSchema<'c>,
}

#[derive(Serialize)]
struct JsonSchema<'c> {
    name: &'static str,
    strict: bool,
    /// With its keys in their order.
    schema: &'c RawValue,
}

/// One text is a text, which every server understands.
fn content(parts: &[Part]) -> Content<'_> {
    if let [Part::Text(text)] = parts {
        return Content::Text(text);
    }
    let part = |part: &Part| match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image { content_type, bytes } => {
            let url = format!("data:{content_type};base64,{}", STANDARD.encode(bytes));
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
    };
    Content::Parts(parts.iter().map(part).collect())
}

/// About how many tokens a model is asked to read.
pub(super) fn size(chat: &Chat) -> u64 {
    let again = chat.again.as_ref().map_or(0, |again| tokens(&again.answer) + tokens(&again.complaint));
    let part = |part: &Part| match part {
        Part::Text(text) => tokens(text),
        Part::Image { .. } => IMAGE,
    };
    tokens(&chat.system) + chat.user.iter().map(part).sum::<u64>() + again
}

pub(super) fn tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

#[derive(Deserialize)]
struct ChatAnswer {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Value,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    refusal: Option<String>,
}

/// One event of an answer that comes piece by piece.
#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    choices: Vec<PieceChoice>,
    #[serde(default)]
    usage: Value,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct PieceChoice {
    #[serde(default)]
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Delta {
    content: Option<String>,
    refusal: Option<String>,
}

/// What has come so far of an answer that comes piece by piece.
#[derive(Default)]
pub(super) struct Pieces {
    /// The line that is not complete.
    line: Vec<u8>,
    text: String,
    refusal: String,
    finish: Option<String>,
    usage: Value,
    error: Option<Value>,
    /// The server said that this was all.
    done: bool,
}

impl Pieces {
    /// Takes in what has arrived; whether there is more text now.
    pub(super) fn read(&mut self, bytes: &[u8]) -> bool {
        let before = self.text.len();
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            self.read_line(line.trim_ascii());
        }
        self.text.len() > before
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn read_line(&mut self, line: &[u8]) {
        let Some(data) = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii) else { return };
        if data == b"[DONE]" {
            self.done = true;
            return;
        }
        // One that is no JSON is a comment of some gateway; what is missing then shows at the end.
        let Ok(piece) = serde_json::from_slice::<Piece>(data) else { return };
        if !piece.usage.is_null() {
            self.usage = piece.usage;
        }
        self.error = self.error.take().or(piece.error);
        let Some(choice) = piece.choices.into_iter().next() else { return };
        self.text.push_str(&choice.delta.content.unwrap_or_default());
        self.refusal.push_str(&choice.delta.refusal.unwrap_or_default());
        self.finish = choice.finish_reason.or(self.finish.take());
    }
}

#[derive(Deserialize)]
struct EmbeddedAnswer {
    data: Vec<Vector>,
    #[serde(default)]
    usage: Value,
}

#[derive(Deserialize)]
struct Vector {
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Endpoint {
    /// `asked`: what it counts to if the server does not say.
    pub(super) fn read_chat(&self, answer: &[u8], asked: u64) -> Result<Said, AiError> {
        // Also who was asked to may answer at once.
        if [&b"data:"[..], b"event:", b":"].iter().any(|start| answer.trim_ascii_start().starts_with(start)) {
            return self.read_pieces(answer, asked);
        }
        let answer: ChatAnswer = self.read(answer)?;
        let choice = answer.choices.into_iter().next();
        // Gateways tell of the trouble behind them in an answer that looks good from outside.
        if let Some(error) =
            answer.error.as_ref().or(choice.as_ref().and_then(|choice| choice.error.as_ref()))
        {
            let cause = format!("it answered with an error: {}", self.words(error)).into();
            return Err(AiError::Unavailable { service: self.name(), cause });
        }
        let choice = choice.ok_or_else(|| self.not_a_model("it has no choices"))?;
        let text = choice.message.content.unwrap_or_default();
        let refused = text.is_empty() && choice.message.refusal.is_some_and(|refusal| !refusal.is_empty());
        let end = match choice.finish_reason.as_deref() {
            Some("length") => End::Length,
            Some("content_filter") => End::Filtered,
            _ if refused => End::Filtered,
            _ => End::Stop,
        };
        let usage = usage(&answer.usage, asked, tokens(&text));
        Ok(Said { text, end, usage })
    }

    fn read_pieces(&self, answer: &[u8], asked: u64) -> Result<Said, AiError> {
        let mut pieces = Pieces::default();
        pieces.read(answer);
        pieces.read(b"\n");
        let unavailable = |cause: String| AiError::Unavailable { service: self.name(), cause: cause.into() };
        if let Some(error) = &pieces.error {
            return Err(unavailable(format!("it answered with an error: {}", self.words(error))));
        }
        if !pieces.done && pieces.finish.is_none() {
            return Err(unavailable("its answer broke off".to_owned()));
        }
        let refused = pieces.text.is_empty() && !pieces.refusal.is_empty();
        let end = match pieces.finish.as_deref() {
            Some("length") => End::Length,
            Some("content_filter") => End::Filtered,
            _ if refused => End::Filtered,
            _ => End::Stop,
        };
        let usage = usage(&pieces.usage, asked, tokens(&pieces.text));
        Ok(Said { text: pieces.text, end, usage })
    }

    /// `dimensions`: those of the vectors that are there already.
    pub(super) fn read_embedded(
        &self,
        answer: &[u8],
        texts: &[String],
        dimensions: Option<usize>,
    ) -> Result<(Vec<Vec<f32>>, Usage), AiError> {
        let answer: EmbeddedAnswer = self.read(answer)?;
        let mut vectors = vec![Vec::new(); texts.len()];
        if answer.data.len() != texts.len() {
            let what = format!("{} vectors for {} texts", answer.data.len(), texts.len());
            return Err(self.not_a_model(what));
        }
        let dimensions = dimensions.or(answer.data.first().map(|first| first.embedding.len()));
        for (place, vector) in answer.data.into_iter().enumerate() {
            if vector.embedding.is_empty() || Some(vector.embedding.len()) != dimensions {
                return Err(self.not_a_model("its vectors are empty or differ in length"));
            }
            if !vector.embedding.iter().all(|number| number.is_finite()) {
                return Err(self.not_a_model("its vectors contain values that are not finite numbers"));
            }
            match vectors.get_mut(vector.index.unwrap_or(place)) {
                Some(free) if free.is_empty() => *free = vector.embedding,
                _ => return Err(self.not_a_model("the indexes of its vectors are not consecutive")),
            }
        }
        let asked = texts.iter().map(|text| tokens(text)).sum();
        Ok((vectors, usage(&answer.usage, asked, 0)))
    }

    pub(super) fn check_dimensions(
        &self,
        vectors: &[Vec<f32>],
        wanted: Option<usize>,
    ) -> Result<(), AiError> {
        let got = vectors.first().map(Vec::len);
        match (got, wanted) {
            (Some(got), Some(wanted)) if got != wanted => {
                Err(AiError::Dimensions { service: self.name(), got, wanted })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn read<'a, T: Deserialize<'a>>(&self, answer: &'a [u8]) -> Result<T, AiError> {
        if answer.trim_ascii_start().starts_with(b"<") {
            return Err(self.not_a_model("it is a web page"));
        }
        // What serde says of it may repeat the answer.
        serde_json::from_slice(answer).map_err(|error| {
            self.not_a_model(if error.is_data() {
                "its JSON has an unexpected structure"
            } else {
                "it is not JSON"
            })
        })
    }

    pub(super) fn not_a_model(&self, what: impl Into<String>) -> AiError {
        AiError::NotAModel { service: self.name(), what: what.into() }
    }

    /// The ids in a list of models, if it is one.
    pub(super) fn read_list(body: &[u8]) -> Option<Vec<String>> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let ids = body["data"].as_array()?.iter().filter_map(|model| model["id"].as_str());
        Some(ids.map(str::to_owned).collect())
    }

    /// What a service says when it refuses us.
    pub(super) fn refusal(&self, status: u16, body: &[u8]) -> AiError {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = ["error", "message", "detail"].into_iter().find_map(|name| body.get(name));
        let message = error.map(|error| self.words(error)).unwrap_or_default();
        AiError::Refused { service: self.name(), status, message, remedy: self.remedy(status) }
    }

    /// Whether a 429 is not about how often we ask, but about money that has run out.
    pub(super) fn is_out_of_money(body: &[u8]) -> bool {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = &body["error"];
        [&error["code"], &error["type"]].iter().any(|word| *word == "insufficient_quota")
    }

    /// The message of an error, whatever it is wrapped in. Some services repeat the key that they were given.
    fn words(&self, error: &Value) -> String {
        let text = error.as_str().or_else(|| error.get("message")?.as_str()).unwrap_or_default();
        let line = one_line(text, text.len());
        let line = if self.key.is_empty() { line } else { line.replace(self.key.expose(), "***") };
        one_line(&line, WORDS)
    }
}

/// No call has more; a server that says so has said nothing.
pub(super) const MOST_TOKENS: u64 = 100_000_000;

/// As the server counted, or as well as can be said.
fn usage(said: &Value, asked: u64, answered: u64) -> Usage {
    let count = |name: &str| said.get(name).and_then(Value::as_u64).filter(|count| *count <= MOST_TOKENS);
    let (tokens_in, tokens_out) = (count("prompt_tokens"), count("completion_tokens"));
    // Embeddings write nothing, and few servers say so.
    let estimated = tokens_in.is_none() || (tokens_out.is_none() && answered > 0);
    Usage { tokens_in: tokens_in.unwrap_or(asked), tokens_out: tokens_out.unwrap_or(answered), estimated }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::Schema;

    /// Sorted, they would have a model name the sentences of a fact before the fact.
    #[test]
    fn a_schema_keeps_the_order_of_its_properties() {
        let question = Chat {
            system: String::new(),
            user: vec![Part::Text("?".to_owned())],
            again: None,
            schema: Some(Schema { name: "answer", schema: r#"{"text":1,"sentences":2}"# }),
            max_tokens: 1,
            thinking: Some("high"),
        };
        let body = chat("small", false, &question, false);
        let body = str::from_utf8(&body).expect("JSON");
        assert!(body.contains(r#""schema":{"text":1,"sentences":2}"#) && !body.contains("reasoning_effort"));
        assert!(!body.contains("stream"));
        let body = chat("large", true, &question, true);
        let body = str::from_utf8(&body).expect("JSON");
        assert!(body.contains(r#""reasoning_effort":"high""#) && body.contains(r#""stream":true"#));
    }

    #[test]
    fn an_answer_is_heard_piece_by_piece() {
        let whole = concat!(
            ": hello\n\n",
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\r\n\r\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"Gulls \"}}]}\n\n",
            "data:{\"choices\":[{\"delta\":{\"content\":\"nest.\"},\"finish_reason\":\"stop\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n",
            "data: [DONE]\n\n",
        );
        for step in [1, 5, 64, 10_000] {
            let (mut pieces, mut heard) = (Pieces::default(), Vec::new());
            for bytes in whole.as_bytes().chunks(step) {
                if pieces.read(bytes) {
                    heard.push(pieces.text().to_owned());
                }
            }
            assert_eq!(heard.last().map(String::as_str), Some("Gulls nest."), "{step}");
            assert!(pieces.done && pieces.finish.as_deref() == Some("stop"));
            assert_eq!(pieces.usage["prompt_tokens"], 7);
        }
    }
}
