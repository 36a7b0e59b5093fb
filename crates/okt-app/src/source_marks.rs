//! Marks of sources: what was retracted or superseded, as people and lists say.

use std::collections::{BTreeMap, BTreeSet};

use okt_auth::RepoScope;
use okt_auth::permissions::SourceUpdate;
use okt_model::{Error, Locator, MarkKind, MarkOrigin, Result, SourceId, SourceMark};
use okt_parse::retractions::{BadRow, Nature, Notice, Reader};
use okt_store::source_marks::{self, DoiMatch, NewMark};
use okt_store::{counters, sources};

use crate::curation::checked_reason;
use crate::sources::COUNTER;
use crate::{App, Origin};

/// DOIs that are looked up together, and marks that are written together.
const BATCH: usize = 1_000;
/// Sources that the result of a list shows; the others are counted.
const SHOWN: usize = 1_000;
/// Characters of a reason that are kept.
const REASON: usize = 500;

/// A list of retracted papers that is being read.
#[derive(Default)]
pub struct MarkImport {
    reader: Reader,
    /// Rows whose DOIs are to be looked up.
    waiting: Vec<(String, Notice)>,
    /// Sources that the list speaks of, by their numbers.
    found: BTreeMap<i64, Found>,
    skipped: BTreeMap<&'static str, u64>,
}

/// What a list says of a source.
struct Found {
    source: DoiMatch,
    /// The latest one, and when.
    retraction: Option<(Option<String>, Option<String>)>,
    /// The last time.
    reinstated: Option<Reinstated>,
}

/// That a paper holds again.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Reinstated {
    /// Since when, if the list says so.
    date: Option<String>,
}

/// What became of a list.
pub struct ImportedMarks {
    pub rows: u64,
    /// Sources that the list says were retracted.
    pub matched: u64,
    pub marked: u64,
    pub already_marked: u64,
    /// Rows, and sources that were matched, that led to no mark, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Those that were marked, or would be.
    pub shown: Vec<MarkedSource>,
}

pub struct MarkedSource {
    pub id: SourceId,
    pub doi: String,
    pub title: Option<String>,
    pub reason: Option<String>,
}

impl App {
    /// Marks a source as retracted or superseded; the mark as it is now.
    pub async fn mark_source(
        &self,
        origin: &Origin,
        scope: &RepoScope<SourceUpdate>,
        id: SourceId,
        (kind, by): (MarkKind, Option<SourceId>),
        reason: Option<&str>,
    ) -> Result<SourceMark> {
        let (repository, reason) = (scope.repository(), checked_reason(reason)?);
        if by.is_some() && kind != MarkKind::Superseded {
            return Err(Error::invalid("by", "may be given with kind superseded only"));
        }
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        // First of all, as whoever adds or deletes a source does: two marks at once could make a circle.
        counters::add(&mut tx, repository, COUNTER, 0).await?;
        sources::hold(&mut tx, repository, id).await?.ok_or(Error::NotFound("source"))?;
        if let Some(by) = by {
            if sources::list_there(&mut tx, repository, &[by]).await?.is_empty() {
                return Err(Error::invalid("by", "no source has this id"));
            }
            if by == id || source_marks::is_superseded_by(&mut tx, repository, by, id).await? {
                return Err(Error::Conflict("a source can't supersede itself, directly or through others"));
            }
        }
        let mark = NewMark { kind, by, reason, person: scope.caller().user() };
        let changed = source_marks::set(&mut tx, repository, id, mark).await?;
        let mut marks = source_marks::get(&mut tx, repository, &[id]).await?;
        let mark = marks.remove(&id).ok_or_else(|| Error::internal("a mark that was set is not there"))?;
        if changed {
            self.ask_for_reports(&mut tx, scope).await?;
            self.commit_recorded(tx, origin, scope, "source.marked", &id.to_string()).await?;
        }
        Ok(mark)
    }

    /// Removes the mark of a source. Lists and providers don't set it again.
    pub async fn unmark_source(
        &self,
        origin: &Origin,
        scope: &RepoScope<SourceUpdate>,
        id: SourceId,
    ) -> Result<()> {
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        counters::add(&mut tx, repository, COUNTER, 0).await?;
        sources::hold(&mut tx, repository, id).await?.ok_or(Error::NotFound("source"))?;
        if !source_marks::remove(&mut tx, repository, id, scope.caller().user()).await? {
            return Err(Error::NotFound("mark"));
        }
        self.ask_for_reports(&mut tx, scope).await?;
        self.commit_recorded(tx, origin, scope, "source.mark_removed", &id.to_string()).await
    }

    /// Reads a piece of a list. No connection is held until the next one.
    pub async fn read_marks(
        &self,
        scope: &RepoScope<SourceUpdate>,
        import: &mut MarkImport,
        piece: &[u8],
    ) -> Result<()> {
        let mut rows = Vec::new();
        import.reader.read(piece, &mut rows).map_err(|error| Error::invalid("file", error.to_string()))?;
        self.take_rows(scope, import, rows).await
    }

    async fn take_rows(
        &self,
        scope: &RepoScope<SourceUpdate>,
        import: &mut MarkImport,
        rows: Vec<Result<Notice, BadRow>>,
    ) -> Result<()> {
        for row in rows {
            import.take(row);
            if import.waiting.len() >= BATCH {
                self.look_up(scope, import).await?;
            }
        }
        Ok(())
    }

    async fn look_up(&self, scope: &RepoScope<SourceUpdate>, import: &mut MarkImport) -> Result<()> {
        let rows = std::mem::take(&mut import.waiting);
        let dois: BTreeSet<&String> = rows.iter().map(|(doi, _)| doi).collect();
        let dois: Vec<String> = dois.into_iter().cloned().collect();
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let matches = source_marks::match_dois(&mut tx, scope.repository(), &dois).await?;
        tx.commit().await?;
        let mut of_doi: BTreeMap<&str, Vec<&DoiMatch>> = BTreeMap::new();
        for found in &matches {
            of_doi.entry(&found.doi).or_default().push(found);
        }
        for (doi, notice) in rows {
            import.compare(&notice, of_doi.get(&*doi).map_or(&[][..], Vec::as_slice));
        }
        Ok(())
    }

    /// After the last piece: marks what the list says was retracted, or only says what would be marked.
    pub async fn finish_marks(
        &self,
        origin: &Origin,
        scope: &RepoScope<SourceUpdate>,
        mut import: MarkImport,
        dry_run: bool,
    ) -> Result<ImportedMarks> {
        let mut rows = Vec::new();
        import.reader.finish(&mut rows).map_err(|error| Error::invalid("file", error.to_string()))?;
        self.take_rows(scope, &mut import, rows).await?;
        self.look_up(scope, &mut import).await?;
        let (mut imported, mut new) = import.sorted_out();
        if !dry_run && !new.is_empty() {
            let repository = scope.repository();
            let (list, person) = (MarkOrigin::List, Some(scope.caller().user()));
            let mut tx = self.databases().begin(scope.database(), repository).await?;
            let mut marked = BTreeSet::new();
            let rows: Vec<_> = new.iter().map(|(no, source)| (*no, source.reason.clone())).collect();
            for batch in rows.chunks(BATCH) {
                marked
                    .extend(source_marks::insert_retracted(&mut tx, repository, batch, list, person).await?);
            }
            if !marked.is_empty() {
                let object = format!("{} sources", marked.len());
                self.ask_for_reports(&mut tx, scope).await?;
                self.commit_recorded(tx, origin, scope, "source.marks_imported", &object).await?;
            }
            // Some may have been marked, or deleted, since they were looked at.
            new.retain(|(no, _)| marked.contains(no));
            let raced = rows.len() - new.len();
            imported.already_marked += u64::try_from(raced).unwrap_or(0);
        }
        imported.marked = u64::try_from(new.len()).unwrap_or(u64::MAX);
        imported.shown = new.into_iter().map(|(_, source)| source).take(SHOWN).collect();
        Ok(imported)
    }
}

impl MarkImport {
    fn skip(&mut self, reason: &'static str) {
        *self.skipped.entry(reason).or_default() += 1;
    }

    fn take(&mut self, row: Result<Notice, BadRow>) {
        let Ok(notice) = row else { return self.skip("bad_row") };
        match notice.nature {
            Nature::Retraction => {}
            Nature::Reinstatement => self.skip("reinstatement"),
            Nature::ExpressionOfConcern => return self.skip("expression_of_concern"),
            Nature::Correction => return self.skip("correction"),
            Nature::Other => return self.skip("other_nature"),
        }
        // As the DOIs of sources are written.
        match Locator::parse(&notice.doi).ok().and_then(|locator| locator.doi) {
            Some(doi) => self.waiting.push((doi, notice)),
            None if notice.nature == Nature::Retraction => self.skip("no_doi"),
            None => {}
        }
    }

    /// What a row says of the sources that have its DOI.
    fn compare(&mut self, notice: &Notice, matches: &[&DoiMatch]) {
        let retraction = notice.nature == Nature::Retraction;
        if matches.is_empty() && retraction {
            return self.skip("not_in_repository");
        }
        let mut again = false;
        for source in matches {
            let found = self.found.entry(source.no).or_insert_with(|| Found {
                source: (*source).clone(),
                retraction: None,
                reinstated: None,
            });
            let date = notice.date.clone();
            if !retraction {
                found.reinstated = found.reinstated.take().max(Some(Reinstated { date }));
                continue;
            }
            again |= found.retraction.is_some();
            if found.retraction.as_ref().is_none_or(|(before, _)| *before < date) {
                found.retraction = Some((date, reason(notice)));
            }
        }
        if again {
            self.skip("duplicate");
        }
    }

    /// What of it is to be marked, and the counts of the rest.
    fn sorted_out(mut self) -> (ImportedMarks, Vec<(i64, MarkedSource)>) {
        let (mut matched, mut already_marked, mut new) = (0, 0, Vec::new());
        for (no, Found { source, retraction, reinstated }) in std::mem::take(&mut self.found) {
            let Some((date, reason)) = retraction else { continue };
            matched += 1;
            // Where a date is missing nobody knows which came later; a paper that somebody stands by is not called retracted.
            let taken_back =
                reinstated.is_some_and(|then| then.date.is_none() || date.is_none() || then.date >= date);
            if source.kind == Some(MarkKind::Retracted) {
                already_marked += 1;
            } else if taken_back {
                self.skip("reinstated");
            } else if source.decided {
                self.skip("decided_by_person");
            } else {
                let DoiMatch { id, doi, title, .. } = source;
                new.push((no, MarkedSource { id, doi, title, reason }));
            }
        }
        let rows = self.reader.rows();
        let (marked, shown) = (0, Vec::new());
        (ImportedMarks { rows, matched, marked, already_marked, skipped: self.skipped, shown }, new)
    }
}

/// What a row gives as the reason, with the notice: `Concerns about data; duplication of image (2019-05-03, 10.1000/182)`.
fn reason(notice: &Notice) -> Option<String> {
    let parts = notice.reason.as_deref().unwrap_or_default().split(';');
    let parts = parts.map(|part| part.trim().trim_start_matches('+').trim()).filter(|part| !part.is_empty());
    let reasons: String = parts.collect::<Vec<_>>().join("; ").chars().take(REASON).collect();
    let doi = notice.notice_doi.as_ref().and_then(|doi| Locator::parse(doi).ok()?.doi);
    // One that is longer than any that was registered tells nothing.
    let doi = doi.filter(|doi| doi.chars().count() <= 200);
    let of: Vec<String> = [notice.date.clone(), doi].into_iter().flatten().collect();
    match (reasons.is_empty(), of.is_empty()) {
        (true, true) => None,
        (true, false) => Some(of.join(", ")),
        (false, true) => Some(reasons),
        (false, false) => Some(format!("{reasons} ({})", of.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(nature: Nature, date: Option<&str>) -> Notice {
        Notice {
            doi: "https://doi.org/10.1000/ABC".to_owned(),
            nature,
            date: date.map(str::to_owned),
            notice_doi: Some("unavailable".to_owned()),
            reason: Some("+Concerns/Issues About Data;+Duplication of Image;".to_owned()),
        }
    }

    fn source(kind: Option<MarkKind>, decided: bool) -> DoiMatch {
        let (id, doi) = (SourceId::mint(), "10.1000/abc".to_owned());
        DoiMatch { doi, id, no: 1, title: None, kind, decided }
    }

    #[test]
    fn a_paper_that_was_reinstated_is_not_marked() {
        use Nature::{Reinstatement, Retraction};
        let mut cases = vec![
            (vec![(Retraction, Some("2010-01-01"))], true),
            (vec![(Reinstatement, Some("2012-01-01"))], false),
            (vec![(Retraction, Some("2010-01-01")), (Reinstatement, Some("2012-01-01"))], false),
            (vec![(Retraction, Some("2013-01-01")), (Reinstatement, Some("2012-01-01"))], true),
            (vec![(Retraction, None), (Reinstatement, Some("2012-01-01"))], false),
            (vec![(Retraction, Some("2010-01-01")), (Reinstatement, None)], false),
        ];
        let turned: Vec<_> =
            cases.iter().map(|(rows, marked)| (rows.iter().rev().copied().collect(), *marked)).collect();
        cases.extend(turned);
        for (rows, marked) in cases {
            let mut import = MarkImport::default();
            for (nature, date) in &rows {
                import.compare(&notice(*nature, *date), &[&source(None, false)]);
            }
            assert_eq!(import.sorted_out().1.len(), usize::from(marked), "{rows:?}");
        }
    }

    #[test]
    fn what_a_person_has_decided_stays() {
        for (kind, decided, already, skipped) in [
            (Some(MarkKind::Retracted), true, 1, 0),
            (Some(MarkKind::Retracted), false, 1, 0),
            (Some(MarkKind::Superseded), true, 0, 1),
            (None, true, 0, 1),
        ] {
            let mut import = MarkImport::default();
            import.compare(&notice(Nature::Retraction, None), &[&source(kind, decided)]);
            let (imported, new) = import.sorted_out();
            assert!(new.is_empty());
            let person = imported.skipped.get("decided_by_person").copied().unwrap_or(0);
            assert_eq!((imported.matched, imported.already_marked, person), (1, already, skipped));
        }
    }

    #[test]
    fn a_reason_is_what_the_list_says() {
        let mut said = notice(Nature::Retraction, Some("2019-05-03"));
        let reasons = "Concerns/Issues About Data; Duplication of Image";
        assert_eq!(reason(&said), Some(format!("{reasons} (2019-05-03)")));
        said.notice_doi = Some("10.1000/NOTICE".to_owned());
        assert_eq!(reason(&said), Some(format!("{reasons} (2019-05-03, 10.1000/notice)")));
        said.reason = Some("x".repeat(5_000));
        assert!(reason(&said).unwrap().chars().count() <= 1_000);
        assert_eq!(reason(&Notice { reason: None, notice_doi: None, date: None, ..said }), None);
    }
}
