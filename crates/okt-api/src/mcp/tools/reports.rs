//! Reports, and texts that are checked without being kept.

use std::collections::HashMap;

use axum::extract::State;
use okt_auth::permissions::{FactRead, ReportRead, ReportUpdate, ReportWrite};
use okt_http::{Problem, Query};
use okt_model::{Error, ReportId};
use okt_wire::reports::{
    AnnotationView, CheckedTextView, NewReport, ReportCountsView, ReportListQuery, ReportSentenceView,
    ReportView,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::facts::decisive_first;
use super::{CHANGE, Hints, READ, Tool, cut, needs};
use crate::extract::Repository;
use crate::mcp::call::{Call, Outcome, Place, done};
use crate::mcp::schema::{input, output};
use crate::reports;

/// Characters of a text that is checked, and facts that are named for each of its sentences.
const LONGEST_TEXT: usize = 6_000;
const FACTS_OF_ONE: usize = 3;
/// Sentences that are read at once, and how often, while those of one kind are looked for.
const BATCH: i64 = 200;
const BATCHES: usize = 20;

pub(super) const CHECK: Tool = Tool {
    name: "check_text",
    title: "Check a text",
    description: "Checks a text sentence by sentence against the facts, without keeping it: which sentences are supported, contradicted or \
                  unsupported, and by which facts. At most 6,000 characters. Where a paid model judges, each call can cost \
                  money.",
    hints: READ,
    needs: needs::<FactRead>,
    pages: false,
    creates: false,
    input: input::<CheckArguments>,
    output: output::<Checked>,
    run: |call| Box::pin(check(call)),
};

pub(super) const LIST: Tool = Tool {
    name: "list_reports",
    title: "List reports",
    description: "The reports of a repository, newest first. get_report says how the sentences of one stand.",
    hints: READ,
    needs: needs::<ReportRead>,
    pages: true,
    creates: false,
    input: input::<ListArguments>,
    output: output::<Reports>,
    run: |call| Box::pin(list(call)),
};

pub(super) const GET: Tool = Tool {
    name: "get_report",
    title: "Get a report",
    description: "The sentences of a report with how each stands and the facts that say so, and how many stand how. `only` leaves those \
                  out that stand otherwise.",
    hints: READ,
    needs: needs::<ReportRead>,
    pages: true,
    creates: false,
    input: input::<GetArguments>,
    output: output::<Report>,
    run: |call| Box::pin(get(call)),
};

pub(super) const CREATE: Tool = Tool {
    name: "create_report",
    title: "Write a report",
    description: "Keeps a text as a report. Its sentences are checked in the background, and again whenever facts change; get_progress \
                  with `report_id` says when that is done. Checking can cost money.",
    hints: CHANGE,
    needs: needs::<ReportWrite>,
    pages: false,
    creates: true,
    input: input::<CreateArguments>,
    output: output::<Written>,
    run: |call| Box::pin(create(call)),
};

pub(super) const UPDATE: Tool = Tool {
    name: "update_report",
    title: "Change a report",
    description: "Changes the text or the title of a report. Sentences that stay keep what was said of them; the others are checked.",
    hints: Hints { idempotent: true, ..CHANGE },
    needs: needs::<ReportUpdate>,
    pages: false,
    creates: false,
    input: input::<UpdateArguments>,
    output: output::<Written>,
    run: |call| Box::pin(update(call)),
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CheckArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    /// Markdown.
    #[schema(max_length = 6000)]
    text: String,
}

#[derive(Serialize, ToSchema)]
struct Counts {
    supported: i64,
    contradicted: i64,
    unsupported: i64,
    waiting: i64,
    not_a_claim: i64,
}

impl From<ReportCountsView> for Counts {
    fn from(counts: ReportCountsView) -> Self {
        let ReportCountsView { supported, contradicted, unsupported, waiting, not_a_claim } = counts;
        Self { supported, contradicted, unsupported, waiting, not_a_claim }
    }
}

#[derive(Serialize, ToSchema)]
struct Checked {
    counts: Counts,
    sentences: Vec<CheckedSentence>,
    degraded_reason: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
struct CheckedSentence {
    text: String,
    state: &'static str,
    facts: Vec<Judged>,
}

#[derive(Serialize, ToSchema)]
struct Judged {
    fact_id: Uuid,
    posture: String,
    confidence: f32,
    /// All its sources were retracted, so it counts for nothing.
    retracted: bool,
    url: String,
}

async fn check(call: &Call) -> Result<Outcome, Problem> {
    let arguments: CheckArguments = call.arguments().await?;
    if arguments.text.chars().count() > LONGEST_TEXT {
        return Err(Error::invalid("text", "must be at most 6000 characters").into());
    }
    let place: Place<FactRead> = call.repository(arguments.repository.as_deref()).await?;
    let checked: CheckedTextView =
        call.server.api.app.check_text(&place.scope, &arguments.text).await?.into();
    let sentences = checked.sentences.into_iter().map(|mut sentence| {
        decisive_first(&mut sentence.facts, sentence.state, |fact| (fact.retracted, fact.posture));
        let facts = sentence.facts.into_iter().take(FACTS_OF_ONE).map(|fact| Judged {
            url: place.url("facts", fact.fact_id),
            fact_id: fact.fact_id,
            posture: fact.posture.to_owned(),
            confidence: fact.confidence,
            retracted: fact.retracted,
        });
        CheckedSentence { text: sentence.text, state: sentence.state, facts: facts.collect() }
    });
    done(Checked {
        counts: checked.counts.into(),
        sentences: sentences.collect(),
        degraded_reason: checked.degraded_reason,
    })
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    /// Only the parts of this report.
    parent_id: Option<Uuid>,
    /// 1 to 50, 10 by default.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Reports {
    reports: Vec<Row>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Row {
    id: Uuid,
    title: String,
    topic: Option<String>,
    status: &'static str,
    sentence_count: i32,
    claim_count: i32,
    url: String,
}

async fn list(call: &Call) -> Result<Outcome, Problem> {
    let arguments: ListArguments = call.arguments().await?;
    let page = call.page(arguments.limit, arguments.cursor.as_deref()).await?;
    let place: Place<ReportRead> = call.repository(arguments.repository.as_deref()).await?;
    let (api, scope) = (State(call.server.api.clone()), Repository(place.scope.clone()));
    let query = Query(ReportListQuery { parent_id: arguments.parent_id });
    let (_, rows, next_cursor) = reports::list(api, scope, page, query).await?.into_parts();
    let reports = rows.into_iter().map(|row| Row {
        url: place.url("reports", row.id),
        id: row.id,
        title: row.title,
        topic: row.topic.map(|topic| cut(&topic, 500)),
        status: row.status,
        sentence_count: row.sentence_count,
        claim_count: row.claim_count,
    });
    done(Reports { reports: reports.collect(), next_cursor })
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    report_id: Uuid,
    /// `supported`, `contradicted` or `unsupported`.
    only: Option<String>,
    /// How many sentences, 1 to 50, 10 by default.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Report {
    id: Uuid,
    title: String,
    topic: Option<String>,
    status: &'static str,
    counts: Counts,
    sentences: Vec<Sentence>,
    next_cursor: Option<String>,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct Sentence {
    index: i32,
    text: String,
    state: &'static str,
    facts: Vec<Judged>,
}

async fn get(call: &Call) -> Result<Outcome, Problem> {
    let arguments: GetArguments = call.arguments().await?;
    let only = arguments.only.as_deref();
    if only.is_some_and(|only| !["supported", "contradicted", "unsupported"].contains(&only)) {
        return Err(Error::invalid("only", "must be supported, contradicted or unsupported").into());
    }
    let page = call.page(arguments.limit, arguments.cursor.as_deref()).await?;
    let after: Option<i32> = page.after()?;
    let place: Place<ReportRead> = call.repository(arguments.repository.as_deref()).await?;
    let (app, id) = (&call.server.api.app, ReportId::from(arguments.report_id));
    let report = ReportView::new(app.find_report(&place.scope, id, false).await?, None);
    let most = usize::try_from(page.limit()).map_err(Error::internal)?;
    let mut from = after.map_or(0, |after| after.saturating_add(1));
    let (mut found, mut next): (Vec<ReportSentenceView>, Option<i32>) = (Vec::new(), None);
    let batch = if only.is_some() { BATCH } else { page.rows() };
    'reading: for _ in 0..BATCHES {
        let sentences = app.list_report_sentences(&place.scope, id, from, batch).await?;
        let whole = i64::try_from(sentences.len()).is_ok_and(|read| read < batch);
        for sentence in sentences.into_iter().map(ReportSentenceView::from) {
            if found.len() == most {
                next = Some(from - 1);
                break 'reading;
            }
            from = sentence.sentence_index + 1;
            if only.is_none_or(|only| sentence.state == only) {
                found.push(sentence);
            }
        }
        next = (!whole).then_some(from - 1);
        if whole {
            break;
        }
    }
    let mut facts = judged(call, &place, id, &found).await?;
    let sentences = found.into_iter().map(|sentence| Sentence {
        index: sentence.sentence_index,
        facts: facts.remove(&sentence.sentence_index).unwrap_or_default(),
        text: sentence.text,
        state: sentence.state,
    });
    let (_, sentences, next_cursor) = page.page_until(sentences.collect(), next)?.into_parts();
    done(Report {
        url: place.url("reports", report.row.id),
        id: report.row.id,
        title: report.row.title,
        topic: report.row.topic,
        status: report.row.status,
        counts: report.counts.into(),
        sentences,
        next_cursor,
    })
}

/// The facts near these sentences, by sentence.
async fn judged(
    call: &Call,
    place: &Place<ReportRead>,
    id: ReportId,
    sentences: &[ReportSentenceView],
) -> Result<HashMap<i32, Vec<Judged>>, Problem> {
    let claims = sentences.iter().filter(|sentence| sentence.state != "not_a_claim");
    let claims: HashMap<i32, &str> =
        claims.map(|sentence| (sentence.sentence_index, sentence.state)).collect();
    let mut places: Vec<i32> = claims.keys().copied().collect();
    places.sort_unstable();
    let found = call.server.api.app.list_annotations_of(&place.scope, id, &places).await?;
    let mut near: HashMap<i32, Vec<AnnotationView>> = HashMap::new();
    for row in found.into_iter().map(AnnotationView::from).filter(|row| row.posture != "irrelevant") {
        near.entry(row.sentence_index).or_default().push(row);
    }
    let judged = near.into_iter().map(|(index, mut rows)| {
        let state = claims.get(&index).copied().unwrap_or_default();
        decisive_first(&mut rows, state, |row| (row.retracted, row.posture));
        let rows = rows.into_iter().take(FACTS_OF_ONE).map(|row| Judged {
            url: place.url("facts", row.fact_id),
            fact_id: row.fact_id,
            posture: row.posture.to_owned(),
            confidence: row.confidence,
            retracted: row.retracted,
        });
        (index, rows.collect())
    });
    Ok(judged.collect())
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    #[schema(min_length = 1, max_length = 300)]
    title: String,
    markdown: String,
    topic: Option<String>,
    /// The report that it is a part of.
    parent_id: Option<Uuid>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UpdateArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    report_id: Uuid,
    markdown: Option<String>,
    #[schema(min_length = 1, max_length = 300)]
    title: Option<String>,
    topic: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Written {
    id: Uuid,
    title: String,
    status: &'static str,
    counts: Counts,
    /// The job that checks it.
    job_id: Option<Uuid>,
    url: String,
}

impl Written {
    fn new<P>(view: ReportView, place: &Place<P>) -> Self {
        Self {
            url: place.url("reports", view.row.id),
            id: view.row.id,
            title: view.row.title,
            status: view.row.status,
            counts: view.counts.into(),
            job_id: view.job_id,
        }
    }
}

async fn create(call: &Call) -> Result<Outcome, Problem> {
    let arguments: CreateArguments = call.arguments().await?;
    let place: Place<ReportWrite> = call.repository(arguments.repository.as_deref()).await?;
    let new = NewReport {
        title: arguments.title,
        topic: arguments.topic,
        body_markdown: arguments.markdown,
        parent_id: arguments.parent_id,
    };
    let (made, job) = call.server.api.app.create_report(&place.scope, new.parsed()).await?;
    done(Written::new(ReportView::new(made, job), &place))
}

async fn update(call: &Call) -> Result<Outcome, Problem> {
    let arguments: UpdateArguments = call.arguments().await?;
    let place: Place<ReportUpdate> = call.repository(arguments.repository.as_deref()).await?;
    let edit = okt_wire::reports::ReportUpdate {
        title: arguments.title,
        topic: arguments.topic,
        body_markdown: arguments.markdown,
        parent_id: None,
    };
    let id = arguments.report_id.into();
    let (seen, job) = call.server.api.app.update_report(&place.scope, id, edit.parsed()?).await?;
    done(Written::new(ReportView::new(seen, job), &place))
}
