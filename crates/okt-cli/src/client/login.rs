//! `okt login`: in a browser by the authorization server of the service, or with an API key.
//!
//! What comes of it is kept in one file that only its owner can read. An access token lives for minutes; whoever finds that it has
//! ended gets the next one, one process at a time.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use clap::Args;
use http::{HeaderValue, StatusCode};
use okt_providers::{GuardedClient, Request, Service, Timeouts};
use rand::TryRng as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::{Url, form_urlencoded};

use super::remote::{Usage, hint, runtime, say, usual_url};
use super::{Client, given};

/// How long somebody may take to sign in.
const PATIENCE: Duration = Duration::from_mins(10);
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    idle: Duration::from_secs(20),
    total: Duration::from_secs(30),
};
/// The port is chosen when it is needed; that of a loopback address may differ.
const CALLBACK: &str = "http://127.0.0.1/callback";
/// What the commands of this program do. What the person may not do themselves stays out of reach.
const SCOPE: &str = "read source:write source:update report:write report:update investigation:write \
    investigation:update concept:update fact:update graph:export graph:write job:cancel repository:write \
    repository:update";
/// The longest request line that a browser sends us.
const LONGEST_LINE: u64 = 16 * 1024;

#[derive(Args)]
pub(crate) struct LoginArgs {
    /// The address of the service, such as `https://okt.example.org` [default: `OKT_URL`, that of the
    /// `okt up` that runs, or `http://localhost:8080`].
    #[arg(long)]
    url: Option<String>,
    /// Keep an API key instead of signing in with a browser; it is read from standard input.
    #[arg(long)]
    key_stdin: bool,
    /// Print the address of the page instead of opening a browser.
    #[arg(long)]
    no_open: bool,
}

/// What is kept.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Login {
    pub(crate) url: String,
    /// An API key, or an access token.
    pub(crate) token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh: Option<Refresh>,
    /// The repository of commands that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) repository: Option<String>,
}

#[derive(Clone, Deserialize, Serialize)]
struct Refresh {
    client_id: String,
    token: String,
    token_endpoint: String,
    revocation_endpoint: String,
}

impl Login {
    /// Where it is kept.
    fn file() -> anyhow::Result<PathBuf> {
        let folder = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let settings = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        let settings =
            settings.context("there is no home folder to keep the login in; give --key or OKT_API_KEY")?;
        Ok(settings.join("okt/login.json"))
    }

    /// Nothing where nobody has signed in.
    pub(crate) fn load() -> anyhow::Result<Option<Self>> {
        let Ok(file) = Self::file() else { return Ok(None) };
        match fs::read(&file) {
            Ok(text) => {
                let damaged = || format!("{} is damaged; sign in again: okt login", file.display());
                serde_json::from_slice(&text).with_context(damaged).map(Some)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("can't read {}", file.display())),
        }
    }

    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let file = Self::file()?;
        let written = || -> anyhow::Result<()> {
            if let Some(folder) = file.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            let aside = file.with_extension(format!("{}.new", std::process::id()));
            let mut out =
                OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&aside)?;
            out.write_all(&serde_json::to_vec_pretty(self)?)?;
            out.sync_all()?;
            Ok(fs::rename(&aside, &file)?)
        };
        written().with_context(|| format!("can't write {}", file.display()))
    }

    pub(crate) const fn can_refresh(&self) -> bool {
        self.refresh.is_some()
    }

    /// The next access token. A refresh token is good for one time, so processes take turns, and whoever comes second takes what
    /// the first one got.
    pub(crate) async fn renew(ended: &str, service: &Service) -> anyhow::Result<Self> {
        let file = Self::file()?.with_extension("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&file);
        let lock = lock.with_context(|| format!("can't write {}", file.display()))?;
        let lock: File = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await??;
        let mut login = Self::load()?.context("nobody is signed in any more; run: okt login")?;
        if login.token != ended {
            return Ok(login);
        }
        let refresh = login.refresh.clone().context("the API key has ended; run: okt login")?;
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", &refresh.token),
            ("client_id", &refresh.client_id),
        ];
        let answer = post_form(service, &refresh.token_endpoint, &form).await?;
        if answer.0 == StatusCode::BAD_REQUEST {
            bail!("the login has ended; run: okt login --url {}", login.url);
        }
        let (token, next) = tokens(&answer)?;
        login.token = token;
        login.refresh = Some(Refresh { token: next.unwrap_or(refresh.token), ..refresh });
        login.save()?;
        drop(lock);
        Ok(login)
    }
}

pub(crate) fn login(args: &LoginArgs) -> anyhow::Result<bool> {
    let url = given(args.url.as_deref(), "OKT_URL").unwrap_or_else(usual_url);
    let url = url.trim_end_matches('/').trim_end_matches("/api/v1").trim_end_matches('/').to_owned();
    let base = Url::parse(&url).map_err(|_| Usage(format!("{url} is no address of a service")))?;
    let service = GuardedClient::new(&[])?.service(&base);
    runtime()?.block_on(async {
        let mut login = if args.key_stdin {
            let mut key = String::new();
            std::io::stdin().read_line(&mut key).context("can't read standard input")?;
            Login { url, token: key.trim().to_owned(), refresh: None, repository: None }
        } else {
            sign_in(&service, url, args.no_open).await?
        };
        let client = Client::of_login(login.clone(), String::new())?;
        let listed = client.installation("/repositories", &[("limit", "2")]).await?.body;
        if let Some([only]) = listed["data"].as_array().map(Vec::as_slice) {
            login.repository = only["slug"].as_str().map(str::to_owned);
        }
        login.save()?;
        say(&format!("signed in to {}", login.url));
        match &login.repository {
            Some(repository) => say(&format!("commands work in the repository {repository}")),
            None => hint("choose a repository: okt repo list, then okt repo use SLUG"),
        }
        hint("add something: okt source add FILE-OR-URL --watch");
        Ok(true)
    })
}

/// Ends the login here, and at the service where that was made for it.
pub(crate) fn logout() -> anyhow::Result<bool> {
    let Some(login) = Login::load()? else {
        say("nobody is signed in");
        return Ok(true);
    };
    fs::remove_file(Login::file()?).context("can't remove the login")?;
    if let Some(refresh) = &login.refresh {
        let service = GuardedClient::new(&[])?.service(&Url::parse(&login.url)?);
        let form = [("token", refresh.token.as_str()), ("client_id", &refresh.client_id)];
        let told = runtime()?.block_on(post_form(&service, &refresh.revocation_endpoint, &form));
        if told.is_err() {
            say("the service was not reached; end the grant there: Settings, Connected programs");
        }
    }
    say(&format!("signed out of {}", login.url));
    Ok(true)
}

/// OAuth 2.1 for a program on somebody's machine (RFC 8252): a client of its own, PKCE, and an answer to a loopback address.
async fn sign_in(service: &Service, url: String, no_open: bool) -> anyhow::Result<Login> {
    let metadata = get(service, &service.url([".well-known", "oauth-authorization-server"])).await?;
    if metadata.0 == StatusCode::SERVICE_UNAVAILABLE {
        bail!(
            "{url} has no sign-in for programs (oauth.issuer is not set); make an API key there, and: okt login --key-stdin"
        );
    }
    ensure!(
        metadata.0 == StatusCode::OK,
        "{url} answered {} where it should say how to sign in; is it an okt?",
        metadata.0.as_u16()
    );
    let metadata = metadata.1;
    let endpoint = |name: &str| {
        let found = metadata[name].as_str().map(str::to_owned);
        found.with_context(|| format!("{url} names no {name}"))
    };
    let client = json!({
        "client_name": "okt (command line)",
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "scope": SCOPE,
    });
    let request = Request::post_json(endpoint("registration_endpoint")?, &client)?;
    let registered = answer(service, request).await?;
    let client_id = registered.1["client_id"].as_str().map(str::to_owned);
    let client_id = client_id.with_context(|| refusal("register this program", &registered))?;

    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("can't listen for the browser's answer")?;
    let callback = CALLBACK.replacen("127.0.0.1", &listener.local_addr()?.to_string(), 1);
    let (state, verifier) = (random()?, random()?);
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let mut page = Url::parse(&endpoint("authorization_endpoint")?)?;
    page.query_pairs_mut().extend_pairs([
        ("response_type", "code"),
        ("client_id", &client_id),
        ("redirect_uri", &callback),
        ("scope", SCOPE),
        ("state", &state),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ]);
    if no_open || !crate::up::open(page.as_str()) {
        say(&format!("open this page in a browser on this machine, and sign in:\n{page}"));
    } else {
        say("sign in in the browser that opened; waiting for it (Ctrl-C to give up)");
    }
    let issuer = metadata["issuer"].as_str().unwrap_or_default().to_owned();
    let wanted = state.clone();
    let code = tokio::task::spawn_blocking(move || await_code(&listener, &wanted, &issuer)).await??;

    let form = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &callback),
        ("client_id", &client_id),
        ("code_verifier", &verifier),
    ];
    let token_endpoint = endpoint("token_endpoint")?;
    let (token, refresh) = tokens(&post_form(service, &token_endpoint, &form).await?)?;
    let revocation_endpoint = endpoint("revocation_endpoint")?;
    let refresh = refresh.map(|token| Refresh { client_id, token, token_endpoint, revocation_endpoint });
    Ok(Login { url, token, refresh, repository: None })
}

/// The code that the browser brings. Others on this machine may connect, too; what they say is passed over.
fn await_code(listener: &TcpListener, state: &str, issuer: &str) -> anyhow::Result<String> {
    listener.set_nonblocking(true)?;
    let begun = Instant::now();
    loop {
        match listener.accept() {
            Ok((mut stream, _)) => {
                let Ok(query) = query(&stream) else { continue };
                let of =
                    |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
                // RFC 9207: an answer of another server is none.
                if of("state") != Some(state) || of("iss").is_some_and(|iss| iss != issuer) {
                    respond(&mut stream, "400 Bad Request", "This is not the answer that okt waits for.");
                    continue;
                }
                if let Some(code) = of("code") {
                    respond(&mut stream, "200 OK", "You are signed in. Go back to the terminal.");
                    return Ok(code.to_owned());
                }
                respond(&mut stream, "200 OK", "You were not signed in. Go back to the terminal.");
                bail!("nobody was signed in: {}", of("error").unwrap_or("no code came"));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                ensure!(
                    begun.elapsed() < PATIENCE,
                    "nobody signed in within {} minutes",
                    PATIENCE.as_secs() / 60
                );
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(error) => return Err(error).context("can't wait for the browser"),
        }
    }
}

/// Of the address that a browser asks for.
fn query(stream: &TcpStream) -> anyhow::Result<Vec<(String, String)>> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_LINE)).read_line(&mut line)?;
    let path = line.split(' ').nth(1).context("no request")?;
    let (path, query) = path.split_once('?').context("no query")?;
    ensure!(path == "/callback", "another path");
    Ok(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
}

fn respond(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!("<!doctype html><meta charset=utf-8><title>okt</title><p>{text}");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // A browser that has left has its code.
    let _ = stream.write_all(answer.as_bytes());
}

type Said = (StatusCode, Value);

async fn get(service: &Service, url: &Url) -> anyhow::Result<Said> {
    answer(service, Request::get(url.to_string())).await
}

async fn post_form(service: &Service, url: &str, form: &[(&str, &str)]) -> anyhow::Result<Said> {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    answer(service, Request::post_as(url, kind, body)).await
}

/// Goes to the service that was named, and to nobody else: an endpoint elsewhere is refused.
async fn answer(service: &Service, request: Request) -> anyhow::Result<Said> {
    let sent = service.send(request.timeouts(TIMEOUTS).max_bytes(1 << 20)).await;
    let response = sent.context("the service does not answer; check the address (okt login --url URL)")?;
    let status = response.status;
    Ok((status, serde_json::from_slice(&response.bytes().await?).unwrap_or_default()))
}

fn tokens(said: &Said) -> anyhow::Result<(String, Option<String>)> {
    let text = |name: &str| said.1[name].as_str().map(str::to_owned);
    let token = text("access_token").with_context(|| refusal("get a token", said))?;
    Ok((token, text("refresh_token")))
}

fn refusal(what: &str, (status, body): &Said) -> String {
    let why = [&body["error_description"], &body["detail"], &body["error"]];
    let why = why.into_iter().find_map(Value::as_str).unwrap_or("without a reason");
    format!("can't {what}: the service answered {}: {why}", status.as_u16())
}

fn random() -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    rand::rngs::SysRng
        .try_fill_bytes(&mut bytes)
        .context("cannot get random bytes from the operating system")?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_are_permissions_that_exist() {
        for scope in SCOPE.split_whitespace().filter(|scope| *scope != "read") {
            assert!(scope.parse::<okt_model::Permission>().is_ok(), "{scope}");
        }
    }
}
