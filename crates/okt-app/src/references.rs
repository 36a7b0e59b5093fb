//! Lists of references: many sources in one request.

use okt_auth::permissions::SourceWrite;
use okt_auth::{RepoAccess, RepoScope};
use okt_model::{Error, InvestigationId, JobId, Locator, Result, SourceId};
use okt_parse::references::{self, BadEntry, Reference};
use okt_store::sources::NewSource;

use crate::App;
use crate::investigations::link;
use crate::sources::{accept, known};

/// Written in one transaction; whoever adds to the same repository meanwhile waits for it.
const BATCH: usize = 50;

/// What became of one entry of a list.
pub struct Imported {
    pub label: String,
    pub outcome: ImportOutcome,
}

pub enum ImportOutcome {
    Added(SourceId, JobId),
    Existing(SourceId, JobId),
    /// There is nothing to fetch it by.
    Skipped(String),
    /// It can't be read.
    Invalid(String),
}

impl App {
    /// Makes a source of every entry that names one. What was added stays when a later entry can't be.
    pub async fn import_references(
        &self,
        scope: &RepoScope<SourceWrite>,
        text: String,
        file_name: Option<String>,
        content_type: Option<String>,
        investigation: Option<InvestigationId>,
    ) -> Result<Vec<Imported>> {
        let read = tokio::task::spawn_blocking(move || {
            let format = references::detect(&text, file_name.as_deref(), content_type.as_deref());
            let format =
                format.ok_or("is no list of references: BibTeX, RIS and CSL-JSON are read".to_owned())?;
            references::read(&text, format).map_err(|error| error.to_string())
        });
        let entries = read.await.map_err(Error::internal)?.map_err(|why| Error::invalid("file", why))?;
        let mut imported = Vec::with_capacity(entries.len());
        let mut entries = entries.into_iter().peekable();
        while entries.peek().is_some() {
            let batch: Vec<_> = entries.by_ref().take(BATCH).collect();
            imported.extend(self.import_batch(scope, batch, investigation).await?);
        }
        Ok(imported)
    }

    async fn import_batch(
        &self,
        scope: &RepoAccess,
        entries: Vec<Result<Reference, BadEntry>>,
        investigation: Option<InvestigationId>,
    ) -> Result<Vec<Imported>> {
        let mut imported = Vec::with_capacity(entries.len());
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        known(&mut tx, scope, investigation).await?;
        for entry in entries {
            let (label, outcome) = match entry {
                Err(bad) => (bad.label.clone(), ImportOutcome::Invalid(bad.to_string())),
                Ok(reference) => match named(&reference) {
                    None => {
                        let why = "it has no DOI, address, arXiv or PubMed number to fetch it by";
                        (reference.label, ImportOutcome::Skipped(why.to_owned()))
                    }
                    Some(new) => {
                        let most = self.config().limits.sources_per_repository;
                        let accepted = accept(&mut tx, scope, &new, most).await;
                        if let Ok((source, ..)) = accepted {
                            link(&mut tx, scope, investigation, source).await?;
                        }
                        let outcome = match accepted {
                            Ok((source, job, true)) => ImportOutcome::Existing(source, job),
                            Ok((source, job, false)) => ImportOutcome::Added(source, job),
                            // Nothing was written, and others of the list may be there already.
                            Err(full @ Error::QuotaExceeded { .. }) => {
                                ImportOutcome::Skipped(full.to_string())
                            }
                            Err(error) => return Err(error),
                        };
                        (reference.label, outcome)
                    }
                },
            };
            imported.push(Imported { label, outcome });
        }
        tx.commit().await?;
        Ok(imported)
    }
}

/// Whether a file that begins like this is a list of references and no text.
pub fn is_reference_list(head: &[u8], file_name: Option<&str>, content_type: Option<&str>) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The end may be in the middle of a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    references::detect(text, file_name, content_type).is_some()
}

/// The source that a reference names, if any.
fn named(reference: &Reference) -> Option<NewSource> {
    let names = [
        reference.doi.clone(),
        reference.arxiv.as_ref().map(|number| format!("arXiv:{number}")),
        reference.pmid.as_ref().map(|number| format!("PMID:{number}")),
        reference.url.clone(),
    ];
    let locator = names.into_iter().flatten().find_map(|name| Locator::parse(&name).ok())?;
    Some(NewSource {
        locator: Some(locator.normalized),
        doi: locator.doi,
        title: reference.title.clone(),
        author: reference.author.clone(),
        published_at: reference.published_at.as_deref().and_then(okt_model::parse_date),
        ..NewSource::new(SourceId::mint(), JobId::mint(), locator.url)
    })
}
