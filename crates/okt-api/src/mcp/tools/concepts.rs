//! Concepts: what facts speak of, what is known of it, and what it is related to.

use axum::extract::State;
use okt_auth::permissions::ConceptRead;
use okt_http::{Path, Problem, Query};
use okt_model::Error;
use okt_wire::concepts::{ConceptQuery, ConceptRow, ConceptView, RelationQuery, RelationRow};
use okt_wire::summaries::{DefinitionView, SliceView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{READ, Tool, cut, needs};
use crate::concepts::{self, ConceptPath};
use crate::extract::Repository;
use crate::mcp::call::{Call, Outcome, Place, done};
use crate::mcp::schema::{input, output};

/// What a text about a concept may have of an answer, and how many other things are shown beside it.
const TEXT: usize = 20_000;
const SHOWN: u32 = 20;

pub(super) const SEARCH: Tool = Tool {
    name: "search_concepts",
    title: "Search concepts",
    description: "Concepts by the beginning of a word of their name or alias; without a query those with the most facts. \
                  get_concept says what is known of one.",
    hints: READ,
    needs: needs::<ConceptRead>,
    pages: true,
    creates: false,
    input: input::<SearchArguments>,
    output: output::<Concepts>,
    run: |call| Box::pin(search(call)),
};

pub(super) const GET: Tool = Tool {
    name: "get_concept",
    title: "Get a concept",
    description: "What is known of a concept: its definition, in which each sentence cites its facts, its aliases and contexts; with \
                  `include` also summaries, sources and relations.",
    hints: READ,
    needs: needs::<ConceptRead>,
    pages: true,
    creates: false,
    input: input::<GetArguments>,
    output: output::<Concept>,
    run: |call| Box::pin(get(call)),
};

pub(super) const RELATED: Tool = Tool {
    name: "related_concepts",
    title: "Related concepts",
    description: "The concepts that share facts with a concept, those that share the most first.",
    hints: READ,
    needs: needs::<ConceptRead>,
    pages: true,
    creates: false,
    input: input::<RelatedArguments>,
    output: output::<Relations>,
    run: |call| Box::pin(related(call)),
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    /// The beginning of a word of a name; at most 100 characters.
    query: Option<String>,
    /// Only concepts of this context.
    context: Option<String>,
    /// 1 to 50, 10 by default.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Concepts {
    concepts: Vec<Row>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Row {
    id: Uuid,
    name: String,
    context: String,
    fact_count: i64,
    url: String,
}

async fn search(call: &Call) -> Result<Outcome, Problem> {
    let arguments: SearchArguments = call.arguments().await?;
    let page = call.page(arguments.limit, arguments.cursor.as_deref()).await?;
    let place: Place<ConceptRead> = call.repository(arguments.repository.as_deref()).await?;
    let query = ConceptQuery { q: arguments.query, context: arguments.context, show_small: None, sort: None };
    let (api, scope) = (State(call.server.api.clone()), Repository(place.scope.clone()));
    let (_, found) = concepts::list(api, scope, Query(query), page).await?;
    let rows = found.0.data.into_iter().map(|row| Row {
        url: place.url("concepts", row.id),
        id: row.id,
        name: row.canonical_name,
        context: row.context,
        fact_count: row.fact_count,
    });
    done(Concepts { concepts: rows.collect(), next_cursor: found.0.next_cursor })
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    concept_id: Option<Uuid>,
    /// Its whole name, instead of `concept_id`.
    name: Option<String>,
    /// `summaries`, `sources`, `relations`.
    include: Option<Vec<String>>,
}

#[derive(Serialize, ToSchema)]
struct Concept {
    id: Uuid,
    name: String,
    context: String,
    description: Option<String>,
    aliases: Vec<String>,
    contexts: Vec<InContext>,
    fact_count: i64,
    /// Markdown; `[text](<fact:ID>)` cites a fact.
    text: String,
    /// `model` or `extractive`.
    method: &'static str,
    retracted_facts: Vec<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summaries: Option<Vec<Summary>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<Vec<OfSource>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relations: Option<Vec<Relation>>,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct InContext {
    concept_id: Uuid,
    context: String,
    fact_count: i64,
}

#[derive(Serialize, ToSchema)]
struct Summary {
    text: String,
    facts: usize,
    is_current: bool,
}

#[derive(Serialize, ToSchema)]
struct OfSource {
    source_id: Uuid,
    title: Option<String>,
    document_url: String,
    fact_count: i64,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct Relation {
    concept_id: Uuid,
    name: String,
    context: String,
    strength: &'static str,
    shared_fact_count: i64,
    fact_count: i64,
    url: String,
}

impl Relation {
    fn new(row: RelationRow, place: &Place<ConceptRead>) -> Self {
        Self {
            url: place.url("concepts", row.concept_id),
            concept_id: row.concept_id,
            name: row.canonical_name,
            context: row.context,
            strength: row.strength,
            shared_fact_count: row.shared_fact_count,
            fact_count: row.fact_count,
        }
    }
}

async fn get(call: &Call) -> Result<Outcome, Problem> {
    let arguments: GetArguments = call.arguments().await?;
    let include = arguments.include.unwrap_or_default();
    if include.iter().any(|part| !["summaries", "sources", "relations"].contains(&part.as_str())) {
        return Err(Error::invalid("include", "may name summaries, sources and relations").into());
    }
    let place: Place<ConceptRead> = call.repository(arguments.repository.as_deref()).await?;
    let (app, scope) = (&call.server.api.app, &place.scope);
    let asked = match (arguments.concept_id, arguments.name) {
        (Some(id), None) => id,
        (None, Some(name)) => named(call, &place, &name).await?,
        _ => return Err(Error::invalid("concept_id", "give either concept_id or name").into()),
    };
    let id = asked.into();
    let seen = ConceptView::new(app.find_concept(scope, id).await?, id);
    let definition: DefinitionView = app.find_concept_definition(scope, id, None, None).await?.into();
    let shown = call.at_most(SHOWN);
    let wants = |part: &str| include.iter().any(|wanted| wanted == part);
    let summaries = if wants("summaries") {
        let found = app.list_concept_summaries(scope, id, None, 4).await?;
        let rows =
            found.into_iter().take(call.at_most(4) as usize).map(SliceView::from).map(|slice| Summary {
                text: cut(&slice.content, TEXT / 4),
                facts: slice.fact_ids.len(),
                is_current: slice.is_current,
            });
        Some(rows.collect())
    } else {
        None
    };
    let sources = if wants("sources") {
        let found = app.list_concept_sources(scope, id, None, shown.into()).await?;
        let rows = found.rows.into_iter().map(|source| OfSource {
            url: place.url("sources", source.id),
            source_id: source.id.uuid(),
            title: source.title,
            document_url: source.url,
            fact_count: source.fact_count,
        });
        Some(rows.collect())
    } else {
        None
    };
    let relations = if wants("relations") {
        let found = app.list_concept_relations(scope, id, (false, false), None, shown.into()).await?;
        Some(found.rows.into_iter().map(|row| Relation::new(row.into(), &place)).collect())
    } else {
        None
    };
    let contexts = seen.row.contexts.into_iter().take(shown as usize).map(|context| InContext {
        concept_id: context.concept_id,
        context: context.context,
        fact_count: context.fact_count,
    });
    done(Concept {
        url: place.url("concepts", seen.row.id),
        id: seen.row.id,
        name: seen.row.canonical_name,
        context: seen.row.context,
        description: seen.description,
        aliases: seen.aliases.into_iter().take(call.at_most(50) as usize).map(|alias| alias.alias).collect(),
        contexts: contexts.collect(),
        fact_count: seen.row.fact_count,
        text: cut(&definition.content, TEXT),
        method: definition.method,
        retracted_facts: definition.retracted_facts.into_iter().take(50).collect(),
        summaries,
        sources,
        relations,
    })
}

/// The concept of this name that has the most facts.
async fn named(call: &Call, place: &Place<ConceptRead>, name: &str) -> Result<Uuid, Problem> {
    let q: String = name.chars().take(100).collect();
    let query = ConceptQuery { q: Some(q), context: None, show_small: Some(true), sort: None };
    let (api, scope) = (State(call.server.api.clone()), Repository(place.scope.clone()));
    // However few rows an answer may have.
    let page = call.server.page("get_concept", 50, None).await?;
    let (_, found) = concepts::list(api, scope, Query(query), page).await?;
    let same = |row: &&ConceptRow| row.canonical_name.to_lowercase() == name.to_lowercase();
    let rows = found.0.data;
    // Words that a name begins with are found too; the only one whose name does not begin so has this one as an alias.
    let begins = |row: &ConceptRow| row.canonical_name.to_lowercase().starts_with(&name.to_lowercase());
    let row = rows.iter().find(same).or(match rows.as_slice() {
        [only] if !begins(only) => Some(only),
        _ => None,
    });
    Ok(row.ok_or(Error::NotFound("concept of this name; see search_concepts"))?.id)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RelatedArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    concept_id: Uuid,
    /// Also those that share few facts.
    show_insignificant: Option<bool>,
    /// 1 to 50, 10 by default.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Relations {
    concepts: Vec<Relation>,
    next_cursor: Option<String>,
}

async fn related(call: &Call) -> Result<Outcome, Problem> {
    let arguments: RelatedArguments = call.arguments().await?;
    let page = call.page(arguments.limit, arguments.cursor.as_deref()).await?;
    let place: Place<ConceptRead> = call.repository(arguments.repository.as_deref()).await?;
    let query = RelationQuery { show_insignificant: arguments.show_insignificant, show_small: None };
    let (api, scope) = (State(call.server.api.clone()), Repository(place.scope.clone()));
    let path = Path(ConceptPath { concept: arguments.concept_id });
    let (_, found) = concepts::relations(api, scope, path, Query(query), page).await?;
    let concepts = found.0.data.into_iter().map(|row| Relation::new(row, &place)).collect();
    done(Relations { concepts, next_cursor: found.0.next_cursor })
}
