//! Sources: those of a repository, and others that could be added to it.

use axum::extract::State;
use chrono::NaiveDate;
use okt_auth::Needed;
use okt_auth::permissions::{JobRead, SourceRead, SourceWrite};
use okt_http::{Json, Problem, Query};
use okt_model::{Error, SourceId, TextParts};
use okt_wire::source_estimates::{EstimateRequest, EstimateView};
use okt_wire::source_providers::CandidateSearch;
use okt_wire::source_views::{SourceRow, SourceView};
use okt_wire::sources::{NewSource, SourceQuery};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::facts::Row as FactRow;
use super::progress::{self, Progress, Watch};
use super::{CHANGE, Hints, READ, Tool, needs};
use crate::extract::Repository;
use crate::mcp::call::{Call, Outcome, Place, done};
use crate::mcp::schema::{input, output};
use crate::{source_estimates, source_providers, sources};

/// The bytes of a text that an answer has.
pub(super) const PART: u64 = 20_000;

pub(super) const LIST: Tool = Tool {
    name: "list_sources",
    title: "List sources",
    description: "The sources of a repository, newest first: all, or those whose title, author or text has all words of `query`.",
    hints: READ,
    needs: needs::<SourceRead>,
    pages: true,
    creates: false,
    input: input::<ListArguments>,
    output: output::<Sources>,
    run: |call| Box::pin(list(call)),
};

pub(super) const GET: Tool = Tool {
    name: "get_source",
    title: "Get a source",
    description: "A source: its title, status, why it failed if it did, and how much of it facts cover. With `include` also its text, \
                  part by part, and its newest facts.",
    hints: READ,
    needs: needs::<SourceRead>,
    pages: false,
    creates: false,
    input: input::<GetArguments>,
    output: output::<Source>,
    run: |call| Box::pin(get(call)),
};

pub(super) const DISCOVER: Tool = Tool {
    name: "discover_sources",
    title: "Look for new sources",
    description: "Looks on the web or in the academic literature for sources that could be added. Says of each whether the repository \
                  has it. add_source adds one.",
    hints: Hints { read_only: true, idempotent: false, open_world: true },
    needs: needs::<SourceWrite>,
    pages: false,
    creates: false,
    input: input::<DiscoverArguments>,
    output: output::<Candidates>,
    run: |call| Box::pin(discover(call)),
};

pub(super) const ESTIMATE: Tool = Tool {
    name: "estimate_cost",
    title: "Estimate the cost of sources",
    description: "What it would cost to extract the facts of sources that were fetched. Nothing is spent.",
    hints: READ,
    needs: needs::<SourceWrite>,
    pages: false,
    creates: false,
    input: input::<EstimateArguments>,
    output: output::<Estimate>,
    run: |call| Box::pin(estimate(call)),
};

pub(super) const ADD: Tool = Tool {
    name: "add_source",
    title: "Add a source",
    description: "Adds a document by its web address or DOI. It is fetched and its facts are extracted in the background, which can cost \
                  money. The same address again gives the same source. Wait with `wait_s` or get_progress.",
    hints: Hints { idempotent: true, open_world: true, ..CHANGE },
    needs: |arguments| {
        let waits = arguments["wait_s"].as_u64().is_some_and(|wait| wait > 0);
        let also = [JobRead::PERMISSION, SourceRead::PERMISSION].into_iter().filter(|_| waits);
        [SourceWrite::PERMISSION].into_iter().chain(also).collect()
    },
    pages: false,
    creates: false,
    input: input::<AddArguments>,
    output: output::<Added>,
    run: |call| Box::pin(add(call)),
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    /// Words, or a whole address or DOI.
    query: Option<String>,
    /// `pending`, `fetching`, `fetched`, `processing`, `processed` or `failed`.
    status: Option<String>,
    /// 1 to 50, 10 by default.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Sources {
    sources: Vec<Row>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Row {
    id: Uuid,
    title: Option<String>,
    document_url: String,
    doi: Option<String>,
    status: &'static str,
    published_at: Option<NaiveDate>,
    retracted: bool,
    url: String,
}

impl Row {
    fn new(row: SourceRow, place: &Place<SourceRead>) -> Self {
        Self {
            url: place.url("sources", row.id),
            id: row.id,
            title: row.parsed_title.or(row.file_name),
            document_url: row.url,
            doi: row.doi,
            status: row.status,
            published_at: row.published_at,
            retracted: row.mark.is_some_and(|mark| mark.kind == "retracted"),
        }
    }
}

async fn list(call: &Call) -> Result<Outcome, Problem> {
    let arguments: ListArguments = call.arguments().await?;
    let page = call.page(arguments.limit, arguments.cursor.as_deref()).await?;
    let place: Place<SourceRead> = call.repository(arguments.repository.as_deref()).await?;
    let query = SourceQuery {
        status: arguments.status,
        kind: None,
        q: arguments.query,
        investigation_id: None,
        published_from: None,
        published_to: None,
        sort: None,
    };
    let (api, scope) = (State(call.server.api.clone()), Repository(place.scope.clone()));
    let (_, rows, next_cursor) = sources::list(api, scope, Query(query), page).await?.into_parts();
    let sources = rows.into_iter().map(|row| Row::new(row, &place)).collect();
    done(Sources { sources, next_cursor })
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    source_id: Uuid,
    /// `text`, `facts`.
    include: Option<Vec<String>>,
    /// Which part of the text, from 1.
    #[schema(minimum = 1)]
    part: Option<u64>,
}

#[derive(Serialize, ToSchema)]
struct Source {
    id: Uuid,
    title: Option<String>,
    author: Option<String>,
    document_url: String,
    doi: Option<String>,
    status: &'static str,
    failure: Option<String>,
    waiting_for: Option<String>,
    published_at: Option<NaiveDate>,
    language: Option<String>,
    license: Option<String>,
    mark: Option<&'static str>,
    cost_usd: f64,
    fact_count: i64,
    /// The share of sentences that support a fact.
    coverage: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<Vec<FactRow>>,
    url: String,
}

async fn get(call: &Call) -> Result<Outcome, Problem> {
    let arguments: GetArguments = call.arguments().await?;
    let include = arguments.include.unwrap_or_default();
    if include.iter().any(|part| !["text", "facts"].contains(&part.as_str())) {
        return Err(Error::invalid("include", "may name text and facts").into());
    }
    let place: Place<SourceRead> = call.repository(arguments.repository.as_deref()).await?;
    let (app, id) = (&call.server.api.app, SourceId::from(arguments.source_id));
    let seen = view(call, &place, id).await?;
    let wants = |part: &str| include.iter().any(|wanted| wanted == part);
    let (text, parts) = if wants("text") {
        let (text, parts) = part(call, &place, id, arguments.part.unwrap_or(1)).await?;
        (Some(text), Some(parts))
    } else {
        (None, None)
    };
    let facts = if wants("facts") {
        let found = app.list_source_facts(&place.scope, id, None, 20).await?;
        Some(found.into_iter().map(|fact| FactRow::new(fact.into(), &place)).collect())
    } else {
        None
    };
    let row = seen.row;
    done(Source {
        url: place.url("sources", row.id),
        id: row.id,
        title: row.parsed_title.or(row.file_name),
        author: row.author,
        document_url: row.url,
        doi: row.doi,
        status: row.status,
        failure: row.failure.map(|failure| format!("{}: {}", failure.code, failure.message)),
        waiting_for: row.waiting_for,
        published_at: row.published_at,
        language: row.language,
        license: row.license,
        mark: row.mark.map(|mark| mark.kind),
        cost_usd: row.cost.usd,
        fact_count: seen.fact_count,
        coverage: seen.extraction.map(|extraction| extraction.coverage),
        text,
        parts,
        facts,
    })
}

/// A source without its text.
pub(super) async fn view(
    call: &Call,
    place: &Place<SourceRead>,
    id: SourceId,
) -> Result<SourceView, Problem> {
    let admit = |_| Ok::<_, Problem>(());
    let (seen, ()) = call.server.api.app.find_source(&place.scope, id, TextParts::NONE, admit).await?;
    Ok(SourceView::new(seen, TextParts::NONE)?)
}

/// A part of the text of a source, and how many there are. A source that has not been read yet has none.
pub(super) async fn part(
    call: &Call,
    place: &Place<SourceRead>,
    id: SourceId,
    number: u64,
) -> Result<(String, u64), Problem> {
    let app = &call.server.api.app;
    let file = match app.find_text(&place.scope, id, false).await {
        Ok(file) => file,
        Err(Error::NotFound(what)) if what != "source" => return Ok((String::new(), 0)),
        Err(error) => return Err(error.into()),
    };
    let parts = file.size.div_ceil(PART).max(1);
    if !(1..=parts).contains(&number) {
        return Err(Error::invalid("part", format!("must be a whole number from 1 to {parts}")).into());
    }
    if file.size == 0 {
        return Ok((String::new(), parts));
    }
    // A character that begins in a part belongs to it, and has at most four bytes.
    let (from, to) = ((number - 1) * PART, (number * PART).min(file.size));
    let with_rest = (to + 3).min(file.size) - from;
    let bytes = u32::try_from(with_rest).map_err(Error::internal)?;
    let piece = app.read_text(&place.scope, id, &file, from, bytes).await?;
    let continues = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let begin = if number == 1 { 0 } else { piece.iter().take_while(|byte| continues(byte)).count() };
    let most = usize::try_from(to - from).map_err(Error::internal)?.min(piece.len());
    let end = most + piece[most..].iter().take_while(|byte| continues(byte)).count();
    Ok((String::from_utf8_lossy(&piece[begin.min(end)..end]).into_owned(), parts))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DiscoverArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    #[schema(min_length = 1, max_length = 400)]
    query: String,
    /// `academic` or `web`; left out, the first that is set up.
    provider: Option<String>,
    /// 1 to 50, 10 by default.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Candidates {
    candidates: Vec<Candidate>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Candidate {
    title: String,
    /// What `add_source` takes.
    document_url: String,
    doi: Option<String>,
    snippet: String,
    published_at: Option<NaiveDate>,
    retracted: bool,
    already_exists: bool,
    source_id: Option<Uuid>,
    url: String,
}

async fn discover(call: &Call) -> Result<Outcome, Problem> {
    let arguments: DiscoverArguments = call.arguments().await?;
    let limit = usize::try_from(call.rows(arguments.limit)?).ok();
    let place: Place<SourceWrite> = call.repository(arguments.repository.as_deref()).await?;
    let search = CandidateSearch {
        query: arguments.query,
        provider: arguments.provider,
        limit,
        cursor: arguments.cursor.filter(|cursor| !cursor.is_empty()),
    };
    let (api, scope) = (State(call.server.api.clone()), Repository(place.scope.clone()));
    let found = source_providers::search_in(api, scope, Json(search)).await?.0;
    let candidates = found.data.into_iter().map(|hit| Candidate {
        // The page of one that is there; of any other the document itself.
        url: hit.source_id.map_or_else(|| hit.url.clone(), |id| place.url("sources", id)),
        title: hit.title,
        document_url: hit.url,
        doi: hit.doi,
        snippet: super::cut(&hit.snippet, 600),
        published_at: hit.published_at,
        retracted: hit.retracted,
        already_exists: hit.already_exists == Some(true),
        source_id: hit.source_id,
    });
    done(Candidates { candidates: candidates.collect(), next_cursor: found.next_cursor })
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EstimateArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    #[schema(min_items = 1, max_items = 100)]
    source_ids: Vec<Uuid>,
}

#[derive(Serialize, ToSchema)]
struct Estimate {
    model: String,
    /// `history` or `rule_of_thumb`.
    basis: &'static str,
    calls: u64,
    tokens_in: u64,
    tokens_out: u64,
    usd: f64,
    sources: Vec<EstimateOfOne>,
}

#[derive(Serialize, ToSchema)]
struct EstimateOfOne {
    source_id: Uuid,
    calls: u64,
    usd: f64,
    url: String,
}

async fn estimate(call: &Call) -> Result<Outcome, Problem> {
    let arguments: EstimateArguments = call.arguments().await?;
    let place: Place<SourceWrite> = call.repository(arguments.repository.as_deref()).await?;
    let (api, scope) = (State(call.server.api.clone()), Repository(place.scope.clone()));
    let request = Json(EstimateRequest { source_ids: arguments.source_ids });
    let found: EstimateView = source_estimates::estimate(api, scope, request).await?.0;
    let sources = found.data.into_iter().map(|one| EstimateOfOne {
        url: place.url("sources", one.source_id),
        source_id: one.source_id,
        calls: one.row.calls,
        usd: one.row.usd,
    });
    done(Estimate {
        model: found.model,
        basis: found.basis,
        calls: found.total.calls,
        tokens_in: found.total.tokens_in,
        tokens_out: found.total.tokens_out,
        usd: found.total.usd,
        sources: sources.collect(),
    })
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AddArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    /// A web address, or the number of a paper (`arXiv:…`, `PMID:…`).
    url: Option<String>,
    /// Instead of `url`.
    doi: Option<String>,
    investigation_id: Option<Uuid>,
    /// The most that it may cost.
    max_cost_usd: Option<f64>,
    /// Seconds to wait for its facts, 0 to 50, 0 by default.
    #[schema(maximum = 50)]
    wait_s: Option<u32>,
}

#[derive(Serialize, ToSchema)]
struct Added {
    source_id: Uuid,
    job_id: Uuid,
    /// The repository had it before.
    existing: bool,
    /// After `wait_s`.
    progress: Option<Progress>,
    url: String,
}

async fn add(call: &Call) -> Result<Outcome, Problem> {
    let arguments: AddArguments = call.arguments().await?;
    let wait = progress::patience(arguments.wait_s)?;
    let place: Place<SourceWrite> = call.repository(arguments.repository.as_deref()).await?;
    // Whoever may not look may not wait, and is told so before anything is added.
    let wait =
        wait.map(|wait| Ok::<_, Problem>((wait, place.also::<JobRead>()?, place.also::<SourceRead>()?)));
    let wait = wait.transpose()?;
    let new = NewSource {
        url: arguments.url,
        doi: arguments.doi,
        investigation_id: arguments.investigation_id,
        max_cost_usd: arguments.max_cost_usd,
    };
    let accepted = call.server.api.app.add_source(&place.scope, &new.parsed()?).await?;
    let added = Added {
        source_id: accepted.source.uuid(),
        job_id: accepted.job.uuid(),
        existing: accepted.existing,
        progress: None,
        url: place.url("sources", accepted.source),
    };
    match wait {
        None => done(added),
        Some((wait, jobs, sources)) => {
            let known = serde_json::to_value(added).map_err(Error::internal)?;
            Ok(Outcome::Wait(Box::new(Watch::source(jobs, sources, accepted.source, wait, known))))
        }
    }
}
