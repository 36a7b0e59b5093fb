//! The query of a request against what its route declares: nothing unknown, nothing twice, every value of its kind.
//!
//! Checked here and not by the handlers, so that none can forget: a mistyped `dry_run` would delete.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDate, Utc};
use http::{Method, Uri};
use okt_config::closest;
use okt_model::{Error, FieldError};
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{RefOr, Required, Schema};
use utoipa::{Number, openapi};
use uuid::Uuid;

use crate::problem::Problem;

/// More than these are not told: the answer would be many times as long as the question.
const MOST_ERRORS: usize = 20;

/// What the methods of a line take.
#[derive(Default)]
pub(crate) struct Queries(Vec<(Method, Vec<Known>)>);

/// A parameter that a route declares.
struct Known {
    name: String,
    required: bool,
    kind: Kind,
}

/// What a value has to look like. What only the handler can check is text.
enum Kind {
    Text,
    Boolean,
    Integer { least: Option<i64>, most: Option<i64> },
    Number,
    Uuid,
    Date,
    Time,
    OneOf(Vec<String>),
}

impl Queries {
    /// Takes note of what an operation declares.
    pub(crate) fn add(&mut self, method: &Method, operation: &Operation) {
        let declared = operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
            RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => Some(Known::of(parameter)),
            _ => None,
        });
        self.0.push((method.clone(), declared.collect()));
    }

    /// Refuses what the route does not declare, with what is wrong.
    pub(crate) fn check(&self, method: &Method, uri: &Uri) -> Result<(), Problem> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let known = self.0.iter().find(|(of, _)| of == method).map_or(&[][..], |(_, known)| known.as_slice());
        let query = uri.query().unwrap_or_default();
        if query.is_empty() && known.is_empty() {
            return Ok(());
        }
        let mut seen: Vec<Cow<'_, str>> = Vec::new();
        let mut errors = Vec::new();
        let mut wrong = |field: &str, message: String| {
            if errors.len() < MOST_ERRORS {
                // A name may be as long as an address; who sent it knows how it goes on.
                let field: String = field.chars().take(100).collect();
                errors.push(FieldError { field: field.into(), message: message.into() });
            }
        };
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            if seen.contains(&name) {
                wrong(&name, "is given more than once".to_owned());
                continue;
            }
            match known.iter().find(|known| known.name == name) {
                None => wrong(&name, unknown(&name, known)),
                Some(known) if !known.kind.takes(&value) => wrong(&name, known.kind.wanted()),
                Some(_) => {}
            }
            seen.push(name);
        }
        for known in known.iter().filter(|known| known.required) {
            if !seen.iter().any(|name| *name == known.name) {
                wrong(&known.name, "must be given".to_owned());
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(Error::Invalid(errors).into()) }
    }
}

fn unknown(name: &str, known: &[Known]) -> String {
    let names = || known.iter().map(|known| known.name.as_str());
    match closest(name, names()) {
        Some(meant) => format!("unknown parameter; did you mean {meant}?"),
        None if known.is_empty() => "unknown parameter; this route takes none".to_owned(),
        None => format!("unknown parameter; this route takes {}", names().collect::<Vec<_>>().join(", ")),
    }
}

impl Known {
    fn of(parameter: &Parameter) -> Self {
        let kind = match &parameter.schema {
            Some(RefOr::T(Schema::Object(object))) => Kind::of(object),
            _ => Kind::Text,
        };
        Self { name: parameter.name.clone(), required: parameter.required == Required::True, kind }
    }
}

impl Kind {
    fn of(object: &openapi::Object) -> Self {
        if let Some(values) = &object.enum_values {
            return Self::OneOf(
                values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect(),
            );
        }
        let kind = match &object.schema_type {
            SchemaType::Type(kind) => Some(kind),
            SchemaType::Array(kinds) => kinds.iter().find(|kind| !matches!(kind, Type::Null)),
            SchemaType::AnyValue => None,
        };
        let format = match &object.format {
            Some(SchemaFormat::KnownFormat(format)) => Some(format),
            _ => None,
        };
        match (kind, format) {
            (Some(Type::Boolean), _) => Self::Boolean,
            (Some(Type::Integer), _) => {
                Self::Integer { least: whole(object.minimum.as_ref()), most: whole(object.maximum.as_ref()) }
            }
            (Some(Type::Number), _) => Self::Number,
            (Some(Type::String), Some(KnownFormat::Uuid)) => Self::Uuid,
            (Some(Type::String), Some(KnownFormat::Date)) => Self::Date,
            (Some(Type::String), Some(KnownFormat::DateTime)) => Self::Time,
            _ => Self::Text,
        }
    }

    fn takes(&self, value: &str) -> bool {
        match self {
            Self::Text => true,
            Self::Boolean => matches!(value, "true" | "false"),
            Self::Integer { least, most } => value.parse::<i64>().is_ok_and(|number| {
                least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most)
            }),
            Self::Number => value.parse::<f64>().is_ok_and(f64::is_finite),
            Self::Uuid => value.parse::<Uuid>().is_ok(),
            Self::Date => value.parse::<NaiveDate>().is_ok(),
            Self::Time => value.parse::<DateTime<Utc>>().is_ok(),
            Self::OneOf(values) => values.iter().any(|known| known == value),
        }
    }

    fn wanted(&self) -> String {
        match self {
            Self::Text => "must be text".to_owned(),
            Self::Boolean => "must be true or false".to_owned(),
            Self::Integer { least: Some(least), most: Some(most) } => {
                format!("must be a whole number from {least} to {most}")
            }
            Self::Integer { least: Some(least), .. } => format!("must be a whole number, at least {least}"),
            Self::Integer { .. } => "must be a whole number".to_owned(),
            Self::Number => "must be a number".to_owned(),
            Self::Uuid => "must be a UUID".to_owned(),
            Self::Date => "must be a date such as 2026-03-01".to_owned(),
            Self::Time => "must be a time such as 2026-03-01T12:00:00Z".to_owned(),
            Self::OneOf(values) => format!("must be one of {}", values.join(", ")),
        }
    }
}

fn whole(number: Option<&Number>) -> Option<i64> {
    match number? {
        Number::Int(number) => i64::try_from(*number).ok(),
        Number::UInt(number) => i64::try_from(*number).ok(),
        Number::Float(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use utoipa::openapi::path::{OperationBuilder, ParameterBuilder};
    use utoipa::openapi::schema::ObjectBuilder;

    use super::*;

    fn queries() -> Queries {
        let object = || ObjectBuilder::new().schema_type(Type::String);
        let format = |format| object().format(Some(SchemaFormat::KnownFormat(format)));
        let integer = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(200));
        let parameters = [
            ("dry_run", ObjectBuilder::new().schema_type(Type::Boolean), false),
            ("limit", integer, false),
            ("source_id", format(KnownFormat::Uuid), false),
            ("published_from", format(KnownFormat::Date), false),
            ("from", format(KnownFormat::DateTime), false),
            ("sort", object().enum_values(Some(["newest", "oldest"])), false),
            ("q", object(), true),
        ];
        let operation =
            parameters.into_iter().fold(OperationBuilder::new(), |operation, (name, kind, must)| {
                let required = if must { Required::True } else { Required::False };
                let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query);
                operation.parameter(parameter.required(required).schema(Some(kind)))
            });
        let mut queries = Queries::default();
        queries.add(&Method::GET, &operation.build());
        queries.add(&Method::DELETE, &OperationBuilder::new().build());
        queries
    }

    fn refusals(method: &Method, query: &str) -> Vec<(String, String)> {
        let uri: Uri = format!("/x?{query}").parse().unwrap();
        let Err(problem) = queries().check(method, &uri) else { return Vec::new() };
        problem.errors().iter().map(|e| (e.field.to_string(), e.message.to_string())).collect()
    }

    #[test]
    fn what_a_route_declares_is_taken_and_nothing_else() {
        let fine = "q=a&dry_run=true&limit=200&source_id=01a1e018-8541-71d7-8946-53b9e4e60cee\
                    &published_from=2026-03-01&from=2026-03-01T12:00:00Z&sort=oldest";
        assert!(refusals(&Method::GET, fine).is_empty());
        assert!(refusals(&Method::HEAD, "q=&lim%69t=5").is_empty(), "a name may be written in other ways");
        for (query, field, message) in [
            ("q=a&dryrun=true", "dryrun", "unknown parameter; did you mean dry_run?"),
            ("q=a&dry-run=true", "dry-run", "unknown parameter; did you mean dry_run?"),
            ("q=a&sourceid=1", "sourceid", "unknown parameter; did you mean source_id?"),
            ("q=a&q=b", "q", "is given more than once"),
            ("q=a&%71=b", "q", "is given more than once"),
            ("q=a&dry_run=yes", "dry_run", "must be true or false"),
            ("q=a&dry_run", "dry_run", "must be true or false"),
            ("q=a&limit=0", "limit", "must be a whole number from 1 to 200"),
            ("q=a&source_id=1", "source_id", "must be a UUID"),
            ("q=a&published_from=soon", "published_from", "must be a date such as 2026-03-01"),
            ("q=a&from=soon", "from", "must be a time such as 2026-03-01T12:00:00Z"),
            ("q=a&sort=best", "sort", "must be one of newest, oldest"),
            ("limit=1", "q", "must be given"),
        ] {
            let expected = [(field.to_owned(), message.to_owned())];
            assert_eq!(refusals(&Method::GET, query), expected, "{query}");
        }
        let message = &refusals(&Method::GET, "q=a&colour=red")[0].1;
        assert!(message.starts_with("unknown parameter; this route takes dry_run, limit"), "{message}");
        assert_eq!(refusals(&Method::DELETE, "a=1")[0].1, "unknown parameter; this route takes none");
        assert_eq!(refusals(&Method::GET, "dryrun=1&limit=x").len(), 3, "everything that is wrong");
    }
}
