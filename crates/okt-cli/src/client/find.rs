//! `okt search`, `okt fact`, `okt concept`: what a repository knows.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::Client;
use super::remote::{Remote, bold, hint, print, print_json, rows, runtime, say, table, text};

#[derive(Args)]
pub(crate) struct SearchArgs {
    /// What to look for. `"two words"` must occur together, `-word` must not, `year:2019` and the like filter.
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// How: auto, lexical, vector, hybrid or deep.
    #[arg(long)]
    mode: Option<String>,
    /// What: facts, concepts, sources, passages, joined by commas.
    #[arg(long)]
    types: Option<String>,
    #[arg(long, default_value_t = 10)]
    limit: u32,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Args)]
pub(crate) struct FactArgs {
    #[command(subcommand)]
    command: FactCommand,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Subcommand)]
enum FactCommand {
    /// Show a fact with its sentences, and what contradicts it.
    Show { id: String },
    /// List facts, newest first.
    List {
        /// Only those with these words.
        #[arg(short, long)]
        query: Option<String>,
        /// Only those of this source.
        #[arg(long, value_name = "ID")]
        source: Option<String>,
        /// Only those that speak of this concept.
        #[arg(long, value_name = "ID")]
        concept: Option<String>,
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
}

#[derive(Args)]
pub(crate) struct ConceptArgs {
    #[command(subcommand)]
    command: ConceptCommand,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Subcommand)]
enum ConceptCommand {
    /// Show a concept: its definition, and what it is related to.
    Show {
        /// Its id, or the beginning of its name.
        concept: String,
    },
    /// List concepts, those with most facts first.
    List {
        /// Only those whose name has a word that begins so.
        #[arg(short, long)]
        query: Option<String>,
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
}

/// Exits with 1 if nothing is found.
pub(crate) fn search(args: &SearchArgs) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let client = args.remote.client_inside().await?;
        let (words, limit) = (args.words.join(" "), args.limit.to_string());
        let mut asked = vec![("q", words.as_str()), ("limit", limit.as_str())];
        asked.extend(args.mode.iter().map(|mode| ("mode", mode.as_str())));
        asked.extend(args.types.iter().map(|types| ("types", types.as_str())));
        let body = client.get("/search", &asked).await?.body;
        let found = body["data"].as_array().is_some_and(|rows| !rows.is_empty());
        if args.remote.json {
            return print_json(&body).map(|()| found);
        }
        if let Some(why) = body["degraded_reason"].as_str() {
            say(&format!("answered by words alone ({why})"));
        }
        for row in rows(&body) {
            let (mut title, mut words) = (text(&row["title"]), text(&row["text"]));
            // What it is called comes first; the title of a concept is its context.
            if row["type"] == "concepts" {
                title = format!("{words} ({title})");
                words.clear();
            } else if title == words {
                words.clear();
            }
            let retracted = if row["retracted"] == true { "  [retracted]" } else { "" };
            print(format_args!(
                "{:<8} {}  {}{retracted}",
                text(&row["type"]),
                text(&row["id"]),
                bold(&title)
            ))?;
            if !words.is_empty() {
                print(format_args!("         {words}"))?;
            }
        }
        if found {
            hint("see where a fact stands: okt fact show ID");
        } else {
            say("nothing was found");
        }
        Ok(found)
    })
}

pub(crate) fn fact(args: &FactArgs) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let client = args.remote.client_inside().await?;
        match &args.command {
            FactCommand::Show { id } => {
                let fact = client.get(&format!("/facts/{id}"), &[]).await?.body;
                if args.remote.json {
                    return print_json(&fact);
                }
                show_fact(&fact)
            }
            FactCommand::List { query, source, concept, limit } => {
                let limit = limit.to_string();
                let mut asked = vec![("limit", limit.as_str())];
                for (name, value) in [("q", query), ("source_id", source), ("concept_id", concept)] {
                    asked.extend(value.iter().map(|value| (name, value.as_str())));
                }
                let body = client.get("/facts", &asked).await?.body;
                if args.remote.json {
                    return print_json(&body);
                }
                let line = |row: &Value| vec![text(&row["id"]), text(&row["status"]), text(&row["text"])];
                table(&rows(&body).iter().map(line).collect::<Vec<_>>())
            }
        }
    })?;
    Ok(true)
}

fn show_fact(fact: &Value) -> anyhow::Result<()> {
    print(bold(&text(&fact["text"])))?;
    let retracted = if fact["retracted"] == true { ", retracted" } else { "" };
    print(format_args!("{}, by {}{retracted}", text(&fact["status"]), text(&fact["model"])))?;
    for source in fact["sources"].as_array().into_iter().flatten() {
        let title = if source["title"].is_null() { &source["url"] } else { &source["title"] };
        print(format_args!("\n{}  {}", text(&source["source_id"]), text(title)))?;
        for sentence in source["sentences"].as_array().into_iter().flatten() {
            let page = sentence["page"].as_u64().map_or_else(String::new, |page| format!(" (page {page})"));
            print(format_args!("  “{}”{page}", text(&sentence["text"])))?;
        }
    }
    for other in fact["candidate_contradictions"].as_array().into_iter().flatten() {
        print(format_args!(
            "\ncontradicted? {}  {} ({})",
            text(&other["fact_id"]),
            text(&other["text"]),
            text(&other["state"])
        ))?;
    }
    Ok(())
}

pub(crate) fn concept(args: &ConceptArgs) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let client = args.remote.client_inside().await?;
        match &args.command {
            ConceptCommand::Show { concept } => show_concept(&client, concept, args.remote.json).await,
            ConceptCommand::List { query, limit } => {
                let body = listed(&client, query.as_deref(), *limit).await?;
                if args.remote.json {
                    return print_json(&body).map(|()| true);
                }
                let line = |row: &Value| {
                    let facts = format!("{} facts", text(&row["fact_count"]));
                    vec![
                        text(&row["id"]),
                        facts,
                        format!("{} ({})", text(&row["canonical_name"]), text(&row["context"])),
                    ]
                };
                table(&rows(&body).iter().map(line).collect::<Vec<_>>())?;
                Ok(true)
            }
        }
    })
}

/// Text that cites its facts as Markdown does, as people read it: the facts are a command away.
fn without_links(content: &str) -> String {
    let mut parts = content.split("](<fact:");
    let mut read = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some(at) = read.rfind('[') {
            read.remove(at);
        }
        read.push_str(part.split_once(">)").map_or(part, |(_, after)| after));
    }
    read.replace(|c: char| c.is_control() && c != '\n', " ")
}

async fn listed(client: &Client, query: Option<&str>, limit: u32) -> anyhow::Result<Value> {
    let limit = limit.to_string();
    let mut asked = vec![("limit", limit.as_str()), ("show_small", "true")];
    asked.extend(query.map(|query| ("q", query)));
    Ok(client.get("/concepts", &asked).await?.body)
}

/// Exits with 1 where no concept is called so.
async fn show_concept(client: &Client, named: &str, json: bool) -> anyhow::Result<bool> {
    let is_id = named.len() == 36 && named.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    let id = if is_id {
        named.to_owned()
    } else {
        let body = listed(client, Some(named), 1).await?;
        let Some(first) = body["data"][0]["id"].as_str() else {
            say(&format!("no concept is called {named}"));
            return Ok(false);
        };
        first.to_owned()
    };
    let concept = client.get(&format!("/concepts/{id}"), &[]).await?.body;
    if json {
        return print_json(&concept).map(|()| true);
    }
    let name = format!("{} ({})", text(&concept["canonical_name"]), text(&concept["context"]));
    print(format_args!("{}  {id}", bold(&name)))?;
    print(format_args!("{} facts", text(&concept["fact_count"])))?;
    let definition = client.try_get(&format!("/concepts/{id}/definition")).await?;
    if definition.status.is_success() {
        print(format_args!("\n{}", without_links(definition.body["content"].as_str().unwrap_or_default())))?;
    }
    let relations = client.get(&format!("/concepts/{id}/relations"), &[("limit", "10")]).await?.body;
    let related = relations["data"].as_array().map_or(&[][..], Vec::as_slice);
    if !related.is_empty() {
        print("\nrelated:")?;
        let line = |row: &Value| {
            vec![
                format!("  {}", text(&row["canonical_name"])),
                format!("{} facts", text(&row["shared_fact_count"])),
                text(&row["strength"]),
            ]
        };
        table(&related.iter().map(line).collect::<Vec<_>>())?;
    }
    hint(&format!("its facts: okt fact list --concept {id}"));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_read_without_its_links() {
        let cited = "[Bees dance.](<fact:1>) [They [mostly] return.](<fact:2>)\n\nThe end.";
        assert_eq!(without_links("Bees dance."), "Bees dance.");
        assert_eq!(without_links("[Bees dance.](<fact:1>) So [do] others."), "Bees dance. So [do] others.");
        assert_eq!(without_links(cited).lines().count(), 3);
        assert!(!without_links(cited).contains("fact:"));
    }
}
