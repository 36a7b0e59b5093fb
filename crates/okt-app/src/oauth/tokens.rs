//! From a code or a refresh token to tokens. What works once is used up by a conditional update, in the transaction
//! that writes what comes of it: so of any number at once one succeeds, and a failure leaves everything as it was.

use std::time::Duration;

use okt_auth::opaque::{self, Prefix};
use okt_auth::{NewAccess, oauth, refresh};
use okt_config::Secret;
use okt_model::{GrantId, OAuthClient, Result, Scope, SessionId, TokenId, UserId};
use okt_store::{oauth_grants, sessions};

use super::{Refusal, resource};
use crate::audit::{Actor, record};
use crate::{App, Origin};

/// What a client gets.
pub struct IssuedTokens {
    pub access: Secret,
    /// For clients that may refresh.
    pub refresh: Option<Secret>,
    pub expires_in: Duration,
    pub scope: Scope,
}

/// What a client shows to exchange a code.
#[derive(Clone, Copy, Debug)]
pub struct CodeExchange<'a> {
    pub code: &'a str,
    pub verifier: &'a str,
    pub redirect_uri: Option<&'a str>,
    pub resource: &'a [String],
}

impl App {
    /// Exchanges a code for tokens. A second use by whoever could have made the first one means that the code was
    /// stolen, and ends what the first one gave; a use by anybody else changes nothing.
    pub async fn exchange_code(
        &self,
        origin: &Origin,
        issuer: &str,
        client: &OAuthClient,
        exchange: CodeExchange<'_>,
    ) -> Result<IssuedTokens, Refusal> {
        let refused =
            || Refusal::new("invalid_grant", "the code is not valid, not yours, or was used already");
        if !oauth::is_verifier(exchange.verifier) {
            return Err(Refusal::new("invalid_request", "code_verifier: 43 to 128 unreserved characters"));
        }
        let hash = opaque::parse(Prefix::Code, exchange.code).ok_or_else(refused)?;
        let mut tx = self.databases().begin_system().await?;
        let code = oauth_grants::find_code(&mut tx, hash.as_bytes()).await?.ok_or_else(refused)?;
        let theirs = code.client_id == client.id
            && oauth::proves(exchange.verifier, &code.code_challenge)
            && exchange.redirect_uri.is_none_or(|uri| uri == code.redirect_uri);
        if !theirs {
            return Err(refused());
        }
        same_resource(issuer, exchange.resource, &code.resource)?;

        let refreshes = client.grant_types.iter().any(|kind| kind == "refresh_token");
        let config = &self.config().oauth;
        let ttl = if refreshes { &config.refresh_token_ttl } else { &config.access_token_ttl }.duration();
        let (session, object) = (SessionId::from(code.grant.uuid()), code.grant.to_string());
        match oauth_grants::consume_code(&mut tx, hash.as_bytes(), code.grant, ttl).await? {
            Some(true) => {}
            Some(false) => {
                // Once: whoever has a code could fill the audit with it.
                if sessions::revoke(&mut tx, session).await? {
                    record(&mut tx, origin, Actor::STRANGER, "grant.code_reused", &object).await?;
                    tx.commit().await?;
                    tracing::warn!(grant.id = object, "authorization code reused; revoked its grant");
                }
                return Err(refused());
            }
            None => return Err(refused()),
        }
        let refresh = if refreshes {
            let (token, hash) = opaque::mint(Prefix::ClientRefresh)?;
            sessions::insert_refresh_token(&mut tx, hash.as_bytes(), session, ttl).await?;
            Some(token)
        } else {
            None
        };
        let actor = Actor::grant(code.user, code.grant);
        record(&mut tx, origin, actor, "grant.token_issued", &object).await?;
        tx.commit().await?;
        let scope = Scope::kept(&code.scope);
        Ok(self.issued(issuer, client, code.user, code.grant, &code.resource, scope, refresh))
    }

    /// Exchanges a refresh token for the next pair. The scope may be narrowed, for the access token alone.
    pub async fn refresh_grant(
        &self,
        origin: &Origin,
        issuer: &str,
        client: &OAuthClient,
        token: &str,
        scope: Option<&str>,
        resource: &[String],
    ) -> Result<IssuedTokens, Refusal> {
        let refused =
            || Refusal::new("invalid_grant", "the refresh token is not valid, or not valid any more");
        let hash = opaque::parse(Prefix::ClientRefresh, token).ok_or_else(refused)?;
        let mut tx = self.databases().begin_system().await?;
        let presented =
            sessions::present_refresh_token(&mut tx, hash.as_bytes()).await?.ok_or_else(refused)?;
        let (session, user) = (presented.session, presented.user);
        let grant = GrantId::from(session.uuid());
        let terms = oauth_grants::find_terms(&mut tx, grant).await?.ok_or_else(refused)?;
        if terms.client_id != client.id {
            return Err(refused());
        }
        // Before anything else is looked at: a stolen token ends its family, whatever it is asked for.
        match refresh::next(&presented) {
            refresh::Next::Rotate => {}
            refresh::Next::Refuse => return Err(refused()),
            refresh::Next::Revoke => {
                sessions::revoke(&mut tx, session).await?;
                record(&mut tx, origin, Actor::STRANGER, "grant.token_reused", &grant.to_string()).await?;
                tx.commit().await?;
                tracing::warn!(grant.id = %grant, "refresh token reused; revoked its grant");
                return Err(refused());
            }
        }
        same_resource(issuer, resource, &terms.resource)?;
        let whole = Scope::kept(&terms.scope);
        let scope = match scope.map(Scope::asked) {
            None => whole,
            Some(Ok(scope)) if !scope.is_empty() && scope.is_within(&whole) => scope,
            Some(_) => {
                return Err(Refusal::new("invalid_scope", "scope: more than was granted, or not known"));
            }
        };
        let (token, successor) = opaque::mint(Prefix::ClientRefresh)?;
        let ttl = self.config().oauth.refresh_token_ttl.duration();
        sessions::rotate_refresh_token(&mut tx, hash.as_bytes(), successor.as_bytes(), session, ttl).await?;
        tx.commit().await?;
        Ok(self.issued(issuer, client, user, grant, &terms.resource, scope, Some(token)))
    }

    /// Ends the grant of a refresh or access token of this client (RFC 7009). What is no token of ours, or somebody
    /// else's, is none of the client's business: nothing happens and nothing is said.
    pub async fn revoke_token(
        &self,
        origin: &Origin,
        issuer: &str,
        client: &OAuthClient,
        token: &str,
    ) -> Result<(), Refusal> {
        let other =
            [Prefix::ApiKey, Prefix::SessionRefresh].iter().any(|kind| opaque::parse(*kind, token).is_some());
        if other {
            let description = "this is no token of a client; it is revoked where it was made";
            return Err(Refusal::new("unsupported_token_type", description));
        }
        let mut tx = self.databases().begin_system().await?;
        let grant = match opaque::parse(Prefix::ClientRefresh, token) {
            Some(hash) => sessions::present_refresh_token(&mut tx, hash.as_bytes())
                .await?
                .map(|presented| GrantId::from(presented.session.uuid())),
            None => self.auth().grant_of(token, issuer),
        };
        let Some(grant) = grant else { return Ok(()) };
        let terms = oauth_grants::find_terms(&mut tx, grant).await?;
        if terms.is_none_or(|terms| terms.client_id != client.id) {
            return Ok(());
        }
        if sessions::revoke(&mut tx, SessionId::from(grant.uuid())).await? {
            record(&mut tx, origin, Actor::STRANGER, "grant.revoked", &grant.to_string()).await?;
        }
        Ok(tx.commit().await?)
    }

    #[expect(clippy::too_many_arguments, reason = "they are the claims of a token, each of another type")]
    fn issued(
        &self,
        issuer: &str,
        client: &OAuthClient,
        user: UserId,
        grant: GrantId,
        resource: &str,
        scope: Scope,
        refresh: Option<Secret>,
    ) -> IssuedTokens {
        let expires_in = self.config().oauth.access_token_ttl.duration();
        let new = NewAccess {
            issuer,
            user,
            audience: resource,
            client: &client.id,
            scope: &scope.to_string(),
            grant,
            id: TokenId::mint(),
        };
        IssuedTokens { access: self.auth().sign_access(&new, expires_in), refresh, expires_in, scope }
    }
}

/// A token request may name the resource again, but not another one.
fn same_resource(issuer: &str, asked: &[String], granted: &str) -> Result<(), Refusal> {
    if asked.is_empty() || resource(issuer, asked)? == granted {
        return Ok(());
    }
    Err(Refusal::new("invalid_target", "resource: the grant is for another one"))
}
