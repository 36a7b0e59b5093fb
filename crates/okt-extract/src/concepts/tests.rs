//! Rules by example; `gold.rs` measures them on facts with expected concepts.

mod gold;

use okt_model::{Context, FoundBy};

use super::*;

/// The built-in contexts.
pub fn contexts() -> Vec<Context> {
    let lines = include_str!("../../nouns/classes.txt").lines().filter(|line| !line.starts_with('#'));
    let context = |line: &str| {
        let mut fields = line.split('\t');
        Context {
            label: fields.next().unwrap().to_owned(),
            description: String::new(),
            ontology_class: fields.next().map(str::to_owned),
            concept_count: 0,
            merging_into: None,
        }
    };
    lines.map(context).collect()
}

fn found(facts: &[&str], title: Option<&str>, language: &str) -> Vec<Vec<Found>> {
    extract(facts, title, Some(language), &contexts())
}

/// `name [Context] found_by` of each concept of one fact.
fn shown(fact: &str) -> Vec<String> {
    let found = found(&[fact], None, "en").remove(0);
    found
        .iter()
        .map(|found| format!("{} [{}] {}", found.name, found.place.label(), found.found_by.as_str()))
        .collect()
}

fn names(fact: &str) -> Vec<String> {
    found(&[fact], None, "en").remove(0).into_iter().map(|found| found.name).collect()
}

#[test]
fn names_and_phrases_are_found_and_typed() {
    assert_eq!(
        shown("Isaac Newton explained the tides of the Mediterranean Sea by gravitation in 1687."),
        [
            "Isaac Newton [Person] name",
            "tide [Natural event] phrase",
            "Mediterranean Sea [Body of water] name",
            "gravitation [Scientific concept] phrase"
        ]
    );
}

#[test]
fn names_are_typed_by_their_words_and_by_those_beside_them() {
    for (fact, expected) in [
        ("They crossed the Harbour Bridge.", "Harbour Bridge [Infrastructure] name"),
        ("He studied at the University of Halden.", "University of Halden [Educational institution] name"),
        ("The birds nest at Lake Ulm.", "Lake Ulm [Body of water] name"),
        ("The loss of the barque Helena was felt.", "Helena [Means of transportation] name"),
        ("It was described by the naturalist Ole Brandt.", "Ole Brandt [Person] name"),
        ("The keeper was Wulfric Pell, a retired pilot.", "Wulfric Pell [Person] name"),
        ("It was sold to Brandt Corp. for little.", "Brandt [Company] name"),
        ("The talk was given by Dr. Amari Solberg.", "Amari Solberg [Person] name"),
        ("The work was done by J. Brandt in Oslo.", "J. Brandt [Person] name"),
        ("New York is large.", "New York [Settlement] name"),
        ("It was printed by The New York Times.", "New York Times [Periodical literature] name"),
        ("It was shown by Good Morning Halden.", "Good Morning Halden [Concept] name"),
        ("New Google offices were built.", "Google [Company] name"),
        ("BlockFi filed for more.", "BlockFi [Concept] name"),
        ("They study AI in Oslo.", "artificial intelligence [Academic subject] name"),
        ("The trials were held in Brunnwinkl.", "Brunnwinkl [Concept] name"),
        ("The Rance tidal power station is old.", "Rance tidal power station [Power station] name"),
        ("It was bought by Johnson & Johnson in 1996.", "Johnson & Johnson [Company] name"),
        ("General Motors built it.", "General Motors [Company] name"),
        ("It was shown by General Electric.", "General Electric [Concept] name"),
        ("The order came from General Grant.", "Grant [Person] name"),
        ("Apollo 11 landed on the Moon.", "Apollo 11 [Concept] name"),
        ("The Apollo 13 mission failed.", "Apollo 13 [Concept] name"),
        ("They play at the Tony Gwynn Stadium.", "Tony Gwynn Stadium [Building] name"),
        ("It was signed by the Ministry of Trade.", "Ministry of Trade [Government agency] name"),
        ("It was made in Japan.", "Japan [Country] name"),
        ("It was led by Giuseppe Bellori.", "Giuseppe Bellori [Person] name"),
    ] {
        let shown = shown(fact);
        assert!(shown.contains(&expected.to_owned()), "{fact}: {shown:?}");
    }
}

#[test]
fn a_name_is_what_its_fact_says_it_is() {
    for (fact, expected) in [
        ("Python is a large island of the north.", "Python [Natural place] name"),
        ("Java (also Jawa) is an island in Asia.", "Java [Natural place] name"),
        ("They sailed to the island of Java.", "Java [Natural place] name"),
        ("They saw the islands of Java and Python.", "Python [Natural place] name"),
        ("They write in Java.", "Java [Programming language] name"),
        ("Sundown Syndrome is a song by nobody.", "Sundown Syndrome [Musical work] name"),
        ("Camil Brunn (1935 – 2012) was an old-time bluegrass and folk singer.", "Camil Brunn [Person] name"),
        ("Frodd Olk (born 1942) lives in Oslo.", "Frodd Olk [Person] name"),
        ("It was directed by Frodd Olk and Ulma Brunn.", "Ulma Brunn [Person] name"),
        ("He was born in Brunnwinkl, Austria.", "Brunnwinkl [Settlement] name"),
        ("He served King Olk VIII for long.", "King Olk VIII [Person] name"),
        ("He became Duke of Olk in 1650.", "Duke of Olk [Profession] name"),
        (
            "Fines were asked by the Securities and Exchange Commission.",
            "Securities and Exchange Commission [Government agency] name",
        ),
        ("They saw Mercury and Ganymede.", "Mercury [Planet] name"),
        ("They saw Mercury and Ganymede.", "Ganymede [Celestial body] name"),
        ("Mercury is the smallest planet.", "Mercury [Planet] name"),
        ("They moved to Wisconsin.", "Wisconsin [Region] name"),
    ] {
        let shown = shown(fact);
        assert!(shown.contains(&expected.to_owned()), "{fact}: {shown:?}");
    }
}

#[test]
fn what_a_fact_says_of_something_else_is_not_said_of_a_name() {
    for (fact, not) in [
        ("Amazon is a seller of books.", "Amazon [Person] name"),
        ("Hyman Olk (born in Oslo, Norway) was a company.", "Norway [Company] name"),
        ("The mad doctor of Oslo is a film from 1942.", "Oslo [Film] name"),
        ("The coast of Java is long.", "Java [Natural place] name"),
    ] {
        let shown = shown(fact);
        assert!(!shown.contains(&not.to_owned()), "{fact}: {shown:?}");
    }
}

#[test]
fn a_person_has_one_context_in_all_texts() {
    for fact in
        ["Marie Curie was born in Warsaw.", "The chemist Marie Curie won.", "President Marie Curie won."]
    {
        let shown = shown(fact);
        assert!(shown.contains(&"Marie Curie [Person] name".to_owned()), "{fact}: {shown:?}");
    }
}

#[test]
fn bare_nouns_for_what_has_names_are_no_concepts() {
    for fact in [
        "A city lies on the coast of the island.",
        "The researcher met a developer.",
        "A City was founded there.",
        "The American silent one was lost.",
        "Nobody liked the long-rumored integration.",
    ] {
        assert_eq!(names(fact), Vec::<String>::new(), "{fact}");
    }
    assert_eq!(names("A planet is a body that is round."), ["planet"]);
    assert_eq!(names("They study the river delta."), ["river delta"]);
}

#[test]
fn what_could_stand_in_any_text_is_no_concept() {
    for fact in [
        "It was then that they did so.",
        "On Monday, 3 May 1998, at 10 a.m., he came back.",
        "Many people do such things in this way every year.",
        "A large number of the parts cost 40 dollars.",
        "He who was there is the one.",
        "In the summer of 1932 there were 1,200.",
        "",
        "…",
        "1 2 3",
    ] {
        assert_eq!(names(fact), Vec::<String>::new(), "{fact}");
    }
}

#[test]
fn plurals_spellings_and_possessives_are_one_name() {
    for (fact, expected) in [
        ("The harbours of the coast are deep.", vec!["harbor"]),
        ("A harbor is shallow.", vec!["harbor"]),
        ("The bee's wings are thin.", vec!["bee", "wing"]),
        ("Mice eat wheat.", vec!["mouse", "wheat"]),
        ("A fog horn was heard.", vec!["foghorn"]),
        ("Curie’s laboratory was cold.", vec!["Curie", "laboratory"]),
    ] {
        assert_eq!(names(fact), expected, "{fact}");
    }
}

#[test]
fn verbs_are_no_nouns() {
    for (fact, not) in [
        ("The Moon pulls on the Earth.", "pull"),
        ("The peatlands store a third of the carbon.", "store"),
        ("The herons nest on islands.", "nest"),
        ("They show the herons.", "show"),
    ] {
        let names = names(fact);
        assert!(!names.iter().any(|name| name.contains(not)), "{fact}: {names:?}");
    }
}

#[test]
fn people_are_one_by_their_last_name() {
    let facts =
        ["Marie Curie discovered polonium.", "Curie won a medal.", "The prize went to Curie in 1903."];
    for found in found(&facts, None, "en") {
        assert!(found.iter().any(|found| found.name == "Marie Curie"), "{found:?}");
    }
    assert_eq!(found(&facts, None, "en")[1][0].forms, ["Curie"]);
    // Which one is not known, so it is neither.
    let facts = ["Marie Curie met Pierre Curie.", "The prize went to Curie in 1903."];
    assert!(!found(&facts, None, "en")[1].iter().any(|found| found.name.contains("Curie")));
}

#[test]
fn abbreviations_are_what_they_were_said_to_stand_for() {
    let facts = ["Deoxyribonucleic acid (DNA) carries genes.", "Cells copy DNA with care."];
    let found = found(&facts, None, "en");
    assert_eq!(found[0][0].name, "deoxyribonucleic acid");
    assert_eq!(found[0][0].forms, ["Deoxyribonucleic acid", "DNA"]);
    assert!(found[1].iter().any(|found| found.name == "deoxyribonucleic acid" && found.forms == ["DNA"]));
    let found = super::extract(
        &["The Halden Tidal Observatory (HTO) opened.", "The HTO closed in 1998."],
        None,
        None,
        &contexts(),
    );
    assert_eq!(found[1][0].name, "Halden Tidal Observatory");
}

#[test]
fn countries_have_one_name() {
    for fact in [
        "The law of the UK was changed.",
        "The law of the United Kingdom was changed.",
        "The law of the U.K. was changed.",
    ] {
        let names = names(fact);
        assert!(names.contains(&"United Kingdom".to_owned()), "{fact}: {names:?}");
    }
    assert_eq!(shown("Ships sail to the US.")[1], "United States [Country] name");
}

#[test]
fn another_name_that_a_fact_gives_is_an_alias() {
    let facts = ["William Thomson, later Lord Kelvin, built a machine.", "Lord Kelvin died in Largs."];
    let found = found(&facts, None, "en");
    assert!(
        found[1].iter().any(|found| found.name == "William Thomson" && found.forms == ["Lord Kelvin"]),
        "{found:?}"
    );
}

#[test]
fn a_title_that_names_something_belongs_to_every_fact() {
    let facts = ["The lighthouse of Cape Arden was built in 1867.", "The lamp burned rapeseed oil."];
    let about = |title: &str| found(&facts, Some(title), "en");
    let all = about("The lighthouse of Cape Arden | Coast News");
    for found in &all {
        let title = found.iter().find(|found| found.found_by == FoundBy::Title).unwrap();
        assert_eq!((title.name.as_str(), title.place.label()), ("lighthouse of Cape Arden", "Building"));
    }
    for headline in [
        "Why lighthouses matter",
        "How a lamp burned oil",
        "Home",
        "Cape Arden closes its lighthouse",
        "The Harbour Bridge",
        "",
        "???",
    ] {
        assert!(about(headline).iter().flatten().all(|found| found.found_by != FoundBy::Title), "{headline}");
    }
}

#[test]
fn other_languages_give_names_only() {
    let all = |fact: &str, language: &str| -> Vec<String> {
        found(&[fact], None, language).remove(0).into_iter().map(|found| found.name).collect()
    };
    assert_eq!(
        all("Le phare fut construit par Augustin Fresnel en Bretagne.", "fr"),
        ["Augustin Fresnel", "Bretagne"]
    );
    assert_eq!(
        all("Der Leuchtturm wurde von Albert Einstein in Paris besucht.", "de"),
        ["Albert Einstein", "Paris"]
    );
    assert_eq!(all("Станцию построил Иван Петров.", "ru"), ["Иван Петров"]);
    assert_eq!(all("东湖分馆试用了三个月。", "zh"), Vec::<String>::new());
    assert_eq!(all("قالت مديرة الحديقة.", "ar"), Vec::<String>::new());
}

#[test]
fn one_thing_has_one_context_in_a_source() {
    let facts = ["The barque Helena was lost.", "Helena was never found.", "Nobody saw Helena sink."];
    let found = found(&facts, None, "en");
    let places: Vec<&str> = found
        .iter()
        .flatten()
        .filter(|found| found.name == "Helena")
        .map(|found| found.place.label())
        .collect();
    assert_eq!(places, ["Means of transportation"; 3]);
}

#[test]
fn a_repository_with_other_contexts_is_served_as_well() {
    let own = [Context {
        label: "Product".to_owned(),
        description: String::new(),
        ontology_class: None,
        concept_count: 0,
        merging_into: None,
    }];
    let found = extract(&["Bees make honey."], None, Some("en"), &own);
    assert!(
        found[0].iter().all(|found| found.place == Place::Unmapped("Concept".to_owned()))
            && found[0].len() == 2
    );
}

#[test]
fn the_rules_have_a_hash_of_their_own() {
    assert_ne!(promptset_hash(), crate::extractive::promptset_hash());
    assert_ne!(promptset_hash(), crate::Promptset::builtin().registry_hash());
    assert_eq!(MODEL, "builtin-concepts-1");
}

#[test]
fn the_built_in_contexts_are_those_of_the_configuration() {
    let lines =
        include_str!("../../../okt-config/ontology.tsv").lines().filter(|line| !line.starts_with('#'));
    let listed: Vec<Vec<&str>> = lines.map(|line| line.split('\t').take(2).collect()).collect();
    let contexts = contexts();
    let own: Vec<Vec<&str>> = contexts
        .iter()
        .map(|context| vec![context.label.as_str(), context.ontology_class.as_deref().unwrap()])
        .collect();
    assert_eq!(own, listed);
}
