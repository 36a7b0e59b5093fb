//! Searching everything that the caller can see. `search` and `fetch` have the arguments and results that `ChatGPT` asks for; other
//! fields would keep it from citing.

use axum::extract::State;
use okt_auth::Needed;
use okt_auth::permissions::FactRead;
use okt_http::{Code, Problem, Query};
use okt_model::{Domain, Error};
use okt_wire::search::{SearchQuery, SearchRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{READ, Tool, cut, needs};
use crate::extract::Repository;
use crate::mcp::call::{Call, Outcome, Place, done};
use crate::mcp::schema::{input, output};
use crate::search;

const MOST_RESULTS: usize = 20;
const TITLE: usize = 120;
/// In how many repositories is looked, the newest first.
const REPOSITORIES: i64 = 20;

pub(super) const SEARCH: Tool = Tool {
    name: "search",
    title: "Search",
    description: "Facts, concepts, sources and reports in all repositories that you can see, best first. The query may have \
                  `repo:slug`, `kind:fact|concept|source|report`, `before:YYYY`, `after:YYYY`. fetch has the text of a result.",
    hints: READ,
    needs: needs::<FactRead>,
    pages: false,
    creates: false,
    input: input::<Arguments>,
    output: output::<Results>,
    run: |call| Box::pin(find(call)),
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[schema(min_length = 1)]
    query: String,
}

#[derive(Serialize, ToSchema)]
struct Results {
    results: Vec<Row>,
}

#[derive(Serialize, ToSchema)]
struct Row {
    id: String,
    title: String,
    url: String,
}

/// What a query asks for, beside its words.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    words: String,
    repository: Option<String>,
    types: Option<String>,
    year: Option<String>,
}

impl Asked {
    fn read(query: &str) -> Self {
        let (mut asked, mut words) = (Self::default(), Vec::new());
        let (mut from, mut to): (Option<u16>, Option<u16>) = (None, None);
        let year = |text: &str| text.parse().ok().filter(|year: &u16| (1000..=9999).contains(year));
        for word in query.split_whitespace() {
            match word.split_once(':') {
                Some(("repo", slug)) if !slug.is_empty() => asked.repository = Some(slug.to_owned()),
                Some(("kind", kind @ ("fact" | "concept" | "source" | "report"))) => {
                    asked.types = Some(format!("{kind}s"));
                }
                Some(("after", text)) if year(text).is_some() => from = year(text).map(|year| year + 1),
                Some(("before", text)) if year(text).is_some() => to = year(text).map(|year| year - 1),
                _ => words.push(word),
            }
        }
        let bound = |year: Option<u16>| year.map(|year| year.to_string()).unwrap_or_default();
        asked.year = (from.is_some() || to.is_some()).then(|| format!("{}..{}", bound(from), bound(to)));
        asked.words = words.join(" ");
        asked
    }
}

/// A question without filters.
pub(super) fn query(q: String) -> SearchQuery {
    SearchQuery {
        q,
        types: None,
        mode: None,
        prefix: None,
        grouped: None,
        explain: None,
        concept: None,
        context: None,
        source: None,
        language: None,
        year: None,
        kind: None,
        facets: None,
    }
}

async fn find(call: &Call) -> Result<Outcome, Problem> {
    let arguments: Arguments = call.arguments().await?;
    let asked = Asked::read(&arguments.query);
    if asked.words.is_empty() {
        return Err(Error::invalid("query", "must have a word to look for").into());
    }
    let (mut found, mut answered, mut refused) = (Vec::new(), false, None);
    for place in places(call, asked.repository.as_deref()).await? {
        let query = SearchQuery {
            types: asked.types.clone(),
            year: asked.year.clone(),
            ..query(asked.words.clone())
        };
        let page = call.page(Some(20), None).await?;
        let (api, scope) = (State(call.server.api.clone()), Repository(place.1.scope.clone()));
        // One that can't answer now hides nothing of the others.
        let rows = match search::search(api, scope, Query(query), page).await {
            Ok((_, rows)) => rows,
            Err(problem) => {
                refused.get_or_insert(problem);
                continue;
            }
        };
        answered = true;
        let rows = rows.0.data.into_iter().enumerate();
        found.extend(rows.map(|(rank, hit)| (rank, row(hit, &place.0, &place.1))));
    }
    if let Some(problem) = refused.filter(|_| !answered) {
        return Err(problem);
    }
    // Scores of two repositories can't be compared; ranks can.
    found.sort_by_key(|(rank, _)| *rank);
    done(Results { results: found.into_iter().take(MOST_RESULTS).map(|(_, row)| row).collect() })
}

/// The repositories that are searched, each by the name that ids say it by.
async fn places(call: &Call, named: Option<&str>) -> Result<Vec<(String, Place<FactRead>)>, Problem> {
    if let Some(named) = named {
        return Ok(vec![(named.to_owned(), call.place(named).await?)]);
    }
    let server = &call.server;
    let (seen, _) = server.api.app.list_repositories(&server.caller, None, REPOSITORIES).await?;
    let mut places = Vec::new();
    for seen in seen {
        let domain = Domain::Repository(seen.repository.id);
        if server.caller.may(domain, FactRead::PERMISSION) {
            let place = call.place(&seen.repository.slug).await?;
            places.push((seen.repository.slug, place));
        }
    }
    if places.is_empty() {
        // Nothing found would say that nothing is known.
        let missing = "no repository that you can see lets you read facts; it needs repository:read and fact:read there";
        return Err(Problem::new(Code::Forbidden, missing));
    }
    Ok(places)
}

fn row(hit: SearchRow, repository: &str, place: &Place<FactRead>) -> Row {
    // Of a fact its text, of a concept its name with the context.
    let title = match (hit.kind, hit.title) {
        ("sources" | "reports", Some(title)) if !title.trim().is_empty() => title,
        ("concepts", Some(context)) => format!("{} ({context})", hit.text),
        _ => hit.text,
    };
    let title = if title.trim().is_empty() { "Untitled".to_owned() } else { cut(title.trim(), TITLE) };
    let kind = if hit.kind == "passages" { "sources" } else { hit.kind };
    let id = format!("{}:{}@{repository}", kind.trim_end_matches('s'), hit.id);
    Row { id, title, url: place.url(kind, hit.id) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_words_with_filters_between_them() {
        let asked = Asked::read("aspirin repo:cardio heart  kind:fact after:2009 before:2020 attack");
        assert_eq!(asked.words, "aspirin heart attack");
        assert_eq!(asked.repository.as_deref(), Some("cardio"));
        assert_eq!(asked.types.as_deref(), Some("facts"));
        assert_eq!(asked.year.as_deref(), Some("2010..2019"));
        let asked = Asked::read("ratio 1:2 kind:pdf repo: before:soon");
        assert_eq!(
            asked,
            Asked { words: "ratio 1:2 kind:pdf repo: before:soon".to_owned(), ..Asked::default() }
        );
        assert_eq!(Asked::read("x before:2000").year.as_deref(), Some("..1999"));
    }
}
