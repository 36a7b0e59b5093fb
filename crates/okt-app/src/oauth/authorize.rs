//! Asking a person whether a client may act for them.

use std::time::Duration;

use okt_auth::oauth;
use okt_auth::opaque::{self, Hash, Prefix};
use okt_config::Secret;
use okt_model::{
    AuthorizationId, Domain, GrantId, OAuthClient, Repository, RepositoryId, Result, Role, Scope, SessionId,
    User, UserId,
};
use okt_store::oauth_grants::NewGrant;
use okt_store::oauth_requests::{self, Asked, Open};
use okt_store::sessions::Device;
use okt_store::{Connection, oauth_grants, repositories, roles, sessions, users};
use url::Url;

use super::{Refusal, is_mcp, plain, resource};
use crate::audit::{Actor, record};
use crate::{App, Origin};

/// How long a person may think, and how long a browser in which they signed in is remembered.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// The parameters of a request, as they came: a name may be there more than once.
pub struct Params(pub Vec<(String, String)>);

/// A parameter that may be there once.
pub enum Param<'a> {
    Absent,
    Once(&'a str),
    Repeated,
}

/// What a person is asked.
pub struct Question {
    pub id: AuthorizationId,
    pub client: OAuthClient,
    pub redirect_uri: String,
    pub scope: Scope,
    pub resource: String,
    /// Who signed in to answer; nobody yet where it is missing.
    pub person: Option<Person>,
}

/// How many repositories somebody is given to choose from.
const CHOICES: usize = 200;

/// Who answers, and where they could let the client in.
pub struct Person {
    pub user: User,
    /// The newest of them.
    pub repositories: Vec<Repository>,
}

/// What came of a request.
pub enum Asking {
    /// To be shown, in a browser that goes by this secret from now on.
    Ask(Box<Question>, Option<Secret>),
    /// The client hears at this address what is wrong with its request.
    Tell(String),
    /// As [`Self::Tell`], of a client that the person has never let in: they decide whether to go there.
    Offer { address: String, text: String },
}

/// Why nothing can be asked and nobody can be told but the person.
#[derive(Debug)]
pub enum Unanswerable {
    /// In words for the person.
    Because(String),
    Failed(okt_model::Error),
}

/// What the person decided.
pub enum Choice {
    Deny,
    /// For these repositories; `None` for all.
    Allow(Option<Vec<RepositoryId>>),
}

/// Where the browser goes from here.
pub struct Answer(pub String);

impl Params {
    pub fn get(&self, name: &str) -> Param<'_> {
        // A parameter without a value counts as left out.
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (None, _) => Param::Absent,
            (Some(value), None) => Param::Once(value),
            (Some(_), Some(_)) => Param::Repeated,
        }
    }

    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(of, value)| of == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// The value, if there is one; a repeated one is refused.
    pub fn once(&self, name: &'static str) -> Result<Option<&str>, Refusal> {
        match self.get(name) {
            Param::Absent => Ok(None),
            Param::Once(value) => Ok(Some(value)),
            Param::Repeated => Err(Refusal::new("invalid_request", format!("{name}: given more than once"))),
        }
    }

    pub fn needed(&self, name: &'static str) -> Result<&str, Refusal> {
        self.once(name)?.ok_or_else(|| Refusal::new("invalid_request", format!("{name}: missing")))
    }
}

impl App {
    /// A client sends a person to us. Until the client and the address for the answer are known to be right, nobody
    /// but the person hears of anything; until the person has signed in, the client hears of nothing (so that nobody
    /// can use us to send people elsewhere).
    pub async fn ask(
        &self,
        issuer: &str,
        params: &Params,
        browser: Option<&str>,
    ) -> Result<Asking, Unanswerable> {
        let Param::Once(id) = params.get("client_id") else {
            return Err(because("The request does not say which app it comes from (client_id)."));
        };
        let client = self.find_client(id).await?;
        let client = client.ok_or_else(|| {
            because(
                "The app that sent you here is not known to this service, or its description can't be read.",
            )
        })?;
        let redirect_uri = redirect_uri(&client, params)?;
        let browser = browser.and_then(|raw| opaque::parse(Prefix::Browser, raw));
        let mut tx = self.databases().begin_system().await?;
        let user = match browser {
            Some(hash) => oauth_requests::find_user(&mut tx, hash.as_bytes()).await?,
            None => None,
        };
        let asked = match asked(issuer, params, &client, &redirect_uri) {
            Ok(asked) => asked,
            Err(Refusal::Failed(error)) => return Err(error.into()),
            Err(Refusal::Protocol { error, description }) => {
                let text = format!(
                    "The app that sent you here asked for something it can't have: {description} ({error})."
                );
                let Some(user) = user else { return Err(Unanswerable::Because(text)) };
                let state = params.all("state").next();
                let address = refusal_url(issuer, &redirect_uri, state, error, &description);
                let known = oauth_grants::any_for(&mut tx, user, &client.id).await?;
                tx.commit().await?;
                // Anybody can register a client, so nobody is sent to one that they do not know without being asked.
                return Ok(if known { Asking::Tell(address) } else { Asking::Offer { address, text } });
            }
        };
        // A secret of the browser is only ever kept for somebody who signed in with it.
        let (secret, hash) = if let (Some(hash), Some(_)) = (browser, user) {
            (None, hash)
        } else {
            let (secret, hash) = opaque::mint(Prefix::Browser)?;
            (Some(secret), hash)
        };
        let id = AuthorizationId::mint();
        oauth_requests::insert(&mut tx, id, hash.as_bytes(), user, &asked, PATIENCE).await?;
        let question = question(&mut tx, Open { id, user, asked }, client).await?;
        tx.commit().await?;
        Ok(Asking::Ask(Box::new(question), secret))
    }

    /// The question once more, for the browser that it was asked in.
    pub async fn asked_before(
        &self,
        id: AuthorizationId,
        browser: Option<&str>,
    ) -> Result<Question, Unanswerable> {
        let open = self.open(id, &known(browser)?).await?;
        let client = self.find_client(&open.asked.client_id).await?.ok_or_else(over)?;
        let mut conn = self.databases().acquire_system().await?;
        Ok(question(&mut conn, open, client).await?)
    }

    /// Somebody signs in to answer. The browser goes by another secret from now on, so that whoever knew the one
    /// before has nothing.
    pub async fn sign_in_to_answer(
        &self,
        origin: &Origin,
        id: AuthorizationId,
        browser: Option<&str>,
        email: &str,
        password: &str,
    ) -> Result<Secret, Unanswerable> {
        let before = known(browser)?;
        self.open(id, &before).await?;
        let proven = self.check_password(origin, email, password).await?;
        let (secret, hash) = opaque::mint(Prefix::Browser)?;
        let mut tx = self.databases().begin_system().await?;
        let user = proven.hold(&mut tx).await?;
        let (before, hash) = (before.as_bytes(), hash.as_bytes());
        if !oauth_requests::sign_in(&mut tx, id, before, hash, user.id, PATIENCE).await? {
            return Err(over());
        }
        record(&mut tx, origin, Actor::user(user.id), "login", &user.id.to_string()).await?;
        tx.commit().await?;
        Ok(secret)
    }

    /// The person decided. What they let the client do is what was kept when they were asked.
    pub async fn answer(
        &self,
        origin: &Origin,
        issuer: &str,
        id: AuthorizationId,
        browser: Option<&str>,
        choice: Choice,
    ) -> Result<Answer, Unanswerable> {
        let hash = known(browser)?;
        let open = self.open(id, &hash).await?;
        let (Some(user), asked) = (open.user, open.asked) else { return Err(over()) };
        let state = asked.state.as_deref();
        let mut tx = self.databases().begin_system().await?;
        // Of any number of answers to one question, one counts.
        if !oauth_requests::decide(&mut tx, id, hash.as_bytes(), user).await? {
            return Err(over());
        }
        let Choice::Allow(repositories) = choice else {
            record(&mut tx, origin, Actor::user(user), "grant.denied", &asked.client_id).await?;
            tx.commit().await?;
            let description = "the person said no";
            return Ok(Answer(refusal_url(issuer, &asked.redirect_uri, state, "access_denied", description)));
        };
        let (code, code_hash) = opaque::mint(Prefix::Code)?;
        let ttl = self.config().oauth.auth_code_ttl.duration();
        let grant = GrantId::mint();
        // Until the code is exchanged, the grant lives no longer than it.
        sessions::insert(&mut tx, SessionId::from(grant.uuid()), user, ttl, Device::default()).await?;
        let new = NewGrant {
            id: grant,
            client_id: &asked.client_id,
            scope: &asked.scope,
            resource: &asked.resource,
            repositories: repositories.as_deref(),
        };
        oauth_grants::insert(&mut tx, &new).await?;
        let (redirect_uri, challenge) = (&asked.redirect_uri, &asked.code_challenge);
        oauth_grants::insert_code(&mut tx, code_hash.as_bytes(), grant, redirect_uri, challenge, ttl).await?;
        record(&mut tx, origin, Actor::user(user), "grant.given", &grant.to_string()).await?;
        tx.commit().await?;
        let parameters = [("code", Some(code.expose())), ("state", state), ("iss", Some(issuer))];
        Ok(Answer(answer_url(redirect_uri, &parameters)))
    }

    async fn open(&self, id: AuthorizationId, browser: &Hash) -> Result<Open, Unanswerable> {
        let mut conn = self.databases().acquire_system().await?;
        oauth_requests::find_open(&mut conn, id, browser.as_bytes()).await?.ok_or_else(over)
    }
}

/// The browser by its secret, which it must have to answer anything.
fn known(browser: Option<&str>) -> Result<Hash, Unanswerable> {
    browser.and_then(|raw| opaque::parse(Prefix::Browser, raw)).ok_or_else(over)
}

/// Where the answer goes: what was asked for if it was registered, or the one that was registered if nothing was.
fn redirect_uri(client: &OAuthClient, params: &Params) -> Result<String, Unanswerable> {
    match (params.get("redirect_uri"), client.redirect_uris.as_slice()) {
        (Param::Once(uri), registered) if registered.iter().any(|known| oauth::matches(known, uri)) => {
            Ok(uri.to_owned())
        }
        (Param::Absent, [only]) => Ok(only.clone()),
        (Param::Absent, _) => {
            Err(because("The app has several addresses for the answer and does not say which one."))
        }
        _ => Err(because(
            "The app wants the answer at an address that it did not register. This may be an attempt to trick you.",
        )),
    }
}

/// What is asked for, if it can be had.
fn asked(issuer: &str, params: &Params, client: &OAuthClient, redirect_uri: &str) -> Result<Asked, Refusal> {
    match params.once("response_type")? {
        Some("code") => {}
        Some(_) => return Err(Refusal::new("unsupported_response_type", "response_type: only code")),
        None => return Err(Refusal::new("invalid_request", "response_type: missing")),
    }
    let challenge = params.once("code_challenge")?.filter(|text| oauth::is_challenge(text));
    let challenge = challenge.ok_or_else(|| {
        Refusal::new("invalid_request", "code_challenge: needed, 43 to 128 unreserved characters")
    })?;
    if params.once("code_challenge_method")? != Some("S256") {
        return Err(Refusal::new("invalid_request", "code_challenge_method: must be S256"));
    }
    let scope = params.once("scope")?.map(Scope::asked).transpose();
    let scope = scope.map_err(|_| Refusal::new("invalid_scope", "scope: a word of it is not known"))?;
    let wanted: Vec<String> = params.all("resource").map(str::to_owned).collect();
    let resource = resource(issuer, &wanted)?;
    let scope = scope.filter(|scope| !scope.is_empty()).or_else(|| client.scope.clone());
    let usual = || if is_mcp(issuer, &resource) { Scope::usual_of_mcp() } else { Scope::usual() };
    let scope = scope.filter(|scope| !scope.is_empty()).unwrap_or_else(usual);
    // Clients of the Model Context Protocol register with what the first answer names, and ask for more when a tool needs it. The
    // person decides about that each time.
    let is_agent = is_mcp(issuer, &resource);
    if !is_agent && client.scope.as_ref().is_some_and(|most| !scope.is_within(most)) {
        return Err(Refusal::new("invalid_scope", "scope: more than the client registered for"));
    }
    let state = params.once("state")?;
    if state.is_some_and(|state| state.len() > 2000) {
        return Err(Refusal::new("invalid_request", "state: at most 2000 bytes"));
    }
    Ok(Asked {
        client_id: client.id.clone(),
        redirect_uri: redirect_uri.to_owned(),
        scope: scope.words(),
        state: state.map(str::to_owned),
        code_challenge: challenge.to_owned(),
        resource,
    })
}

async fn question(conn: &mut Connection, open: Open, client: OAuthClient) -> Result<Question> {
    let person = match open.user {
        Some(user) => person(conn, user).await?,
        None => None,
    };
    Ok(Question {
        id: open.id,
        client,
        redirect_uri: open.asked.redirect_uri,
        scope: Scope::kept(&open.asked.scope),
        resource: open.asked.resource,
        person,
    })
}

async fn person(conn: &mut Connection, user: UserId) -> Result<Option<Person>> {
    let Some(user) = users::find(conn, user).await? else { return Ok(None) };
    let held: Vec<(Domain, Role)> = roles::list_of(conn, user.id).await?;
    let held = held.into_iter().filter_map(|(domain, _)| match domain {
        Domain::Repository(id) => Some(id),
        Domain::System => None,
    });
    let mut ids: Vec<_> = held.collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.dedup();
    ids.truncate(CHOICES);
    let repositories = repositories::get(conn, &ids).await?;
    Ok(Some(Person { user, repositories }))
}

fn refusal_url(
    issuer: &str,
    redirect_uri: &str,
    state: Option<&str>,
    error: &str,
    description: &str,
) -> String {
    let description = plain(description);
    let parameters = [
        ("error", Some(error)),
        ("error_description", Some(description.as_str())),
        ("state", state),
        ("iss", Some(issuer)),
    ];
    answer_url(redirect_uri, &parameters)
}

/// Adds parameters to an address and leaves what is there as it is.
fn answer_url(redirect_uri: &str, parameters: &[(&str, Option<&str>)]) -> String {
    let Ok(mut url) = Url::parse(redirect_uri) else { return redirect_uri.to_owned() };
    for (name, value) in parameters.iter().filter_map(|(name, value)| value.map(|value| (name, value))) {
        url.query_pairs_mut().append_pair(name, value);
    }
    url.into()
}

fn because(text: &str) -> Unanswerable {
    Unanswerable::Because(text.to_owned())
}

fn over() -> Unanswerable {
    because(
        "This question is over: it was answered, or it took too long. Go back to the app and start again.",
    )
}

impl<E: Into<okt_model::Error>> From<E> for Unanswerable {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}
