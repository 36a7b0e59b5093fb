//! Investigations: sources that belong to one question.

use okt_auth::Needed;
use okt_auth::permissions::{InvestigationRead, InvestigationUpdate, InvestigationWrite, SourceWrite};
use okt_http::Problem;
use okt_model::InvestigationId;
use okt_wire::investigations::{
    Addition, Candidate, InvestigationAddition, InvestigationSourcesAdded, InvestigationView,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{CHANGE, Hints, READ, Tool, needs};
use crate::mcp::call::{Call, Outcome, Place, done};
use crate::mcp::schema::{input, output};

pub(super) const GET: Tool = Tool {
    name: "get_investigation",
    title: "Get an investigation",
    description: "An investigation: its question, how many sources it has and how far they are, how many facts they state and what they \
                  cost.",
    hints: READ,
    needs: needs::<InvestigationRead>,
    pages: false,
    creates: false,
    input: input::<GetArguments>,
    output: output::<Investigation>,
    run: |call| Box::pin(get(call)),
};

pub(super) const CREATE: Tool = Tool {
    name: "create_investigation",
    title: "Begin an investigation",
    description: "Begins an investigation, which gathers the sources for one question. add_to_investigation adds sources to it.",
    hints: CHANGE,
    needs: needs::<InvestigationWrite>,
    pages: false,
    creates: true,
    input: input::<CreateArguments>,
    output: output::<Investigation>,
    run: |call| Box::pin(create(call)),
};

pub(super) const ADD: Tool = Tool {
    name: "add_to_investigation",
    title: "Add sources to an investigation",
    description: "Adds a source of the repository to an investigation, or up to 50 web addresses and DOIs, which become sources where the \
                  repository does not have them; reading these can cost money.",
    hints: Hints { idempotent: true, open_world: true, ..CHANGE },
    needs: |arguments| {
        let also = (!arguments["candidates"].is_null()).then_some(SourceWrite::PERMISSION);
        [InvestigationUpdate::PERMISSION].into_iter().chain(also).collect()
    },
    pages: false,
    creates: false,
    input: input::<AddArguments>,
    output: output::<Added>,
    run: |call| Box::pin(add(call)),
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    investigation_id: Uuid,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    #[schema(min_length = 1, max_length = 300)]
    title: String,
    /// What it is to find out.
    topic: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Investigation {
    id: Uuid,
    title: String,
    topic: Option<String>,
    source_count: i64,
    processed: i64,
    failed: i64,
    fact_count: i64,
    cost_usd: f64,
    url: String,
}

impl Investigation {
    fn new<P>(view: InvestigationView, place: &Place<P>) -> Self {
        Self {
            url: place.url("investigations", view.row.id),
            id: view.row.id,
            title: view.row.title,
            topic: view.row.topic,
            source_count: view.row.source_count,
            processed: view.progress.sources.processed,
            failed: view.progress.sources.failed,
            fact_count: view.fact_count,
            cost_usd: view.cost.usd,
        }
    }
}

async fn get(call: &Call) -> Result<Outcome, Problem> {
    let arguments: GetArguments = call.arguments().await?;
    let place: Place<InvestigationRead> = call.repository(arguments.repository.as_deref()).await?;
    let id = arguments.investigation_id.into();
    let seen = call.server.api.app.find_investigation(&place.scope, id).await?;
    done(Investigation::new(seen.into(), &place))
}

async fn create(call: &Call) -> Result<Outcome, Problem> {
    let arguments: CreateArguments = call.arguments().await?;
    let place: Place<InvestigationWrite> = call.repository(arguments.repository.as_deref()).await?;
    let (title, topic) = (&arguments.title, arguments.topic.as_deref());
    let made = call.server.api.app.create_investigation(&place.scope, title, topic).await?;
    done(Investigation::new(made.into(), &place))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AddArguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    investigation_id: Uuid,
    /// A source that the repository has.
    source_id: Option<Uuid>,
    /// Web addresses and DOIs, instead of `source_id`.
    candidates: Option<Vec<String>>,
}

#[derive(Serialize, ToSchema)]
struct Added {
    sources: Vec<AddedSource>,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct AddedSource {
    /// `added`, `existing`, `skipped` or `invalid`.
    outcome: &'static str,
    source_id: Option<Uuid>,
    job_id: Option<Uuid>,
    linked: bool,
    message: Option<String>,
    url: Option<String>,
}

async fn add(call: &Call) -> Result<Outcome, Problem> {
    let arguments: AddArguments = call.arguments().await?;
    let place: Place<InvestigationUpdate> = call.repository(arguments.repository.as_deref()).await?;
    let candidates = arguments.candidates.map(|candidates| {
        candidates.into_iter().map(|text| Candidate { url: Some(text), doi: None }).collect()
    });
    let addition = InvestigationAddition { source_id: arguments.source_id, candidates };
    let (app, id) = (&call.server.api.app, InvestigationId::from(arguments.investigation_id));
    let added: InvestigationSourcesAdded = match addition.parsed()? {
        Addition::Source(source) => {
            let linked = app.add_investigation_source(&place.scope, id, source).await?;
            InvestigationSourcesAdded::of_source(source, linked)
        }
        Addition::Candidates(candidates) => app.add_candidates(&place.scope, id, candidates).await?.into(),
    };
    let sources = added.data.into_iter().map(|row| AddedSource {
        url: row.source_id.map(|id| place.url("sources", id)),
        outcome: row.outcome,
        source_id: row.source_id,
        job_id: row.job_id,
        linked: row.linked,
        message: row.message,
    });
    done(Added { sources: sources.collect(), url: place.url("investigations", id) })
}
