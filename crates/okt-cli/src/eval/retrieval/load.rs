//! Documents into a repository. What an earlier run brought there is found by the name of its file.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use http::StatusCode;
use serde_json::{Value, json};

use super::say;
use super::set::{Document, Set};
use crate::client::Client;

/// Uploads whose jobs may be under way at once.
const UNSETTLED: usize = 50;
const PAUSE: Duration = Duration::from_secs(2);
/// Without any source settled or any job ended.
const PATIENCE: Duration = Duration::from_mins(15);
/// The jobs between an upload and a source that can be found in every mode; others may be scheduled for any time.
const KINDS: [&str; 8] = [
    "retrieve_source",
    "source_decomposition",
    "index_source",
    "embed_passages",
    "embed_facts",
    "deduplicate_facts",
    "extract_concepts",
    "embed_concepts",
];

/// A source as a list has it.
pub struct Listed {
    pub id: String,
    pub file_name: Option<String>,
    pub status: String,
    waits_for_budget: bool,
    failure: Option<String>,
}

impl Listed {
    pub fn of(row: &Value) -> anyhow::Result<Self> {
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        let failure = &row["failure"];
        Ok(Self {
            id: text("id").context("a source has no id")?,
            file_name: text("file_name"),
            status: text("status").context("a source has no status")?,
            waits_for_budget: row["waiting_for"] == "budget",
            failure: failure.is_object().then(|| {
                let part = |name: &str| failure[name].as_str().unwrap_or_default();
                format!("{} {}: {}", part("stage"), part("code"), part("message"))
            }),
        })
    }

    pub fn is_settled(&self) -> bool {
        matches!(&*self.status, "processed" | "failed")
    }
}

/// All sources of the repository, the newest first.
pub async fn sources(client: &Client) -> anyhow::Result<Vec<Listed>> {
    let mut all = Vec::new();
    pages(client, |page| {
        all.extend(page);
        true
    })
    .await?;
    Ok(all)
}

/// Page after page while more is wanted.
async fn pages(client: &Client, mut more: impl FnMut(Vec<Listed>) -> bool) -> anyhow::Result<()> {
    let mut cursor: Option<String> = None;
    loop {
        let mut query = vec![("limit", "200"), ("sort", "newest")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let answer = client.get("/sources", &query).await?;
        let rows = answer.body["data"].as_array().context("a list of sources has no data")?;
        let rows: Vec<Listed> = rows.iter().map(Listed::of).collect::<anyhow::Result<_>>()?;
        cursor = answer.body["next_cursor"].as_str().map(str::to_owned);
        if !more(rows) || cursor.is_none() {
            return Ok(());
        }
    }
}

pub async fn load(client: &Client, set: &Set) -> anyhow::Result<()> {
    create(client, set).await?;
    let mut there: HashMap<String, Listed> = HashMap::new();
    for source in sources(client).await? {
        if let Some(name) = source.file_name.clone() {
            there.insert(name, source);
        }
    }
    let mut loading = Loading { client, set, unsettled: BTreeMap::new(), failed: Vec::new(), settled: 0 };
    let mut left: Vec<&Document> = Vec::new();
    for (_, document) in set.distinct() {
        match there.remove(&set.file_name(document)) {
            None => left.push(document),
            Some(source) if source.is_settled() => loading.settle(&source),
            Some(source) => {
                loading.unsettled.insert(source.id, set.file_name(document));
            }
        }
    }
    let began = Instant::now();
    let new = left.len();
    loading.upload(left).await?;
    loading.check()?;
    jobs(client).await?;
    say(&format!("{new} documents uploaded in {} s; all jobs have ended", began.elapsed().as_secs()));
    Ok(())
}

async fn create(client: &Client, set: &Set) -> anyhow::Result<()> {
    if client.try_get("").await?.status != StatusCode::NOT_FOUND {
        return Ok(());
    }
    let slug = &client.repository;
    let body = json!({ "name": format!("Evaluation: {}", set.title), "slug": slug });
    client.create("/repositories", &body).await.with_context(|| format!("can't create repository {slug}"))?;
    say(&format!("repository {slug} created"));
    Ok(())
}

struct Loading<'a> {
    client: &'a Client,
    set: &'a Set,
    /// By id, with the name of the file.
    unsettled: BTreeMap<String, String>,
    failed: Vec<String>,
    settled: usize,
}

impl Loading<'_> {
    async fn upload(&mut self, left: Vec<&Document>) -> anyhow::Result<()> {
        let all = self.settled + self.unsettled.len() + left.len();
        let mut left = left.into_iter().peekable();
        let (mut moved, mut said) = (Instant::now(), Instant::now());
        while !self.unsettled.is_empty() || left.peek().is_some() {
            while self.unsettled.len() < UNSETTLED
                && let Some(document) = left.next()
            {
                self.one(document).await?;
            }
            let before = self.settled;
            self.poll().await?;
            if self.settled > before {
                moved = Instant::now();
            } else if moved.elapsed() > PATIENCE {
                bail!(
                    "no source was processed in {} minutes; check that a worker runs (okt serve --role worker), then run again",
                    PATIENCE.as_secs() / 60
                );
            } else {
                tokio::time::sleep(PAUSE / 4).await;
            }
            if said.elapsed() > Duration::from_secs(5) {
                said = Instant::now();
                say(&format!("{} of {all} documents processed, {} failed", self.settled, self.failed.len()));
            }
        }
        Ok(())
    }

    async fn one(&mut self, document: &Document) -> anyhow::Result<()> {
        let name = self.set.file_name(document);
        let answer = self.client.upload(&name, &document.title, &document.text).await?;
        if answer.status == StatusCode::MULTI_STATUS {
            bail!("{name} was taken for a list of references; remove it from the data set");
        }
        let id = answer.body["source_id"].as_str().context("an upload has no source_id")?;
        // It may be this very file, by a request that was refused after it had its effect.
        if answer.body["existing"] == true
            && self.client.get(&format!("/sources/{id}"), &[("include", "")]).await?.body["file_name"]
                != *name
        {
            bail!(
                "repository {} has the text of {name} under another file name; use a repository of its own (--repository)",
                self.client.repository
            );
        }
        self.unsettled.insert(id.to_owned(), name);
        Ok(())
    }

    /// The newest sources are those that are waited for.
    async fn poll(&mut self) -> anyhow::Result<()> {
        let mut seen = Vec::new();
        let mut missing = self.unsettled.len();
        let unsettled = &self.unsettled;
        pages(self.client, |page| {
            seen.extend(page.into_iter().filter(|source| unsettled.contains_key(&source.id)));
            missing = unsettled.len().saturating_sub(seen.len());
            missing > 0
        })
        .await?;
        if missing > 0 {
            bail!("{missing} sources were deleted while they were waited for; run again");
        }
        let budget = seen.iter().filter(|source| source.waits_for_budget && !source.is_settled()).count();
        if budget > 0 && budget == seen.len() {
            bail!("{budget} sources wait for budget; raise the budget of the repository, then run again");
        }
        for source in seen.iter().filter(|source| source.is_settled()) {
            self.unsettled.remove(&source.id);
            self.settle(source);
        }
        Ok(())
    }

    fn settle(&mut self, source: &Listed) {
        self.settled += 1;
        if source.status == "failed" {
            let name = source.file_name.as_deref().unwrap_or_default();
            let why = source.failure.as_deref().unwrap_or("no reason is given");
            self.failed.push(format!("{name} (source {}): {why}", source.id));
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.failed.is_empty() {
            return Ok(());
        }
        let shown: Vec<&str> = self.failed.iter().take(5).map(String::as_str).collect();
        bail!(
            "{} sources failed. Mend the cause, retry each by POST /api/v1/repositories/{}/sources/ID/retry, and run again; or \
             measure without them by --ask-only. The first:\n  {}",
            self.failed.len(),
            self.client.repository,
            shown.join("\n  ")
        )
    }
}

/// Waits for the jobs that a processed source has left: vectors, duplicates and concepts.
async fn jobs(client: &Client) -> anyhow::Result<()> {
    let (mut idle, mut least, mut moved) = (0, u64::MAX, Instant::now());
    // Twice: between two jobs a successor may be on its way to the queue.
    while idle < 2 {
        let answer = client.try_get("/jobs/stats").await?;
        if answer.status == StatusCode::FORBIDDEN {
            say("jobs are not waited for: the key lacks job:read. Vectors and concepts may be missing");
            return Ok(());
        }
        let kinds = answer.body["data"].as_array().context("the counts of jobs have no data")?;
        let open = unfinished(kinds);
        idle = if open == 0 { idle + 1 } else { 0 };
        if open < least {
            (least, moved) = (open, Instant::now());
            say(&format!("{open} jobs left"));
        } else if moved.elapsed() > PATIENCE {
            bail!(
                "{open} jobs are left and none ended in {} minutes; see GET /api/v1/repositories/{}/jobs for why",
                PATIENCE.as_secs() / 60,
                client.repository
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

fn unfinished(kinds: &[Value]) -> u64 {
    let ours = |kind: &&Value| kind["kind"].as_str().is_some_and(|kind| KINDS.contains(&kind));
    let states = ["scheduled", "available", "running", "retryable"];
    kinds.iter().filter(ours).flat_map(|kind| states.map(|state| kind[state].as_u64().unwrap_or(0))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_jobs_between_upload_and_search_are_waited_for() {
        let kind = |kind: &str, scheduled: u64, running: u64, completed: u64| {
            json!({ "kind": kind, "scheduled": scheduled, "available": 0, "running": running, "retryable": 0,
                    "completed": completed })
        };
        let kinds = [kind("embed_facts", 1, 2, 90), kind("cleanup_facts", 7, 0, 1)];
        assert_eq!(unfinished(&kinds), 3);
        assert_eq!(unfinished(&[kind("cleanup_facts", 7, 0, 1)]), 0);
    }

    #[test]
    fn a_failed_source_says_why() {
        let failure =
            json!({ "stage": "parse", "code": "no_text", "message": "nothing to read", "retryable": false });
        let row = json!({ "id": "s", "file_name": "2wiki-1.txt", "status": "failed", "failure": failure });
        let source = Listed::of(&row).unwrap();
        assert!(source.is_settled());
        assert_eq!(source.failure.as_deref(), Some("parse no_text: nothing to read"));
        assert!(
            !Listed::of(&json!({ "id": "s", "status": "fetched", "failure": null })).unwrap().is_settled()
        );
        assert!(Listed::of(&json!({ "id": "s" })).is_err());
    }
}
