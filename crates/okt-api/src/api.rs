//! What handlers share, and who gets past a guard.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;
use metrics_exporter_prometheus::PrometheusHandle;
use okt_app::oauth::resources;
use okt_app::{App, Origin};
use okt_auth::{Caller, Credential, Proof, Refused};
use okt_http::{Code, Edge, Gate, Guard, Limit, Principal, Problem, WellFormed};
use okt_model::{Domain, Error, Permission, RepositoryId, UserId};
use okt_store::Databases;
use okt_store::repositories::Located;

use crate::extract::{Issuer, bearer, origin, principal};
use crate::metrics::Backlogs;
use crate::oauth::{OAuthLimits, resource_metadata};
use crate::openapi::Documents;
use crate::sign_in::SignInLimits;

/// The state shared by all handlers. Cheap to clone, because every layer of every request does.
#[derive(Clone)]
pub struct Api(Arc<Shared>);

/// What the clones share.
pub struct Shared {
    pub app: App,
    pub(crate) edge: Arc<Edge>,
    pub(crate) metrics: PrometheusHandle,
    pub(crate) backlogs: Backlogs,
    /// Every set of pools of this process, for the metrics.
    pub(crate) pools: Vec<Databases>,
    pub(crate) sign_in: SignInLimits,
    pub(crate) oauth: OAuthLimits,
    denials: Limit<Arc<str>>,
    /// Of a person in all repositories together: services are asked at the operator's expense.
    pub(crate) source_searches: Limit<UserId>,
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
        // Half of what a credential may ask: with that switched off, nothing else is to say 429 in its place.
        let denials = Limit::per_minute(app.config().rate_limits.api_per_minute.div_ceil(2));
        let source_searches = Limit::per_hour(app.config().rate_limits.source_search_per_hour);
        Self(Arc::new(Shared {
            app,
            edge,
            metrics,
            backlogs: Backlogs::default(),
            pools,
            sign_in,
            oauth,
            denials,
            source_searches,
            documents,
        }))
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
            self.source_searches.forget_idle();
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
        let caller = match guard {
            Guard::Mcp => self.authenticate_for_mcp(bearer, Issuer::of(self, parts)).await?,
            _ => self.authenticate(bearer, || Issuer::of(self, parts)).await?,
        };
        if caller.is_some() || self.app.auth().is_well_formed(bearer) {
            parts.extensions.insert(WellFormed);
        }
        let invalid = |detail: &'static str| {
            let problem = Problem::new(Code::Unauthenticated, detail);
            self.with_challenge(problem, parts, guard, Some("invalid_token"))
        };
        let Some(caller) = caller else {
            return Err(invalid("the credential is not valid, or not valid any more"));
        };
        match (guard, caller.credential()) {
            (Guard::Session, Credential::ApiKey(_)) => {
                self.deny(&caller, &origin(parts), "session", None).await?;
                return Err(Error::Forbidden("this needs a person's session; an API key can't do it").into());
            }
            // Its audience is the service, but never this part of it.
            (Guard::Session, Credential::Grant(_)) => {
                self.deny(&caller, &origin(parts), "session", None).await?;
                return Err(invalid("this needs a person's session; a client's token can't do it"));
            }
            (Guard::Needs(permission), _) => self.let_in(&caller, permission, parts).await?,
            _ => {}
        }
        let principal = principal(&caller);
        parts.extensions.insert(caller);
        Ok(Some(principal))
    }
}

impl Api {
    /// Who presents this: a person's session, a key, or a client that was let in here.
    pub(crate) async fn authenticate(
        &self,
        bearer: &str,
        issuer: impl FnOnce() -> Option<Issuer> + Send,
    ) -> Result<Option<Caller>, Error> {
        if let Some(caller) = self.app.auth().authenticate(bearer).await? {
            return Ok(Some(caller));
        }
        let Some(Issuer(issuer)) = issuer() else { return Ok(None) };
        self.app.auth().authenticate_client(bearer, &issuer, &issuer).await
    }

    /// Who presents this at the MCP endpoint. Some clients ask for a token for the whole service, even after they have read
    /// that the endpoint is one of its own; such a token will do if its scope says that it is for MCP.
    async fn authenticate_for_mcp(
        &self,
        bearer: &str,
        issuer: Option<Issuer>,
    ) -> Result<Option<Caller>, Error> {
        let auth = self.app.auth();
        let mut caller = auth.authenticate(bearer).await?;
        for audience in issuer.as_ref().map(|issuer| resources(&issuer.0)).iter().flatten() {
            if let (None, Some(Issuer(issuer))) = (&caller, &issuer) {
                caller = auth.authenticate_client(bearer, issuer, audience).await?;
            }
        }
        Ok(caller.filter(Caller::reaches_mcp))
    }

    /// Leaves the proof that the caller holds the permission for the handler: in the repository of the path where there
    /// is one, with where that lives, else in the installation. Handlers get at it by `extract.rs`.
    async fn let_in(
        &self,
        caller: &Caller,
        permission: Permission,
        parts: &mut Parts,
    ) -> Result<(), Problem> {
        let named = repository_of(parts).await?;
        let proven = self.prove(caller, permission, named.as_deref(), &origin(parts)).await;
        let (proof, located) = proven.map_err(|problem| {
            // Another scope would not help a person who may not do it.
            let stepping_up = matches!(caller.credential(), Credential::Grant(_))
                && problem.code() == Code::Forbidden
                && !caller.was_given(permission);
            if !stepping_up {
                return problem;
            }
            self.with_challenge(problem, parts, Guard::Needs(permission), Some("insufficient_scope"))
        })?;
        parts.extensions.insert(proof);
        if let Some(located) = located {
            parts.extensions.insert(located);
        }
        Ok(())
    }

    /// The proof that the caller holds the permission: in the repository that is named, with where that lives, or in the
    /// installation. A refusal is recorded.
    pub(crate) async fn prove(
        &self,
        caller: &Caller,
        permission: Permission,
        named: Option<&str>,
        origin: &Origin,
    ) -> Result<(Proof, Option<Located>), Problem> {
        let repository = match named {
            Some(named) => match self.repository_named(named).await {
                Ok(id) => Some(id),
                Err(problem) => {
                    // As for one that is there and hidden, so that nothing tells the two apart.
                    self.deny(caller, origin, &permission.to_string(), None).await?;
                    return Err(problem);
                }
            },
            None => None,
        };
        let domain = repository.map_or(Domain::System, Domain::Repository);
        match caller.let_in(domain, permission) {
            Ok(proof) => {
                let located = match named {
                    // Only now: whoever may not know of it can't make us look.
                    Some(named) => Some(self.app.auth().locate(named).await?.ok_or_else(no_such_repository)?),
                    None => None,
                };
                return Ok((proof, located));
            }
            Err(Refused::Invisible) => {
                // Those who run it have no business with the addresses of strangers, who could also fill its record.
                let what =
                    repository.map_or_else(|| permission.to_string(), |id| format!("{permission} in {id}"));
                self.deny(caller, origin, &what, None).await?;
                return Err(no_such_repository());
            }
            Err(Refused::Forbidden) => {}
        }
        self.deny(caller, origin, &permission.to_string(), repository).await?;
        Err(Problem::new(Code::Forbidden, format!("this needs the permission {permission}")))
    }

    /// The id of a repository; that of a slug has to be looked up.
    pub(crate) async fn repository_named(&self, named: &str) -> Result<RepositoryId, Problem> {
        if let Ok(id) = named.parse() {
            return Ok(id);
        }
        let located = self.app.auth().locate(named).await?;
        Ok(located.ok_or_else(no_such_repository)?.id)
    }

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
        let [service, mcp] = resources(&issuer);
        let (scope, metadata) = match guard {
            Guard::Needs(permission) => (permission.to_string(), resource_metadata(&service)),
            Guard::Mcp => ("mcp read".to_owned(), resource_metadata(&mcp)),
            _ => ("read".to_owned(), resource_metadata(&service)),
        };
        problem.challenge(format!("Bearer {error}scope=\"{scope}\", resource_metadata=\"{metadata}\""))
    }

    /// Records a refusal, within a limit: it is one more write for every request.
    pub(crate) async fn deny(
        &self,
        caller: &Caller,
        origin: &Origin,
        what: &str,
        repository: Option<RepositoryId>,
    ) -> Result<(), Problem> {
        // By person, not by credential: somebody with twenty keys has no twenty records.
        self.denials.check(&principal(caller).person)?;
        Ok(self.app.record_denial(caller, origin, what, repository).await?)
    }
}

/// What the path calls its repository, where it speaks of one: an id or a slug.
async fn repository_of(parts: &mut Parts) -> Result<Option<String>, Problem> {
    let Ok(params) = RawPathParams::from_request_parts(parts, &()).await else {
        return Err(no_such_repository());
    };
    let named = params.iter().find(|(name, _)| *name == "repoID");
    Ok(named.map(|(_, text)| text.to_owned()))
}

fn no_such_repository() -> Problem {
    Error::NotFound("repository").into()
}
