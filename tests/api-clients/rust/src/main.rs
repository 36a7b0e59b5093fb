//! The first five calls that everybody makes, with the client that openapi-generator makes of the document.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use okt_client::apis::configuration::Configuration;
use okt_client::apis::{accounts_api, facts_api, repositories_api, sources_api};
use okt_client::models::{NewRepository, Registration};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut api = Configuration::new();
    api.base_path = std::env::var("OKT_URL")?;
    let account = Registration::new("rust@example.org".to_owned(), "a password for Rust".to_owned());
    let me = accounts_api::register_user(&api, account).await?;
    api.bearer_access_token = Some(me.token);
    let new = NewRepository::new("Rust".to_owned());
    let repository = repositories_api::create_repository(&api, new, None).await?.id.to_string();
    let file = PathBuf::from(std::env::var("OKT_FILE")?);
    let uploaded = sources_api::upload_source(&api, &repository, file, None, None, Some("On bees")).await?;
    let sources =
        sources_api::list_sources(&api, &repository, None, None, None, None, None, None, None, None, None).await?;
    if sources.data.first().map(|source| source.id) != Some(uploaded.source_id) {
        return Err("the source is not in the list".into());
    }
    for _ in 0..120 {
        let facts = facts_api::list_facts(&api, &repository, None, None, None, None, None, None, None, None, None, None).await?;
        if let Some(fact) = facts.data.first() {
            println!("rust: {:?}, then: {}", sources.data[0].status, fact.text);
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Err("there are no facts after a minute".into())
}
