//! Facts that no job has compared yet, in a repository of the whole service.

use std::ops::{Deref, DerefMut};

use okt_model::{FactStatus, NewFact, SourceId};
use okt_store::{Databases, Purpose};
use okt_testkit::app::TestApp;
use okt_testkit::facts::{insert_source, new_fact, replace_facts};

pub(crate) struct StoredFacts {
    app: TestApp,
    /// As a worker has them.
    pub databases: Databases,
}

impl Deref for StoredFacts {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.app
    }
}

impl DerefMut for StoredFacts {
    fn deref_mut(&mut self) -> &mut TestApp {
        &mut self.app
    }
}

impl StoredFacts {
    pub(crate) async fn open(settings: &[(&str, &str)]) -> Self {
        let app = TestApp::builder().settings(settings).start().await;
        let config = app.service.api.app.config();
        let databases = Databases::open(config, &[Purpose::Worker]).await.unwrap().remove(0);
        Self { app, databases }
    }

    /// A source that makes these facts, which were not compared yet.
    pub(crate) async fn say(&self, texts: &[String]) -> SourceId {
        let source = insert_source(&self.databases, self.repository).await;
        let facts: Vec<NewFact> = texts.iter().map(|text| new_fact(text)).collect();
        replace_facts(&self.databases, self.repository, source, &facts, FactStatus::New).await;
        source
    }
}

/// Statements about things that have nothing to do with each other.
pub(crate) fn statements(count: usize) -> Vec<String> {
    let things = [
        "bees", "bridges", "comets", "violins", "glaciers", "clocks", "orchids", "engines", "whales", "coins",
    ];
    let places =
        ["Norway", "Peru", "Japan", "Kenya", "Canada", "Italy", "Nepal", "Chile", "Iceland", "Ghana"];
    let deeds =
        ["are kept", "were drawn", "are studied", "were lost", "are repaired", "were counted", "are sold"];
    let whom = [
        "by monks",
        "by students",
        "by the navy",
        "by weavers",
        "by farmers",
        "by two brothers",
        "by miners",
    ];
    (0..count)
        .map(|n| {
            let (thing, place) = (things[n % 10], places[n / 10 % 10]);
            let (deed, who) = (deeds[n / 100 % 7], whom[n / 700 % 7]);
            format!("In the north of {place} {thing} {deed} {who}.")
        })
        .collect()
}
