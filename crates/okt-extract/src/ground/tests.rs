//! What a text bears out, and what it does not.

use super::*;

fn bears(text: &str, fact: &str) -> Result<(), Reason> {
    Ground::of(std::iter::once(text)).bears(fact)
}

#[test]
fn a_number_is_there_however_it_is_written() {
    for (text, number) in [
        ("1,200 litres", "1200"),
        ("1200 litres", "1,200"),
        ("1.200 Liter", "1200"),
        ("1’200 Liter", "1'200"),
        ("12 000 litres", "12,000"),
        ("12\u{202f}000 litres", "12 000"),
        ("12,000 litres", "12 000"),
        ("1 234 567,5 m", "1,234,567.5"),
        ("12,34,567 rupees", "1234567"),
        ("3,5 Prozent", "3.5"),
        ("3.50 percent", "3.5"),
        ("0.8 percent", "0,80"),
        ("P = .003", "0.003"),
        ("P = 0.003", ".003"),
        ("on 12.05.2020", "12.05.2020"),
        ("on 12.05.2020", "2020"),
        ("version 1.2.3", "1.2.3"),
        ("years 2011–2019", "2019"),
        ("in 1998.12 The end", "1998"),
        ("10⁶ cells", "10^6"),
        ("CO₂", "CO2"),
        ("٣٫٥ بالمئة", "3.5"),
        ("１８ 年", "18"),
        ("pages 12 340 birds", "340"),
        ("agent 007", "7"),
        ("the 1990s", "1990"),
    ] {
        let fact = format!("{text} {number}");
        assert_eq!(bears(text, &fact), Ok(()), "{number} of {text}");
    }
}

#[test]
fn a_number_that_is_not_there_is_noticed() {
    for (text, number) in [
        ("1,200 litres", "200"),
        ("1,200 litres", "12,00"),
        ("3 and 5 litres", "3.5"),
        ("3.5 litres", "35"),
        ("3.5 litres", "5"),
        ("3.5 litres", "3"),
        ("in 1998", "1999"),
        ("in 1998", "98"),
        ("10⁶ cells", "106"),
        ("on 12.05.2020", "13.05.2020"),
        ("no litres", "1"),
        ("p = .003", "3"),
        ("p < 3", ".3"),
        ("12 litres", "12 000"),
    ] {
        let fact = format!("{text} {number}");
        let refused = Err(Reason::NumberNotInText);
        assert_eq!(bears(text, &fact), refused, "{number} of {text}");
    }
}

#[test]
fn half_of_the_content_words_have_to_be_there_in_some_form() {
    let text = "The grey herons of Lake Ulm nest on three islands and do not migrate in winter.";
    for fact in [
        "Grey herons nest on the islands of Lake Ulm.",
        "A grey heron of Lake Ulm does not migrate.",
        "The herons nesting at Lake Ulm are no migratory birds.",
        "GREY HERONS NEST.",
    ] {
        assert_eq!(bears(text, fact), Ok(()), "{fact}");
    }
    for fact in [
        "Penguins breed along Antarctic coasts.",
        "The grey whale swims from Alaska to Mexico every spring.",
        "Die Graureiher ziehen nirgendwohin, sondern bleiben.",
        "42",
    ] {
        assert_eq!(bears(text, fact), Err(Reason::NotInText), "{fact}");
    }
}

#[test]
fn words_are_compared_without_case_accents_or_spaces_between() {
    for (text, fact) in [
        ("Le café était fermé à Orléans.", "LE CAFE\u{301} ETAIT FERME A ORLEANS."),
        ("本市图书馆昨日宣布，所有分馆的开放时间将延长到晚上十点。", "图书馆的开放时间延长到晚上十点。"),
        ("今日は晴れです。明日は雨でしょう。", "明日は雨でしょう。"),
        ("Русские писатели жили в Москве.", "Писатель жил в Москве."),
        ("서울은 대한민국의 수도이다.", "대한민국의 수도는 서울이다."),
        ("ذهب الطلاب إلى المدرسة.", "الطلاب في المدرسة."),
        ("He ate an egg.", "He ate an egg."),
        ("นกกินปลา", "นกกินปลา"),
    ] {
        assert_eq!(bears(text, fact), Ok(()), "{fact}");
    }
    assert_eq!(bears("本市图书馆昨日宣布延长开放。", "医院正在招聘护士。"), Err(Reason::NotInText));
}

#[test]
fn a_hostile_fact_is_weighed_in_no_time() {
    let digits = "1,".repeat(500_000);
    assert_eq!(bears(&format!("word {digits}"), &format!("word {digits}")), Ok(()));
    let spaced = "100 ".repeat(100_000);
    assert_eq!(bears(&format!("word {spaced}"), "word 100 100"), Ok(()));
}
