//! Prompts: ways of working that people choose by name.

use serde_json::{Map, Value, json};

struct Prompt {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// The first is what it is about.
    arguments: &'static [Argument],
    /// How to work, with the tools in their order.
    way: &'static str,
    /// What is said before the first argument.
    task: &'static str,
}

struct Argument {
    name: &'static str,
    description: &'static str,
    required: bool,
}

const REPOSITORY: Argument =
    Argument { name: "repository", description: "Id or slug of the repository", required: false };

static PROMPTS: [Prompt; 3] = [
    Prompt {
        name: "audit_report",
        title: "Audit a report",
        description: "Go through the sentences of a report that facts contradict or do not support, and propose changes.",
        arguments: &[
            Argument { name: "report_id", description: "Id of the report", required: true },
            REPOSITORY,
        ],
        way: "Work with the tools of okt. 1. get_report with only: contradicted, then with only: unsupported, page by page. \
              2. For each such sentence get_fact of the facts that it stands against, and find_evidence for what it claims. \
              3. Say of each sentence what the facts say, with their url, and how it should read instead; where nothing is \
              known, say so. 4. Only if you are asked to: update_report.",
        task: "Audit this report: ",
    },
    Prompt {
        name: "research",
        title: "Research a question",
        description: "Answer a question from the facts of a repository, citing each, with what speaks against it.",
        arguments: &[
            Argument { name: "question", description: "What is to be found out", required: true },
            REPOSITORY,
        ],
        way: "Work with the tools of okt. 1. search, then search_facts with words of your own. 2. get_fact of what matters, for \
              its quotes and what may contradict it. 3. Where the facts do not suffice, discover_sources, tell the person \
              which are worth it, and add_source of those that they agree to, with max_cost_usd; get_progress until they are done. \
              4. find_evidence for each sentence that you want to assert. Answer in short sentences, each with the url of its \
              facts; say what is contested and what is not known.",
        task: "Answer this question: ",
    },
    Prompt {
        name: "weigh_claim",
        title: "Weigh a claim",
        description: "Say how well a claim is supported, what contradicts it, and how good the sources are.",
        arguments: &[Argument { name: "claim", description: "One sentence", required: true }, REPOSITORY],
        way: "Work with the tools of okt. 1. find_evidence. 2. get_fact of each fact that supports or contradicts the claim, for \
              its quotes, its sources, and whether they were retracted. 3. find_contradictions where the facts disagree. \
              Say first whether the claim stands, then what speaks for and against it, with the url of each fact, the date of \
              its sources, and how sure the judgement is. If nothing is known, say so.",
        task: "Weigh this claim: ",
    },
];

/// As `prompts/list` has them.
pub(super) fn list() -> Value {
    let described = PROMPTS.iter().map(|prompt| {
        let arguments = prompt.arguments.iter().map(|argument| {
            json!({"name": argument.name, "description": argument.description, "required": argument.required})
        });
        json!({
            "name": prompt.name,
            "title": prompt.title,
            "description": prompt.description,
            "arguments": arguments.collect::<Vec<_>>(),
        })
    });
    described.collect()
}

pub(super) fn exists(name: &str) -> bool {
    PROMPTS.iter().any(|prompt| prompt.name == name)
}

/// A prompt with its arguments, or what is wrong with them.
pub(super) fn get(params: &Value) -> Result<Value, String> {
    let name = params["name"].as_str().unwrap_or_default();
    let prompt = PROMPTS.iter().find(|prompt| prompt.name == name);
    let prompt = prompt.ok_or_else(|| format!("no such prompt: {name}"))?;
    let none = Map::new();
    let given = params["arguments"].as_object().unwrap_or(&none);
    let known = |name: &String| prompt.arguments.iter().any(|argument| argument.name == name);
    if let Some(unknown) = given.keys().find(|name| !known(name)) {
        return Err(format!("{}: no such argument: {unknown}", prompt.name));
    }
    let text =
        |name: &str| given.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let subject = prompt.arguments[0].name;
    let about = text(subject).ok_or_else(|| format!("{}: the argument {subject} is missing", prompt.name))?;
    let mut task = format!("{}{about}", prompt.task);
    if let Some(repository) = text(REPOSITORY.name) {
        task.push_str("\nRepository: ");
        task.push_str(repository);
    }
    let message = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    Ok(json!({"description": prompt.description, "messages": [message(prompt.way), message(&task)]}))
}
