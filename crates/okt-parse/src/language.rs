//! Which language a text is in.

use whatlang::{Lang, Script};

/// Fewer letters say nothing.
const FEWEST: usize = 40;
/// More are not looked at.
const MOST: usize = 20_000;

/// ISO 639-1. What the document claims holds unless the script of its text makes it impossible; without a claim, what
/// can be told from the text if it is sure.
pub fn of(text: &str, claimed: Option<&str>) -> Option<String> {
    let claimed = claimed.and_then(code);
    let sample: String = text.chars().take(MOST).collect();
    if sample.chars().filter(|c| c.is_alphabetic()).count() < FEWEST {
        return claimed;
    }
    let found = whatlang::detect(&sample);
    let Some(claimed) = claimed else {
        return found
            .filter(whatlang::Info::is_reliable)
            .and_then(|info| short(info.lang()))
            .map(str::to_owned);
    };
    match found {
        Some(info) if !written_in(&claimed, info.script()) => {
            Some(short(info.lang()).filter(|_| info.is_reliable()).map_or(claimed, str::to_owned))
        }
        // Templates claim English whatever is written into them.
        Some(info) if claimed == "en" && info.is_reliable() && info.confidence() > 0.9 => {
            Some(short(info.lang()).map_or(claimed, str::to_owned))
        }
        _ => Some(claimed),
    }
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
    fn without_a_claim_only_a_sure_answer_counts() {
        assert_eq!(of(GERMAN, None).as_deref(), Some("de"));
        assert_eq!(of("Too short.", None), None);
        assert_eq!(of("12345 67890 +++", None), None);
    }
}
