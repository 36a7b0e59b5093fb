//! Which language a text is in.

use whatlang::{Lang, Script};

/// Fewer letters say nothing.
const FEWEST: usize = 40;
/// More are not looked at.
const MOST: usize = 20_000;

/// Fewer of its commonest words say nothing about a language.
const FEWEST_WORDS: usize = 2;

/// ISO 639-1. What the document claims holds where the text agrees or does not say; without a claim, what can be told
/// from the text: by its letters if that is sure, or else by the commonest words of a few languages.
pub fn of(text: &str, claimed: Option<&str>) -> Option<String> {
    let claimed = claimed.and_then(code);
    let sample: String = text.chars().take(MOST).collect();
    if sample.chars().filter(|c| c.is_alphabetic()).count() < FEWEST {
        return claimed.or_else(|| by_words(&sample).map(str::to_owned));
    }
    let found = whatlang::detect(&sample);
    let sure = found.as_ref().filter(|info| info.is_reliable()).and_then(|info| short(info.lang()));
    let by_words = by_words(&sample);
    let Some(claimed) = claimed else { return sure.or(by_words).map(str::to_owned) };
    match found {
        Some(info) if !written_in(&claimed, info.script()) => Some(sure.map_or(claimed, str::to_owned)),
        // Templates claim a language whatever is written into them. Against it both ways of telling have to agree, since
        // neighbours are easily taken for each other; for what has no list of words the letters alone have to do, and
        // only against English, which is claimed most.
        Some(info) if info.is_reliable() && info.confidence() > 0.9 => {
            let other = sure.filter(|other| *other != claimed);
            let agreed = by_words == other || (claimed == "en" && by_words.is_none());
            Some(other.filter(|_| agreed).map_or(claimed, str::to_owned))
        }
        _ => Some(claimed),
    }
}

/// Whether a text may be in a language, by its letters alone.
pub fn is_written_in(text: &str, code: &str) -> bool {
    whatlang::detect_script(text).is_none_or(|script| written_in(code, script))
}

/// Words that are common in one of these languages and in no other of them.
const WORDS: [(&str, &str); 7] = [
    ("en", "the of and is was were are with which from that this has have been not its their by"),
    (
        "de",
        "der die das und ist war wurde werden den dem mit von eine einen einem nicht auf im zu sich liegt auch",
    ),
    ("fr", "le les des est et dans une du au aux qui pour sur avec pas été était sont cette ses plus"),
    ("es", "el los las y es una por con del fue más como pero su sus también está son tiene desde"),
    ("it", "il gli è di della del nel nella che per una con sono più anche dal alla fu dei delle"),
    ("pt", "o os as é uma do da dos das em no na não com foi mais são também pelo pela ao"),
    ("nl", "de het een en is van op met niet zijn aan door voor werd wordt ook naar uit bij"),
];

/// The language of [`WORDS`] whose words stand in a text at least twice as often as those of any other.
fn by_words(text: &str) -> Option<&'static str> {
    let mut counts = [0_usize; WORDS.len()];
    for word in text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        for (count, (_, words)) in counts.iter_mut().zip(WORDS) {
            *count += usize::from(words.split(' ').any(|known| known == word));
        }
    }
    let (best, most) = counts.iter().enumerate().max_by_key(|(_, count)| **count)?;
    let next = counts.iter().enumerate().filter(|(at, _)| *at != best).map(|(_, count)| *count).max()?;
    (*most >= FEWEST_WORDS && *most >= next * 2).then(|| WORDS[best].0)
}

/// `pt` of `pt-BR`; two letters or nothing.
pub fn code(claim: &str) -> Option<String> {
    let code = claim.trim().split(['-', '_', ',', ' ']).next()?.to_ascii_lowercase();
    (code.len() == 2 && code.bytes().all(|b| b.is_ascii_lowercase())).then_some(code)
}

/// Whether a language can be written so, for those that are only written in one way. Others may be anything.
fn written_in(code: &str, script: Script) -> bool {
    match code {
        "en" | "de" | "fr" | "es" | "it" | "pt" | "nl" | "pl" | "sv" | "da" | "fi" | "cs" | "hu" | "ro"
        | "tr" | "vi" | "id" | "nb" | "no" | "nn" | "et" | "lv" | "lt" | "sk" | "sl" | "ca" => {
            script == Script::Latin
        }
        "ru" | "uk" | "bg" | "be" | "mk" => script == Script::Cyrillic,
        "ar" | "fa" | "ur" => script == Script::Arabic,
        "zh" => script == Script::Mandarin,
        "ja" => matches!(script, Script::Hiragana | Script::Katakana | Script::Mandarin),
        "ko" => script == Script::Hangul,
        "el" => script == Script::Greek,
        "he" | "yi" => script == Script::Hebrew,
        "hi" | "mr" | "ne" => script == Script::Devanagari,
        "th" => script == Script::Thai,
        _ => true,
    }
}

fn short(language: Lang) -> Option<&'static str> {
    const SHORT: [(Lang, &str); 70] = [
        (Lang::Epo, "eo"),
        (Lang::Eng, "en"),
        (Lang::Rus, "ru"),
        (Lang::Cmn, "zh"),
        (Lang::Spa, "es"),
        (Lang::Por, "pt"),
        (Lang::Ita, "it"),
        (Lang::Ben, "bn"),
        (Lang::Fra, "fr"),
        (Lang::Deu, "de"),
        (Lang::Ukr, "uk"),
        (Lang::Kat, "ka"),
        (Lang::Ara, "ar"),
        (Lang::Hin, "hi"),
        (Lang::Jpn, "ja"),
        (Lang::Heb, "he"),
        (Lang::Yid, "yi"),
        (Lang::Pol, "pl"),
        (Lang::Amh, "am"),
        (Lang::Jav, "jv"),
        (Lang::Kor, "ko"),
        (Lang::Nob, "nb"),
        (Lang::Dan, "da"),
        (Lang::Swe, "sv"),
        (Lang::Fin, "fi"),
        (Lang::Tur, "tr"),
        (Lang::Nld, "nl"),
        (Lang::Hun, "hu"),
        (Lang::Ces, "cs"),
        (Lang::Ell, "el"),
        (Lang::Bul, "bg"),
        (Lang::Bel, "be"),
        (Lang::Mar, "mr"),
        (Lang::Kan, "kn"),
        (Lang::Ron, "ro"),
        (Lang::Slv, "sl"),
        (Lang::Hrv, "hr"),
        (Lang::Srp, "sr"),
        (Lang::Mkd, "mk"),
        (Lang::Lit, "lt"),
        (Lang::Lav, "lv"),
        (Lang::Est, "et"),
        (Lang::Tam, "ta"),
        (Lang::Vie, "vi"),
        (Lang::Urd, "ur"),
        (Lang::Tha, "th"),
        (Lang::Guj, "gu"),
        (Lang::Uzb, "uz"),
        (Lang::Pan, "pa"),
        (Lang::Aze, "az"),
        (Lang::Ind, "id"),
        (Lang::Tel, "te"),
        (Lang::Pes, "fa"),
        (Lang::Mal, "ml"),
        (Lang::Ori, "or"),
        (Lang::Mya, "my"),
        (Lang::Nep, "ne"),
        (Lang::Sin, "si"),
        (Lang::Khm, "km"),
        (Lang::Tuk, "tk"),
        (Lang::Aka, "ak"),
        (Lang::Zul, "zu"),
        (Lang::Sna, "sn"),
        (Lang::Afr, "af"),
        (Lang::Lat, "la"),
        (Lang::Slk, "sk"),
        (Lang::Cat, "ca"),
        (Lang::Tgl, "tl"),
        (Lang::Hye, "hy"),
        (Lang::Cym, "cy"),
    ];
    SHORT.iter().find(|(known, _)| *known == language).map(|(_, code)| *code)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GERMAN: &str = "Der Ausschuss hat am Montag beschlossen, dass die Brücke im Frühjahr gesperrt wird, weil \
                          die Pfeiler erneuert werden müssen.";
    const RUSSIAN: &str =
        "Комиссия решила закрыть мост весной, потому что его опоры нужно заменить полностью.";

    #[test]
    fn the_claim_of_a_document_holds_where_it_can() {
        assert_eq!(of(GERMAN, Some("de-AT")).as_deref(), Some("de"));
        assert_eq!(of("Kurz.", Some("DE")).as_deref(), Some("de"));
        assert_eq!(of(RUSSIAN, Some("en")).as_deref(), Some("ru"));
        assert_eq!(of(GERMAN, Some("en")).as_deref(), Some("de"));
    }

    #[test]
    fn a_claim_is_believed_only_where_the_text_agrees() {
        const ENGLISH: &str = "The committee has decided that the bridge is closed in the spring, because the pillars of \
                               the bridge have to be renewed by the city, which was not expected.";
        assert_eq!(of(ENGLISH, Some("de")).as_deref(), Some("en"));
        assert_eq!(of(ENGLISH, Some("en-GB")).as_deref(), Some("en"));
        assert_eq!(of(GERMAN, Some("fr")).as_deref(), Some("de"));
        // Neighbours are easily taken for each other.
        let norwegian =
            "Komiteen har bestemt at broen skal stenges til våren fordi pilarene må fornyes helt.";
        assert_eq!(of(norwegian, Some("nb")).as_deref(), Some("nb"));
    }

    #[test]
    fn short_texts_have_a_language() {
        for (text, language) in [
            ("La ciudad de Sevilla tiene cuatro puentes. El río es largo y los puentes son altos.", "es"),
            ("Le port de Lyon est fermé. Les bateaux sont dans le port de la ville.", "fr"),
            ("Der Hafen von Köln ist zu. Die Schiffe liegen auf dem Rhein.", "de"),
            ("Il porto di Genova è chiuso. Le navi sono nel golfo.", "it"),
            ("O porto do Porto é antigo. Os navios são do rio Douro.", "pt"),
            ("De haven van Rotterdam is groot. Het schip ligt op de rivier.", "nl"),
            ("The port of Halden is closed. Ships are in the river.", "en"),
        ] {
            assert_eq!(of(text, None).as_deref(), Some(language), "{text}");
        }
    }

    #[test]
    fn without_a_claim_only_a_sure_answer_counts() {
        assert_eq!(of(GERMAN, None).as_deref(), Some("de"));
        assert_eq!(of("Too short.", None), None);
        assert_eq!(of("12345 67890 +++", None), None);
    }
}
