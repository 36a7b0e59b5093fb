//! Curation: merging, splitting and renaming concepts, their aliases and links, and taking that back.

use okt_auth::permissions::{ConceptRead, ConceptUpdate};
use okt_auth::{RepoAccess, RepoScope};
use okt_model::{
    Action, Concept, ConceptId, ConceptMergedBy, CurationAction, CurationDetails, CurationId, CurationStep,
    Decided, Domain, EmbedConcepts, Error, FactId, JobId, NewConceptMerge, Object, Permission, Result,
    checked_name,
};
use okt_store::outbox::{self, When};
use okt_store::{Connection, Tx, concepts, contexts, curation};

use crate::concepts::get;
use crate::{App, Origin};

/// Longer names are sentences.
const NAME_LIMIT: usize = 500;
const REASON_LIMIT: usize = 1_000;
/// Facts that are split off at once.
const FACT_LIMIT: usize = 1_000;
const MERGING: &str = "the context is being merged into another one; use that one";

/// A step that was taken, and the concept as it is now.
pub struct Curated {
    /// `None` if everything was like that already.
    pub step: Option<CurationId>,
    pub concept: Concept,
}

impl App {
    /// From before a number on, the newest first; all steps of a repository, or those that concern a concept.
    pub async fn list_curation(
        &self,
        scope: &RepoScope<ConceptRead>,
        concept: Option<ConceptId>,
        before: Option<i64>,
        limit: i64,
    ) -> Result<Vec<CurationStep>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let steps = curation::list(&mut tx, repository, concept, before.unwrap_or(i64::MAX), limit).await?;
        tx.commit().await?;
        Ok(steps)
    }

    /// Makes a concept a part of another one, which is returned.
    pub async fn merge_concepts(
        &self,
        origin: &Origin,
        scope: &RepoScope<ConceptUpdate>,
        concept: ConceptId,
        into: ConceptId,
        reason: Option<&str>,
    ) -> Result<Curated> {
        let reason = checked_reason(reason)?;
        let mut tx = self.begin_curation(scope).await?;
        let one = get(&mut tx, scope, concept).await?;
        let found = concepts::get(&mut tx, scope.repository(), into).await?;
        let other = found.ok_or_else(|| Error::invalid("into", "no concept has this id"))?;
        if one.no == other.no {
            return Err(Error::Conflict("the two are one concept already"));
        }
        let merge = NewConceptMerge {
            concept,
            into,
            by: ConceptMergedBy::Person,
            job: None,
            person: Some(scope.caller().user()),
            reason: reason.map(str::to_owned),
        };
        let step = curation::merge(&mut tx, scope.repository(), &merge).await?;
        self.finish_step(tx, origin, scope, step, into, "concept.merged").await
    }

    /// Makes a new concept of some facts of another one, and returns the new one.
    pub async fn split_concept(
        &self,
        origin: &Origin,
        scope: &RepoScope<ConceptUpdate>,
        concept: ConceptId,
        facts: &[FactId],
        (name, context): (&str, &str),
        reason: Option<&str>,
    ) -> Result<Curated> {
        let (name, decided) = (checked_name("name", name, 1, NAME_LIMIT)?, decided(scope, reason)?);
        if facts.is_empty() || facts.len() > FACT_LIMIT {
            return Err(Error::invalid("fact_ids", "must be 1 to 1000 ids of facts"));
        }
        let mut tx = self.begin_curation(scope).await?;
        get(&mut tx, scope, concept).await?;
        let context = context_no(&mut tx, scope, context).await?;
        let split =
            curation::split(&mut tx, scope.repository(), decided, concept, (&name, context), facts).await?;
        let split = split.ok_or(Error::NotFound("concept"))?;
        self.finish_step(tx, origin, scope, Some(split.step), split.made, "concept.split").await
    }

    /// Gives a concept another name, another context, or both.
    pub async fn rename_concept(
        &self,
        origin: &Origin,
        scope: &RepoScope<ConceptUpdate>,
        concept: ConceptId,
        (name, context): (Option<&str>, Option<&str>),
        reason: Option<&str>,
    ) -> Result<Curated> {
        let name = name.map(|name| checked_name("canonical_name", name, 1, NAME_LIMIT)).transpose()?;
        let decided = decided(scope, reason)?;
        let mut tx = self.begin_curation(scope).await?;
        get(&mut tx, scope, concept).await?;
        let context = match context {
            Some(label) => Some(context_no(&mut tx, scope, label).await?),
            None => None,
        };
        let name = name.as_deref();
        let step = curation::rename(&mut tx, scope.repository(), decided, concept, name, context).await?;
        let step = step.ok_or(Error::NotFound("concept"))?;
        self.finish_step(tx, origin, scope, step, concept, "concept.renamed").await
    }

    pub async fn add_alias(
        &self,
        origin: &Origin,
        scope: &RepoScope<ConceptUpdate>,
        concept: ConceptId,
        alias: &str,
        reason: Option<&str>,
    ) -> Result<Curated> {
        let (alias, decided) = (checked_name("alias", alias, 1, NAME_LIMIT)?, decided(scope, reason)?);
        let mut tx = self.begin_curation(scope).await?;
        let step = curation::add_alias(&mut tx, scope.repository(), decided, concept, &alias).await?;
        let step = step.ok_or(Error::NotFound("concept"))?;
        self.finish_step(tx, origin, scope, Some(step), concept, "concept.alias_added").await
    }

    pub async fn remove_alias(
        &self,
        origin: &Origin,
        scope: &RepoScope<ConceptUpdate>,
        concept: ConceptId,
        alias: &str,
        reason: Option<&str>,
    ) -> Result<Curated> {
        let decided = decided(scope, reason)?;
        let mut tx = self.begin_curation(scope).await?;
        get(&mut tx, scope, concept).await?;
        let step = curation::remove_alias(&mut tx, scope.repository(), decided, concept, alias).await?;
        let step = step.ok_or(Error::NotFound("alias"))?;
        self.finish_step(tx, origin, scope, Some(step), concept, "concept.alias_removed").await
    }

    /// Says that a fact does not speak of a concept.
    pub async fn reject_link(
        &self,
        origin: &Origin,
        scope: &RepoScope<ConceptUpdate>,
        fact: FactId,
        concept: ConceptId,
        reason: Option<&str>,
    ) -> Result<Curated> {
        let decided = decided(scope, reason)?;
        let mut tx = self.begin_curation(scope).await?;
        let step = curation::reject_link(&mut tx, scope.repository(), decided, concept, fact).await?;
        let step = step.ok_or(Error::NotFound("link between this fact and this concept"))?;
        self.finish_step(tx, origin, scope, Some(step), concept, "concept.link_rejected").await
    }

    /// Takes a step back.
    pub async fn undo_curation(
        &self,
        origin: &Origin,
        scope: &RepoScope<ConceptUpdate>,
        id: CurationId,
    ) -> Result<CurationStep> {
        let repository = scope.repository();
        let mut tx = self.begin_curation(scope).await?;
        let missing = || Error::NotFound("curation step");
        let step = curation::find(&mut tx, repository, id).await?.ok_or_else(missing)?;
        if matches!(
            step.action,
            CurationAction::RejectFact | CurationAction::RestoreFact | CurationAction::MarkContradiction
        ) {
            let needed = Permission::new(Object::Fact, Action::Update);
            let may = scope.caller().let_in(Domain::Repository(repository), needed);
            may.map_err(|_| Error::Forbidden("undoing this step needs fact:update"))?;
        }
        let undone = curation::undo(&mut tx, repository, id, scope.caller().user()).await?;
        if let Some(fact) = undone.ok_or_else(missing)?.restored {
            self.ask_for_vector(&mut tx, scope, fact).await?;
        }
        let step = curation::find(&mut tx, repository, id).await?.ok_or_else(missing)?;
        self.ask_for_consequences(&mut tx, scope, &step).await?;
        self.commit_recorded(tx, origin, scope, "curation.undone", &id.to_string()).await?;
        Ok(step)
    }

    async fn begin_curation(&self, scope: &RepoAccess) -> Result<Tx> {
        Ok(self.databases().begin(scope.database(), scope.repository()).await?)
    }

    async fn finish_step(
        &self,
        mut tx: Tx,
        origin: &Origin,
        scope: &RepoAccess,
        step: Option<CurationId>,
        concept: ConceptId,
        action: &'static str,
    ) -> Result<Curated> {
        let concept = get(&mut tx, scope, concept).await?;
        if let Some(step) = step {
            let step = curation::find(&mut tx, scope.repository(), step).await?;
            self.ask_for_consequences(&mut tx, scope, &step.ok_or(Error::NotFound("curation step"))?).await?;
            self.commit_recorded(tx, origin, scope, action, &concept.id.to_string()).await?;
        }
        Ok(Curated { step, concept })
    }

    /// Has counted and described anew what a step changed.
    async fn ask_for_consequences(&self, tx: &mut Tx, scope: &RepoAccess, step: &CurationStep) -> Result<()> {
        self.ask_for_relations(tx, scope).await?;
        let CurationDetails { concept, other, .. } = &step.details;
        let concepts: Vec<ConceptId> = concept.iter().chain(other).map(|one| one.id).collect();
        if self.vectors().is_some() && !concepts.is_empty() {
            let payload = EmbedConcepts { source: None, concepts };
            outbox::push(tx, scope.repository(), JobId::mint(), &payload, When::default()).await?;
        }
        Ok(())
    }
}

/// The reason of a step, if one is given.
pub(crate) fn checked_reason(reason: Option<&str>) -> Result<Option<&str>> {
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
    if reason.is_some_and(|reason| reason.chars().count() > REASON_LIMIT || reason.contains('\0')) {
        return Err(Error::invalid("reason", "must be at most 1000 characters of text"));
    }
    Ok(reason)
}

pub(crate) fn decided<'a>(scope: &RepoAccess, reason: Option<&'a str>) -> Result<Decided<'a>> {
    Ok(Decided { person: scope.caller().user(), reason: checked_reason(reason)? })
}

/// The number of a context that takes concepts.
async fn context_no(conn: &mut Connection, scope: &RepoAccess, label: &str) -> Result<i64> {
    let found = contexts::find(conn, scope.repository(), label).await?;
    let found = found.ok_or_else(|| Error::invalid("context", "no context has this label"))?;
    if found.context.merging_into.is_some() {
        return Err(Error::Conflict(MERGING));
    }
    Ok(found.no)
}
