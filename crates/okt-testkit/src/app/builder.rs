//! How an app under test is put together.

use http::Method;
use okt_model::RepositoryId;
use serde_json::json;
use uuid::Uuid;

use super::{MODEL, TestApp};
use crate::accounts::{register, send};
use crate::db::{FILE, TestDatabase};
use crate::jobs::pdfium;
use crate::llm::{Behaviour, ModelServer};
use crate::served::{SECRET, TestService};
use crate::web::Web;

/// Short waits and no manners: web and models are our own.
const SETTINGS: [(&str, &str); 12] = [
    ("SVC__RATE_LIMITS__API_PER_MINUTE", "0"),
    ("SVC__BOOTSTRAP__DEFAULT_REPOSITORY", "false"),
    ("SVC__PROVIDERS__RESOLUTION__FETCH__RETRY__BASE_DELAY", "10ms"),
    ("SVC__PROVIDERS__RESOLUTION__FETCH__RETRY__MAX_DELAY", "50ms"),
    ("SVC__PROVIDERS__RESOLUTION__FETCH__TIMEOUT", "5s"),
    ("SVC__PROVIDERS__RESOLUTION__PER_HOST_DELAY", "0s"),
    // Nobody is there; the public one is not asked by tests.
    ("SVC__PROVIDERS__SEARCH__ACADEMIC__BASE_URL", "http://127.0.0.1:9/"),
    ("SVC__PROVIDERS__LLM_RETRY__BASE_DELAY", "20ms"),
    ("SVC__PROVIDERS__LLM_RETRY__MAX_DELAY", "2s"),
    ("SVC__PROVIDERS__LLM_RETRY__PER_CALL_TIMEOUT", "2s"),
    ("SVC__TASK__QUEUES__RETRIEVE_SOURCE", "4"),
    ("SVC__TASK__QUEUES__SOURCE_DECOMPOSITION", "8"),
];

/// Without anything said: no model, no vectors, no concepts, one database, and a repository of `owner@example.org`.
pub struct TestAppBuilder<'a> {
    settings: Vec<(&'a str, &'a str)>,
    models: Option<(Behaviour, &'a str)>,
    second_database: bool,
    repository: bool,
    owner: &'a str,
    paths_below: &'static str,
}

impl<'a> TestAppBuilder<'a> {
    pub(super) const fn new() -> Self {
        Self {
            settings: Vec::new(),
            models: None,
            second_database: false,
            repository: true,
            owner: "owner",
            paths_below: "",
        }
    }

    /// `SVC__…` or documented names; the later ones win.
    #[must_use]
    pub fn settings(mut self, settings: &[(&'a str, &'a str)]) -> Self {
        self.settings.extend_from_slice(settings);
        self
    }

    /// With a model that behaves like this; `catalogue` is what the settings say of it, such as its price.
    #[must_use]
    pub fn models(mut self, behaviour: Behaviour, catalogue: &'a str) -> Self {
        self.models = Some((behaviour, catalogue));
        self
    }

    /// With vectors for facts, by the model that is part of the product.
    #[must_use]
    pub fn vectors(self) -> Self {
        self.settings(&[("SVC__PROVIDERS__EMBEDDING__MODEL", okt_model::EMBEDDING_MODEL)])
    }

    /// With concepts for facts, by this model or by the rules that are part of the product.
    #[must_use]
    pub fn concepts(self, model: &'a str) -> Self {
        self.settings(&[("SVC__PROVIDERS__DECOMPOSITION__CONCEPT_EXTRACTION__MODEL", model)])
    }

    /// With a database named `second` beside the default one.
    #[must_use]
    pub const fn second_database(mut self) -> Self {
        self.second_database = true;
        self
    }

    #[must_use]
    pub const fn without_repository(mut self) -> Self {
        self.repository = false;
        self
    }

    /// The name of the first account.
    #[must_use]
    pub const fn owner(mut self, name: &'a str) -> Self {
        self.owner = name;
        self
    }

    /// Short paths go on from here, below the repository.
    #[must_use]
    pub const fn paths_below(mut self, resource: &'static str) -> Self {
        self.paths_below = resource;
        self
    }

    pub async fn start(self) -> TestApp {
        let web = Web::start().await;
        let (behaviour, catalogue) = self.models.map_or((Behaviour::default(), None), |(behaviour, text)| {
            let catalogue =
                format!("[[providers.ai.models]]\nid = \"{MODEL}\"\nprovider = \"local\"\n{text}\n");
            (behaviour, Some(catalogue))
        });
        let models = ModelServer::start(behaviour).await;
        let (allowed, base_url) = (web.allowed(), models.base_url());
        let mut settings = SETTINGS.to_vec();
        settings.push(("SVC__PROVIDERS__RESOLUTION__FETCH__ALLOW_PRIVATE", &allowed));
        if let Some(catalogue) = &catalogue {
            settings.push(("LLM_LOCAL_BASE_URL", &base_url));
            settings.push((FILE, catalogue));
            settings.push(("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", MODEL));
        }
        let second = if self.second_database { Some(TestDatabase::migrated().await) } else { None };
        if let Some(second) = &second {
            settings.push(("SVC__DATABASES__SECOND__URL", second.url()));
        }
        settings.extend_from_slice(&self.settings);
        let service = TestService::product(&settings).await;
        let process_settings = for_processes(&service.database, &settings);
        let owner = register(&service, self.owner).await;
        let mut repository = RepositoryId::from(Uuid::nil());
        if self.repository {
            let name = json!({"name": "Bees"});
            let made = send(&service, &owner.token, Method::POST, "/api/v1/repositories", &name).await;
            assert_eq!(made.status, 201, "{made:?}");
            repository = made.json()["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        }
        TestApp {
            worker: None,
            service,
            web,
            models,
            second,
            owner,
            repository,
            paths_below: self.paths_below,
            process_settings,
        }
    }
}

/// As the service in this process has them, and what a process needs besides.
fn for_processes(database: &TestDatabase, settings: &[(&str, &str)]) -> Vec<(String, String)> {
    let secret = str::from_utf8(SECRET).expect("a secret of letters");
    let pdfium = pdfium().map(|library| library.display().to_string());
    let mut all = database.settings().to_vec();
    all.extend_from_slice(settings);
    all.push(("AUTH_JWTSECRET", secret));
    if let Some(library) = &pdfium {
        all.push(("SVC__PROVIDERS__PARSING__PDFIUM", library));
    }
    all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
