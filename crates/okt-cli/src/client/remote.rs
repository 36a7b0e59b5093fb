//! What all commands that ask a service share: where it is, who asks, what is printed where, and how it ends.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0 done, 1 what was checked or waited for came out
//! badly, 2 a wrong command line, 3 the service refused or could not be asked.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::Value;

use super::login::Login;
use super::{Client, given};

const DEFAULT_URL: &str = "http://localhost:8080";

/// Where a service is that nobody named: `okt up` takes another port if the usual one is taken.
pub(crate) fn usual_url() -> String {
    crate::up::address().unwrap_or_else(|| DEFAULT_URL.to_owned())
}

#[derive(Args)]
pub(crate) struct Remote {
    /// The address of the service [default: `OKT_URL`, that of `okt login`, or `http://localhost:8080`].
    #[arg(long, global = true, help_heading = "Service")]
    url: Option<String>,
    /// An API key [default: `OKT_API_KEY`, or who is signed in by `okt login`].
    #[arg(long, global = true, help_heading = "Service")]
    key: Option<String>,
    /// The slug or id of the repository [default: `OKT_REPOSITORY`, that of `okt repo use`, or the only one].
    #[arg(long, short, global = true, value_name = "SLUG", help_heading = "Service")]
    repository: Option<String>,
    /// Print the answer of the service as JSON.
    #[arg(long, global = true, help_heading = "Service")]
    pub(crate) json: bool,
}

/// A command line that can't be meant.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

impl Remote {
    /// Without a repository.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        connect(self.url.as_deref(), self.key.as_deref(), String::new())
    }

    /// In the repository that was named, or chosen, or is the only one.
    pub(crate) async fn client_inside(&self) -> anyhow::Result<Client> {
        inside(self.client()?, self.repository.as_deref()).await
    }
}

/// A client in the repository that was named, or chosen, or is the only one.
pub(crate) async fn inside(mut client: Client, named: Option<&str>) -> anyhow::Result<Client> {
    let named = given(named, "OKT_REPOSITORY").or_else(|| client.login_repository());
    client.repository = match named {
        Some(repository) => repository,
        None => only(&client).await?,
    };
    Ok(client)
}

async fn only(client: &Client) -> anyhow::Result<String> {
    let listed = client.installation("/repositories", &[("limit", "2")]).await?.body;
    let trouble = match listed["data"].as_array().map(Vec::as_slice) {
        Some([only]) => return Ok(text(&only["slug"])),
        Some([_, ..]) => {
            "name a repository by --repository or OKT_REPOSITORY, or choose one: okt repo use SLUG"
        }
        _ => "there is no repository yet; make one: okt repo create NAME",
    };
    Err(Usage(trouble.to_owned()).into())
}

/// Who asks: an option, a variable, or whoever is signed in at that service.
pub(crate) fn connect(url: Option<&str>, key: Option<&str>, repository: String) -> anyhow::Result<Client> {
    let (url, key, login) = (given(url, "OKT_URL"), given(key, "OKT_API_KEY"), Login::load()?);
    let same = |login: &Login| url.as_ref().is_none_or(|url| url.trim_end_matches('/') == login.url);
    if let Some(key) = key {
        let url = url.or_else(|| Some(login?.url)).unwrap_or_else(usual_url);
        return Client::new(&url, &key, repository);
    }
    if let Some(login) = login.filter(same) {
        return Client::of_login(login, repository);
    }
    let at = url.map_or_else(String::new, |url| format!(" --url {url}"));
    let who = format!("nobody is signed in: run okt login{at}, or give an API key by --key or OKT_API_KEY");
    Err(Usage(who).into())
}

/// How a command ends, with what went wrong in words.
pub(crate) fn end(done: anyhow::Result<bool>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::from(if error.is::<Usage>() { 2 } else { 3 })
        }
    }
}

/// A reader that has seen enough, such as `head`, is no failure.
fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("can't start the runtime")
}

/// For people.
pub(crate) fn say(what: &str) {
    let _ = writeln!(io::stderr(), "okt: {what}");
}

/// What may come next, for whoever sits there.
pub(crate) fn hint(what: &str) {
    if io::stderr().is_terminal() {
        let _ = writeln!(io::stderr(), "next: {what}");
    }
}

/// A line of data.
pub(crate) fn print(line: impl Display) -> anyhow::Result<()> {
    Ok(writeln!(io::stdout(), "{line}")?)
}

pub(crate) fn print_json(value: &Value) -> anyhow::Result<()> {
    print(format_args!("{value:#}"))
}

/// Bold where that can be seen and is wanted (no-color.org).
pub(crate) fn bold(text: &str) -> String {
    let wanted =
        io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

/// Of a field, as one line: what a stranger wrote must not move the cursor.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace(char::is_control, " "),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// `1 fact`, `2 facts`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {what}{end}")
}

/// Columns as wide as what is in them, but for the last.
pub(crate) fn table(rows: &[Vec<String>]) -> anyhow::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line.push_str(cell);
            if column + 1 < row.len() {
                let pad = widths[column].saturating_sub(cell.chars().count()) + 2;
                line.extend(std::iter::repeat_n(' ', pad));
            }
        }
        print(line.trim_end())?;
    }
    Ok(())
}

/// Rows of a list, and whether there are more.
pub(crate) fn rows(body: &Value) -> &[Value] {
    if body["next_cursor"].is_string() {
        hint("there are more: --limit N, or okt api GET with cursor=…");
    }
    body["data"].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_stranger_wrote_is_one_line() {
        assert_eq!(text(&json!("a\u{1b}[2Jb\nc")), "a [2Jb c");
        assert_eq!(text(&Value::Null), "");
        assert_eq!(text(&json!(3)), "3");
    }
}
