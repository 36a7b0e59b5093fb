//! `okt repo`: which repositories there are, and which one commands work in.

use clap::{Args, Subcommand};
use serde_json::json;

use super::login::Login;
use super::remote::{Remote, Usage, bold, hint, print, print_json, rows, runtime, say, table, text};

#[derive(Args)]
pub(crate) struct RepoArgs {
    #[command(subcommand)]
    command: RepoCommand,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Subcommand)]
enum RepoCommand {
    /// List the repositories that you may read.
    List,
    /// Make a repository.
    Create {
        /// Its name.
        name: String,
        /// What stands in addresses; made from the name if it is not given.
        #[arg(long)]
        slug: Option<String>,
        /// The providers and contexts that it starts with.
        #[arg(long)]
        preset: Option<String>,
    },
    /// Choose the repository of commands that name none.
    Use {
        /// Its slug or id.
        slug: String,
    },
    /// Show a repository, and how much is in it.
    Show,
}

pub(crate) fn main(args: &RepoArgs) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        match &args.command {
            RepoCommand::List => {
                let body =
                    args.remote.client()?.installation("/repositories", &[("limit", "200")]).await?.body;
                if args.remote.json {
                    return print_json(&body);
                }
                let line = |row: &serde_json::Value| {
                    let count = |name: &str| text(&row["counts"][name]);
                    vec![
                        bold(&text(&row["slug"])),
                        format!("{} sources", count("sources")),
                        format!("{} facts", count("facts")),
                        text(&row["name"]),
                    ]
                };
                table(&rows(&body).iter().map(line).collect::<Vec<_>>())
            }
            RepoCommand::Create { name, slug, preset } => {
                let mut body = json!({"name": name});
                for (field, value) in [("slug", slug), ("preset", preset)] {
                    if let Some(value) = value {
                        body[field] = json!(value);
                    }
                }
                let made = args.remote.client()?.create("/repositories", &body).await?.body;
                if args.remote.json {
                    return print_json(&made);
                }
                hint(&format!("work in it: okt repo use {}", text(&made["slug"])));
                print(text(&made["slug"]))
            }
            RepoCommand::Use { slug } => {
                let mut client = args.remote.client()?;
                client.repository.clone_from(slug);
                let found = client.get("", &[]).await?.body;
                let mut login = Login::load()?.ok_or_else(|| {
                    Usage("nobody is signed in: run okt login, or set OKT_REPOSITORY".to_owned())
                })?;
                login.repository = found["slug"].as_str().map(str::to_owned);
                login.save()?;
                say(&format!("commands work in {}", text(&found["slug"])));
                Ok(())
            }
            RepoCommand::Show => {
                let found = args.remote.client_inside().await?.get("", &[]).await?.body;
                if args.remote.json {
                    return print_json(&found);
                }
                print(bold(&text(&found["name"])))?;
                let fields = ["slug", "preset", "database", "description"];
                let counts = ["sources", "facts", "concepts", "reports", "investigations"];
                let line = |name: &str, value: &serde_json::Value| vec![name.to_owned(), text(value)];
                let lines = fields.iter().map(|name| line(name, &found[*name]));
                table(
                    &lines
                        .chain(counts.iter().map(|name| line(name, &found["counts"][*name])))
                        .collect::<Vec<_>>(),
                )
            }
        }
    })?;
    Ok(true)
}
