//! `okt-test bench NAME`: what our code costs beyond the engine under it. Each prints its figures and fails when one is
//! worse than its limit. Built and run in release: `cargo xtask bench`.
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

mod bundles;
mod concepts;
mod embeddings;
mod http;
mod permissions;
mod pipeline;
mod queue;
mod reports;
mod repositories;
mod search;
mod vectors;

use clap::{Args, ValueEnum};

#[derive(Args)]
pub struct Options {
    name: Name,
    /// Sizes and rounds; the head of each file under `bench/` says which.
    #[arg(trailing_var_arg = true)]
    arguments: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    /// The whole stack beyond its SQL.
    Http,
    /// One decision about a permission.
    Permissions,
    /// The queue beyond a bare loop.
    Queue,
    /// A million repositories for whoever looks at a few.
    Repositories,
    /// The pipeline beyond a bare loop of calls to a model.
    Pipeline,
    /// The stores of vectors beyond bare calls.
    Vectors,
    /// Relations and lists of concepts in a large repository.
    Concepts,
    /// Search in a large repository, over HTTP.
    Search,
    /// A long report in a repository with many facts.
    Reports,
    /// A repository as a bundle, in and out.
    Bundles,
    /// What embedding models make of facts, for people to look at.
    Embeddings,
}

impl Options {
    /// Whether it is measured on one thread.
    pub fn single_threaded(&self) -> bool {
        matches!(self.name, Name::Http)
    }
}

pub async fn run(options: Options) -> anyhow::Result<()> {
    let arguments = &options.arguments;
    match options.name {
        Name::Http => http::run(arguments).await,
        Name::Permissions => permissions::run(arguments),
        Name::Queue => queue::run(arguments).await,
        Name::Repositories => repositories::run(arguments).await,
        Name::Pipeline => pipeline::run(arguments).await,
        Name::Vectors => vectors::run(arguments).await,
        Name::Concepts => concepts::run(arguments).await,
        Name::Search => search::run(arguments).await,
        Name::Reports => reports::run(arguments).await,
        Name::Bundles => bundles::run(arguments).await,
        Name::Embeddings => embeddings::run(arguments).await,
    }
}
