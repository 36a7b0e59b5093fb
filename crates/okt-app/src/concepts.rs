//! Concepts: what the facts of a repository speak of, and what relates them.

use okt_auth::permissions::ConceptRead;
use okt_auth::{RepoAccess, RepoScope};
use okt_model::{
    Alias, Concept, ConceptContext, ConceptFilter, ConceptId, ConceptSource, DatedFact, Error, Fact,
    Relation, RelationBands, RepositoryId, Result, SourceId, Strength,
};
use okt_store::concept_relations::{self, RelationPlace, STRONGEST};
use okt_store::concept_syntheses::{self, SynthesisVersion};
use okt_store::concepts::{self, ConceptPlace, MOST_FACTS_READ, SourcePlace, TimelinePlace};
use okt_store::{Connection, concept_aliases, contexts, source_marks};

use crate::App;

/// Contexts of a name that a concept is shown with in a list; those with the most facts.
const CONTEXTS_IN_LIST: i64 = 20;
/// And by itself: as many as a repository may have.
const CONTEXTS: i64 = 1_000;
/// Other names that a concept is shown with.
const ALIASES: i64 = 200;

/// Which concepts a list is to have.
pub struct ConceptListing<'a> {
    pub q: Option<&'a str>,
    /// The label of a context.
    pub context: Option<&'a str>,
    /// Those with few facts as well.
    pub show_small: bool,
    pub by_name: bool,
}

/// A concept with all concepts of its name.
pub struct ListedConcept {
    pub concept: Concept,
    /// It is one of them.
    pub contexts: Vec<ConceptContext>,
}

/// A page of a list from which what is small or weak is left out, unless nothing would be left.
pub struct Floored<T> {
    pub rows: Vec<T>,
    pub floors: Floors,
    /// Whether they hold.
    pub applied: bool,
}

/// How many facts a concept has to have to be listed, and how many two have to share.
#[derive(Clone, Copy)]
pub struct Floors {
    pub fact_count: i64,
    pub shared_fact_count: i64,
}

/// A concept with all that is known of it.
pub struct SeenConcept {
    pub concept: Concept,
    pub contexts: Vec<ConceptContext>,
    pub aliases: Vec<Alias>,
    /// The latest definition of its name, if a model has written one.
    pub synthesis: Option<SynthesisVersion>,
}

/// What was read of the newest facts of a concept, and whether these are all of them.
pub struct OfFacts<T> {
    pub rows: Vec<T>,
    pub complete: bool,
}

/// What two concepts share.
pub struct SeenRelation {
    pub concept: Concept,
    pub other: Concept,
    pub shared_fact_count: i64,
    pub strength: Strength,
    /// Each with its place.
    pub facts: Vec<(SharedPlace, Fact)>,
}

/// A place among the facts that two concepts share: whether the list goes along the facts of the second one, and the last one.
pub type SharedPlace = (bool, i64);

impl App {
    /// What the configuration hides from lists of concepts and relations.
    fn floors(&self) -> Floors {
        Floors {
            fact_count: i64::from(self.config().concept_floor()),
            shared_fact_count: i64::from(self.config().concepts.min_shared_fact_count),
        }
    }

    pub(crate) fn bands(&self) -> RelationBands {
        let concepts = &self.config().concepts;
        RelationBands {
            weak: i64::from(concepts.min_shared_fact_count),
            stable: i64::from(concepts.stable_shared_fact_count),
        }
    }

    /// From after a place on, with whether the floor held until there. Where the floor hides the whole first page, it is lifted.
    pub async fn list_concepts(
        &self,
        scope: &RepoScope<ConceptRead>,
        listing: &ConceptListing<'_>,
        after: Option<(bool, ConceptPlace)>,
        limit: i64,
    ) -> Result<Floored<ListedConcept>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let context_no = match listing.context {
            Some(label) => {
                let found = contexts::find(&mut tx, repository, label).await?;
                let missing = || Error::invalid("context", "the repository has no context of this label");
                Some(found.ok_or_else(missing)?.no)
            }
            None => None,
        };
        let first = if listing.by_name { ConceptPlace::first_name() } else { ConceptPlace::MOST_FACTS };
        let may_lift = after.is_none();
        let (mut applied, after) = after.unwrap_or((!listing.show_small, first));
        let q = listing.q.map(str::to_owned);
        let floors = self.floors();
        let min_fact_count = if applied { floors.fact_count } else { 0 };
        let mut filter = ConceptFilter { q, context_no, min_fact_count };
        let mut found = concepts::list(&mut tx, repository, &filter, &after, limit).await?;
        if found.is_empty() && applied && may_lift {
            filter.min_fact_count = 0;
            found = concepts::list(&mut tx, repository, &filter, &after, limit).await?;
            applied = found.is_empty();
        }
        let names: Vec<String> = found.iter().map(|concept| concept.name_key.clone()).collect();
        let contexts = concepts::list_contexts(&mut tx, repository, &names, CONTEXTS_IN_LIST).await?;
        tx.commit().await?;
        let rows = found.into_iter().map(|concept| {
            let contexts = contexts.get(&concept.name_key).cloned().unwrap_or_default();
            ListedConcept { concept, contexts }
        });
        Ok(Floored { rows: rows.collect(), floors, applied })
    }

    /// The concept of this id, or the one that it was merged into.
    pub async fn find_concept(&self, scope: &RepoScope<ConceptRead>, id: ConceptId) -> Result<SeenConcept> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let concept = get(&mut tx, scope, id).await?;
        let name = std::slice::from_ref(&concept.name_key);
        let mut contexts = concepts::list_contexts(&mut tx, repository, name, CONTEXTS).await?;
        let aliases = concept_aliases::list(&mut tx, repository, concept.no, ALIASES).await?;
        let versions = concept_syntheses::list_versions(&mut tx, repository, &concept.name_key).await?;
        tx.commit().await?;
        let contexts = contexts.remove(&concept.name_key).unwrap_or_default();
        Ok(SeenConcept { concept, contexts, aliases, synthesis: versions.into_iter().next() })
    }

    /// The facts of a concept, the newest first, each with its place.
    pub async fn list_concept_facts(
        &self,
        scope: &RepoScope<ConceptRead>,
        id: ConceptId,
        before: Option<i64>,
        limit: i64,
    ) -> Result<Vec<(i64, Fact)>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let concept = get(&mut tx, scope, id).await?;
        let before = before.unwrap_or(i64::MAX);
        let found = concepts::list_facts(&mut tx, repository, concept.no, before, limit).await?;
        let found = describe(&mut tx, scope, found).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// The sources of the facts of a concept, those that make the most of them first.
    pub async fn list_concept_sources(
        &self,
        scope: &RepoScope<ConceptRead>,
        id: ConceptId,
        after: Option<SourcePlace>,
        limit: i64,
    ) -> Result<OfFacts<ConceptSource>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let concept = get(&mut tx, scope, id).await?;
        let mut rows = concepts::list_sources(&mut tx, repository, concept.no, after, limit).await?;
        let ids: Vec<SourceId> = rows.iter().map(|row| row.id).collect();
        let mut marks = source_marks::get(&mut tx, repository, &ids).await?;
        for row in &mut rows {
            row.mark = marks.remove(&row.id);
        }
        let complete = is_read_whole(&mut tx, repository, concept.no).await?;
        tx.commit().await?;
        Ok(OfFacts { rows, complete })
    }

    /// The facts of a concept in the order in which their sources were published.
    pub async fn list_concept_timeline(
        &self,
        scope: &RepoScope<ConceptRead>,
        id: ConceptId,
        after: Option<TimelinePlace>,
        limit: i64,
    ) -> Result<OfFacts<DatedFact>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let concept = get(&mut tx, scope, id).await?;
        let mut rows = concepts::list_timeline(&mut tx, repository, concept.no, after, limit).await?;
        let facts: Vec<(i64, Fact)> = rows.iter().map(|row| (0, row.fact.clone())).collect();
        let facts = describe(&mut tx, scope, facts).await?;
        for (row, (_, fact)) in rows.iter_mut().zip(facts) {
            row.fact = fact;
        }
        let complete = is_read_whole(&mut tx, repository, concept.no).await?;
        tx.commit().await?;
        Ok(OfFacts { rows, complete })
    }

    /// What shares facts with a concept, the strongest first; from after a place on, with whether the floors held until there.
    /// Where the floors hide the whole first page, they are lifted.
    pub async fn list_concept_relations(
        &self,
        scope: &RepoScope<ConceptRead>,
        id: ConceptId,
        (show_insignificant, show_small): (bool, bool),
        after: Option<(bool, RelationPlace)>,
        limit: i64,
    ) -> Result<Floored<Relation>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let concept = get(&mut tx, scope, id).await?;
        let floors = self.floors();
        let asked = (
            if show_insignificant { 1 } else { floors.shared_fact_count },
            if show_small { 0 } else { floors.fact_count },
        );
        let may_lift = after.is_none();
        let (mut applied, after) = after.unwrap_or((!(show_insignificant && show_small), STRONGEST));
        let (bands, none) = (self.bands(), (1, 0));
        let least = if applied { asked } else { none };
        let mut rows =
            concept_relations::list(&mut tx, repository, concept.no, bands, least, after, limit).await?;
        if rows.is_empty() && applied && may_lift {
            rows =
                concept_relations::list(&mut tx, repository, concept.no, bands, none, after, limit).await?;
            applied = rows.is_empty();
        }
        tx.commit().await?;
        Ok(Floored { rows, floors, applied })
    }

    /// How strongly two concepts belong together, and the facts that they share, from after a place on.
    pub async fn find_concept_relation(
        &self,
        scope: &RepoScope<ConceptRead>,
        (id, other): (ConceptId, ConceptId),
        after: Option<SharedPlace>,
        limit: i64,
    ) -> Result<SeenRelation> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let concept = get(&mut tx, scope, id).await?;
        let other = get(&mut tx, scope, other).await?;
        if concept.no == other.no {
            return Err(Error::invalid("otherID", "is the same concept, or was merged with it"));
        }
        let shared_fact_count = concept_relations::find(&mut tx, repository, concept.no, other.no).await?;
        let (turned, before) = after.unwrap_or((other.fact_count < concept.fact_count, i64::MAX));
        let pair = if turned { (other.no, concept.no) } else { (concept.no, other.no) };
        let found = concepts::list_shared_facts(&mut tx, repository, pair, before, limit).await?;
        let found = describe(&mut tx, scope, found).await?;
        tx.commit().await?;
        let facts = found.into_iter().map(|(place, fact)| ((turned, place), fact)).collect();
        let strength = self.bands().strength(shared_fact_count);
        Ok(SeenRelation { concept, other, shared_fact_count, strength, facts })
    }
}

/// The concept of this id, or the one that it was merged into.
pub(crate) async fn get(conn: &mut Connection, scope: &RepoAccess, id: ConceptId) -> Result<Concept> {
    concepts::get(conn, scope.repository(), id).await?.ok_or(Error::NotFound("concept"))
}

/// Adds the groups of similar facts that they are in, and how many of their sources are marked.
async fn describe(
    conn: &mut Connection,
    scope: &RepoAccess,
    found: Vec<(i64, Fact)>,
) -> Result<Vec<(i64, Fact)>> {
    let (places, mut facts): (Vec<i64>, Vec<Fact>) = found.into_iter().unzip();
    crate::facts::describe(conn, scope, &mut facts).await?;
    Ok(places.into_iter().zip(facts).collect())
}

/// Whether a concept has no more links to facts than are read of it.
async fn is_read_whole(conn: &mut Connection, repository: RepositoryId, concept: i64) -> Result<bool> {
    let links = concepts::count_links(conn, repository, concept, MOST_FACTS_READ + 1).await?;
    Ok(links <= MOST_FACTS_READ)
}
