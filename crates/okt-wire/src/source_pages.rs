//! Single pages of PDFs.

use okt_app::{PageText, PlacedSentence};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::source_views::PageView;

/// A page of a PDF with the sentences that stand on it.
#[derive(Serialize, ToSchema)]
#[schema(as = SourcePageText)]
pub struct PageTextView {
    #[serde(flatten)]
    pub page: PageView,
    /// In the order of the text. A sentence that runs over two pages is on both.
    pub sentences: Vec<PlacedSentenceView>,
}

/// A sentence, and where it stands on the page.
#[derive(Serialize, ToSchema)]
#[schema(as = PlacedSentence)]
pub struct PlacedSentenceView {
    /// Its number in the source, from 0.
    #[schema(example = 4)]
    pub index: usize,
    #[schema(example = "Honey bees tell each other where food is by a dance on the comb.")]
    pub text: String,
    /// Left, bottom, right and top of each line, in PDF points from the lower left corner of the page as displayed.
    #[schema(example = json!([[72.0, 700.5, 523.2, 712.4]]))]
    pub boxes: Vec<[f32; 4]>,
    /// The facts that it supports, also those that were merged into others.
    pub fact_ids: Vec<Uuid>,
}

impl From<PageText> for PageTextView {
    fn from(text: PageText) -> Self {
        Self {
            page: PageView::new(text.page, &text.images),
            sentences: text.sentences.into_iter().map(PlacedSentenceView::from).collect(),
        }
    }
}

impl From<PlacedSentence> for PlacedSentenceView {
    fn from(sentence: PlacedSentence) -> Self {
        Self {
            index: sentence.index,
            text: sentence.text,
            boxes: sentence.boxes,
            fact_ids: sentence.facts.into_iter().map(okt_model::FactId::uuid).collect(),
        }
    }
}
