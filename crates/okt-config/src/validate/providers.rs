//! Providers and stages.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path as FilePath;

use okt_model::{CONCEPT_MODEL, EMBEDDING_DIMENSIONS, EMBEDDING_MODEL, EXTRACTIVE_MODEL, POSTURE_MODEL};
use url::Url;

use super::{Breaches, is_loopback, no_such};
use crate::secret::Secret;
use crate::sections::{
    ASK_CHECK, AiProvider, AuthMode, CONCEPT_EXTRACTION, Config, DedupPolicy, EMBEDDING, FACT_EXTRACTION,
    JUDGE, POSTURE, RERANK, Retry, StorageBackend, WebSearchKind,
};

pub(super) fn rules(config: &Config, is_file: &dyn Fn(&FilePath) -> bool, found: &mut Breaches) {
    let providers = &config.providers;

    if let Some(library) = providers.parsing.pdfium.as_deref().filter(|library| !is_file(library)) {
        found.at("providers.parsing.pdfium", format!("there is no file {}", library.display()));
    }

    if let Some(program) = providers.parsing.tesseract.as_deref().filter(|program| !is_file(program)) {
        found.at("providers.parsing.tesseract", format!("there is no file {}", program.display()));
    }

    if let Some(folder) = &providers.embedding.path {
        for name in ["config.json", "tokenizer.json", "model.safetensors"] {
            let file = folder.join(name);
            if !is_file(&file) {
                found.at("providers.embedding.path", format!("there is no file {}", file.display()));
            }
        }
    }

    let web = &providers.search.web;
    if web.kind == WebSearchKind::Searxng && web.base_url.is_none() {
        found.between(
            "providers.search.web.base_url",
            &["providers.search.web.kind"],
            "must be set for searxng, which has no public address",
        );
    }

    let chunking = &providers.decomposition.chunking;
    if chunking.chunk_overlap >= chunking.chunk_size {
        found.between(
            "providers.decomposition.chunking.chunk_overlap",
            &["providers.decomposition.chunking.chunk_size"],
            format!(
                "must be less than chunk_size: {} is not less than {}",
                chunking.chunk_overlap, chunking.chunk_size
            ),
        );
    }

    let store = &providers.vector_store;
    if store.collection == store.concept_collection {
        found.between(
            "providers.vector_store.concept_collection",
            &["providers.vector_store.collection"],
            "must differ from collection: facts and concepts are kept apart",
        );
    }

    for address in &providers.resolution.fetch.allow_private {
        let zone = matches!(address, SocketAddr::V6(address) if address.scope_id() != 0);
        if address.port() == 0 || zone {
            found.at(
                "providers.resolution.fetch.allow_private",
                format!("{address} can't be fetched from: name a port other than 0, and no zone"),
            );
        }
    }
    let storage = &providers.storage;
    if storage.backend == StorageBackend::S3 {
        let s3 = &storage.s3;
        let missing = [
            ("providers.storage.s3.bucket", s3.bucket.is_empty()),
            ("providers.storage.s3.access_key_id", s3.access_key_id.is_empty()),
            ("providers.storage.s3.secret_access_key", s3.secret_access_key.is_empty()),
        ];
        for (key, _) in missing.into_iter().filter(|(_, missing)| *missing) {
            found.between(key, &["providers.storage.backend"], "must be set for s3");
        }
    }
    if providers.offline {
        outside(config, found);
    }
    retry("providers.resolution.fetch.retry", &providers.resolution.fetch.retry, found);
    retry("providers.resolution.challenge_solver.retry", &providers.resolution.challenge_solver.retry, found);
    registries(config, found);
    models(config, found);
}

/// Pages, models, search services and registries are refused when they are asked for. These would be asked without.
fn outside(config: &Config, found: &mut Breaches) {
    let (storage, store) = (&config.providers.storage, &config.providers.vector_store);
    let is_outside = |url: &Url| url.host_str().is_none_or(|host| !is_loopback(host));
    let bucket = storage.backend == StorageBackend::S3 && storage.s3.endpoint.as_ref().is_none_or(is_outside);
    let vectors = !store.host.is_empty() && !is_loopback(&store.host);
    let traces = config.telemetry.otlp_endpoint.as_ref().is_some_and(is_outside);
    let outside = [
        ("providers.storage.backend", bucket),
        ("providers.vector_store.host", vectors),
        ("telemetry.otlp_endpoint", traces),
    ];
    for (key, _) in outside.into_iter().filter(|(_, outside)| *outside) {
        found.between(
            key,
            &["providers.offline"],
            "leads outside of this machine, which providers.offline forbids",
        );
    }
}

fn retry(key: &str, retry: &Retry, found: &mut Breaches) {
    if retry.base_delay > retry.max_delay {
        found.between(
            &format!("{key}.base_delay"),
            &[&format!("{key}.max_delay")],
            format!("must be at most max_delay: {} is more than {}", retry.base_delay, retry.max_delay),
        );
    }
}

fn registries(config: &Config, found: &mut Breaches) {
    const NEEDS_KEY: &str = "must be set for auth_mode bearer and hmac (or read_api_key, to read only)";
    let keyless = |mode: AuthMode, write: &Secret, read: &Secret| {
        mode != AuthMode::None && write.is_empty() && read.is_empty()
    };

    let single = &config.providers.registry;
    if single.url.is_some() && keyless(single.auth_mode, &single.api_key, &single.read_api_key) {
        found.between("providers.registry.api_key", &["providers.registry.auth_mode"], NEEDS_KEY);
    }

    let key = single.signing_key.expose();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !key.is_empty()
        && !key.strip_prefix("oks_").is_some_and(|key| key.len() == 43 && key.bytes().all(plain))
    {
        found.at("providers.registry.signing_key", "is not a signing key; `okt admin signing-key` makes one");
    }

    let list = "providers.registries";
    let mut seen = BTreeSet::new();
    for (index, entry) in config.providers.registries.iter().enumerate() {
        if !seen.insert(&entry.id) {
            found.in_list(list, index, "id", format!("{:?} is there twice", entry.id));
        }
        if keyless(entry.auth_mode, &entry.api_key, &entry.read_api_key) {
            found.in_list(list, index, "api_key", NEEDS_KEY);
        }
    }
}

fn models(config: &Config, found: &mut Breaches) {
    let providers = &config.providers;
    let mut known = BTreeSet::new();
    for (index, model) in providers.ai.models.iter().enumerate() {
        let taken = match model.id.as_str() {
            EXTRACTIVE_MODEL | CONCEPT_MODEL | POSTURE_MODEL => Some("is no model but our own rules"),
            EMBEDDING_MODEL => Some("is a built-in model, which no provider serves"),
            _ => None,
        };
        if let Some(why) = taken {
            found.in_list("providers.ai.models", index, "id", format!("{:?} {why}", model.id));
        }
        if !known.insert(model.id.as_str()) {
            found.in_list("providers.ai.models", index, "id", format!("{:?} is there twice", model.id));
        }
    }

    let embedding = &providers.embedding;
    for (key, model) in config.named_models() {
        if key == EMBEDDING && embedding.path.is_some() {
            if model.is_empty() || model == EMBEDDING_MODEL || known.contains(model) {
                let message = "must be a name that no other model has, for the one in the folder";
                found.between(EMBEDDING, &["providers.embedding.path"], message);
            }
            continue;
        }
        // Those that need nobody else, where there is one.
        if matches!(
            (key, model),
            (FACT_EXTRACTION, EXTRACTIVE_MODEL)
                | (EMBEDDING, EMBEDDING_MODEL)
                | (CONCEPT_EXTRACTION, CONCEPT_MODEL)
                | (POSTURE | ASK_CHECK, POSTURE_MODEL)
        ) {
            continue;
        }
        if !model.is_empty() && !known.contains(model) {
            let message = no_such("model in providers.ai.models", model, known.iter().copied());
            found.between(key, &["providers.ai.models"], message);
        }
    }

    let rerank = &config.search.rerank.model;
    let others = config.named_models().into_iter().filter(|(key, _)| *key != RERANK);
    for (key, _) in others.filter(|(_, model)| !rerank.is_empty() && model == rerank) {
        found.between(
            RERANK,
            &[key],
            format!("must be a model that only ranks texts, and not that of {key} too"),
        );
    }

    if providers.dedup.policy == DedupPolicy::Judge && providers.dedup.judge_model.is_empty() {
        let message = "must name a model of providers.ai.models, which policy = \"judge\" asks";
        found.between(JUDGE, &["providers.dedup.policy"], message);
    }

    for (key, prefix) in
        [("query_prefix", &embedding.query_prefix), ("passage_prefix", &embedding.passage_prefix)]
    {
        if embedding.path.is_none() && !prefix.is_empty() {
            let key = format!("providers.embedding.{key}");
            let message = "is for a model in providers.embedding.path; one of the catalogue has its own, in \
                           providers.ai.models";
            found.between(&key, &["providers.embedding.path"], message);
        }
    }
    for language in &embedding.languages {
        if language.len() != 2 || !language.bytes().all(|b| b.is_ascii_lowercase()) {
            let message =
                format!("{language:?} is no ISO 639-1 code; name languages by two letters, such as \"de\"");
            found.at("providers.embedding.languages", message);
        }
    }
    if embedding.model == EMBEDDING_MODEL && embedding.dimensions != EMBEDDING_DIMENSIONS {
        found.between(
            "providers.embedding.dimensions",
            &[EMBEDDING],
            format!("must be {EMBEDDING_DIMENSIONS} for {EMBEDDING_MODEL}"),
        );
    }
}

/// Models in use that nobody can be asked for. A server on this machine may well want no key.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let ai = &config.providers.ai;
    let mut warnings = Vec::new();
    // A reranker with an address of its own is none of these.
    let elsewhere = config.search.rerank.url.is_some();
    for (used, model) in config.models_in_use().filter(|(used, _)| !(elsewhere && *used == RERANK)) {
        let (endpoint, settings, key, address) = match model.provider {
            AiProvider::Gateway => {
                (&ai.gateway, "gateway", "LLM_GATEWAY_API_KEY", "SVC__PROVIDERS__AI__GATEWAY__BASE_URL")
            }
            AiProvider::Cloud => {
                (&ai.cloud, "cloud", "LLM_CLOUD_API_KEY", "SVC__PROVIDERS__AI__CLOUD__BASE_URL")
            }
            AiProvider::Local => {
                (&ai.local, "local", "SVC__PROVIDERS__AI__LOCAL__API_KEY", "LLM_LOCAL_BASE_URL")
            }
        };
        let id = &model.id;
        match &endpoint.base_url {
            None => warnings.push(format!(
                "providers.ai.{settings}.base_url: is empty, so {id} ({used}) can't be asked; set {address}"
            )),
            Some(url) if endpoint.api_key.is_empty() && model.provider != AiProvider::Local => {
                let host = url.host_str().unwrap_or_default();
                if !is_loopback(host) {
                    warnings.push(format!(
                        "providers.ai.{settings}.api_key: is empty, and {host} wants a key for {id} ({used}); set {key}"
                    ));
                }
            }
            Some(_) => {}
        }
    }
    warnings
}
