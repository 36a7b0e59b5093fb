//! Facts, what speaks for and against a claim, and facts that may contradict each other.

use axum::extract::State;
use chrono::NaiveDate;
use okt_auth::permissions::FactRead;
use okt_http::{Code, Problem, Query};
use okt_model::{Error, Posture};
use okt_wire::contradictions::{ContradictionQuery, FoundContradictionView, SideView};
use okt_wire::facts::{FactQuery, FactRow, FactView};
use okt_wire::reports::{EvidenceFactView, EvidenceView};
use okt_wire::search::SearchQuery;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{READ, Tool, cut, needs};
use crate::extract::Repository;
use crate::mcp::call::{Call, Outcome, Place, done};
use crate::mcp::schema::{input, output};
use crate::{contradictions, facts, search};

pub(super) const SEARCH: Tool = Tool {
    name: "search_facts",
    title: "Search facts",
    description: "Facts of a repository: the best for `query`, by words and by meaning; without a query the newest. \
                  get_fact has the quotes that a fact rests on; find_evidence judges a claim.",
    hints: READ,
    needs: needs::<FactRead>,
    pages: true,
    creates: false,
    input: input::<SearchArguments>,
    output: output::<Found>,
    run: |call| Box::pin(search_facts(call)),
};

pub(super) const GET: Tool = Tool {
    name: "get_fact",
    title: "Get a fact",
    description: "A fact with its sources, the sentences that support it and their pages, its concepts, and facts that are similar \
                  or may contradict it.",
    hints: READ,
    needs: needs::<FactRead>,
    pages: true,
    creates: false,
    input: input::<GetArguments>,
    output: output::<Fact>,
    run: |call| Box::pin(get(call)),
};

pub(super) const EVIDENCE: Tool = Tool {
    name: "find_evidence",
    title: "Find evidence for a claim",
    description: "The facts that support a claim, those that contradict it, and others near it. Call it before you assert something. \
                  For a whole text call check_text. Where a paid model judges, each call can cost money.",
    hints: READ,
    needs: needs::<FactRead>,
    pages: false,
    creates: false,
    input: input::<EvidenceArguments>,
    output: output::<Evidence>,
    run: |call| Box::pin(evidence(call)),
};

pub(super) const CONTRADICTIONS: Tool = Tool {
    name: "find_contradictions",
    title: "Find contradictions",
    description: "Pairs of facts that may contradict each other, with their sources, dates, how they differ and what people said of \
                  the pair. Those of the newest facts first.",
    hints: READ,
    needs: needs::<FactRead>,
    pages: true,
    creates: false,
    input: input::<ContradictionArguments>,
    output: output::<Contradictions>,
    run: |call| Box::pin(contradictions(call)),
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    /// Words, a question, or `"a phrase"`.
    query: Option<String>,
    /// Only facts that speak of this concept.
    concept_id: Option<Uuid>,
    /// Only facts that speak of a concept in this context; with `query`.
    context: Option<String>,
    /// Only facts of this source.
    source_id: Option<Uuid>,
    /// `new`, `stable`, `duplicate` or `rejected`; without `query`.
    status: Option<String>,
    /// `newest` or `source_count`; without `query`.
    sort: Option<String>,
    /// 1 to 50, 10 by default.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Found {
    facts: Vec<Row>,
    search_mode: Option<&'static str>,
    degraded_reason: Option<&'static str>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Row {
    id: Uuid,
    text: String,
    status: Option<&'static str>,
    sources: i64,
    retracted: bool,
    url: String,
}

impl Row {
    pub(super) fn new<P>(row: FactRow, place: &Place<P>) -> Self {
        Self {
            url: place.url("facts", row.id),
            id: row.id,
            text: row.text,
            status: Some(row.status),
            sources: row.source_count.into(),
            retracted: row.retracted,
        }
    }
}

async fn search_facts(call: &Call) -> Result<Outcome, Problem> {
    let arguments: SearchArguments = call.arguments().await?;
    let page = call.page(arguments.limit, arguments.cursor.as_deref()).await?;
    let place: Place<FactRead> = call.repository(arguments.repository.as_deref()).await?;
    let (api, scope) = (State(call.server.api.clone()), Repository(place.scope.clone()));
    let Some(q) = arguments.query.filter(|query| !query.trim().is_empty()) else {
        if arguments.context.is_some() {
            return Err(Error::invalid("context", "goes with a query").into());
        }
        let query = FactQuery {
            q: None,
            status: arguments.status,
            kind: None,
            source_id: arguments.source_id,
            concept_id: arguments.concept_id,
            concepts: None,
            sort: arguments.sort,
            grouped: None,
        };
        let (_, rows, next_cursor) = facts::list(api, scope, Query(query), page).await?.into_parts();
        let facts = rows.into_iter().map(|row| Row::new(row, &place)).collect();
        return done(Found { facts, search_mode: None, degraded_reason: None, next_cursor });
    };
    for (field, given) in [("status", &arguments.status), ("sort", &arguments.sort)] {
        if given.is_some() {
            return Err(Error::invalid(field, "goes without a query").into());
        }
    }
    let query = SearchQuery {
        types: Some("facts".to_owned()),
        concept: arguments.concept_id.map(|id| id.to_string()),
        context: arguments.context,
        source: arguments.source_id.map(|id| id.to_string()),
        ..super::search::query(q)
    };
    let (_, found) = search::search(api, scope, Query(query), page).await?;
    let facts = found.0.data.into_iter().map(|row| Row {
        url: place.url("facts", row.id),
        id: row.id,
        text: row.text,
        status: None,
        sources: row.source_ids.len().try_into().unwrap_or(i64::MAX),
        retracted: row.retracted,
    });
    done(Found {
        facts: facts.collect(),
        search_mode: Some(found.0.search_mode),
        degraded_reason: found.0.degraded_reason,
        next_cursor: found.0.next_cursor,
    })
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    fact_id: Uuid,
}

#[derive(Serialize, ToSchema)]
struct Fact {
    id: Uuid,
    text: String,
    status: &'static str,
    model: String,
    retracted: bool,
    superseded: bool,
    source_count: i32,
    sources: Vec<FactSource>,
    concepts: Vec<FactConcept>,
    candidate_contradictions: Vec<Contradicting>,
    duplicates: Vec<Uuid>,
    similar: Vec<Similar>,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct FactSource {
    source_id: Uuid,
    title: Option<String>,
    document_url: String,
    retracted: bool,
    quotes: Vec<Quote>,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct Quote {
    quote: Option<String>,
    page: Option<i32>,
}

#[derive(Serialize, ToSchema)]
struct FactConcept {
    id: Uuid,
    name: String,
    context: String,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct Contradicting {
    fact_id: Uuid,
    text: String,
    difference: &'static str,
    state: &'static str,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct Similar {
    fact_id: Uuid,
    text: String,
    cosine: f32,
    url: String,
}

/// How many sources, concepts and other facts are shown, and sentences of each source.
const SHOWN: u32 = 20;
const QUOTES: usize = 5;
const QUOTE: usize = 500;
const SIMILAR: u32 = 5;

async fn get(call: &Call) -> Result<Outcome, Problem> {
    let arguments: GetArguments = call.arguments().await?;
    let place: Place<FactRead> = call.repository(arguments.repository.as_deref()).await?;
    let (app, id) = (&call.server.api.app, arguments.fact_id.into());
    let shown = call.at_most(SHOWN) as usize;
    let seen: FactView = app.find_fact(&place.scope, id).await?.into();
    let similar =
        match app.list_similar_facts(&place.scope, id, call.at_most(SIMILAR)).await.map_err(Problem::from) {
            Ok((_, found)) => found,
            // There are no vectors, or they are away: the fact is there all the same.
            Err(problem) if matches!(problem.code(), Code::NotConfigured | Code::Unavailable) => Vec::new(),
            Err(problem) => return Err(problem),
        };
    let sources = seen.sources.into_iter().take(shown).map(|source| FactSource {
        url: place.url("sources", source.source_id),
        source_id: source.source_id,
        title: source.title,
        document_url: source.url,
        retracted: source.mark.is_some_and(|mark| mark.kind == "retracted"),
        quotes: source
            .sentences
            .into_iter()
            .take(QUOTES.min(shown))
            .map(|sentence| Quote { quote: sentence.text.map(|text| cut(&text, QUOTE)), page: sentence.page })
            .collect(),
    });
    let concepts = seen.concepts.into_iter().take(shown).map(|concept| FactConcept {
        url: place.url("concepts", concept.concept_id),
        id: concept.concept_id,
        name: concept.canonical_name,
        context: concept.context,
    });
    let contradictions = seen.candidate_contradictions.into_iter().take(shown).map(|other| Contradicting {
        url: place.url("facts", other.fact_id),
        fact_id: other.fact_id,
        text: other.text,
        difference: other.difference,
        state: other.state,
    });
    let similar = similar.into_iter().map(|found| Similar {
        url: place.url("facts", found.fact.id),
        fact_id: found.fact.id.uuid(),
        text: found.fact.text,
        cosine: found.cosine,
    });
    done(Fact {
        url: place.url("facts", seen.row.id),
        id: seen.row.id,
        text: seen.row.text,
        status: seen.row.status,
        model: seen.row.model,
        retracted: seen.row.retracted,
        superseded: seen.row.superseded,
        source_count: seen.row.source_count,
        sources: sources.collect(),
        concepts: concepts.collect(),
        candidate_contradictions: contradictions.collect(),
        duplicates: seen.duplicates.into_iter().take(shown).collect(),
        similar: similar.collect(),
    })
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EvidenceArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    /// One sentence.
    #[schema(min_length = 1, max_length = 4000)]
    claim: String,
    /// How many facts at most, 1 to 50, 10 by default.
    limit: Option<u32>,
}

#[derive(Serialize, ToSchema)]
struct Evidence {
    /// `supported`, `contradicted` or `unsupported`.
    state: &'static str,
    supports: Vec<EvidenceFact>,
    contradicts: Vec<EvidenceFact>,
    related: Vec<EvidenceFact>,
    degraded_reason: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
struct EvidenceFact {
    fact_id: Uuid,
    text: String,
    confidence: f32,
    judged_by: String,
    retracted: bool,
    sources: Vec<EvidenceSource>,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct EvidenceSource {
    source_id: Uuid,
    title: Option<String>,
    document_url: String,
}

async fn evidence(call: &Call) -> Result<Outcome, Problem> {
    let arguments: EvidenceArguments = call.arguments().await?;
    let most = usize::try_from(call.rows(arguments.limit)?).unwrap_or(usize::MAX);
    let place: Place<FactRead> = call.repository(arguments.repository.as_deref()).await?;
    let found = call.server.api.app.find_evidence(&place.scope, &arguments.claim).await?;
    let found: EvidenceView = found.into();
    let mut evidence = Evidence {
        state: found.state,
        supports: Vec::new(),
        contradicts: Vec::new(),
        related: Vec::new(),
        degraded_reason: found.degraded_reason,
    };
    let mut near_ones = found.facts;
    decisive_first(&mut near_ones, found.state, |fact| (fact.retracted, fact.posture));
    for fact in near_ones.into_iter().take(most) {
        let rows = match fact.posture {
            posture if posture == Posture::Supports.as_str() => &mut evidence.supports,
            posture if posture == Posture::Contradicts.as_str() => &mut evidence.contradicts,
            _ => &mut evidence.related,
        };
        rows.push(near(fact, &place));
    }
    done(evidence)
}

/// Those that count and say what is said of the sentence come first, each group as it was.
pub(super) fn decisive_first<T>(facts: &mut [T], state: &str, of: impl Fn(&T) -> (bool, &str)) {
    let decisive = match state {
        "supported" => Posture::Supports.as_str(),
        "contradicted" => Posture::Contradicts.as_str(),
        _ => "",
    };
    facts.sort_by_key(|fact| {
        let (retracted, posture) = of(fact);
        (retracted, posture != decisive)
    });
}

fn near(fact: EvidenceFactView, place: &Place<FactRead>) -> EvidenceFact {
    let sources = fact.sources.into_iter().take(QUOTES).map(|source| EvidenceSource {
        source_id: source.id,
        title: source.title,
        document_url: source.url,
    });
    EvidenceFact {
        url: place.url("facts", fact.fact_id),
        fact_id: fact.fact_id,
        text: fact.fact_text,
        confidence: fact.confidence,
        judged_by: fact.judged_by,
        retracted: fact.retracted,
        sources: sources.collect(),
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ContradictionArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    /// What people said of the pair: `open` (the default), `real`, `scope_differs` or `not_a_contradiction`.
    state: Option<String>,
    /// 1 to 50, 10 by default.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Contradictions {
    contradictions: Vec<Pair>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Pair {
    id: String,
    state: &'static str,
    difference: &'static str,
    judged_by: Option<String>,
    confidence: Option<f32>,
    note: Option<String>,
    facts: Vec<Side>,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct Side {
    fact_id: Uuid,
    text: String,
    sources: i64,
    first_published: Option<NaiveDate>,
    last_published: Option<NaiveDate>,
    title: Option<String>,
    url: String,
}

async fn contradictions(call: &Call) -> Result<Outcome, Problem> {
    let arguments: ContradictionArguments = call.arguments().await?;
    let page = call.page(arguments.limit, arguments.cursor.as_deref()).await?;
    let place: Place<FactRead> = call.repository(arguments.repository.as_deref()).await?;
    let (api, scope) = (State(call.server.api.clone()), Repository(place.scope.clone()));
    let query = Query(ContradictionQuery { state: arguments.state });
    let (_, rows, next_cursor) = contradictions::list(api, scope, query, page).await?.into_parts();
    let contradictions = rows.into_iter().map(|row| pair(row, &place)).collect();
    done(Contradictions { contradictions, next_cursor })
}

fn pair(row: FoundContradictionView, place: &Place<FactRead>) -> Pair {
    let side = |side: SideView| Side {
        url: place.url("facts", side.row.id),
        fact_id: side.row.id,
        text: side.row.text,
        sources: side.all_sources,
        first_published: side.first_published,
        last_published: side.last_published,
        title: side.sources.into_iter().find_map(|source| source.title),
    };
    let facts: Vec<Side> = row.facts.into_iter().map(side).collect();
    Pair {
        url: facts.first().map(|side| side.url.clone()).unwrap_or_default(),
        id: row.id,
        state: row.state,
        difference: row.difference,
        judged_by: row.judged_by,
        confidence: row.confidence,
        note: row.note,
        facts,
    }
}
