//! Single pages of PDFs: what a reader marks on them.

use std::collections::BTreeMap;

use okt_auth::RepoScope;
use okt_auth::permissions::SourceRead;
use okt_model::{Error, FactId, Result, SourceId, SourceImage, SourcePage, TextParts};
use okt_store::{facts, source_images, source_texts, sources};

use crate::App;
use crate::source_texts::{Sentence, sentences_of};

/// Numbers of a box in what is stored: its page, then its four sides.
const BOX: usize = 5;

/// A page with the sentences that stand on it.
pub struct PageText {
    pub page: SourcePage,
    pub images: Vec<SourceImage>,
    /// In the order of the text; a sentence that runs over two pages is on both.
    pub sentences: Vec<PlacedSentence>,
}

/// A sentence, and where it stands on one page.
pub struct PlacedSentence {
    pub index: usize,
    pub text: String,
    /// Left, bottom, right and top of each line, in points from the lower left corner of the page as displayed.
    pub boxes: Vec<[f32; 4]>,
    pub facts: Vec<FactId>,
}

impl App {
    /// A page of a source that is a PDF. `admit` is asked before the places of all its sentences are read, with about how
    /// many bytes they are.
    pub async fn find_source_page<R, E: From<Error> + From<okt_store::Error>>(
        &self,
        scope: &RepoScope<SourceRead>,
        id: SourceId,
        number: u32,
        admit: impl FnOnce(usize) -> Result<R, E> + Send,
    ) -> Result<(PageText, R), E> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        sources::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("source"))?;
        let parts = TextParts { boxes: true, ..TextParts::NONE };
        let bytes = source_texts::weigh(&mut tx, repository, id, parts).await?.unwrap_or(0);
        let admitted = match admit(bytes) {
            Ok(admitted) => admitted,
            Err(refused) => {
                tx.commit().await?;
                return Err(refused);
            }
        };
        let text = source_texts::find_parts(&mut tx, repository, id, parts).await?.unwrap_or_default();
        let found = text.pages.iter().find(|page| page.number == number).copied();
        let page = found.ok_or(Error::NotFound("page of the source"))?;
        let placed = placed_on(number, text.boxes.as_deref().unwrap_or("[]"))?;
        let sentences = match (placed.keys().next(), placed.keys().next_back()) {
            (Some(&first), Some(&last)) => {
                let passage = source_texts::find_passage(&mut tx, repository, id, first, last).await?;
                let wanted: Vec<usize> = placed.keys().copied().collect();
                let indexes: Vec<i32> =
                    wanted.iter().filter_map(|index| i32::try_from(*index).ok()).collect();
                let resting = facts::list_resting(&mut tx, repository, id, &indexes).await?;
                sentences_of(&passage, first, &wanted, &resting)
            }
            _ => Vec::new(),
        };
        let images = source_images::list(&mut tx, repository, id).await?;
        tx.commit().await?;
        Ok((PageText { page, images, sentences: with_places(sentences, placed) }, admitted))
    }
}

/// The boxes on this page, by the numbers of their sentences.
fn placed_on(number: u32, boxes: &str) -> Result<BTreeMap<usize, Vec<[f32; 4]>>> {
    let all: Vec<Vec<f32>> = serde_json::from_str(boxes).map_err(Error::internal)?;
    let here = |sentence: &Vec<f32>| -> Vec<[f32; 4]> {
        let boxes = sentence.chunks_exact(BOX);
        // Whole numbers, also where they were stored as `1.0`.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of pages")]
        let here = boxes.filter(|place| place[0].round() as u32 == number);
        here.map(|place| [place[1], place[2], place[3], place[4]]).collect()
    };
    let placed = all.iter().enumerate().map(|(index, sentence)| (index, here(sentence)));
    Ok(placed.filter(|(_, boxes)| !boxes.is_empty()).collect())
}

fn with_places(sentences: Vec<Sentence>, mut placed: BTreeMap<usize, Vec<[f32; 4]>>) -> Vec<PlacedSentence> {
    let placed = sentences.into_iter().map(|sentence| PlacedSentence {
        boxes: placed.remove(&sentence.index).unwrap_or_default(),
        index: sentence.index,
        text: sentence.text,
        facts: sentence.facts.into_iter().map(|fact| fact.id).collect(),
    });
    placed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_over_two_pages_is_on_both_with_the_boxes_of_each() {
        let boxes = "[[1, 10, 700, 90, 712], [1, 10, 680, 90, 692, 2.0, 10, 700, 50, 712], [], [2, 10, 660, 90, 672]]";
        let first = placed_on(1, boxes).unwrap();
        assert_eq!(
            first.into_iter().collect::<Vec<_>>(),
            [(0, vec![[10.0, 700.0, 90.0, 712.0]]), (1, vec![[10.0, 680.0, 90.0, 692.0]]),]
        );
        let second: Vec<_> = placed_on(2, boxes).unwrap().into_keys().collect();
        assert_eq!(second, [1, 3]);
        assert!(placed_on(3, boxes).unwrap().is_empty());
    }
}
