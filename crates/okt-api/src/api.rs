//! What handlers share, and who gets past a guard.

use std::sync::{Arc, OnceLock};

use http::request::Parts;
use metrics_exporter_prometheus::PrometheusHandle;
use okt_app::App;
use okt_http::{Code, Edge, Gate, Guard, Principal, Problem};
use okt_store::Databases;

use crate::openapi::Documents;

/// The state of the door. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    pub app: App,
    pub(crate) edge: Arc<Edge>,
    pub(crate) metrics: PrometheusHandle,
    /// Every set of pools of this process, for the metrics.
    pub(crate) pools: Arc<[Databases]>,
    /// Filled once the table is complete, because the table is what they describe.
    pub(crate) documents: Arc<OnceLock<Documents>>,
}

impl Api {
    /// `pools` are all sets of pools of this process; `app` works on one of them.
    pub fn new(app: App, edge: Arc<Edge>, metrics: PrometheusHandle, pools: &[Databases]) -> Self {
        Self { app, edge, metrics, pools: pools.into(), documents: Arc::default() }
    }

    pub fn edge(&self) -> Arc<Edge> {
        Arc::clone(&self.edge)
    }
}

impl Gate for Api {
    /// There are no accounts yet, so no credential is valid: what is not open stays shut.
    async fn admit(&self, guard: Guard, _: &mut Parts) -> Result<Option<Principal>, Problem> {
        match guard {
            Guard::Probe | Guard::Public => Ok(None),
            Guard::Authenticated | Guard::Needs(_) => {
                Err(Problem::new(Code::Unauthenticated, "this needs a valid credential"))
            }
        }
    }
}
