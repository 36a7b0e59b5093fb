//! What was read out of sources: whole, by parts, piece by piece, and sentence by sentence.

use okt_auth::RepoScope;
use okt_auth::permissions::SourceRead;
use okt_extract::Text;
use okt_model::{
    Error, ImportOrigin, PartialText, Passage, Result, Source, SourceId, SourceImage, TextFile, TextParts,
};
use okt_store::facts::Resting;
use okt_store::{facts, imports, source_images, source_marks, source_texts, sources};

use crate::App;

/// A source with what was asked for of it.
pub struct SeenSource {
    pub source: Source,
    /// None until it has been read.
    pub text: Option<PartialText>,
    pub images: Vec<SourceImage>,
    /// Where it came from, if it was not read here.
    pub origin: Option<ImportOrigin>,
}

/// A sentence of a source.
pub struct Sentence {
    pub index: usize,
    pub start: i32,
    pub end: i32,
    pub text: String,
    /// For PDFs.
    pub page: Option<u32>,
    /// What rests on it.
    pub facts: Vec<Resting>,
}

impl App {
    /// A source with these parts of its text. `admit` is asked before they are read, with about how many bytes they are.
    pub async fn find_source<R, E: From<Error> + From<okt_store::Error>>(
        &self,
        scope: &RepoScope<SourceRead>,
        id: SourceId,
        parts: TextParts,
        admit: impl FnOnce(usize) -> Result<R, E> + Send,
    ) -> Result<(SeenSource, R), E> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let mut source = sources::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("source"))?;
        // Its row counts what it says, in how many words ever.
        source.fact_count = facts::count_listed(&mut tx, repository, id).await?;
        source.mark = source_marks::get(&mut tx, repository, &[id]).await?.remove(&id);
        let bytes = if parts == TextParts::NONE {
            0
        } else {
            source_texts::weigh(&mut tx, repository, id, parts).await?.unwrap_or(0)
        };
        let admitted = match admit(bytes) {
            Ok(admitted) => admitted,
            Err(refused) => {
                tx.commit().await?;
                return Err(refused);
            }
        };
        let text = source_texts::find_parts(&mut tx, repository, id, parts).await?;
        let images = source_images::list(&mut tx, repository, id).await?;
        let origin = imports::find_of_source(&mut tx, repository, id).await?;
        tx.commit().await?;
        Ok((SeenSource { source, text, images, origin }, admitted))
    }

    /// The text of a source, or its Markdown, to be read by [`Self::read_text`].
    pub async fn find_text(
        &self,
        scope: &RepoScope<SourceRead>,
        id: SourceId,
        markdown: bool,
    ) -> Result<TextFile> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        sources::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("source"))?;
        let found = source_texts::find_file(&mut tx, repository, id, markdown).await?;
        tx.commit().await?;
        found.ok_or(Error::NotFound("text of the source"))
    }

    /// A piece of a text. No connection is held until the next one.
    pub async fn read_text(
        &self,
        scope: &RepoScope<SourceRead>,
        id: SourceId,
        file: &TextFile,
        from: u64,
        bytes: u32,
    ) -> Result<Vec<u8>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let piece = source_texts::read_piece(&mut tx, repository, id, file, from, bytes).await?;
        tx.commit().await?;
        // The rest of another text would not fit.
        piece
            .filter(|piece| !piece.is_empty())
            .ok_or(Error::Conflict("the text was changed while it was read"))
    }

    /// The sentences of a source from this one on: all, those that some fact rests on, or those that none does.
    pub async fn list_sentences(
        &self,
        scope: &RepoScope<SourceRead>,
        id: SourceId,
        cited: Option<bool>,
        from: usize,
        limit: usize,
    ) -> Result<Vec<Sentence>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        sources::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("source"))?;
        let all = from..source_texts::count_sentences(&mut tx, repository, id).await?;
        let wanted: Vec<usize> = match cited {
            None => all.take(limit).collect(),
            Some(cited) => {
                let rested_on = facts::list_cited(&mut tx, repository, id).await?;
                let is = |index: &usize| i32::try_from(*index).is_ok_and(|index| rested_on.contains(&index));
                all.filter(|index| is(index) == cited).take(limit).collect()
            }
        };
        let (Some(&first), Some(&last)) = (wanted.first(), wanted.last()) else {
            tx.commit().await?;
            return Ok(Vec::new());
        };
        let passage = source_texts::find_passage(&mut tx, repository, id, first, last).await?;
        let indexes: Vec<i32> = wanted.iter().filter_map(|index| i32::try_from(*index).ok()).collect();
        let resting = facts::list_resting(&mut tx, repository, id, &indexes).await?;
        tx.commit().await?;
        Ok(sentences_of(&passage, first, &wanted, &resting))
    }
}

/// Those that are wanted of a passage that begins with the sentence of this number.
pub(crate) fn sentences_of(
    passage: &Passage,
    first: usize,
    wanted: &[usize],
    resting: &[Resting],
) -> Vec<Sentence> {
    let begins = passage.sentences.first().map_or(0, |(start, _)| *start);
    let here: Vec<_> = passage.sentences.iter().map(|(start, end)| (start - begins, end - begins)).collect();
    let cut = Text::new(&passage.text, &here);
    let found = wanted.iter().filter_map(|&index| {
        let at = index.checked_sub(first)?;
        let (start, end) = passage.sentences.get(at).copied()?;
        let rests =
            |fact: &&Resting| fact.sentences.iter().any(|sentence| usize::try_from(*sentence) == Ok(index));
        Some(Sentence {
            index,
            start,
            end,
            text: cut.sentence(at).to_owned(),
            page: passage.pages.get(at).copied().flatten().and_then(|page| u32::try_from(page).ok()),
            facts: resting.iter().filter(rests).cloned().collect(),
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_cut_by_code_points_of_the_whole_text() {
        // Of "蜂蜂。Bienen fliegen. Öfter 🐝. 蜂。", without its first sentence.
        let passage = Passage {
            text: "Bienen fliegen. Öfter 🐝. 蜂。".to_owned(),
            sentences: vec![(3, 18), (19, 27), (28, 30)],
            pages: vec![Some(1), Some(2), None],
        };
        let all = sentences_of(&passage, 1, &[1, 2, 3], &[]);
        let texts: Vec<_> = all.iter().map(|sentence| (&*sentence.text, sentence.page)).collect();
        assert_eq!(texts, [("Bienen fliegen.", Some(1)), ("Öfter 🐝.", Some(2)), ("蜂。", None)]);
        assert_eq!((all[1].index, all[1].start, all[1].end), (2, 19, 27));
        assert_eq!(sentences_of(&passage, 1, &[2], &[])[0].text, "Öfter 🐝.");
        assert!(sentences_of(&passage, 1, &[0, 7], &[]).is_empty());
    }
}
