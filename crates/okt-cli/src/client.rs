//! The API of a running service, as any client sees it.
//!
//! Requests are made by the client of services that the operator named: it may reach private addresses, and no others than the
//! one it was given.

pub(crate) mod find;
pub(crate) mod job;
pub(crate) mod login;
pub(crate) mod remote;
pub(crate) mod repo;
pub(crate) mod source;

use std::fmt::Write as _;
use std::io::{self, Read};
use std::iter;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures_util::stream;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use okt_providers::{GuardedClient, Pieces, Request, Service, Timeouts, retry_after};
use serde_json::Value;
use url::{Url, form_urlencoded};

use login::Login;

/// How long a service may refuse requests with 429 or 503 before it is given up.
const PATIENCE: Duration = Duration::from_mins(10);
/// A handler has 15 s; the rest is for a machine that is busy.
const TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(5), idle: Duration::from_mins(1), total: Duration::from_mins(2) };

/// What is read of a file at once.
const PIECE: usize = 128 * 1024;

/// For files that may have gigabytes.
const LONG: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    idle: Duration::from_mins(2),
    total: Duration::from_hours(12),
};

pub struct Client {
    service: Service,
    /// Renewed where it is of a login.
    token: Mutex<String>,
    login: Option<Login>,
    /// The repository's slug.
    pub repository: String,
}

/// A file for a form, and what is said about it.
pub(crate) struct Upload {
    name: String,
    bytes: Vec<u8>,
    pub(crate) fields: Vec<(&'static str, String)>,
}

impl Upload {
    pub(crate) fn new(name: &str, bytes: Vec<u8>) -> Self {
        // Nothing in it may end the line, or the name.
        let name = name.replace(|c: char| c.is_control() || matches!(c, '"' | '\\'), "_");
        Self { name, bytes, fields: Vec::new() }
    }

    /// A form, and what separates its parts.
    fn form(&self) -> (String, Vec<u8>) {
        // Longer than anything that a file repeats by chance; whoever knows it only spoils their own file.
        let boundary = "okt-source-5d0a4c61a3c2f60b8d1e94277b1f4f0e".to_owned();
        let mut form = String::new();
        for (name, value) in &self.fields {
            let _ = write!(
                form,
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
        }
        let kind = match self.name.rsplit('.').next().map(str::to_ascii_lowercase).as_deref() {
            Some("pdf") => "application/pdf",
            Some("html" | "htm") => "text/html",
            Some("md" | "markdown") => "text/markdown; charset=utf-8",
            Some("txt" | "bib" | "ris") => "text/plain; charset=utf-8",
            Some("json") => "application/json",
            _ => "application/octet-stream",
        };
        let _ = write!(
            form,
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{}\"\r\n\
             Content-Type: {kind}\r\n\r\n",
            self.name
        );
        let mut form = form.into_bytes();
        form.extend_from_slice(&self.bytes);
        form.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        (boundary, form)
    }
}

/// An answer, and how long it took without the refusals before it.
pub struct Answer {
    pub status: StatusCode,
    pub body: Value,
    pub took: Duration,
}

impl Client {
    pub fn new(url: &str, key: &str, repository: String) -> anyhow::Result<Self> {
        let url = url.trim_end_matches('/').trim_end_matches("/api/v1");
        let url = Url::parse(url).with_context(|| format!("{url} is no address of a service"))?;
        let service = GuardedClient::new(&[])?.service(&url);
        let client = Self { service, token: Mutex::new(key.to_owned()), login: None, repository };
        client.bearer().context("the key has characters that no key has; check --key or OKT_API_KEY")?;
        Ok(client)
    }

    /// As whoever is signed in.
    pub(crate) fn of_login(login: Login, repository: String) -> anyhow::Result<Self> {
        let client = Self::new(&login.url, &login.token, repository)?;
        Ok(Self { login: Some(login), ..client })
    }

    /// The repository that was chosen at that service.
    pub(crate) fn login_repository(&self) -> Option<String> {
        self.login.as_ref()?.repository.clone()
    }

    fn bearer(&self) -> anyhow::Result<HeaderValue> {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}"))?;
        bearer.set_sensitive(true);
        Ok(bearer)
    }

    /// Gets the next token, where there may be one.
    async fn renew(&self) -> anyhow::Result<bool> {
        if !self.login.as_ref().is_some_and(Login::can_refresh) {
            return Ok(false);
        }
        let ended = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let login = Login::renew(&ended, &self.service).await?;
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = login.token;
        Ok(true)
    }

    /// Of the API itself; any other answer than a success is an error.
    pub(crate) async fn installation(&self, path: &str, query: &[(&str, &str)]) -> anyhow::Result<Answer> {
        self.send(path, query, Request::get).await?.success(path)
    }

    /// Whatever is asked of the API, and whatever the answer. The path may have a query.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> anyhow::Result<Answer> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let query: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let query: Vec<(&str, &str)> =
            query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let json = HeaderValue::from_static("application/json");
        let request = |url| {
            let request = Request::get(url).method(method.clone());
            match &body {
                Some(body) => request.body(body.clone()).header(CONTENT_TYPE, json.clone()),
                None => request,
            }
        };
        self.send(path, &query, request).await
    }

    /// Below the repository.
    pub(crate) async fn upload_file(&self, path: &str, upload: &Upload) -> anyhow::Result<Answer> {
        let (boundary, form) = upload.form();
        let kind = HeaderValue::from_str(&format!("multipart/form-data; boundary={boundary}"))?;
        let path = self.path(path);
        let request = |url| Request::post_as(url, kind.clone(), form.clone()).timeouts(LONG);
        self.send_with(&path, &[], request).await?.success(&path)
    }

    /// Below the repository; any other answer than a success is an error.
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> anyhow::Result<Answer> {
        let path = self.path(path);
        self.send(&path, query, Request::get).await?.success(&path)
    }

    /// Whatever the answer.
    pub async fn try_get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(&self.path(path), &[], Request::get).await
    }

    /// Of the API, since there is no repository yet.
    pub async fn create(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        let bytes = serde_json::to_vec(body)?;
        let json = HeaderValue::from_static("application/json");
        self.send(path, &[], |url| Request::post_as(url, json.clone(), bytes.clone())).await?.success(path)
    }

    pub async fn upload(&self, file_name: &str, title: &str, text: &str) -> anyhow::Result<Answer> {
        let (boundary, form) = form(file_name, title, text);
        let kind = HeaderValue::from_str(&format!("multipart/form-data; boundary={boundary}"))?;
        let path = self.path("/sources/upload");
        self.send(&path, &[], |url| Request::post_as(url, kind.clone(), form.clone()))
            .await?
            .success(&path)
            .with_context(|| format!("can't upload {file_name}"))
    }

    /// Sends a bundle as it is read: it may be larger than memory.
    pub async fn upload_bundle<R: Read + Send + 'static>(
        &self,
        open: impl Fn() -> io::Result<R> + Clone + Send + Sync + 'static,
    ) -> anyhow::Result<Answer> {
        // Longer than anything that a compressed file repeats by chance.
        let boundary = "okt-bundle-7b1f4f0e5d0a4c61a3c2f60b8d1e9427";
        let kind = HeaderValue::from_str(&format!("multipart/form-data; boundary={boundary}"))?;
        let path = self.path("/graph-uploads");
        let request = |url| {
            let open = open.clone();
            Request::post_pieces(url, kind.clone(), move || form_of(open(), boundary)).timeouts(LONG)
        };
        self.send_with(&path, &[], request).await?.success(&path)
    }

    /// Writes a file of the repository to another one, piece by piece.
    pub async fn download(&self, path: &str, out: &mut impl std::io::Write) -> anyhow::Result<()> {
        let path = format!("/api/v1{}", self.path(path));
        let url = self.service.url(path.split('/').skip(1));
        let request = Request::get(url.to_string()).header(AUTHORIZATION, self.bearer()?);
        let request = request.timeouts(LONG).max_bytes(u64::MAX);
        let sent = self.service.send(request).await;
        let mut answer = sent.with_context(away)?;
        if !answer.status.is_success() {
            bail!("{path} answered {}", answer.status);
        }
        while let Some(piece) = answer.chunk().await.with_context(|| format!("can't read {path}"))? {
            out.write_all(&piece)?;
        }
        Ok(())
    }

    /// Below the repository; any other answer than a success is an error.
    pub async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.create(&self.path(path), body).await
    }

    fn path(&self, path: &str) -> String {
        format!("/repositories/{}{path}", self.repository)
    }

    async fn send(
        &self,
        path: &str,
        query: &[(&str, &str)],
        request: impl Fn(String) -> Request,
    ) -> anyhow::Result<Answer> {
        self.send_with(path, query, |url| request(url).timeouts(TIMEOUTS)).await
    }

    async fn send_with(
        &self,
        path: &str,
        query: &[(&str, &str)],
        request: impl Fn(String) -> Request,
    ) -> anyhow::Result<Answer> {
        let path = format!("/api/v1{path}");
        let mut url = self.service.url(path.split('/').skip(1));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let (first, mut renewed) = (Instant::now(), false);
        loop {
            let request = request(url.to_string()).header(AUTHORIZATION, self.bearer()?);
            let began = Instant::now();
            let sent = self.service.send(request).await;
            let answer = sent.with_context(away)?;
            let (status, wait) = (answer.status, retry_after(&answer.headers));
            let bytes = answer.bytes().await.with_context(|| format!("can't read the answer to {path}"))?;
            let took = began.elapsed();
            // An access token lives for minutes, a watched job for hours.
            if status == StatusCode::UNAUTHORIZED && !renewed && self.renew().await? {
                renewed = true;
                continue;
            }
            if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
                && let wait = wait.unwrap_or(Duration::from_secs(1)).max(Duration::from_millis(100))
                && first.elapsed() + wait < PATIENCE
            {
                tokio::time::sleep(wait).await;
                continue;
            }
            let body = if bytes.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(&bytes)
                    .with_context(|| format!("{status} with a body that is no JSON from {path}"))?
            };
            return Ok(Answer { status, body, took });
        }
    }
}

/// A form with one file in it, read as it is sent.
fn form_of(file: io::Result<impl Read + Send + 'static>, boundary: &str) -> Pieces {
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"bundle.okt.json.gz\"\r\n\
         Content-Type: application/gzip\r\n\r\n"
    );
    let tail = format!("\r\n--{boundary}--\r\n");
    let mut file = match file {
        Ok(file) => file,
        Err(error) => return Box::pin(stream::iter([Err(error)])),
    };
    let pieces = iter::from_fn(move || {
        let mut piece = vec![0; PIECE];
        match file.read(&mut piece) {
            Ok(0) => None,
            Ok(read) => {
                piece.truncate(read);
                Some(Ok(piece.into()))
            }
            Err(error) => Some(Err(error)),
        }
    });
    let pieces = iter::once(Ok(head.into())).chain(pieces).chain(iter::once(Ok(tail.into())));
    Box::pin(stream::iter(pieces))
}

impl Answer {
    fn success(self, path: &str) -> anyhow::Result<Self> {
        if self.status.is_success() {
            return Ok(self);
        }
        let text = |name: &str| self.body[name].as_str().unwrap_or_default().to_owned();
        let remedy = match self.status {
            StatusCode::UNAUTHORIZED => {
                "; sign in with okt login, or give an API key by --key or OKT_API_KEY"
            }
            StatusCode::FORBIDDEN => "; use a key with the permissions of the owner of the repository",
            StatusCode::NOT_FOUND => {
                "; check --repository, and that the service is no older than this command"
            }
            _ => "",
        };
        bail!("/api/v1{path} answered {} {}: {}{remedy}", self.status.as_u16(), text("code"), text("detail"))
    }
}

/// What to do about a service that does not answer. Somebody's own may have another port than when they signed in.
fn away() -> String {
    match crate::up::address() {
        Some(url) => format!("the service does not answer; okt up runs at {url}: okt login --url {url}"),
        None => {
            "the service does not answer; check --url, and that okt up or okt serve runs there".to_owned()
        }
    }
}

/// An option, or the variable of the environment that stands for it.
pub fn given(option: Option<&str>, variable: &str) -> Option<String> {
    let option = option.map(str::to_owned).or_else(|| std::env::var(variable).ok());
    option.filter(|text| !text.trim().is_empty())
}

/// A form with a file and its title, and what separates its parts.
fn form(file_name: &str, title: &str, text: &str) -> (String, Vec<u8>) {
    let mut boundary = "okt-eval-retrieval".to_owned();
    while text.contains(&boundary) || title.contains(&boundary) {
        boundary.push('-');
    }
    let mut form = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{file_name}\"\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n"
    );
    if !title.is_empty() {
        let _ =
            write!(form, "--{boundary}\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\n{title}\r\n");
    }
    let _ = write!(form, "--{boundary}--\r\n");
    (boundary, form.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_cut_where_neither_text_nor_title_is() {
        let (boundary, form) = form("set-1.txt", "On bees", "Bees.\r\n--okt-eval-retrieval\r\ndance");
        assert_eq!(boundary, "okt-eval-retrieval-");
        let form = String::from_utf8(form).unwrap();
        assert_eq!(form.matches(&format!("--{boundary}")).count(), 3, "{form}");
        assert!(form.contains("filename=\"set-1.txt\"") && form.contains("\r\n\r\nOn bees\r\n"), "{form}");
        assert!(form.ends_with(&format!("--{boundary}--\r\n")), "{form}");
    }
}
