//! A report with what its claims rest on, to be written in the formats of other programs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use okt_auth::RepoScope;
use okt_auth::permissions::ReportRead;
use okt_model::{Annotation, Posture, Report, ReportId, ReportSentence, Result, Source, SourceFilter};
use okt_store::{report_annotations, reports as rows, search_hits, sources};

use crate::{App, exports, reports};

/// Sentences that are read at once, and facts and sources that are.
const SENTENCES: i64 = 500;
const SOURCES: usize = 500;

/// A report, its claims in their order with the facts that support or contradict each, and the sources of these.
pub struct ReportExport {
    pub report: Report,
    pub body: String,
    pub claims: Vec<(ReportSentence, Vec<Annotation>)>,
    /// The sources of a fact, by their numbers.
    pub sources_of: HashMap<i64, Vec<i64>>,
    /// By their numbers, in the order in which the claims need them.
    pub sources: Vec<(i64, Source)>,
}

impl App {
    /// All of a report at once: it is as long as somebody could write it.
    pub async fn export_report(&self, scope: &RepoScope<ReportRead>, id: ReportId) -> Result<ReportExport> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_export(scope.database(), repository).await?;
        let report = reports::get(&mut tx, scope, id).await?;
        let body = rows::get_body(&mut tx, repository, report.no).await?;
        let (mut claims, mut sources_of, mut from) = (Vec::new(), HashMap::new(), 0);
        loop {
            let sentences = reports::sentences(&mut tx, scope, report.no, from, SENTENCES).await?;
            let Some(last) = sentences.last() else { break };
            from = last.place + 1;
            let said = report_annotations::list_of(&mut tx, repository, sentences.clone()).await?;
            let mut of: BTreeMap<i64, Vec<Annotation>> = BTreeMap::new();
            let counts =
                |one: &Annotation| matches!(one.posture, Some(Posture::Supports | Posture::Contradicts));
            for one in said.into_iter().filter(counts) {
                of.entry(one.sentence.no).or_default().push(one);
            }
            let facts: BTreeSet<i64> = of.values().flatten().map(|one| one.fact_no).collect();
            let facts: Vec<i64> = facts.into_iter().filter(|fact| !sources_of.contains_key(fact)).collect();
            for (fact, hit) in search_hits::get_facts(&mut tx, repository, &facts).await? {
                sources_of.insert(fact, hit.sources);
            }
            let of_claims = sentences.into_iter().filter(|sentence| sentence.is_claim);
            claims.extend(of_claims.map(|sentence| {
                let annotations = of.remove(&sentence.no).unwrap_or_default();
                (sentence, annotations)
            }));
        }
        let mut order: Vec<i64> = Vec::new();
        let mut seen = BTreeSet::new();
        for no in
            claims.iter().flat_map(|(_, said)| said).filter_map(|one| sources_of.get(&one.fact_no)).flatten()
        {
            if seen.insert(*no) {
                order.push(*no);
            }
        }
        let mut cited = Vec::new();
        for some in order.chunks(SOURCES) {
            let known = search_hits::get_sources(&mut tx, repository, some).await?;
            let numbers: HashMap<_, i64> = known.values().map(|source| (source.id, source.no)).collect();
            let filter = SourceFilter { among: Some(some.to_vec()), ..SourceFilter::default() };
            let limit = i64::try_from(some.len()).unwrap_or(i64::MAX);
            let mut found = sources::list(&mut tx, repository, &filter, false, None, limit).await?;
            exports::mark(&mut tx, repository, &mut found).await?;
            cited.extend(found.into_iter().filter_map(|source| Some((*numbers.get(&source.id)?, source))));
        }
        tx.commit().await?;
        let place: HashMap<i64, usize> = order.iter().enumerate().map(|(at, no)| (*no, at)).collect();
        cited.sort_by_key(|(no, _)| place.get(no).copied());
        Ok(ReportExport { report, body, claims, sources_of, sources: cited })
    }
}
