//! Contexts: what the concepts of a repository are filed under.

use okt_auth::permissions::RepositoryManage;
use okt_auth::{RepoAccess, RepoScope};
use okt_model::{Context, Error, JobId, MOST_CONTEXTS, MigrateContext, Result, checked_name};
use okt_store::Tx;
use okt_store::contexts::{self, NewContext, Numbered};
use okt_store::outbox::{self, When};

use crate::{App, Origin};

const MERGING: &str = "the context is being merged; wait for its job to end, or migrate it into the same one again if there is none";

impl App {
    /// Adds a context of the repository's own.
    pub async fn add_context(
        &self,
        origin: &Origin,
        scope: &RepoScope<RepositoryManage>,
        label: &str,
        description: &str,
    ) -> Result<Context> {
        let (label, description) = (checked_label(label)?, checked_text(description)?);
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        if contexts::count(&mut tx, repository).await? >= MOST_CONTEXTS {
            return Err(Error::Conflict("the repository has the maximum number of contexts"));
        }
        let new =
            NewContext { label: label.clone(), description: description.to_owned(), ontology_class: None };
        if contexts::insert(&mut tx, repository, &[new]).await? == 0 {
            return Err(Error::AlreadyExists("a context with this label"));
        }
        let added = hold(&mut tx, scope, &label).await?;
        self.commit_recorded(tx, origin, scope, "context.added", &label).await?;
        Ok(added.context)
    }

    /// Changes a context of the repository's own.
    pub async fn update_context(
        &self,
        origin: &Origin,
        scope: &RepoScope<RepositoryManage>,
        context: &str,
        label: Option<&str>,
        description: Option<&str>,
    ) -> Result<Context> {
        let label = label.map(checked_label).transpose()?;
        let description = description.map(checked_text).transpose()?;
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        let held = hold(&mut tx, scope, context).await?;
        if held.context.ontology_class.is_some() {
            return Err(Error::Conflict(
                "a built-in context can't be changed; add one of your own and migrate this one into it",
            ));
        }
        contexts::update(&mut tx, scope.repository(), held.no, label.as_deref(), description).await?;
        let changed = hold(&mut tx, scope, label.as_deref().unwrap_or(context)).await?;
        self.commit_recorded(tx, origin, scope, "context.updated", &changed.context.label).await?;
        Ok(changed.context)
    }

    /// Removes a context that nothing is filed under.
    pub async fn delete_context(
        &self,
        origin: &Origin,
        scope: &RepoScope<RepositoryManage>,
        context: &str,
    ) -> Result<()> {
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        let held = hold(&mut tx, scope, context).await?;
        if held.context.merging_into.is_some() || held.receives {
            return Err(Error::Conflict(MERGING));
        }
        if !contexts::delete(&mut tx, scope.repository(), held.no).await? {
            if held.context.concept_count == 0 {
                return Err(Error::Conflict(
                    "concepts of this context were merged into others; migrate it into another context, which removes it",
                ));
            }
            return Err(Error::InUse {
                count: held.context.concept_count,
                by: "concepts",
                remedy: "migrate it into another context, which removes it",
            });
        }
        self.commit_recorded(tx, origin, scope, "context.deleted", &held.context.label).await
    }

    /// Makes one context a part of another: from now on nothing new is filed under it, and a job moves what is there.
    pub async fn migrate_context(
        &self,
        origin: &Origin,
        scope: &RepoScope<RepositoryManage>,
        context: &str,
        target: &str,
    ) -> Result<JobId> {
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        contexts::hold(&mut tx, repository, &[context, target]).await?;
        let source = contexts::find(&mut tx, repository, context).await?.ok_or(Error::NotFound("context"))?;
        let target = contexts::find(&mut tx, repository, target).await?;
        let target = target.ok_or_else(|| Error::invalid("target", "no context has this label"))?;
        if source.no == target.no {
            return Err(Error::invalid("target", "must be another context"));
        }
        // Once more into the same one: its job was cancelled or given up.
        let again = source.context.merging_into.as_ref() == Some(&target.context.label);
        let busy =
            source.context.merging_into.is_some() || source.receives || target.context.merging_into.is_some();
        if busy && !again {
            return Err(Error::Conflict(MERGING));
        }
        if !again {
            contexts::mark_merging(&mut tx, repository, source.no, target.no).await?;
        }
        let (job, payload) = (JobId::mint(), MigrateContext { source: source.no, target: target.no });
        outbox::push(&mut tx, repository, job, &payload, When::default()).await?;
        let object = format!("{} into {}", source.context.label, target.context.label);
        self.commit_recorded(tx, origin, scope, "context.migrated", &object).await?;
        Ok(job)
    }
}

async fn hold(tx: &mut Tx, scope: &RepoAccess, label: &str) -> Result<Numbered> {
    contexts::hold(tx, scope.repository(), &[label]).await?;
    contexts::find(tx, scope.repository(), label).await?.ok_or(Error::NotFound("context"))
}

fn checked_label(label: &str) -> Result<String> {
    let label = checked_name("label", label, 1, 100)?;
    // In an address they mean this place and the one above.
    if [".", ".."].contains(&label.as_str()) {
        return Err(Error::invalid("label", "must be a word"));
    }
    Ok(label)
}

fn checked_text(text: &str) -> Result<&str> {
    if text.chars().count() > 1_000 || text.contains('\0') {
        return Err(Error::invalid("description", "must be at most 1000 characters of text"));
    }
    Ok(text)
}
