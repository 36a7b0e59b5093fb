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

use crate::oauth::{Issuer, OAuthLimits, resource_metadata};
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
    pub(crate) oauth: OAuthLimits,
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
        let (sign_in, oauth) = (SignInLimits::new(app.config()), OAuthLimits::new(app.config()));
        let (pools, documents) = (pools.to_vec(), OnceLock::new());
        let denials = Limit::per_minute(DENIALS_PER_MINUTE);
        Self(Arc::new(Shared { app, edge, metrics, pools, sign_in, oauth, denials, documents }))
    }

    /// Keeps the memory of limits and the open connections in proportion to the active callers. Runs until dropped.
    pub async fn keep_tidy(&self) {
        let mut minute = tokio::time::interval(Duration::from_mins(1));
        loop {
            minute.tick().await;
            self.edge.forget_idle();
            self.sign_in.forget_idle();
            self.oauth.forget_idle();
            self.denials.forget_idle();
            for databases in &self.pools {
                databases.close_idle().await;
            }
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
        let Some(bearer) = bearer(&parts.headers)? else {
            let problem =
                Problem::new(Code::Unauthenticated, "this needs a credential: Authorization: Bearer …");
            return Err(self.with_challenge(problem, parts, guard, None));
        };
        // Which of the two counts would be a riddle; in an address a token would end up in logs and histories.
        let query = parts.uri.query().unwrap_or_default();
        if query.split('&').any(|pair| pair.split('=').next() == Some("access_token")) {
            return Err(Problem::new(Code::Malformed, "a token belongs into the header, and only there"));
        }
        let caller = match self.app.auth().authenticate(bearer).await? {
            Some(caller) => Some(caller),
            None => match Issuer::of(self, parts) {
                Some(Issuer(issuer)) => self.app.auth().authenticate_client(bearer, &issuer, &issuer).await?,
                None => None,
            },
        };
        let invalid = |detail: &'static str| {
            let problem = Problem::new(Code::Unauthenticated, detail);
            self.with_challenge(problem, parts, guard, Some("invalid_token"))
        };
        let Some(caller) = caller else {
            return Err(invalid("the credential is not valid, or not valid any more"));
        };
        match (guard, caller.credential()) {
            (Guard::Session, Credential::ApiKey(_)) => {
                self.deny(&caller, &origin(parts), "session").await?;
                return Err(Error::Forbidden("this needs a person's session; an API key can't do it").into());
            }
            // Its audience is the service, but never this part of it.
            (Guard::Session, Credential::Grant(_)) => {
                self.deny(&caller, &origin(parts), "session").await?;
                return Err(invalid("this needs a person's session; a client's token can't do it"));
            }
            (Guard::Needs(permission), credential) => {
                let Some(scope) = caller.let_in(permission) else {
                    self.deny(&caller, &origin(parts), &permission.to_string()).await?;
                    let problem =
                        Problem::new(Code::Forbidden, format!("this needs the permission {permission}"));
                    // Another scope would not help a person who may not do it.
                    return Err(match credential {
                        Credential::Grant(_) if !caller.was_given(permission) => {
                            self.with_challenge(problem, parts, guard, Some("insufficient_scope"))
                        }
                        _ => problem,
                    });
                };
                parts.extensions.insert(scope);
            }
            _ => {}
        }
        let principal = principal(&caller);
        parts.extensions.insert(caller);
        Ok(Some(principal))
    }
}

impl Api {
    /// Says where a client finds out how to get a token that would do (RFC 9728), and for what (RFC 6750).
    fn with_challenge(
        &self,
        problem: Problem,
        parts: &Parts,
        guard: Guard,
        error: Option<&'static str>,
    ) -> Problem {
        let Some(Issuer(issuer)) = Issuer::of(self, parts) else { return problem };
        let error = error.map(|error| format!("error=\"{error}\", ")).unwrap_or_default();
        let scope = match guard {
            Guard::Needs(permission) => permission.to_string(),
            _ => "read".to_owned(),
        };
        let metadata = resource_metadata(&issuer);
        problem.challenge(format!("Bearer {error}scope=\"{scope}\", resource_metadata=\"{metadata}\""))
    }

    /// Records a refusal, within a limit: it is one more write for every request.
    pub(crate) async fn deny(&self, caller: &Caller, origin: &Origin, what: &str) -> Result<(), Problem> {
        self.denials.check(&principal(caller))?;
        Ok(self.app.record_denial(caller, origin, what).await?)
    }
}

fn principal(caller: &Caller) -> Principal {
    Principal(match caller.credential() {
        Credential::Session(_) => format!("user:{}", caller.user()).into(),
        Credential::ApiKey(id) => format!("key:{id}").into(),
        Credential::Grant(id) => format!("grant:{id}").into(),
    })
}

/// Where a request came from.
pub(crate) fn origin(parts: &Parts) -> Origin {
    let address = parts.extensions.get::<ClientAddress>().map(|address| address.0);
    let agent = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    let agent = agent.map(|text| text.chars().take(200).collect());
    Origin { request_id: current_request_id(), address, agent }
}

/// The one bearer text of a request. A second header is a riddle about which one counts, and is refused.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
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
