//! What the table itself knows of an operation, written into the document: who may call it, which ids its path
//! has, and what the edge refuses. Handlers say only what is theirs.

use std::collections::BTreeMap;

use http::Method;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, Paths};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Content, Ref, RefOr, Required, Response, ResponseBuilder};

use crate::problem::Code;
use crate::query::Queries;
use crate::routes::{Guard, Line, LineKind};

const PROBLEM_TYPE: &str = "application/problem+json";
/// What the description of a refusal in our own form begins with; codes follow.
const PROBLEM: &str = "Problem: ";
const REPOSITORY: &str = "repoID";

/// Completes the operations of a line and records them; returns the line's path and the queries that its methods take.
pub(crate) fn describe(
    guard: Guard,
    any_query: bool,
    paths: &mut Paths,
    lines: &mut Vec<Line>,
) -> (String, Queries) {
    let (mut found, mut queries) = (None, Queries::default());
    for (path, item) in &mut paths.paths {
        let operations = [
            (Method::GET, &mut item.get),
            (Method::PUT, &mut item.put),
            (Method::POST, &mut item.post),
            (Method::DELETE, &mut item.delete),
            (Method::PATCH, &mut item.patch),
        ];
        for (method, operation) in operations {
            let Some(operation) = operation else { continue };
            complete(guard, any_query, &method, path, operation);
            queries.add(&method, operation);
            let (method, path, kind) = (Some(method), path.clone(), LineKind::Handler);
            lines.push(Line { method, path, guard, any_query, kind });
        }
        found = Some(path.clone());
    }
    (found.expect("a handler with #[utoipa::path] has a path"), queries)
}

fn complete(guard: Guard, any_query: bool, method: &Method, path: &str, operation: &mut Operation) {
    let in_repository = path.contains("{repoID}");
    let parameters = operation.parameters.get_or_insert_default();
    add_ids(path, parameters);
    let mut codes = by_guard(guard);
    if !any_query {
        codes.push(Code::Invalid);
    }
    if in_repository && method != Method::GET {
        codes.push(Code::RepositoryMoving);
    }
    for parameter in parameters.iter_mut() {
        let RefOr::T(parameter) = parameter else { continue };
        codes.extend(by_parameter(parameter));
        never_null(parameter);
        describe_id(parameter);
    }
    if operation.request_body.is_some() {
        codes.extend([Code::BodyTooSlow, Code::TooLarge, Code::UnsupportedMediaType, Code::Invalid]);
    }
    refusals(codes, &mut operation.responses.responses);
    let open = matches!(guard, Guard::Probe | Guard::Public);
    operation.security = Some(if open { vec![] } else { vec![SecurityRequirement::new("bearer", [""; 0])] });
    let extensions = operation.extensions.get_or_insert_with(Extensions::default);
    extensions.insert("x-guard".to_owned(), guard.to_string().into());
}

/// Adds the ids of the path that the handler does not describe itself, in the order of the path: an id is a UUID, but for
/// that of a repository, which may be a slug.
fn add_ids(path: &str, parameters: &mut Vec<RefOr<Parameter>>) {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let names = names.filter(|name| name.ends_with("ID"));
    for (at, name) in names.enumerate() {
        let is_named = |parameter: &RefOr<Parameter>| matches!(parameter, RefOr::T(p) if p.name == name);
        if !parameters.iter().any(is_named) {
            let parameter = if name == REPOSITORY { repository() } else { uuid(name) };
            parameters.insert(at.min(parameters.len()), parameter.into());
        }
    }
}

fn uuid(name: &str) -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(schema))
        .build()
}

/// The one parameter that half of all paths have.
fn repository() -> Parameter {
    ParameterBuilder::new()
        .name(REPOSITORY)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("The id or the slug of the repository"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).examples(["bees"])))
        .build()
}

/// What the edge may answer to everything behind this guard.
fn by_guard(guard: Guard) -> Vec<Code> {
    let mut codes = vec![Code::Malformed, Code::UriTooLong, Code::Internal, Code::TimedOut];
    if guard != Guard::Probe {
        codes.extend([Code::RateLimited, Code::Overloaded, Code::Unavailable]);
    }
    match guard {
        Guard::Probe | Guard::Public => {}
        Guard::Authenticated => codes.push(Code::Unauthenticated),
        Guard::Session | Guard::Mcp => codes.extend([Code::Unauthenticated, Code::Forbidden]),
        Guard::Needs(_) => codes.extend([Code::Unauthenticated, Code::Forbidden, Code::NotFound]),
    }
    codes
}

fn by_parameter(parameter: &Parameter) -> Vec<Code> {
    match (&parameter.parameter_in, parameter.name.as_str()) {
        (ParameterIn::Path, _) => vec![Code::NotFound],
        (ParameterIn::Query, "cursor") => vec![Code::Invalid, Code::BadCursor],
        (ParameterIn::Header, "Idempotency-Key") => {
            vec![Code::Invalid, Code::IdempotencyInFlight, Code::IdempotencyLost, Code::IdempotencyMismatch]
        }
        _ => vec![Code::Invalid],
    }
}

/// A parameter is there or not; there is no way to write null into an address.
fn never_null(parameter: &mut Parameter) {
    let is_null = |schema: &RefOr<Schema>| matches!(schema, RefOr::T(Schema::Object(object)) if object.schema_type == SchemaType::Type(Type::Null));
    match &mut parameter.schema {
        Some(RefOr::T(Schema::Object(object))) => {
            if let SchemaType::Array(types) = &mut object.schema_type {
                types.retain(|kind| *kind != Type::Null);
                if let [kind] = &types[..] {
                    object.schema_type = SchemaType::Type(kind.clone());
                }
            }
        }
        Some(RefOr::T(Schema::OneOf(choice))) => {
            choice.items.retain(|item| !is_null(item));
            if choice.items.len() == 1 {
                parameter.schema = choice.items.pop();
            }
        }
        _ => {}
    }
}

/// `sourceID` says it all.
fn describe_id(parameter: &mut Parameter) {
    if parameter.description.is_none()
        && let Some(noun) = parameter.name.strip_suffix("ID")
    {
        parameter.description = Some(format!("The id of the {noun}"));
    }
}

/// One answer for each status, with every code that it may carry: those of the handler and those of the edge.
fn refusals(codes: Vec<Code>, responses: &mut BTreeMap<String, RefOr<Response>>) {
    let mut by_status = BTreeMap::<String, Vec<Code>>::new();
    for code in codes {
        by_status.entry(code.status().as_u16().to_string()).or_default().push(code);
    }
    for (status, response) in responses.iter_mut() {
        let RefOr::T(response) = response else { continue };
        let refused = status.starts_with(['4', '5']);
        if refused && (response.content.is_empty() || response.content.contains_key(PROBLEM_TYPE)) {
            let told = std::mem::take(&mut response.description);
            let words = told.trim_start_matches(PROBLEM).split(", ").flat_map(|words| words.split(" or "));
            let known = |word: &str| Code::ALL.iter().copied().find(|code| code.as_str() == word.trim());
            by_status.entry(status.clone()).or_default().extend(words.filter_map(known));
            response.content.insert(PROBLEM_TYPE.to_owned(), problem());
        }
    }
    for (status, mut codes) in by_status {
        codes.sort_unstable_by_key(|code| Code::ALL.iter().position(|one| one == code));
        codes.dedup();
        let codes: Vec<_> = codes.iter().map(|code| code.as_str()).collect();
        let told = format!("{PROBLEM}{}", codes.join(", "));
        let empty = || RefOr::T(ResponseBuilder::new().build());
        if let RefOr::T(response) = responses.entry(status).or_insert_with(empty) {
            // A route with refusals in a form of its own is still refused by the edge in ours.
            let own = &response.description;
            response.description = if own.is_empty() { told } else { format!("{own}. {told}") };
            response.content.entry(PROBLEM_TYPE.to_owned()).or_insert_with(problem);
        }
    }
}

fn problem() -> RefOr<Content> {
    RefOr::T(Content::new(Some(Ref::from_schema_name("Problem"))))
}
