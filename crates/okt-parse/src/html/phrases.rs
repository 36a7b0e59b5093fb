//! Words by which lines of a site are known, in the languages that most pages are written in.

/// Whether a heading begins a part that is not of the text.
pub fn begins_foreign(heading: &str) -> bool {
    let folded = fold(heading);
    let short = folded.chars().count() <= 60;
    short
        && (FOREIGN_WHOLE.contains(&folded.as_str())
            || FOREIGN.iter().any(|start| {
                folded.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            }))
}

/// Whether a line of so many words is a notice of the site: a credit, a label, an invitation.
pub fn is_notice(line: &str, words: usize) -> bool {
    let folded = fold(line);
    if words <= 4 && LABELS.contains(&folded.as_str()) {
        return true;
    }
    let starts = |list: &[&str]| {
        list.iter().any(|start| {
            folded.strip_prefix(start).is_some_and(|rest| {
                start.ends_with([':', '©', ' ']) || !rest.starts_with(char::is_alphanumeric)
            })
        })
    };
    (words <= 16 && starts(CREDITS)) || starts(INVITATIONS)
}

/// Whether a line tells a day or a time of day.
pub fn has_date(line: &str) -> bool {
    let folded = fold(line);
    let mut year = false;
    let mut numbers = 0;
    let mut clock = false;
    let mut month = false;
    for word in folded.split(|c: char| !(c.is_alphanumeric() || c == ':')) {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        if word.split_once(':').is_some_and(|(hour, minute)| {
            matches!(hour.len(), 1 | 2)
                && hour.bytes().all(|b| b.is_ascii_digit())
                && minute.len() >= 2
                && minute.bytes().take(2).all(|b| b.is_ascii_digit())
        }) {
            clock = true;
        } else if digits == 4 && digits == word.len() && (word.starts_with("19") || word.starts_with("20")) {
            year = true;
        } else if matches!(digits, 1 | 2) && word.len() <= digits + 2 {
            numbers += 1;
        } else if digits == 0
            && MONTHS.iter().any(|name| word.starts_with(name))
            && word.chars().count() <= 10
        {
            month = true;
        } else if word.contains('年') || word.contains('月') {
            return true;
        }
    }
    (year && (month || numbers >= 2))
        || (clock && (month || year || numbers >= 2))
        || (month && numbers > 0 && folded.chars().count() <= 24)
}

/// Lower case, one space between words, without ornaments at the ends.
fn fold(line: &str) -> String {
    let joined = line.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    joined
        .trim_matches(|c: char| !(c.is_alphanumeric() || matches!(c, ':' | '©' | '(' | '[')))
        .trim_start_matches(['(', '['])
        .to_owned()
}

const FOREIGN_WHOLE: &[&str] = &[
    "related",
    "comments",
    "comment",
    "recommended",
    "trending",
    "popular",
    "guides",
    "tags",
    "topics",
    "share",
    "newsletter",
    "kommentare",
    "kommentar",
    "schlagwörter",
    "themen",
    "teilen",
    "anzeige",
    "commentaires",
    "comentarios",
    "comentários",
    "commenti",
    "komentarze",
    "комментарии",
    "advertisement",
    "more stories",
    "latest news",
    "most read",
    "most popular",
    "weiterlesen",
    "author",
    "autor",
    "autorin",
    "read more",
    "see also:",
];

const FOREIGN: &[&str] = &[
    "about the author",
    "related articles",
    "related posts",
    "related stories",
    "related news",
    "related topics",
    "related content",
    "related links",
    "related reading",
    "you may also like",
    "you might also like",
    "you may be interested",
    "more from",
    "more on this",
    "more stories",
    "recommended stories",
    "recommended for you",
    "recommended reading",
    "leave a reply",
    "leave a comment",
    "post a comment",
    "share this",
    "share on",
    "our latest stories",
    "latest stories",
    "latest articles",
    "sign up for",
    "subscribe to",
    "follow us",
    "join the conversation",
    "sponsored links",
    "what to read next",
    "read next",
    "don't miss",
    "don’t miss",
    "über den autor",
    "über die autorin",
    "das könnte sie auch interessieren",
    "das könnte dich auch interessieren",
    "das könnte ihnen auch gefallen",
    "das könnte dir auch gefallen",
    "mehr zum thema",
    "mehr aus",
    "ähnliche artikel",
    "ähnliche beiträge",
    "ähnliche themen",
    "weitere artikel",
    "weitere beiträge",
    "weitere themen",
    "weitere meldungen",
    "verwandte artikel",
    "verwandte themen",
    "lesen sie auch",
    "lies auch",
    "auch interessant",
    "schreibe einen kommentar",
    "kommentar schreiben",
    "kommentar verfassen",
    "hinterlasse einen kommentar",
    "keine kommentare",
    "newsletter abonnieren",
    "themen im artikel",
    "meistgelesen",
    "diesen artikel teilen",
    "artikel teilen",
    "beitrag teilen",
    "à lire aussi",
    "lire aussi",
    "sur le même sujet",
    "articles similaires",
    "laisser un commentaire",
    "vous aimerez aussi",
    "te puede interesar",
    "también te puede interesar",
    "noticias relacionadas",
    "artículos relacionados",
    "lee también",
    "deja un comentario",
    "deja una respuesta",
    "lo más leído",
    "veja também",
    "leia também",
    "leia mais",
    "notícias relacionadas",
    "deixe um comentário",
    "deixe uma resposta",
    "leggi anche",
    "articoli correlati",
    "potrebbe interessarti",
    "lascia un commento",
    "lees ook",
    "czytaj też",
    "czytaj także",
    "zobacz także",
    "zobacz też",
    "читайте также",
    "похожие",
];

/// Whole lines.
const LABELS: &[&str] = &[
    "advertisement",
    "advert",
    "ad",
    "anzeige",
    "werbung",
    "publicité",
    "publicidad",
    "publicidade",
    "pubblicità",
    "reklama",
    "реклама",
    "iklan",
    "share",
    "share this",
    "share this story",
    "share this article",
    "teilen",
    "tweet",
    "print",
    "drucken",
    "email",
    "e-mail",
    "facebook",
    "twitter",
    "whatsapp",
    "pinterest",
    "linkedin",
    "comments",
    "comment",
    "kommentare",
    "subscribe",
    "back to top",
    "nach oben",
    "read more",
    "mehr",
    "weiterlesen",
    "more",
    "close",
    "caption",
    "play video",
    "watch",
    "story continues below",
    "continue reading",
    "sponsored links",
    "sponsored",
    "related",
    "loading",
    "zurück",
    "follow",
    "photo",
    "pdf",
    "bild anzeigen",
    "bild vergrößern",
    "vergrößern",
];

/// How the credit of a picture, the line of an author or a date begins.
const CREDITS: &[&str] = &[
    "photo:",
    "photos:",
    "photo by ",
    "photograph:",
    "image:",
    "images:",
    "image credit",
    "image copyright",
    "image source",
    "picture:",
    "credit:",
    "credit…",
    "credit...",
    "credits:",
    "©",
    "foto:",
    "fotos:",
    "bild:",
    "bilder:",
    "titelbild:",
    "beitragsbild:",
    "bildquelle",
    "bildnachweis",
    "quelle: foto",
    "foto de ",
    "imagen:",
    "imagem:",
    "crédit photo",
    "zdjęcie:",
    "fot.",
    "фото:",
    "kuva:",
    "published:",
    "published on ",
    "first published",
    "last updated",
    "last modified",
    "updated:",
    "updated on ",
    "updated at ",
    "posted:",
    "posted on ",
    "posted by ",
    "posted in ",
    "written by ",
    "filed under",
    "filed in",
    "tags:",
    "tag:",
    "topics:",
    "category:",
    "categories:",
    "keywords:",
    "veröffentlicht am ",
    "veröffentlicht:",
    "zuletzt aktualisiert",
    "aktualisiert",
    "erstellt am ",
    "stand:",
    "schlagwörter:",
    "schlagworte:",
    "kategorie:",
    "kategorien:",
    "themen:",
    "publié le ",
    "mis à jour le ",
    "publicado em ",
    "publicado el ",
    "atualizado em ",
    "related:",
    "related post:",
    "related posts:",
    "related article:",
    "related story:",
    "read more:",
    "read also:",
    "also read:",
    "read:",
    "see also:",
    "see more:",
    "watch:",
    "more:",
    "lesen sie auch",
    "lies auch",
    "mehr zum thema",
    "mehr dazu:",
    "siehe auch:",
    "lire aussi",
    "à lire aussi",
    "leia também",
    "leia mais",
    "veja também",
    "lee también",
    "te puede interesar",
    "mira:",
    "leggi anche",
    "lees ook",
    "czytaj też",
    "czytaj także",
    "zobacz też",
    "zobacz także",
    "читайте также",
    "source:",
];

/// How a line begins that invites to do something.
const INVITATIONS: &[&str] = &[
    "follow us on",
    "follow us @",
    "subscribe to our",
    "subscribe now",
    "sign up for our",
    "sign up to our",
    "click here to subscribe",
    "like this story?",
    "like us on facebook",
    "join our newsletter",
    "get our newsletter",
    "get the latest news",
    "have a tip?",
    "get the latest updates",
    "folgen sie uns",
    "folge uns",
    "abonnieren sie",
    "abonniere unseren",
    "melden sie sich für",
    "newsletter abonnieren",
    "suivez-nous",
    "abonnez-vous",
    "síguenos en",
    "suscríbete",
    "inscreva-se",
    "siga-nos",
    "seguici su",
    "iscriviti",
    "all rights reserved",
    "copyright ©",
    "alle rechte vorbehalten",
    "tous droits réservés",
    "todos los derechos reservados",
];

/// How months begin, as folded.
const MONTHS: &[&str] = &[
    "jan", "feb", "mär", "mar", "apr", "mai", "may", "jun", "jul", "aug", "sep", "oct", "okt", "nov", "dec",
    "dez", "janv", "fév", "avr", "juin", "juil", "août", "déc", "ene", "abr", "ago", "dic", "fev", "set",
    "out", "gen", "mag", "giu", "lug", "ott", "sty", "lut", "kwi", "maj", "cze", "lip", "sie", "wrz", "paź",
    "lis", "gru", "янв", "фев", "мар", "апр", "мая", "май", "июн", "июл", "авг", "сен", "окт", "ноя", "дек",
];
