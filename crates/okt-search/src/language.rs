//! The languages whose words are stemmed, and whose commonest words are not indexed.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

/// The language to read a text in: the one that is known, else the one that most texts in its letters are in.
pub fn language_of<'a>(known: Option<&'a str>, text: &str) -> Option<&'a str> {
    let by_letters = || match text.chars().find(|c| c.is_alphabetic())? {
        '\u{370}'..='\u{3ff}' => Some("el"),
        '\u{400}'..='\u{4ff}' => Some("ru"),
        '\u{600}'..='\u{6ff}' => Some("ar"),
        'A'..='Z' | 'a'..='z' => Some("en"),
        _ => None,
    };
    known.or_else(by_letters)
}

/// One code for a language, however a source or a question writes it: `de` for `de-AT` and `deu`.
pub fn language_code(code: &str) -> String {
    let first = || code.trim().split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    Language::find(code).map_or_else(first, |language| language.codes[0].to_owned())
}

pub struct Language {
    /// ISO 639 with two and three letters; the first names the language.
    codes: &'static [&'static str],
    stemmer: Option<Algorithm>,
    stop: LazyLock<HashSet<&'static str>>,
}

impl Language {
    /// By a code as sources have it: `de`, `deu`, `de-AT`. None for languages that are indexed as they are
    /// written.
    pub fn find(code: &str) -> Option<&'static Self> {
        let code = code.trim().split(['-', '_']).next()?.to_ascii_lowercase();
        LANGUAGES.iter().find(|language| language.codes.contains(&code.as_str()))
    }

    pub fn english() -> &'static Self {
        &LANGUAGES[0]
    }

    /// Whether a word is too common to be indexed; in small letters, with its accents.
    pub fn is_stop(&self, word: &str) -> bool {
        self.stop.contains(word)
    }

    /// The stem of a word in small letters, with its accents.
    pub fn stem(&self, word: &str) -> String {
        let stemmed = |stemmer| Stemmer::create(stemmer).stem(&prepared(word, stemmer)).into_owned();
        self.stemmer.map_or_else(|| word.to_owned(), stemmed)
    }
}

/// What a stemmer expects to be done before.
fn prepared(word: &str, stemmer: Algorithm) -> Cow<'_, str> {
    match stemmer {
        // Most texts write it without its dots, and so do the endings that the stemmer knows.
        Algorithm::Russian if word.contains('ё') => Cow::Owned(word.replace('ё', "е")),
        Algorithm::Arabic => Cow::Borrowed(without_conjunction(word)),
        _ => Cow::Borrowed(word),
    }
}

/// The stemmer knows `the` and not `and the`, which are written as one. Of short words the first letter may
/// be their own.
fn without_conjunction(word: &str) -> &str {
    const FEWEST: usize = 4;
    let noun = word.strip_prefix(['و', 'ف']).filter(|noun| {
        noun.strip_prefix("ال")
            .is_some_and(|bare| bare.chars().filter(|c| c.is_alphabetic()).count() >= FEWEST)
    });
    noun.unwrap_or(word)
}

const fn language(
    codes: &'static [&'static str],
    stemmer: Option<Algorithm>,
    stop: fn() -> HashSet<&'static str>,
) -> Language {
    Language { codes, stemmer, stop: LazyLock::new(stop) }
}

fn list(words: &'static str) -> HashSet<&'static str> {
    words.split_whitespace().collect()
}

static LANGUAGES: [Language; 21] = [
    language(&["en", "eng"], Some(Algorithm::English), || {
        list(
            "a an and are as at be but by for if in into is it no not of on or such that the their then \
             there these they this to was will with",
        )
    }),
    language(&["de", "deu", "ger"], Some(Algorithm::German), || {
        list(
            "der die das den dem des und oder in im an am auf aus bei mit von vom zu zum zur für ist \
             sind war wurde wird ein eine einen einem einer eines sich nicht auch als es er sie dass \
             wie",
        )
    }),
    language(&["es", "spa"], Some(Algorithm::Spanish), || {
        list(
            "el la los las un una unos unas de del a al en y e o u que es son fue por para con se su \
             sus lo como más no pero le ha este esta",
        )
    }),
    language(&["fr", "fra", "fre"], Some(Algorithm::French), || {
        list(
            "le la les l un une des de du d à au aux en dans et ou que qu qui est sont a été par pour \
             sur avec se s son sa ses ce c cette il elle ne n pas plus",
        )
    }),
    language(&["it", "ita"], Some(Algorithm::Italian), || {
        list(
            "il lo la i gli le l un uno una di del della dei delle dell d a al alla in nel nella da dal \
             e ed o che è sono per con su si non come più anche",
        )
    }),
    language(&["pt", "por"], Some(Algorithm::Portuguese), || {
        list(
            "o a os as um uma de do da dos das em no na nos nas ao à e ou que é são foi por para com se \
             seu sua não mais como mas pelo pela",
        )
    }),
    language(&["nl", "nld", "dut"], Some(Algorithm::Dutch), || {
        list(
            "de het een en of in op van voor met aan door bij naar uit te tot is zijn was werd wordt \
             dat die dit niet ook als er hij zij om maar",
        )
    }),
    language(&["ru", "rus"], Some(Algorithm::Russian), || {
        list(
            "и в во не на с со что как по к ко из у за от до о об для а но же бы ли то это он она они \
             его её ее их был была было были или при так",
        )
    }),
    language(&["ar", "ara"], Some(Algorithm::Arabic), || {
        list(
            "في من على إلى الى عن مع أن ان إن لا ما لم لن هذا هذه ذلك تلك التي الذي الذين هو هي هم كان \
             كانت قد و أو او ثم كل بعد قبل بين",
        )
    }),
    language(&["sv", "swe"], Some(Algorithm::Swedish), || {
        list(
            "och i att det den de som en ett på är var av för med till från om inte har hade han hon \
             sig vid men eller också kan så",
        )
    }),
    language(&["da", "dan"], Some(Algorithm::Danish), || {
        list(
            "og i at det den de som en et på er var af for med til fra om ikke har havde han hun sig \
             ved men eller også kan så",
        )
    }),
    language(&["no", "nb", "nn", "nor", "nob", "nno"], Some(Algorithm::Norwegian), || {
        list(
            "og i å at det den de som en ei et på er var av for med til fra om ikke ikkje har hadde han \
             hun seg ved men eller også kan så",
        )
    }),
    language(&["fi", "fin"], Some(Algorithm::Finnish), || {
        list(
            "ja on ei se että oli ovat olivat hän he ne joka jotka myös kun kuin mutta tai sekä sen \
             sitä hänen niin mukaan ole olla",
        )
    }),
    language(&["hu", "hun"], Some(Algorithm::Hungarian), || {
        list(
            "a az egy és is hogy nem volt van meg de vagy ez ezt azt amely aki ki csak mint már még el \
             sem illetve voltak",
        )
    }),
    language(&["ro", "ron", "rum"], Some(Algorithm::Romanian), || {
        list(
            "și şi în de la pe cu a al ale o un una unei unui din care este sunt fost pentru prin nu se \
             că mai ca sau dar lui",
        )
    }),
    language(&["tr", "tur"], Some(Algorithm::Turkish), || {
        list(
            "ve bir bu da de için ile olarak olan çok daha gibi en ne o ki ama veya ya mi mı her kadar \
             sonra",
        )
    }),
    language(&["el", "ell", "gre"], Some(Algorithm::Greek), || {
        list(
            "ο η το οι τα του της των τον την και στο στη στην στον σε με από για να δεν είναι ήταν που \
             ως ένα μια ένας αυτό θα",
        )
    }),
    language(&["ta", "tam"], Some(Algorithm::Tamil), || {
        list("ஒரு என்று மற்றும் இந்த இது என்ற கொண்டு என்பது பல ஆகும் அல்லது அவர் நான்")
    }),
    // Snowball has no stems for these, but their commonest words would be found in every text.
    language(&["pl", "pol"], None, || {
        list(
            "i w we z ze na do od o u po za dla nie się jest są był była było że to ten ta te jak co \
             który która oraz lub",
        )
    }),
    language(&["cs", "ces", "cze"], None, || {
        list(
            "a v ve na z ze do od o u po za pro s se si je jsou byl byla bylo že to ten ta jak který \
             která i nebo ale",
        )
    }),
    language(&["uk", "ukr"], None, || {
        list(
            "і й та в у на з із до від що як за по для не це він вона вони його її був була було або \
             але про",
        )
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_two_or_three_letters_and_a_region() {
        for code in ["de", "deu", "ger", "DE", "de-AT", "de_CH", " de "] {
            assert_eq!(Language::find(code).map(|found| found.codes[0]), Some("de"), "{code}");
        }
        assert_eq!(Language::find("nob").map(|found| found.codes[0]), Some("no"));
        for code in ["", "xx", "zh", "d", "german"] {
            assert!(Language::find(code).is_none(), "{code}");
        }
        assert_eq!(Language::english().stop.len(), 33);
    }

    #[test]
    fn no_code_names_two_languages() {
        let codes: Vec<_> = LANGUAGES.iter().flat_map(|language| language.codes).collect();
        assert_eq!(codes.iter().collect::<HashSet<_>>().len(), codes.len());
    }
}
