//! Types of repository to choose from.

use axum::extract::State;
use okt_config::{Contexts, Preset};
use okt_http::Page;
use okt_wire::presets::{ContextsView, CustomContext, PresetProviders, PresetView};

use crate::Api;

/// The types of repository that can be chosen at creation.
#[utoipa::path(get, path = "/api/v1/repositories/presets", tag = "Repositories",
    operation_id = "listPresets",
    responses((status = 200, body = Page<PresetView>, description = "All of them, on one page")))]
pub async fn list(State(api): State<Api>) -> Page<PresetView> {
    let config = api.app.config();
    let view = |(id, preset): (&String, &Preset)| PresetView {
        id: id.clone(),
        label: preset.label.clone(),
        description: preset.description.clone(),
        providers: PresetProviders {
            search: preset.providers.search.iter().map(|provider| provider.as_str()).collect(),
            resolution: preset.providers.resolution.iter().map(|provider| provider.as_str()).collect(),
        },
        contexts: match &preset.contexts {
            Contexts::All => ContextsView::All("all"),
            Contexts::Labels(labels) => ContextsView::Labels(labels.clone()),
        },
        custom_contexts: preset
            .custom_contexts
            .iter()
            .map(|context| CustomContext {
                label: context.label.clone(),
                description: context.description.clone(),
            })
            .collect(),
        default: *id == config.default_repository_preset,
    };
    Page::whole(config.repository_presets.iter().map(view).collect())
}
