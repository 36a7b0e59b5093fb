//! Every route with its guard.

use okt_http::Guard::{Probe, Public};
use okt_http::{Routes, route};

use crate::{Api, docs, health, metrics, openapi, repositories};

/// All routes of the service.
pub fn table(api: &Api) -> Routes<Api> {
    probes(api)
        .at(Public, route!(openapi::show))
        .at(Public, route!(docs::show))
        .at(Public, route!(repositories::presets))
}

/// What every process answers, whatever its role.
pub fn probes(api: &Api) -> Routes<Api> {
    let routes = health(api);
    match api.app.config().server.metrics_addr {
        None => routes.at(Probe, route!(metrics::show)),
        Some(_) => routes,
    }
}

/// What the listener for metrics answers, where there is one.
pub fn metrics_probes(api: &Api) -> Routes<Api> {
    health(api).at(Probe, route!(metrics::show))
}

fn health(api: &Api) -> Routes<Api> {
    Routes::new(api.clone(), api.edge(), openapi::document())
        .at(Probe, route!(health::live))
        .at(Probe, route!(health::ready))
}
