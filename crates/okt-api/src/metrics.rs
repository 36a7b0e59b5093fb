//! Prometheus metrics.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use metrics::gauge;

use crate::Api;

/// Metrics in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", tag = "Operations", responses(
    (status = 200, body = String, content_type = "text/plain", description = "Metrics")
))]
pub async fn show(State(api): State<Api>) -> Response {
    for databases in &api.pools {
        let purpose = databases.purpose().name();
        for (name, pool) in databases.usage() {
            gauge!("okt_database_connections", "database" => name.clone(), "pool" => purpose).set(pool.open);
            gauge!("okt_database_connections_idle", "database" => name.clone(), "pool" => purpose)
                .set(pool.idle);
            gauge!("okt_database_connections_limit", "database" => name, "pool" => purpose).set(pool.limit);
        }
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], api.metrics.render())
        .into_response()
}
