//! `/api/docs`: the OpenAPI document as one page of plain HTML that needs no script and no network.

use std::fmt::Write;

use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderName, header};
use minijinja::value::Serde;
use minijinja::{Environment, HtmlEscape, Value, context};
use okt_http::{Code, Problem};
use okt_model::Error;
use serde::Serialize;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::Api;
use crate::openapi::rendered;

const TEMPLATE: &str = include_str!("../templates/docs.html");
const STYLE: &str = include_str!("../templates/docs.css");

/// The page and the policy that lets in its own style and nothing else.
#[derive(Clone)]
pub(crate) struct DocsPage {
    html: Bytes,
    policy: String,
}

/// This documentation as a page.
#[utoipa::path(get, path = "/api/docs", tag = "Documentation",
    operation_id = "getDocumentation",
    responses((status = 200, body = String, content_type = "text/html", description = "A page to read")))]
pub async fn show(State(api): State<Api>) -> Result<Response, Problem> {
    let page = rendered(&api)?.page.clone();
    let headers = [
        (header::CONTENT_SECURITY_POLICY, page.policy),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin".to_owned()),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=()".to_owned(),
        ),
    ];
    Ok((headers, Html(page.html)).into_response())
}

/// `docs/ERRORS.md`: every code that a problem may carry.
pub fn errors_page() -> String {
    let mut page = String::from(
        "# Errors\n\n\
         Refusals are `application/problem+json` (RFC 9457). Programs should look at `code`: it is never renamed and \
         never reused. `detail` is for people, `request_id` finds the request in the logs. This page is generated \
         (`just bless`).\n\n\
         | code | status | title | what to do |\n|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            code.as_str(),
            code.status().as_u16(),
            code.title(),
            code.advice()
        );
    }
    page
}

impl DocsPage {
    pub(crate) fn render(document: &utoipa::openapi::OpenApi) -> Result<Self, Error> {
        let document = serde_json::to_value(document).map_err(Error::internal)?;
        let problems: Vec<_> = Code::ALL.iter().map(|code| ProblemLine::of(*code)).collect();
        let mut environment = Environment::new();
        environment.add_filter("inline", inline);
        environment.add_template("docs.html", TEMPLATE).map_err(Error::internal)?;
        let html = environment
            .get_template("docs.html")
            .and_then(|template| {
                template.render(context! {
                    info => Value::from(Serde(&document["info"])),
                    style => Value::from_safe_string(STYLE.to_owned()),
                    groups => Value::from(Serde(groups(&document))),
                    schemas => Value::from(Serde(schemas(&document))),
                    problems => Value::from(Serde(problems)),
                })
            })
            .map_err(Error::internal)?;
        let style = BASE64_STANDARD.encode(Sha256::digest(STYLE));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; frame-ancestors 'none'"
        );
        Ok(Self { html: html.into(), policy })
    }
}

/// Text with `code` in it, as the comments of handlers have it: a single line break is where the comment was wrapped, an
/// empty line or a list's dash begins a new line.
fn inline(text: &str) -> Value {
    let mut html = String::new();
    let text = &joined(text);
    for (index, part) in text.split('`').enumerate() {
        let part = HtmlEscape(part);
        let _ = if index % 2 == 0 { write!(html, "{part}") } else { write!(html, "<code>{part}</code>") };
    }
    Value::from_safe_string(html)
}

fn joined(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    for line in text.lines() {
        let begins = line.trim().is_empty() || line.trim_start().starts_with("- ") || whole.ends_with('\n');
        if !whole.is_empty() {
            whole.push(if begins { '\n' } else { ' ' });
        }
        whole.push_str(line.trim());
    }
    whole
}

#[derive(Serialize)]
struct ProblemLine {
    code: &'static str,
    status: u16,
    title: &'static str,
    advice: &'static str,
}

impl ProblemLine {
    fn of(code: Code) -> Self {
        Self {
            code: code.as_str(),
            status: code.status().as_u16(),
            title: code.title(),
            advice: code.advice(),
        }
    }
}

#[derive(Serialize)]
struct Group {
    name: String,
    description: String,
    operations: Vec<Operation>,
}

#[derive(Serialize)]
struct Operation {
    id: String,
    method: String,
    path: String,
    guard: String,
    summary: String,
    description: String,
    parameters: Vec<Field>,
    body: Option<Type>,
    /// What to type in a shell.
    curl: String,
    answers: Vec<Reply>,
    refusals: Vec<Reply>,
}

#[derive(Serialize)]
struct Reply {
    status: String,
    description: String,
    r#type: Option<Type>,
    example: String,
}

#[derive(Serialize)]
struct Schema {
    name: String,
    description: String,
    fields: Vec<Field>,
    /// For what is not an object.
    r#type: Option<Type>,
}

#[derive(Serialize)]
struct Field {
    name: String,
    place: String,
    required: bool,
    r#type: Type,
    description: String,
}

/// A type in words; `link` names the schema it is about.
#[derive(Serialize)]
struct Type {
    text: String,
    link: Option<String>,
}

/// In the order of the document's tags.
fn groups(document: &Json) -> Vec<Group> {
    let tags = items(&document["tags"]).map(|tag| Group {
        name: text(&tag["name"]),
        description: text(&tag["description"]),
        operations: Vec::new(),
    });
    let mut groups: Vec<Group> = tags.collect();
    for (path, item) in entries(&document["paths"]) {
        for (method, operation) in entries(item) {
            let name = text(&operation["tags"][0]);
            if let Some(group) = groups.iter_mut().find(|group| group.name == name) {
                group.operations.push(described(path, method, operation));
            }
        }
    }
    groups.retain(|group| !group.operations.is_empty());
    groups
}

fn described(path: &str, method: &str, operation: &Json) -> Operation {
    let replies = entries(&operation["responses"]).map(|(status, reply)| Reply {
        status: status.clone(),
        description: text(&reply["description"]),
        r#type: content(reply),
        example: example(reply).map(|(_, example)| shown(example)).unwrap_or_default(),
    });
    let (refusals, answers) = replies.partition(|reply| reply.status.starts_with(['4', '5']));
    Operation {
        id: text(&operation["operationId"]),
        method: method.to_uppercase(),
        path: path.to_owned(),
        guard: text(&operation["x-guard"]),
        summary: text(&operation["summary"]),
        description: text(&operation["description"]),
        parameters: items(&operation["parameters"])
            .map(|p| field(&text(&p["name"]), p, &p["schema"], flag(&p["required"])))
            .collect(),
        body: content(&operation["requestBody"]),
        curl: curl(path, method, operation),
        answers,
        refusals,
    }
}

/// `OKT` is the address of the installation, `TOKEN` a credential.
fn curl(path: &str, method: &str, operation: &Json) -> String {
    let mut line = String::from("curl");
    if !(method == "get" || method == "post" && operation["requestBody"].is_object()) {
        let _ = write!(line, " -X {}", method.to_uppercase());
    }
    let path = path.replace("{repoID}", "bees").replace('{', "$").replace('}', "");
    let _ = write!(line, " \"$OKT{path}\"");
    if items(&operation["security"]).next().is_some() {
        line.push_str(" \\\n  -H \"Authorization: Bearer $TOKEN\"");
    }
    match example(&operation["requestBody"]) {
        Some(("application/json", example)) => {
            let body = example.to_string().replace('\'', "'\\''");
            let _ = write!(line, " \\\n  -H \"Content-Type: application/json\" \\\n  -d '{body}'");
        }
        Some(("multipart/form-data", example)) => {
            for (name, value) in entries(example) {
                let value = if name == "file" { "@bees.txt".to_owned() } else { text(value) };
                let _ = write!(line, " \\\n  -F '{name}={value}'");
            }
        }
        Some((_, example)) => {
            for (name, value) in entries(example) {
                let _ = write!(line, " \\\n  --data-urlencode '{name}={}'", text(value));
            }
        }
        None => {}
    }
    line
}

/// The first example of a body or an answer, and its media type.
fn example(value: &Json) -> Option<(&str, &Json)> {
    let (kind, media) = entries(&value["content"]).find(|(_, media)| media["example"] != Json::Null)?;
    Some((kind, &media["example"]))
}

fn shown(example: &Json) -> String {
    example.as_str().map_or_else(|| format!("{example:#}"), str::to_owned)
}

fn schemas(document: &Json) -> Vec<Schema> {
    entries(&document["components"]["schemas"])
        .map(|(name, schema)| {
            let required: Vec<_> = items(&schema["required"]).map(text).collect();
            let fields: Vec<_> = entries(&schema["properties"])
                .map(|(name, property)| field(name, property, property, required.contains(name)))
                .collect();
            Schema {
                name: name.clone(),
                description: text(&schema["description"]),
                r#type: fields.is_empty().then(|| type_of(schema)),
                fields,
            }
        })
        .collect()
}

fn field(name: &str, about: &Json, schema: &Json, required: bool) -> Field {
    Field {
        name: name.to_owned(),
        place: text(&about["in"]),
        required,
        r#type: type_of(schema),
        description: text(&about["description"]),
    }
}

fn content(value: &Json) -> Option<Type> {
    entries(&value["content"]).next().map(|(_, media)| type_of(&media["schema"]))
}

fn type_of(schema: &Json) -> Type {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return Type { text: name.to_owned(), link: Some(name.to_owned()) };
    }
    let choices =
        [&schema["oneOf"], &schema["anyOf"]].into_iter().flat_map(items).map(type_of).collect::<Vec<_>>();
    if !choices.is_empty() {
        let texts: Vec<_> = choices.iter().map(|choice| choice.text.as_str()).collect();
        return Type {
            text: texts.join(" or "),
            link: choices.iter().find_map(|choice| choice.link.clone()),
        };
    }
    let words: Vec<_> = items(&schema["enum"]).map(ToString::to_string).collect();
    if !words.is_empty() {
        return Type { text: words.join(" | "), link: None };
    }
    if schema["items"].is_object() {
        let inner = type_of(&schema["items"]);
        return Type { text: format!("list of {}", inner.text), link: inner.link };
    }
    let types: Vec<_> = items(&schema["type"]).map(text).collect();
    let plain = if types.is_empty() { text(&schema["type"]) } else { types.join(" or ") };
    Type { text: if plain.is_empty() { "any".to_owned() } else { plain }, link: None }
}

fn entries(value: &Json) -> impl Iterator<Item = (&String, &Json)> {
    value.as_object().into_iter().flatten()
}

fn items(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn flag(value: &Json) -> bool {
    value.as_bool().unwrap_or_default()
}
