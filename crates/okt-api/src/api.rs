//! What handlers share, and who gets past a guard.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, header};
use metrics_exporter_prometheus::PrometheusHandle;
use okt_app::{App, Origin};
use okt_auth::{Caller, Credential};
use okt_http::{ClientAddress, Code, Edge, Gate, Guard, Limit, Principal, Problem, current_request_id};
use okt_model::Error;
use okt_store::Databases;

use crate::openapi::Documents;
use crate::sign_in::SignInLimits;

const DENIALS_PER_MINUTE: u32 = 60;

/// The state of the door. Cheap to clone, because every layer of every request does.
#[derive(Clone)]
pub struct Api(Arc<Shared>);

/// What the clones share.
pub struct Shared {
    pub app: App,
    pub(crate) edge: Arc<Edge>,
    pub(crate) metrics: PrometheusHandle,
    /// Every set of pools of this process, for the metrics.
    pub(crate) pools: Vec<Databases>,
    pub(crate) sign_in: SignInLimits,
    /// Refusals are recorded, so they need a limit of their own: it is one more write for every request.
    denials: Limit<Principal>,
    /// Filled once the table is complete, because the table is what they describe.
    pub(crate) documents: OnceLock<Documents>,
}

impl Deref for Api {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Api {
    /// `pools` are all sets of pools of this process; `app` works on one of them.
    pub fn new(app: App, edge: Arc<Edge>, metrics: PrometheusHandle, pools: &[Databases]) -> Self {
        let sign_in = SignInLimits::new(app.config());
        let (pools, documents) = (pools.to_vec(), OnceLock::new());
        let denials = Limit::per_minute(DENIALS_PER_MINUTE);
        Self(Arc::new(Shared { app, edge, metrics, pools, sign_in, denials, documents }))
    }

    /// Keeps the memory of limits in proportion to the active callers. Runs until dropped.
    pub async fn keep_tidy(&self) {
        let mut minute = tokio::time::interval(Duration::from_mins(1));
        loop {
            minute.tick().await;
            self.edge.forget_idle();
            self.sign_in.forget_idle();
            self.denials.forget_idle();
        }
    }

    pub fn edge(&self) -> Arc<Edge> {
        Arc::clone(&self.edge)
    }
}

impl Gate for Api {
    async fn admit(&self, guard: Guard, parts: &mut Parts) -> Result<Option<Principal>, Problem> {
        if matches!(guard, Guard::Probe | Guard::Public) {
            return Ok(None);
        }
        let bearer = bearer(&parts.headers)?.ok_or(NEEDS_CREDENTIAL)?;
        let caller = self.app.auth().authenticate(bearer).await?;
        let caller =
            caller.ok_or(Error::Unauthenticated("the credential is not valid, or not valid any more"))?;
        let principal = Principal(match caller.credential() {
            Credential::Session(_) => format!("user:{}", caller.user()).into(),
            Credential::ApiKey(id) => format!("key:{id}").into(),
        });
        match guard {
            Guard::Session if matches!(caller.credential(), Credential::ApiKey(_)) => {
                self.deny(&caller, &principal, parts, "session").await?;
                return Err(Error::Forbidden("this needs a person's session; an API key can't do it").into());
            }
            Guard::Needs(permission) => {
                let Some(scope) = caller.let_in(permission) else {
                    self.deny(&caller, &principal, parts, &permission.to_string()).await?;
                    return Err(Problem::new(
                        Code::Forbidden,
                        format!("this needs the permission {permission}"),
                    ));
                };
                parts.extensions.insert(scope);
            }
            _ => {}
        }
        parts.extensions.insert(caller);
        Ok(Some(principal))
    }
}

const NEEDS_CREDENTIAL: Error = Error::Unauthenticated("this needs a credential: Authorization: Bearer …");

impl Api {
    async fn deny(
        &self,
        caller: &Caller,
        principal: &Principal,
        parts: &Parts,
        what: &str,
    ) -> Result<(), Problem> {
        self.denials.check(principal)?;
        let address = parts.extensions.get::<ClientAddress>().map(|address| address.0);
        let origin = Origin { request_id: current_request_id(), address };
        Ok(self.app.record_denial(caller, &origin, what).await?)
    }
}

/// The one bearer text of a request. A second header is a riddle about which one counts, and is refused.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (first, second) = (given.next(), given.next());
    if second.is_some() {
        return Err(Problem::new(Code::Malformed, "there is more than one Authorization header"));
    }
    let text = first.and_then(|value| value.to_str().ok());
    Ok(text
        .and_then(|text| text.split_once(' '))
        .and_then(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())))
}
