//! Whether a request that was admitted a while ago would be admitted still.

use std::sync::Arc;

use axum::extract::Request;
use futures_util::future::BoxFuture;
use http::request::Parts;

use crate::edge::InFlight;
use crate::observe::RequestId;
use crate::problem::Problem;
use crate::routes::{Gate, Guard};

/// Asks the gate again, with what the request came with.
#[derive(Clone)]
pub(crate) struct Recheck(Arc<dyn Fn() -> BoxFuture<'static, Result<(), Problem>> + Send + Sync>);

/// What a caller may do by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    Held,
    Lost,
    /// The gate could not find out.
    Unknown,
}

impl Recheck {
    pub(crate) fn new<S: Gate>(gate: &S, guard: Guard, request: &Request) -> Self {
        let gate = gate.clone();
        let mut parts = Request::new(()).into_parts().0;
        parts.method = request.method().clone();
        parts.uri = request.uri().clone();
        parts.headers = request.headers().clone();
        parts.extensions = request.extensions().clone();
        // Else its slot would be taken for as long as there is something to be checked.
        parts.extensions.remove::<InFlight>();
        Self(Arc::new(move || {
            let (gate, mut parts): (S, Parts) = (gate.clone(), parts.clone());
            let id = parts.extensions.get::<RequestId>().cloned();
            Box::pin(async move {
                let admitted = gate.admit(guard, &mut parts);
                // What is recorded of a refusal names the request that began it.
                match id {
                    Some(id) => id.scope(admitted).await,
                    None => admitted.await,
                }
                .map(drop)
            })
        }))
    }

    pub(crate) async fn check(&self) -> Result<(), Problem> {
        (self.0)().await
    }

    pub(crate) async fn rights(&self) -> Rights {
        match self.check().await {
            Ok(()) => Rights::Held,
            Err(problem) if problem.code().status().is_server_error() => Rights::Unknown,
            Err(_) => Rights::Lost,
        }
    }
}
