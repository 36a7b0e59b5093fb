//! The state of the installation, for front ends that open it.

use axum::extract::State;
use okt_http::{Json, Problem};
use okt_wire::setup::SetupView;

use crate::Api;

/// The state of the installation.
#[utoipa::path(get, path = "/api/v1/setup", tag = "Accounts",
    operation_id = "getSetup",
    responses((status = 200, body = SetupView, description = "Needs no credential")))]
pub async fn show(State(api): State<Api>) -> Result<Json<SetupView>, Problem> {
    let setup = api.app.setup().await?;
    let config = api.app.config();
    Ok(Json(SetupView {
        needs_admin: setup.needs_admin,
        registration: setup.registration.as_str(),
        mode: config.mode.as_str(),
        https: config.oauth.issuer.as_ref().is_some_and(|issuer| issuer.scheme() == "https"),
        version: env!("CARGO_PKG_VERSION"),
    }))
}
