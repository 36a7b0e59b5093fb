//! Uncommitted: questions and readings for a real model.
use okt_extract::summaries::*;
use okt_extract::{Closed, Promptset};
use okt_model::FactId;
use std::io::Read;
#[derive(serde::Deserialize)]
struct In {
    name: String,
    context: String,
    facts: Vec<(String, u32)>,
    #[serde(default)]
    answer: Option<String>,
    #[serde(default)]
    cut: bool,
    #[serde(default)]
    synthesis: bool,
    #[serde(default)]
    texts: Vec<String>,
    #[serde(default)]
    pairs: Vec<(usize, usize)>,
    #[serde(default)]
    outline: Option<usize>,
}
fn main() {
    let mut s = String::new();
    std::io::stdin().read_to_string(&mut s).unwrap();
    let i: In = serde_json::from_str(&s).unwrap();
    let facts: Vec<Known> = i
        .facts
        .iter()
        .enumerate()
        .map(|(n, (t, c))| Known {
            id: format!("0197a3c0-0000-7000-8000-{n:012x}").parse::<FactId>().unwrap(),
            text: t,
            sources: *c,
        })
        .collect();
    if let Some(most) = i.outline {
        let o: Vec<Outlined> = facts
            .iter()
            .map(|f| Outlined { id: f.id, text: f.text, sources: f.sources, vector: None })
            .collect();
        let g = outline(&o, most);
        println!("{}", serde_json::json!({"groups": g, "text": outline_text(&o, &g)}));
        return;
    }
    let set = Promptset::builtin();
    let topic = Topic { name: &i.name, context: &i.context };
    let texts: Vec<&str> = i.texts.iter().map(String::as_str).collect();
    let ctx = [InContext { context: &i.context, texts: &texts }];
    let m = Material {
        name: &i.name,
        contexts: &ctx,
        facts: &facts,
        contradictions: &i.pairs,
        ..Material::default()
    };
    match i.answer {
        None => {
            let q = if i.synthesis {
                synthesis_question(&set, &m, 360)
            } else {
                slice_question(&set, &topic, &facts, 360)
            };
            println!(
                "{}",
                serde_json::json!({"system": q.system, "user": q.user, "schema": q.schema, "max_tokens": q.max_tokens})
            );
        }
        Some(a) => {
            let a = if i.cut { Closed::of(&a).map_or(a, |c| c.answer) } else { a };
            let r = |at| {
                if i.synthesis { read_synthesis(&a, &m, at) } else { read_slice(&a, &topic, &facts, at) }
            };
            let f = |r: Result<Written, _>| match r {
                Ok(w) => {
                    serde_json::json!({"content": w.content, "cited": w.cited, "dropped_citations": w.dropped_citations, "dropped_sentences": w.dropped_sentences, "truncated": w.truncated})
                }
                Err(e) => serde_json::json!({"misfit": ToString::to_string(&e as &okt_extract::Misfit)}),
            };
            println!("{}", serde_json::json!({"first": f(r(Attempt::First)), "last": f(r(Attempt::Last))}));
        }
    }
}
