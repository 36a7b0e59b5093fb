//! The text of something that was found.

use std::collections::BTreeMap;
use std::fmt::Write;

use okt_auth::Needed;
use okt_auth::permissions::{ConceptRead, FactRead, ReportRead, SourceRead};
use okt_http::Problem;
use okt_model::{Domain, Error, Permission};
use okt_wire::concepts::ConceptView;
use okt_wire::facts::FactView;
use okt_wire::reports::ReportSentenceView;
use okt_wire::summaries::DefinitionView;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{READ, Tool, cut};
use crate::mcp::call::{Call, Outcome, Place, done};
use crate::mcp::schema::{input, output};

const TITLE: usize = 120;
const LONGEST: usize = 50_000;
/// Sources of a fact whose dates are looked up.
const DATED: usize = 5;
/// Sentences of a part of a report.
const SENTENCES: usize = 200;

pub(super) const FETCH: Tool = Tool {
    name: "fetch",
    title: "Fetch",
    description: "The text of a result of search: a fact with the quotes that it rests on, a concept's definition, a source's text or a report \
                  with how each sentence stands. `metadata.next_id` fetches the next part of a long one.",
    hints: READ,
    needs: |arguments| {
        let id = arguments["id"].as_str().and_then(Id::read);
        id.map(|id| id.kind.permission()).into_iter().collect()
    },
    pages: false,
    creates: false,
    input: input::<Arguments>,
    output: output::<Document>,
    run: |call| Box::pin(fetch(call)),
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Of a result of search.
    id: String,
}

#[derive(Serialize, ToSchema)]
struct Document {
    id: String,
    title: String,
    text: String,
    url: String,
    metadata: BTreeMap<&'static str, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fact,
    Concept,
    Source,
    Report,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Concept => "concept",
            Self::Source => "source",
            Self::Report => "report",
        }
    }

    const fn permission(self) -> Permission {
        match self {
            Self::Fact => FactRead::PERMISSION,
            Self::Concept => ConceptRead::PERMISSION,
            Self::Source => SourceRead::PERMISSION,
            Self::Report => ReportRead::PERMISSION,
        }
    }
}

/// `kind:uuid@repository#part.slice`; without a repository all that the caller can see are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Id {
    kind: Kind,
    of: Uuid,
    repository: Option<String>,
    /// From 1.
    part: u64,
    /// Of a part that is too long to be sent at once, from 1.
    slice: usize,
}

impl Id {
    fn read(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        let kinds = [Kind::Fact, Kind::Concept, Kind::Source, Kind::Report];
        let kind = kinds.into_iter().find(|known| known.word() == kind)?;
        let (rest, part) = rest.split_once('#').unwrap_or((rest, "1"));
        let (part, slice) = part.split_once('.').unwrap_or((part, "1"));
        let part = part.parse().ok().filter(|part| *part > 0)?;
        let slice = slice.parse().ok().filter(|slice| *slice > 0)?;
        let (id, repository) = match rest.split_once('@') {
            Some((id, repository)) => (id, Some(repository.to_owned())),
            None => (rest, None),
        };
        Some(Self { kind, of: id.parse().ok()?, repository, part, slice })
    }

    fn write(&self, part: u64, slice: usize) -> String {
        let mut text = format!("{}:{}", self.kind.word(), self.of);
        if let Some(repository) = &self.repository {
            let _ = write!(text, "@{repository}");
        }
        if part > 1 || slice > 1 {
            let _ = write!(text, "#{part}");
        }
        if slice > 1 {
            let _ = write!(text, ".{slice}");
        }
        text
    }
}

async fn fetch(call: &Call) -> Result<Outcome, Problem> {
    let arguments: Arguments = call.arguments().await?;
    let id = Id::read(&arguments.id)
        .ok_or_else(|| Error::invalid("id", "must be the id of a result of search"))?;
    let document = match &id.repository {
        Some(repository) => found_in(call, &id, repository).await?,
        None => found_anywhere(call, &id).await?,
    };
    done(Document { id: arguments.id, ..document })
}

/// Ids are unique, so the first repository that has it is the one.
async fn found_anywhere(call: &Call, id: &Id) -> Result<Document, Problem> {
    let server = &call.server;
    let (seen, _) = server.api.app.list_repositories(&server.caller, None, 50).await?;
    let mut refused = None;
    for seen in seen {
        let repository = seen.repository;
        if !server.caller.may(Domain::Repository(repository.id), id.kind.permission()) {
            continue;
        }
        match found_in(call, id, &repository.slug).await {
            Err(problem) if problem.code() == okt_http::Code::NotFound => {}
            // It may be in another one.
            Err(problem) => {
                refused.get_or_insert(problem);
            }
            found => return found,
        }
    }
    Err(refused.unwrap_or_else(|| Error::NotFound(id.kind.word()).into()))
}

async fn found_in(call: &Call, id: &Id, repository: &str) -> Result<Document, Problem> {
    let mut document = match id.kind {
        Kind::Fact => fact(call, id, &call.place(repository).await?).await?,
        Kind::Concept => concept(call, id, &call.place(repository).await?).await?,
        Kind::Source => source(call, id, &call.place(repository).await?).await?,
        Kind::Report => report(call, id, &call.place(repository).await?).await?,
    };
    document.metadata.insert("repository", repository.to_owned());
    document.metadata.insert("kind", id.kind.word().to_owned());
    // What is too long goes on under an id of its own; only then comes the next part.
    let (text, is_last) = slice(&document.text, id.slice).ok_or(Error::NotFound("part of the text"))?;
    document.text = text;
    if !is_last {
        document.metadata.insert("next_id", id.write(id.part, id.slice + 1));
    }
    document.metadata.entry("next_id").or_default();
    Ok(document)
}

fn document(title: &str, text: &str, url: String) -> Document {
    let title = if title.trim().is_empty() { "Untitled" } else { title.trim() };
    let (title, text) = (cut(title, TITLE), text.to_owned());
    Document { id: String::new(), title, text, url, metadata: BTreeMap::new() }
}

/// The n-th slice of a text, and whether it is the last. The first may be empty.
fn slice(text: &str, n: usize) -> Option<(String, bool)> {
    let before = (n - 1).checked_mul(LONGEST)?;
    let mut rest = text.chars().skip(before);
    let slice: String = rest.by_ref().take(LONGEST).collect();
    (n == 1 || !slice.is_empty()).then(|| (slice, rest.next().is_none()))
}

async fn fact(call: &Call, id: &Id, place: &Place<FactRead>) -> Result<Document, Problem> {
    let seen: FactView = call.server.api.app.find_fact(&place.scope, id.of.into()).await?.into();
    let sources: Option<Place<SourceRead>> = place.also().ok();
    let mut text = format!("{}\n", seen.row.text);
    let mut metadata = BTreeMap::new();
    for (place_in_list, of) in seen.sources.iter().enumerate() {
        let mut year = String::new();
        if let (Some(sources), true) = (&sources, place_in_list < DATED) {
            let row = super::sources::view(call, sources, of.source_id.into()).await?.row;
            if let Some(date) = row.published_at {
                year = format!(" ({})", date.format("%Y"));
                metadata.entry("published_at").or_insert_with(|| date.to_string());
            }
            if let Some(doi) = row.doi {
                metadata.entry("doi").or_insert(doi);
            }
        }
        let title = of.title.as_deref().unwrap_or(&of.url);
        let retracted =
            if of.mark.as_ref().is_some_and(|mark| mark.kind == "retracted") { ", retracted" } else { "" };
        for sentence in &of.sentences {
            let Some(quote) = &sentence.text else { continue };
            let page = sentence.page.map(|page| format!(", p. {page}")).unwrap_or_default();
            let _ = write!(text, "\n“{quote}” — {title}{year}{page}{retracted}");
        }
        if of.sentences.is_empty() {
            let _ = write!(text, "\n{title}{year}{retracted}");
        }
    }
    for other in &seen.candidate_contradictions {
        let _ = write!(text, "\nMay contradict it: {} (fact:{})", other.text, other.fact_id);
    }
    metadata.insert("status", seen.row.status.to_owned());
    metadata.insert("sources", seen.row.source_count.to_string());
    metadata.insert("retracted", seen.row.retracted.to_string());
    let whole = document(&seen.row.text, &text, place.url("facts", seen.row.id));
    Ok(Document { metadata, ..whole })
}

async fn concept(call: &Call, id: &Id, place: &Place<ConceptRead>) -> Result<Document, Problem> {
    let (app, concept) = (&call.server.api.app, id.of.into());
    let seen = ConceptView::new(app.find_concept(&place.scope, concept).await?, concept);
    let definition: DefinitionView =
        app.find_concept_definition(&place.scope, concept, None, None).await?.into();
    let title = format!("{} ({})", seen.row.canonical_name, seen.row.context);
    let whole = document(&title, &definition.content, place.url("concepts", seen.row.id));
    let metadata = BTreeMap::from([
        ("facts", seen.row.fact_count.to_string()),
        ("context", seen.row.context),
        ("method", definition.method.to_owned()),
    ]);
    Ok(Document { metadata, ..whole })
}

async fn source(call: &Call, id: &Id, place: &Place<SourceRead>) -> Result<Document, Problem> {
    let seen = super::sources::view(call, place, id.of.into()).await?;
    let (text, parts) = super::sources::part(call, place, id.of.into(), id.part).await?;
    let row = seen.row;
    let mut metadata = BTreeMap::from([
        ("status", row.status.to_owned()),
        ("facts", seen.fact_count.to_string()),
        ("part", format!("{} of {parts}", id.part)),
        ("document_url", row.url.clone()),
        ("retracted", row.mark.is_some_and(|mark| mark.kind == "retracted").to_string()),
    ]);
    let dated = row.published_at.map(|date| date.to_string());
    for (name, value) in [("doi", row.doi), ("author", row.author), ("published_at", dated)] {
        metadata.extend(value.map(|value| (name, value)));
    }
    if id.part < parts {
        metadata.insert("next_id", id.write(id.part + 1, 1));
    }
    let title = row.parsed_title.or(row.file_name).unwrap_or(row.url);
    Ok(Document { metadata, ..document(&title, &text, place.url("sources", row.id)) })
}

/// With how it stands behind each sentence that claims something.
async fn report(call: &Call, id: &Id, place: &Place<ReportRead>) -> Result<Document, Problem> {
    let (app, report) = (&call.server.api.app, id.of.into());
    let seen = app.find_report(&place.scope, report, true).await?;
    let beyond = || Error::NotFound("part of the report");
    let from = usize::try_from(id.part - 1).ok().and_then(|before| before.checked_mul(SENTENCES));
    let from = from.and_then(|from| i32::try_from(from).ok()).ok_or_else(beyond)?;
    let rows = i64::try_from(SENTENCES + 1).map_err(Error::internal)?;
    let sentences = app.list_report_sentences(&place.scope, report, from, rows).await?;
    if sentences.is_empty() && id.part > 1 {
        return Err(beyond().into());
    }
    let mut sentences: Vec<ReportSentenceView> = sentences.into_iter().map(Into::into).collect();
    let next = sentences.get(SENTENCES).map(|sentence| sentence.start);
    sentences.truncate(SENTENCES);
    let body: Vec<char> = seen.body.unwrap_or_default().chars().collect();
    let at = |place: i32| usize::try_from(place).unwrap_or(0).min(body.len());
    let mut place_in_body =
        if id.part == 1 { 0 } else { sentences.first().map_or(0, |first| at(first.start)) };
    let mut text = String::new();
    for sentence in &sentences {
        let end = at(sentence.end).max(place_in_body);
        text.extend(&body[place_in_body..end]);
        place_in_body = end;
        let stands = match sentence.state {
            "supported" => " [supports]",
            "contradicted" => " [contradicts]",
            "unsupported" => " [no evidence]",
            _ => "",
        };
        text.push_str(stands);
    }
    let end = next.map_or(body.len(), at).max(place_in_body);
    text.extend(&body[place_in_body..end]);
    let mut metadata = BTreeMap::from([
        ("status", seen.report.status.as_str().to_owned()),
        ("supported", seen.counts.supported.to_string()),
        ("contradicted", seen.counts.contradicted.to_string()),
        ("unsupported", seen.counts.unsupported.to_string()),
    ]);
    if next.is_some() {
        metadata.insert("next_id", id.write(id.part + 1, 1));
    }
    Ok(Document { metadata, ..document(&seen.report.title, &text, place.url("reports", seen.report.id)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_kind_repository_and_part() {
        let uuid = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37";
        for text in [
            format!("fact:{uuid}"),
            format!("source:{uuid}@bees#3"),
            format!("report:{uuid}#2"),
            format!("report:{uuid}#1.2"),
            format!("report:{uuid}@bees#3.4"),
        ] {
            let id = Id::read(&text).unwrap();
            assert_eq!(id.write(id.part, id.slice), text);
        }
        for text in [
            uuid,
            "fact:",
            "page:1",
            "fact:x",
            &format!("fact:{uuid}#0"),
            &format!("fact:{uuid}#x"),
            &format!("fact:{uuid}#1.0"),
        ] {
            assert_eq!(Id::read(text), None, "{text}");
        }
    }
    #[test]
    fn slices_put_together_are_the_text() {
        for length in [0, 1, LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST, 2 * LONGEST + 7] {
            let text = "é".repeat(length);
            let (mut whole, mut n) = (String::new(), 1);
            loop {
                let (next, is_last) = slice(&text, n).unwrap();
                whole.push_str(&next);
                n += 1;
                if is_last {
                    break;
                }
            }
            assert_eq!(whole, text, "{length}");
            assert_eq!(slice(&text, n), None, "{length}");
        }
    }
}
