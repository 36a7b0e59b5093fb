//! What embedding models make of facts: the nearest neighbours of some, how close paraphrases and contradictions come, and
//! texts a second. `okt-test bench embeddings [http://127.0.0.1:18082/v1]`: the built-in model, and one that is served there
//! (`scripts/embedding-model`). There is no bar to reach: people look at it before they set thresholds.

use std::future::ready;
use std::time::Instant;

use anyhow::Context as _;
use okt_config::{AiProvider, Config};
use okt_extract::{Text, extractive};
use okt_model::EMBEDDING_MODEL;
use okt_providers::GuardedClient;
use okt_providers::ai::{Model, Models};
use okt_testkit::cpu;

const ARTICLES: [&str; 3] = [
    include_str!("../../../../tests/it/facts/articles/honey.txt"),
    include_str!("../../../../tests/it/facts/articles/lighthouse.txt"),
    include_str!("../../../../tests/it/facts/articles/tides.txt"),
];

/// Facts whose neighbours are shown.
const SHOWN: usize = 10;
/// Texts for the throughput.
const MANY: usize = 500;

/// A fact, the same in other words, and what can't be true beside it.
const PAIRS: [[&str; 3]; 10] = [
    [
        "Fresh nectar consists of up to 80 percent water.",
        "As much as 80 percent of fresh nectar is water.",
        "Fresh nectar consists of at most 8 percent water.",
    ],
    [
        "The Eddystone lighthouse was completed in 1759.",
        "Work on the Eddystone lighthouse was finished in 1759.",
        "The Eddystone lighthouse was completed in 1882.",
    ],
    [
        "The moon is the main cause of the tides.",
        "Tides are caused mainly by the moon.",
        "The moon is not the main cause of the tides.",
    ],
    [
        "A forager carries about 40 milligrams of nectar.",
        "Roughly 40 milligrams of nectar are carried by one forager.",
        "A forager carries about 400 milligrams of nectar.",
    ],
    [
        "Aspirin reduces the risk of a second heart attack.",
        "The risk of another heart attack is lowered by aspirin.",
        "Aspirin increases the risk of a second heart attack.",
    ],
    [
        "The treaty was signed in Vienna on 15 May 1955.",
        "On 15 May 1955 the treaty was signed in Vienna.",
        "The treaty was signed in Geneva on 15 May 1955.",
    ],
    [
        "The drug is safe during pregnancy.",
        "Pregnant women can take the drug without risk.",
        "The drug is unsafe during pregnancy.",
    ],
    [
        "Sales of the company rose by 12 percent in 2023.",
        "In 2023 the company sold 12 percent more than the year before.",
        "Sales of the company fell by 12 percent in 2023.",
    ],
    [
        "Marie Curie discovered polonium together with her husband Pierre.",
        "Polonium was discovered by Marie Curie and her husband Pierre.",
        "Marie Curie discovered polonium without her husband Pierre.",
    ],
    [
        "All members of the committee voted for the proposal.",
        "The committee approved the proposal unanimously.",
        "No member of the committee voted for the proposal.",
    ],
];

pub async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let facts: Vec<String> = ARTICLES.iter().flat_map(|article| facts(article)).collect();
    println!("{} facts of {} articles", facts.len(), ARTICLES.len());
    let mut config = Config::default();
    let mut names = vec![EMBEDDING_MODEL];
    if let Some(address) = arguments.first() {
        config.providers.ai.local.base_url = Some(address.parse().context("the address of a model server")?);
        config.providers.ai.models.push(okt_config::Model {
            id: "served".into(),
            provider: AiProvider::Local,
            input_cost_per_1m: 0.0,
            output_cost_per_1m: 0.0,
            search_cost_per_1k: 0.0,
            query_prefix: String::new(),
            passage_prefix: String::new(),
            lexical_weight: None,
            rate_limit_rpm: 0,
            max_in_flight: 0,
            thinks: false,
        });
        names.push("served");
    }
    let models = Models::new(&config, &GuardedClient::new(&[])?);
    for name in names {
        let model = models.find(name).context("a model of the catalogue")?;
        println!("\n=== {name}");
        neighbours(&model, &facts).await?;
        pairs(&model).await?;
        throughput(&model, &facts).await?;
    }
    Ok(())
}

fn facts(article: &str) -> Vec<String> {
    let number = |place: u32| i32::try_from(place).unwrap_or(i32::MAX);
    let sentences: Vec<(i32, i32)> = okt_parse::sentences(article, Some("en"))
        .into_iter()
        .map(|(start, end)| (number(start), number(end)))
        .collect();
    extractive::extract(&Text::new(article, &sentences), Some("en"))
        .facts
        .into_iter()
        .map(|fact| fact.text)
        .collect()
}

async fn vectors(model: &Model, texts: &[String]) -> anyhow::Result<Vec<Vec<f32>>> {
    Ok(model.embed(texts, || ready(Ok(()))).await?.vectors)
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let dot = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f32>();
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

/// Of facts from all over the articles.
async fn neighbours(model: &Model, facts: &[String]) -> anyhow::Result<()> {
    let vectors = vectors(model, facts).await?;
    for at in (0..SHOWN).map(|shown| shown * facts.len() / SHOWN) {
        let others = (0..facts.len()).filter(|other| *other != at);
        let nearest = others
            .map(|other| (cosine(&vectors[at], &vectors[other]), other))
            .max_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((cosine, other)) = nearest {
            println!("{cosine:.3}  {}\n       {}", facts[at], facts[other]);
        }
    }
    Ok(())
}

async fn pairs(model: &Model) -> anyhow::Result<()> {
    let texts: Vec<String> = PAIRS.iter().flatten().map(|text| (*text).to_owned()).collect();
    println!("same   contradiction");
    for (three, pair) in vectors(model, &texts).await?.chunks(3).zip(PAIRS) {
        let (same, contradiction) = (cosine(&three[0], &three[1]), cosine(&three[0], &three[2]));
        println!("{same:.3}  {contradiction:.3}  {} / {}", pair[0], pair[2]);
    }
    Ok(())
}

/// The time of one call, then that of two at once. The CPU time is that of this process only.
async fn throughput(model: &Model, facts: &[String]) -> anyhow::Result<()> {
    let texts: Vec<String> = facts.iter().cycle().take(MANY).cloned().collect();
    for calls in [1, 2] {
        let (begun, before) = (Instant::now(), cpu::seconds(std::process::id()));
        if calls == 1 {
            vectors(model, &texts).await?;
        } else {
            let (one, other) = tokio::join!(vectors(model, &texts), vectors(model, &texts));
            one.and(other)?;
        }
        let (took, spent) = (begun.elapsed().as_secs_f64(), cpu::seconds(std::process::id()) - before);
        #[expect(clippy::cast_precision_loss, reason = "a thousand at most")]
        let rate = (calls * MANY) as f64 / took;
        println!("{calls} at once: {rate:.0} texts a second, {took:.2} s, {spent:.2} s of CPU");
    }
    Ok(())
}
