//! A package of a registry that becomes what a source says here: its facts, their concepts, the links between them, and slices
//! of summaries. A row of `okt_repository.imports` says where it came from.
//!
//! However large the package is, it is the same few statements. They are one transaction with the end of the job, so all of it
//! is there or nothing. What is here already is kept: a fact of the same hash, a concept of the same name in its context.

mod reading;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::NaiveDate;
use okt_interchange::bundle::hash::{Cited, rewrite_facts};
use okt_interchange::package::CostData;
use okt_model::{
    AliasBy, ConceptId, ContentHash, Error, Extraction, FactId, FactKind, FactStatus, FoundBy, JobId, Money,
    RepositoryId, SourceId, SourceStatus, SummaryId, WebhookEvent, name_key, word_keys,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::concepts::{self, NewLink, link_held};
use crate::facts::hash;
use crate::sources;
use okt_pg::Result;

pub use reading::{Shareable, list_missing, list_shareable, list_taken, read, sum_saved};

/// What is taken of a package, with the repository's own places for its concepts.
#[derive(Clone, Debug)]
pub struct Import {
    pub source: SourceId,
    pub job: JobId,
    pub about: About,
    /// With the package's model and where it came from.
    pub extraction: Extraction,
    /// What the registry calls the source.
    pub registry_source: String,
    pub cost: Option<CostData>,
    pub promptset: Option<ContentHash>,
    /// The quoted sentences, and where each one is.
    pub text: String,
    pub sentences: Vec<(i32, i32)>,
    /// What made them sentences.
    pub segmenter: String,
    /// Each hash once.
    pub facts: Vec<ImportedFact>,
    pub concepts: Vec<ImportedConcept>,
    pub summaries: Vec<ImportedSummary>,
    /// Contexts to be added, with the classes that they stand for.
    pub contexts: Vec<(String, Option<String>)>,
    /// `new` where facts are going to be compared with others.
    pub status: FactStatus,
    /// Who would read the facts for concepts, if the package has read them already.
    pub reader: Option<i64>,
    /// The space in which the concepts have their vectors.
    pub space: Option<i16>,
}

/// What a registry knows of a source.
#[derive(Clone, Debug, Default)]
pub struct About {
    pub title: Option<String>,
    pub author: Option<String>,
    pub kind: Option<String>,
    pub language: Option<String>,
    pub published_at: Option<NaiveDate>,
}

#[derive(Clone, Debug)]
pub struct ImportedFact {
    /// What its producer calls it, and so do we, unless another fact is called so.
    pub id: Uuid,
    pub text: String,
    pub hash: ContentHash,
    pub kind: FactKind,
    /// By their place in the text of the import.
    pub sentences: Vec<i32>,
    /// By their place in the list.
    pub concepts: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct ImportedConcept {
    pub id: Uuid,
    pub name: String,
    /// The label of one that is there, or is added.
    pub context: String,
    /// What its context was called, if it is filed under another one.
    pub unmapped_label: Option<String>,
    pub aliases: Vec<String>,
    /// What its vector is called, where it has come with one.
    pub vector: Option<Uuid>,
}

#[derive(Clone, Debug)]
pub struct ImportedSummary {
    pub id: Uuid,
    /// By its place in the list.
    pub concept: usize,
    pub content: String,
    /// By what their producer calls them.
    pub facts: Vec<Uuid>,
}

/// What an import came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub facts_new: i64,
    pub facts_linked: i64,
    pub concepts_new: i64,
    pub links: i64,
    pub summaries: i64,
}

/// Takes in a package as what a source says; `None` if the source is another job's, or has facts. Twelve statements at most, but
/// for those that tell webhooks, and that find out what is to be linked instead where a person rejected links.
#[tracing::instrument(level = "debug", name = "db.packages.import", skip_all, fields(source.id = %import.source))]
pub async fn import(
    conn: &mut PgConnection,
    repository: RepositoryId,
    import: &Import,
) -> Result<Option<Imported>> {
    let Some((source, no)) = mark(conn, repository, import).await? else { return Ok(None) };
    let (concepts, concepts_new) = file(conn, repository, import, no).await?;
    let held = hold(conn, repository, import).await?;
    let facts = add(conn, repository, (source, no), import, &held).await?;
    let links = import.facts.iter().flat_map(|fact| {
        let no = facts.get(&fact.hash).map(|(no, _)| *no);
        let concepts: BTreeSet<ConceptId> = fact.concepts.iter().map(|at| concepts[*at]).collect();
        concepts
            .into_iter()
            .filter_map(move |concept| Some(NewLink { concept, fact: no?, found_by: FoundBy::Model }))
    });
    let links = link_held(conn, repository, links.collect(), no).await?;
    name(conn, repository, import, &concepts).await?;
    let summaries = summarize(conn, repository, (import, no), &concepts, &facts).await?;
    let all = i64::try_from(import.facts.len()).map_err(Error::internal)?;
    let facts_linked = i64::try_from(held.len()).map_err(Error::internal)?;
    let imported = Imported { facts_new: all - facts_linked, facts_linked, concepts_new, links, summaries };
    // Last of all, as by everybody: until the end of the transaction nobody else counts.
    sqlx::query!(
        "INSERT INTO okt_repository.counters AS c (repository_id, name, value)
         SELECT $1, n.name, n.delta
           FROM (VALUES (1, 'facts', $2::bigint), (2, 'concepts', $3::bigint)) AS n (at, name, delta)
          WHERE n.delta <> 0
          ORDER BY n.at
         ON CONFLICT (repository_id, name) DO UPDATE SET value = c.value + excluded.value",
        repository.uuid(),
        imported.facts_new,
        imported.concepts_new,
    )
    .execute(conn)
    .await?;
    Ok(Some(imported))
}

/// Says that the source is done, and where what it says comes from. Its number and that of the import, if it is the job's.
async fn mark(
    conn: &mut PgConnection,
    repository: RepositoryId,
    import: &Import,
) -> Result<Option<(i64, i64)>> {
    let Import { about, extraction, cost, .. } = import;
    let facts = i64::try_from(import.facts.len()).map_err(Error::internal)?;
    let origin =
        extraction.registry.as_ref().ok_or_else(|| Error::internal("an import without an origin"))?;
    let package: ContentHash = origin.package_sha256.parse().map_err(Error::internal)?;
    let told = serde_json::to_string(extraction).map_err(Error::internal)?;
    let sentences: Vec<i32> = import.sentences.iter().flat_map(|(start, end)| [*start, *end]).collect();
    let (labels, classes): (Vec<String>, Vec<Option<String>>) = import.contexts.iter().cloned().unzip();
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let row = sqlx::query_file!(
        "src/sql/mark_source_imported.sql",
        repository.uuid(),
        import.source.uuid(),
        import.job.uuid(),
        &SourceStatus::before(SourceStatus::Processed),
        about.title,
        about.author,
        about.kind,
        about.language,
        about.published_at,
        told,
        facts,
        origin.registry,
        import.registry_source,
        extraction.model,
        &package.0,
        origin.key_id,
        cost.map(|cost| i32::try_from(cost.calls).unwrap_or(i32::MAX)),
        cost.map(|cost| signed(cost.tokens_in)),
        cost.map(|cost| signed(cost.tokens_out)),
        cost.and_then(|cost| Some(Money::from_usd(cost.usd)?.micros())),
        import.text,
        &sentences,
        import.segmenter,
        &labels,
        &classes as &[Option<String>],
        origin.pushed_by,
        WebhookEvent::SourceProcessed.as_str(),
    );
    let Some(row) = row.fetch_optional(&mut *conn).await? else { return Ok(None) };
    if row.is_heard {
        sources::announce_processed(conn, repository, import.source).await?;
    }
    Ok(Some((row.no, row.import_no)))
}

/// The concepts here, in the order of the package, and how many are new. Nobody files others in their contexts until the end of
/// the transaction.
async fn file(
    conn: &mut PgConnection,
    repository: RepositoryId,
    import: &Import,
    no: i64,
) -> Result<(Vec<ConceptId>, i64)> {
    if import.concepts.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let labels: Vec<String> = import.concepts.iter().map(|concept| concept.context.clone()).collect();
    // In a statement of its own, so that the next one sees what was filed by whom we waited for.
    let contexts = sqlx::query!(
        "SELECT no, label, merging_into FROM okt_repository.contexts
          WHERE repository_id = $1
            AND no IN (SELECT unnest(ARRAY[c.no, c.merging_into]) FROM okt_repository.contexts c
                        WHERE c.repository_id = $1
                          AND lower(c.label) = ANY (SELECT lower(l) FROM unnest($2::text[]) AS l))
          ORDER BY no FOR NO KEY UPDATE",
        repository.uuid(),
        &labels,
    );
    let contexts: HashMap<String, i64> = (contexts.fetch_all(&mut *conn).await?.into_iter())
        .map(|row| (name_key(&row.label), row.merging_into.unwrap_or(row.no)))
        .collect();
    let context_of = |label: &str| contexts.get(&name_key(label)).copied();
    // The name first, and then the aliases: under one of these it may be known here.
    let mut names: Vec<(&str, &str)> =
        import.concepts.iter().map(|concept| (concept.name.as_str(), concept.context.as_str())).collect();
    let own: BTreeSet<(String, String)> =
        names.iter().map(|(name, context)| (name_key(name), name_key(context))).collect();
    let mut alias_of = Vec::new();
    for (at, concept) in import.concepts.iter().enumerate() {
        for alias in &concept.aliases {
            // The name of another concept of the package is no way to this one.
            if !own.contains(&(name_key(alias), name_key(&concept.context))) {
                names.push((alias, &concept.context));
                alias_of.push(at);
            }
        }
    }
    let found = concepts::find(conn, repository, &names).await?;
    let mut known: Vec<Option<ConceptId>> = found[..import.concepts.len()].to_vec();
    for (at, found) in alias_of.into_iter().zip(&found[import.concepts.len()..]) {
        known[at] = known[at].or(*found);
    }
    let mut new: BTreeMap<(String, i64), &ImportedConcept> = BTreeMap::new();
    let mut keys = Vec::new();
    for (concept, known) in import.concepts.iter().zip(&known) {
        let context = context_of(&concept.context)
            .ok_or(Error::Overloaded("a context was changed while a package was imported"))?;
        let key = (name_key(&concept.name), context);
        if known.is_none() {
            new.entry(key.clone()).or_insert(concept);
        }
        keys.push(key);
    }
    let made =
        if new.is_empty() { BTreeMap::new() } else { insert(conn, repository, (import, no), &new).await? };
    let ids = known.into_iter().zip(&keys).map(|(known, key)| known.or_else(|| made.get(key).copied()));
    let ids: Option<Vec<ConceptId>> = ids.collect();
    let ids = ids.ok_or(Error::Overloaded("a concept was changed while a package was imported"))?;
    Ok((ids, i64::try_from(made.len()).map_err(Error::internal)?))
}

async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    (import, no): (&Import, i64),
    new: &BTreeMap<(String, i64), &ImportedConcept>,
) -> Result<BTreeMap<(String, i64), ConceptId>> {
    let ids: Vec<Uuid> = new.values().map(|concept| concept.id).collect();
    let spare: Vec<Uuid> = new.keys().map(|_| ConceptId::mint().uuid()).collect();
    let names: Vec<String> = new.values().map(|concept| concept.name.clone()).collect();
    let (keys, contexts): (Vec<String>, Vec<i64>) = new.keys().cloned().unzip();
    let labels: Vec<Option<String>> = new.values().map(|concept| concept.unmapped_label.clone()).collect();
    let vectors: Vec<Option<Uuid>> = new.values().map(|concept| concept.vector).collect();
    let mut words = (Vec::new(), Vec::new(), Vec::new());
    for (key, context) in new.keys() {
        for word in word_keys(key) {
            words.0.push(word);
            words.1.push(key.clone());
            words.2.push(*context);
        }
    }
    let rows = sqlx::query_file!(
        "src/sql/insert_imported_concepts.sql",
        repository.uuid(),
        &ids,
        &spare,
        &names,
        &keys,
        &contexts,
        &labels as &[Option<String>],
        &vectors as &[Option<Uuid>],
        import.space,
        &words.0,
        &words.1,
        &words.2,
        no,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| ((row.name_key, row.context_no), row.id.into())).collect())
}

/// A fact that was here before, and the one that it is a duplicate of.
struct Held {
    no: i64,
    id: FactId,
    canonical: Option<i64>,
}

/// Holds those that are here, in the order of everybody, until the end of the transaction.
async fn hold(
    conn: &mut PgConnection,
    repository: RepositoryId,
    import: &Import,
) -> Result<HashMap<ContentHash, Held>> {
    let hashes: Vec<Vec<u8>> = import.facts.iter().map(|fact| fact.hash.0.to_vec()).collect();
    let rows = sqlx::query!(
        "SELECT f.no, f.id, f.content_hash, f.merged_into FROM okt_repository.facts f
          WHERE f.repository_id = $1
            AND f.no IN (SELECT unnest(ARRAY[o.no, o.merged_into]) FROM unnest($2::bytea[]) AS n (hash)
                           JOIN okt_repository.facts o ON o.repository_id = $1 AND o.content_hash = n.hash)
          ORDER BY f.content_hash
            FOR UPDATE OF f",
        repository.uuid(),
        &hashes,
    );
    let rows = rows.fetch_all(&mut *conn).await?;
    let there: BTreeSet<i64> = rows.iter().map(|row| row.no).collect();
    if rows.iter().filter_map(|row| row.merged_into).any(|canonical| !there.contains(&canonical)) {
        return Err(Error::Overloaded("the same facts are just being merged").into());
    }
    let wanted: BTreeSet<&[u8]> = hashes.iter().map(Vec::as_slice).collect();
    let mut held = HashMap::new();
    for row in rows {
        if wanted.contains(row.content_hash.as_slice()) {
            held.insert(
                hash(&row.content_hash)?,
                Held { no: row.no, id: row.id.into(), canonical: row.merged_into },
            );
        }
    }
    Ok(held)
}

/// Adds the others, and links all of them to the source: their numbers and ids.
async fn add(
    conn: &mut PgConnection,
    repository: RepositoryId,
    (source, no): (i64, i64),
    import: &Import,
    held: &HashMap<ContentHash, Held>,
) -> Result<HashMap<ContentHash, (i64, FactId)>> {
    if import.facts.is_empty() {
        return Ok(HashMap::new());
    }
    let facts = &import.facts;
    let ids: Vec<Uuid> = facts.iter().map(|fact| fact.id).collect();
    let spare: Vec<Uuid> = facts.iter().map(|_| FactId::mint().uuid()).collect();
    let texts: Vec<String> = facts.iter().map(|fact| fact.text.clone()).collect();
    let hashes: Vec<Vec<u8>> = facts.iter().map(|fact| fact.hash.0.to_vec()).collect();
    let kinds: Vec<String> = facts.iter().map(|fact| fact.kind.as_str().to_owned()).collect();
    let numbers: Vec<Option<i64>> =
        facts.iter().map(|fact| held.get(&fact.hash).map(|held| held.no)).collect();
    let sentences: Vec<String> = facts.iter().map(|fact| array(&fact.sentences)).collect();
    // No fact of a group was the source's before, so each counts one source more, and so does the group.
    let counted: BTreeSet<i64> =
        held.values().flat_map(|held| [Some(held.no), held.canonical]).flatten().collect();
    let counted: Vec<i64> = counted.into_iter().collect();
    let rows = sqlx::query_file!(
        "src/sql/insert_imported_facts.sql",
        repository.uuid(),
        &ids,
        &spare,
        &texts,
        &hashes,
        &kinds,
        &numbers as &[Option<i64>],
        &sentences,
        import.status.as_str(),
        import.extraction.model,
        import.promptset.map(|hash| hash.0.to_vec()),
        source,
        import.reader,
        &counted,
        no,
    );
    let mut added = HashMap::new();
    for row in rows.fetch_all(&mut *conn).await? {
        let hash = hash(&row.hash)?;
        let id = row.id.map(FactId::from).or_else(|| held.get(&hash).map(|held| held.id));
        // Somebody else has just made it.
        let (Some(fact), Some(id)) = (row.no, id) else {
            return Err(Error::Overloaded("the same facts are just being added").into());
        };
        added.insert(hash, (fact, id));
    }
    Ok(added)
}

/// Gives the concepts their other names.
async fn name(
    conn: &mut PgConnection,
    repository: RepositoryId,
    import: &Import,
    concepts: &[ConceptId],
) -> Result<()> {
    let own: BTreeSet<(String, String)> =
        import.concepts.iter().map(|concept| (name_key(&concept.name), name_key(&concept.context))).collect();
    let mut rows = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (concept, id) in import.concepts.iter().zip(concepts) {
        for alias in &concept.aliases {
            let key = name_key(alias);
            if !key.is_empty() && !own.contains(&(key.clone(), name_key(&concept.context))) {
                rows.0.push(id.uuid());
                rows.1.push(key);
                rows.2.push(alias.clone());
                rows.3.push(AliasBy::Model.as_str().to_owned());
            }
        }
    }
    if rows.0.is_empty() {
        return Ok(());
    }
    // A person who just takes a name away holds the concept. In a statement of its own, so that the next one sees what they did.
    let hold = sqlx::query!(
        "SELECT no FROM okt_repository.concepts WHERE repository_id = $1 AND id = ANY ($2) ORDER BY no FOR KEY SHARE",
        repository.uuid(),
        &rows.0 as &[Uuid],
    );
    hold.fetch_all(&mut *conn).await?;
    sqlx::query_file_scalar!(
        "src/sql/insert_aliases.sql",
        repository.uuid(),
        &rows.0 as &[Uuid],
        &rows.1,
        &rows.2,
        &rows.3,
    )
    .fetch_one(conn)
    .await?;
    Ok(())
}

/// Adds the slices, whose citations name the facts as they are called here; how many.
async fn summarize(
    conn: &mut PgConnection,
    repository: RepositoryId,
    (import, no): (&Import, i64),
    concepts: &[ConceptId],
    facts: &HashMap<ContentHash, (i64, FactId)>,
) -> Result<i64> {
    if import.summaries.is_empty() {
        return Ok(0);
    }
    let here: HashMap<Uuid, FactId> =
        (import.facts.iter()).filter_map(|fact| Some((fact.id, facts.get(&fact.hash)?.1))).collect();
    let ids: Vec<Uuid> = import.summaries.iter().map(|_| SummaryId::mint().uuid()).collect();
    let of: Vec<Uuid> = import.summaries.iter().map(|summary| concepts[summary.concept].uuid()).collect();
    let named = |id| here.get(&id).map_or(Cited::Lost, |fact| Cited::As(fact.to_string()));
    let contents: Vec<String> =
        import.summaries.iter().map(|summary| rewrite_facts(&summary.content, named)).collect();
    let (mut places, mut covered) = (Vec::new(), Vec::new());
    for (at, summary) in (1_i64..).zip(&import.summaries) {
        for fact in summary.facts.iter().filter_map(|id| here.get(id)) {
            places.push(at);
            covered.push(fact.uuid());
        }
    }
    let added = sqlx::query_file_scalar!(
        "src/sql/insert_imported_summaries.sql",
        repository.uuid(),
        &ids,
        &of,
        &contents,
        &places,
        &covered,
        import.extraction.model,
        import.promptset.map(|hash| hash.0.to_vec()),
        no,
    );
    Ok(added.fetch_one(conn).await?)
}

/// As PostgreSQL writes it.
fn array(numbers: &[i32]) -> String {
    format!("{{{}}}", numbers.iter().map(i32::to_string).collect::<Vec<_>>().join(","))
}
