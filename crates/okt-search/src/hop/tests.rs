use super::*;

#[test]
fn titles_in_the_question_are_anchors() {
    let titles = [
        (1, "Mercury (planet)"),
        (2, "New York"),
        (3, "New York City"),
        (4, "York"),
        (5, "Who"),
        (6, "Élan Vital"),
        (7, "Mercury Theatre"),
    ];
    let found = |question: &str| anchors(question, &titles);
    assert_eq!(found("How far is mercury from New York City?"), [1, 3]);
    // Not nested everywhere.
    assert_eq!(found("Is New York City in New York?"), [2, 3]);
    assert_eq!(found("who wrote of the elan vital"), [6]);
    assert_eq!(found("York and mercurys"), Vec::<i32>::new());
    assert_eq!(found(""), Vec::<i32>::new());
    assert_eq!(anchors("anything", &[(1, "(only)"), (2, "")]), Vec::<i32>::new());
}

const FILM: u32 = 1;
const DIRECTOR: u32 = 2;
const OTHER_FILM: u32 = 3;
const CITY: u32 = 4;
const NOISE: u32 = 5;

/// Who was the mother of the director of the film? The film names its director; the text about the director,
/// which says who the mother was, shares nothing with the question.
struct Example {
    keys: HashMap<u32, Vec<(&'static str, bool)>>,
    frequencies: HashMap<&'static str, u64>,
    named: HashSet<&'static str>,
}

impl Example {
    fn new() -> Self {
        Self {
            keys: HashMap::from([
                (FILM, vec![("film", true), ("director", false), ("paris", false), ("alone", false)]),
                (DIRECTOR, vec![("director", true), ("director", false), ("mother", false)]),
                (OTHER_FILM, vec![("film two", true), ("director", false)]),
                (CITY, vec![("paris", true)]),
                (NOISE, vec![("noise", true)]),
            ]),
            frequencies: HashMap::from([
                ("film", 2),
                ("director", 3),
                ("paris", 90),
                ("mother", 2),
                ("alone", 1),
            ]),
            named: HashSet::from(["film"]),
        }
    }

    fn graph<'a>(&'a self, cosines: Option<&'a HashMap<u32, f64>>) -> Graph<'a, u32, &'static str> {
        Graph { keys: &self.keys, frequencies: &self.frequencies, units: 1000, named: &self.named, cosines }
    }
}

/// The film is found, then noise.
const RANKED: [(u32, f64); 4] = [(FILM, 1.0), (10, 0.5), (11, 0.45), (12, 0.2)];

fn units(found: &[Hopped<u32, &'static str>]) -> Vec<u32> {
    found.iter().map(|hopped| hopped.unit).collect()
}

#[test]
fn a_question_reaches_the_passage_behind_the_one_it_finds() {
    let example = Example::new();
    let found = Hop::default().rank(&RANKED, example.graph(None));
    // The first two stay. The director's own text gains .5 and the other film, which only names the director,
    // half of it.
    assert_eq!(units(&found), [FILM, 10, DIRECTOR, 11, OTHER_FILM, 12]);
    assert_eq!(found[2], Hopped { unit: DIRECTOR, score: 0.5, via: Some("director") });
    assert_eq!((found[4].score, found[4].via), (0.25, Some("director")));
    assert_eq!((found[0].via, found[1].via), (None, None));
}

#[test]
fn frequent_and_named_concepts_lead_nowhere() {
    let mut example = Example::new();
    // 90 of 1,000 units have Paris, more than two in a hundred.
    assert!(!units(&Hop::default().rank(&RANKED, example.graph(None))).contains(&CITY));
    example.frequencies.insert("paris", 20);
    assert!(units(&Hop::default().rank(&RANKED, example.graph(None))).contains(&CITY));
    example.named.insert("director");
    assert!(!units(&Hop::default().rank(&RANKED, example.graph(None))).contains(&DIRECTOR));
}

#[test]
fn what_is_like_the_question_gains_more() {
    let example = Example::new();
    // 2 · (.2 + .05) against 1 · (.2 + .9).
    let cosines = HashMap::from([(DIRECTOR, 0.05), (OTHER_FILM, 0.9)]);
    let found = Hop::default().rank(&RANKED, example.graph(Some(&cosines)));
    assert_eq!(units(&found)[2], OTHER_FILM);
    let director = found.iter().find(|hopped| hopped.unit == DIRECTOR).unwrap();
    assert!((director.score - 0.5 * 0.5 / 1.1).abs() < 1e-9, "{director:?}");
    // Unlike, and unknown: the base is left to both.
    let cosines = HashMap::from([(DIRECTOR, -0.7)]);
    let found = Hop::default().rank(&RANKED, example.graph(Some(&cosines)));
    let score = |unit| found.iter().find(|hopped| hopped.unit == unit).unwrap().score;
    assert_eq!((score(DIRECTOR), score(OTHER_FILM)), (0.5, 0.25));
}

#[test]
fn a_later_seed_lends_less() {
    let concepts = HashMap::from([
        (1, vec![("a", false)]),
        (2, vec![("b", false)]),
        (3, vec![]),
        (4, vec![("c", false)]),
        (11, vec![("a", false)]),
        (12, vec![("b", false)]),
        (14, vec![("c", false)]),
    ]);
    let frequencies = HashMap::from([("a", 2), ("b", 2), ("c", 2)]);
    let named = HashSet::new();
    let graph = Graph { keys: &concepts, frequencies: &frequencies, units: 10, named: &named, cosines: None };
    let found = Hop::default().rank(&[(1, 1.0), (2, 0.9), (3, 0.8), (4, 0.7)], graph);
    // The fourth lends nothing.
    assert_eq!(units(&found), [1, 2, 3, 4, 11, 12]);
    assert_eq!((found[4].score, found[5].score), (0.5, 0.25));
}

#[test]
fn without_concepts_the_ranking_stays() {
    let (concepts, frequencies, named) = (HashMap::new(), HashMap::new(), HashSet::new());
    let graph: Graph<'_, u32, &str> =
        Graph { keys: &concepts, frequencies: &frequencies, units: 0, named: &named, cosines: None };
    assert_eq!(units(&Hop::default().rank(&RANKED, graph)), [FILM, 10, 11, 12]);
    assert!(Hop::default().rank(&[], graph).is_empty());
}

#[test]
fn a_name_that_stands_in_the_question_is_named() {
    let names = [(1, "Ole Brandt"), (2, "Oslo"), (3, "Brandt Ole"), (4, "The Silent Harbour"), (5, "—")];
    let found = named("Did Ole Brandt, of oslo, film the silent harbour?", &names);
    assert_eq!(found, [1, 2, 4].into_iter().collect());
}
