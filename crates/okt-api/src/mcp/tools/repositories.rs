//! Which repositories there are.

use okt_http::Problem;
use okt_model::{Domain, RepositoryId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{READ, Tool};
use crate::mcp::call::{Call, Outcome, done};
use crate::mcp::schema::{input, output};

pub(super) const LIST: Tool = Tool {
    name: "list_repositories",
    title: "List repositories",
    description: "The repositories that you can see, newest first, with how much they hold and what you may do in each. \
                  Other tools take the slug as `repository`.",
    hints: READ,
    needs: |_| Vec::new(),
    pages: true,
    creates: false,
    input: input::<Arguments>,
    output: output::<Repositories>,
    run: |call| Box::pin(list(call)),
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// 1 to 50, 10 by default.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Repositories {
    repositories: Vec<Row>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Row {
    id: Uuid,
    slug: String,
    name: String,
    description: String,
    sources: Option<i64>,
    facts: Option<i64>,
    concepts: Option<i64>,
    reports: Option<i64>,
    permissions: Vec<String>,
    url: String,
}

async fn list(call: &Call) -> Result<Outcome, Problem> {
    let arguments: Arguments = call.arguments().await?;
    let page = call.page(arguments.limit, arguments.cursor.as_deref()).await?;
    let before: Option<Uuid> = page.after()?;
    let server = &call.server;
    let found = server.api.app.list_repositories(&server.caller, before.map(Into::into), page.limit());
    let (found, next) = found.await?;
    let rows = found.into_iter().map(|seen| {
        let permissions = server.caller.permissions(Domain::Repository(seen.repository.id));
        Row {
            id: seen.repository.id.uuid(),
            url: format!("{}/r/{}", server.base, seen.repository.slug),
            slug: seen.repository.slug,
            name: seen.repository.name,
            description: seen.repository.description,
            sources: seen.counts.map(|counts| counts.sources),
            facts: seen.counts.map(|counts| counts.facts),
            concepts: seen.counts.map(|counts| counts.concepts),
            reports: seen.counts.map(|counts| counts.reports),
            permissions: permissions.iter().map(|permission| permission.to_string()).collect(),
        }
    });
    let (_, repositories, next_cursor) =
        page.page_until(rows.collect(), next.map(RepositoryId::uuid))?.into_parts();
    done(Repositories { repositories, next_cursor })
}
