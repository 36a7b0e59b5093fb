//! A part of the graph, and a way through it.

use std::collections::BTreeSet;

use okt_model::ConceptId;
use serde_json::{Value, json};

use super::{Library, texts};

fn ends(graph: &Value) -> BTreeSet<(String, String, i64)> {
    let name = |id: &Value| {
        let nodes = graph["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|node| node["id"] == *id).expect("an edge is between two nodes");
        node["canonical_name"].as_str().unwrap().to_owned()
    };
    let edges = graph["edges"].as_array().unwrap().iter();
    let edges = edges.map(|edge| {
        let (from, to) = (name(&edge["from"]), name(&edge["to"]));
        let shared = edge["shared_fact_count"].as_i64().unwrap();
        if from < to { (from, to, shared) } else { (to, from, shared) }
    });
    edges.collect()
}

fn names(graph: &Value) -> Vec<String> {
    texts(graph["nodes"].as_array().unwrap(), "canonical_name")
}

/// Hub shares 9 facts with A, 5 with B, 2 with C and 1 with D; A and B share 5, D and Far 3, Far and Farther 2.
async fn planets(library: &Library) -> Vec<ConceptId> {
    let facts = library.facts(9, None).await;
    let more = library.facts(5, None).await;
    let mut made = Vec::new();
    for (name, linked) in [
        ("Hub", facts[..9].to_vec()),
        ("A", facts[..9].to_vec()),
        ("B", facts[..5].to_vec()),
        ("C", facts[7..9].to_vec()),
        ("D", vec![facts[6], more[0], more[1], more[2]]),
        ("Far", more[..5].to_vec()),
        ("Farther", more[3..5].to_vec()),
        ("Alone", vec![]),
    ] {
        made.push(library.concept(name, "Animal", &linked).await);
    }
    made
}

#[tokio::test]
async fn a_graph_is_bounded_follows_the_strongest_first_and_says_what_it_left_out() {
    let library = Library::open(&[]).await;
    let made = planets(&library).await;
    let hub = made[0];
    let graph = library.read(&format!("/graph?center={hub}")).await;
    assert_eq!(names(&graph), ["Hub", "A", "B", "D", "C"], "the center, then those with the most facts");
    assert_eq!(graph["nodes"][0]["depth"], 0);
    assert_eq!(graph["nodes"][0]["ontology_class"], "dbo:Animal");
    assert_eq!(graph["left_out"], json!({"nodes": 0, "edges": 0, "at_least": false}));
    let expected = [
        ("A", "B", 5),
        ("A", "C", 2),
        ("A", "D", 1),
        ("A", "Hub", 9),
        ("B", "Hub", 5),
        ("C", "Hub", 2),
        ("D", "Hub", 1),
    ];
    let expected = expected.map(|(one, other, shared)| (one.to_owned(), other.to_owned(), shared));
    assert_eq!(ends(&graph), BTreeSet::from(expected), "edges among the neighbours as well");
    let shared: Vec<i64> = graph["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| edge["shared_fact_count"].as_i64().unwrap())
        .collect();
    assert!(shared.is_sorted_by(|one, next| one >= next), "{shared:?}");
    assert_eq!(
        (&graph["edges"][0]["strength"], &graph["edges"][6]["strength"]),
        (&json!("stable"), &json!("insignificant"))
    );

    // Three places: the two strongest, and what is left out.
    let graph = library.read(&format!("/graph?center={hub}&limit=3")).await;
    assert_eq!(names(&graph), ["Hub", "A", "B"]);
    assert_eq!(graph["left_out"], json!({"nodes": 2, "edges": 0, "at_least": true}));
    assert_eq!(names(&library.read(&format!("/graph?center={hub}&limit=1")).await), ["Hub"]);

    // Further away.
    let graph = library.read(&format!("/graph?center={hub}&depth=2")).await;
    assert_eq!(names(&graph), ["Hub", "A", "B", "D", "C", "Far"]);
    assert_eq!(graph["nodes"][5]["depth"], 2);
    let graph = library.read(&format!("/graph?center={hub}&depth=3")).await;
    assert_eq!(names(&graph).len(), 7, "{graph}");
    assert_eq!(graph["nodes"][6]["depth"], 3);
    // A few for each layer, although the first one would fill all places.
    let graph = library.read(&format!("/graph?center={}&depth=2&limit=3", made[5])).await;
    let depths: Vec<_> =
        graph["nodes"].as_array().unwrap().iter().map(|node| node["depth"].clone()).collect();
    assert_eq!(depths, [0, 1, 2], "{graph}");
    assert_ne!(graph["left_out"]["nodes"], 0);

    let alone = library.read(&format!("/graph?center={}&depth=3", made[7])).await;
    assert_eq!((names(&alone), &alone["edges"]), (vec!["Alone".to_owned()], &json!([])));
    for query in ["depth=0", "depth=4", "limit=0", "limit=201", "center=x"] {
        assert_eq!(library.get(&format!("/graph?{query}")).await.status, 422, "{query}");
    }
}

#[tokio::test]
async fn a_graph_without_a_center_is_that_of_the_concepts_with_the_most_facts() {
    let library = Library::open(&[]).await;
    let made = planets(&library).await;
    let graph = library.read("/graph?limit=4").await;
    let found: BTreeSet<String> = names(&graph).into_iter().collect();
    assert_eq!(found, BTreeSet::from(["A", "B", "Far", "Hub"].map(str::to_owned)));
    assert_eq!(graph["nodes"][0]["depth"], json!(null));
    assert_eq!(graph["left_out"], json!({"nodes": 4, "edges": 0, "at_least": false}));
    assert_eq!(ends(&graph).len(), 3);
    // Of many edges the strongest.
    let graph = library.read("/graph?limit=1").await;
    assert_eq!((graph["edges"].as_array().unwrap().len(), &graph["left_out"]["nodes"]), (0, &json!(7)));
    // One that was merged is none of its own any more.
    library.merge(made[2], made[1]).await;
    let graph = library.read("/graph").await;
    assert!(!names(&graph).contains(&"B".to_owned()));
    let led = library.read(&format!("/graph?center={}", made[2])).await;
    assert_eq!(names(&led)[0], "A");
}

#[tokio::test]
async fn of_too_many_edges_the_strongest_are_drawn_and_each_node_keeps_one() {
    let library = Library::open(&[]).await;
    // Twenty that all share a fact with each other, and one that hangs on a single fact.
    let facts = library.facts(3, None).await;
    let mut made = Vec::new();
    for at in 0..20 {
        made.push(library.concept(&format!("Node {at}"), "Animal", &facts[..2]).await);
    }
    let tail = library.concept("Tail", "Animal", &facts[2..]).await;
    let mut tx = library.begin().await;
    okt_testkit::concepts::link_facts(&mut tx, library.repository, made[19], &facts[2..]).await.unwrap();
    okt_store::concept_relations::fold(&mut tx, library.repository, 100).await.unwrap();
    tx.commit().await.unwrap();
    let graph = library.read(&format!("/graph?center={}&limit=21", made[19])).await;
    let edges = graph["edges"].as_array().unwrap();
    assert_eq!((names(&graph).len(), edges.len()), (21, 105), "five for each of 21");
    assert_eq!(graph["left_out"]["edges"], 190 + 1 - 105);
    assert!(ends(&graph).contains(&("Node 19".to_owned(), "Tail".to_owned(), 1)), "the weakest one of all");
    let from_tail = library.read(&format!("/graph?center={tail}&depth=2&limit=5")).await;
    assert_eq!(names(&from_tail).len(), 5);
}

#[tokio::test]
async fn a_path_is_a_shortest_one_over_the_strongest_relations() {
    let library = Library::open(&[]).await;
    let made = planets(&library).await;
    let path = async |from: ConceptId, to: ConceptId| {
        library.read(&format!("/graph/path?from={from}&to={to}")).await
    };
    let names = |path: &Value| texts(path["path"].as_array().unwrap(), "canonical_name").join(" ");
    let found = path(made[2], made[6]).await;
    assert!(["B Hub D Far Farther", "B A D Far Farther"].contains(&names(&found).as_str()), "{found}");
    let steps = found["steps"].as_array().unwrap();
    let shared: Vec<_> = steps.iter().map(|step| step["shared_fact_count"].as_i64().unwrap()).collect();
    assert_eq!(shared, [5, 1, 3, 2]);
    assert_eq!(found["reason"], json!(null));
    for (at, step) in steps.iter().enumerate() {
        assert_eq!(step["from"], found["path"][at]["concept_id"]);
        assert_eq!(step["to"], found["path"][at + 1]["concept_id"]);
        let facts = step["fact_ids"].as_array().unwrap();
        assert_eq!(i64::try_from(facts.len()).unwrap(), shared[at].min(2), "{step}");
        let of = texts(
            library.read(&format!("/concepts/{}/facts", step["from"].as_str().unwrap())).await["data"]
                .as_array()
                .unwrap(),
            "id",
        );
        assert!(facts.iter().all(|fact| of.iter().any(|id| fact == id)), "{step}");
    }
    // From the other end, directly, and from a concept to itself.
    let back = path(made[6], made[2]).await;
    assert_eq!(back["steps"].as_array().unwrap().len(), 4);
    assert_eq!(names(&path(made[0], made[4]).await), "Hub D");
    let itself = path(made[0], made[0]).await;
    assert_eq!(
        (names(&itself).as_str(), &itself["steps"], &itself["reason"]),
        ("Hub", &json!([]), &json!(null))
    );

    let none = path(made[0], made[7]).await;
    assert_eq!(
        (&none["path"], &none["steps"], &none["reason"]),
        (&json!([]), &json!([]), &json!("not_connected"))
    );
    for query in ["", "?from=x&to=y", &format!("?from={}", made[0])] {
        assert_eq!(library.get(&format!("/graph/path{query}")).await.status, 422, "{query}");
    }
}

#[tokio::test]
async fn of_two_short_paths_the_stronger_one_is_taken() {
    let library = Library::open(&[]).await;
    let (left, right) = (library.facts(5, None).await, library.facts(5, None).await);
    let from = library.concept("From", "Animal", &left).await;
    let to = library.concept("To", "Animal", &right).await;
    // Over each of these in two steps: the weakest relation is 1, 3 and 2.
    for (name, before, after) in [("Weak", 5, 1), ("Strong", 3, 4), ("Middle", 2, 5)] {
        let linked = [&left[..before], &right[..after]].concat();
        library.concept(name, "Animal", &linked).await;
    }
    for (one, other) in [(from, to), (to, from)] {
        let found = library.read(&format!("/graph/path?from={one}&to={other}")).await;
        assert_eq!(found["path"][1]["canonical_name"], "Strong", "{found}");
        assert_eq!(found["path"].as_array().unwrap().len(), 3);
    }
}
