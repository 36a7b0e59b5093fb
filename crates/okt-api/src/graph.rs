//! The graph that the concepts of a repository make.

use axum::extract::State;
use okt_auth::permissions::GraphRead;
use okt_http::{Json, Problem, Query};
use okt_wire::graph::{GraphQuery, GraphView, PathQuery, PathView};

use crate::Api;
use crate::extract::Repository;

/// A part of the graph: concepts as nodes, and as edges how many facts they share.
///
/// The strongest relations are followed first, and all relations between the concepts that are shown are edges, up to five for
/// each concept that `limit` allows. `left_out` says what is not shown.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/graph", tag = "Concepts",
    operation_id = "getGraph", params(GraphQuery),
    responses((status = 200, body = GraphView, description = "The part around the center, or the concepts with the most facts")))]
pub async fn show(
    State(api): State<Api>,
    repository: Repository<GraphRead>,
    Query(query): Query<GraphQuery>,
) -> Result<Json<GraphView>, Problem> {
    let (depth, limit) = (query.depth.unwrap_or(1) as usize, query.limit.unwrap_or(50) as usize);
    let center = query.center.map(Into::into);
    Ok(Json(api.app.draw_graph(&repository.0, center, depth, limit).await?.into()))
}

/// A shortest path from one concept to another, with facts that show each step.
///
/// It is looked for from both ends along the 50 strongest relations of each concept, until 500 concepts have been looked at. Of
/// several shortest paths it is one whose weakest relation is the strongest. If there is none, `path` is empty and `reason` says
/// why.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/graph/path", tag = "Concepts",
    operation_id = "getGraphPath", params(PathQuery),
    responses((status = 200, body = PathView, description = "Also if there is none")))]
pub async fn path(
    State(api): State<Api>,
    repository: Repository<GraphRead>,
    Query(query): Query<PathQuery>,
) -> Result<Json<PathView>, Problem> {
    Ok(Json(api.app.find_graph_path(&repository.0, query.from.into(), query.to.into()).await?.into()))
}
