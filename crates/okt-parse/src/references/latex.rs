//! The words of LaTeX that stand in titles and names, as characters.

use unicode_normalization::char::compose;

/// Text without commands, braces and signs of typesetting.
pub fn text(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut math = false;
    while let Some(c) = rest.chars().next() {
        let (taken, behind) = match c {
            '\\' => command(&rest[1..], math, &mut out),
            '$' => {
                math = !math;
                (1, None)
            }
            '_' | '^' if math => (raised(rest, c == '^', &mut out), None),
            '-' if !math && rest.starts_with("---") => (3, Some('—')),
            '-' if !math && rest.starts_with("--") => (2, Some('–')),
            '`' if rest.starts_with("``") => (2, Some('“')),
            '\'' if rest.starts_with("''") => (2, Some('”')),
            '{' | '}' => (1, None),
            '~' => (1, Some(' ')),
            c => (c.len_utf8(), Some(c)),
        };
        out.extend(behind);
        rest = &rest[taken..];
    }
    out
}

/// A number or an address, in which only what had to be written in another way is put back.
pub fn verbatim(source: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("\\textasciitilde", "~"),
        ("\\textunderscore", "_"),
        ("\\textless", "<"),
        ("\\textgreater", ">"),
        ("\\url", ""),
        ("\\href", ""),
        ("$\\sim$", "~"),
        ("$<$", "<"),
        ("$>$", ">"),
    ];
    // `\href{address}{words}`.
    let links = source.contains("\\href");
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        let word = WORDS.iter().find(|(word, _)| matches!(c, '\\' | '$') && rest.starts_with(word));
        match (word, c) {
            (Some((word, sign)), _) => {
                out.push_str(sign);
                taken = word.len();
            }
            (None, '}') if links => out.push(' '),
            (None, '{' | '}' | '\\') => {}
            (None, c) => out.push(c),
        }
        rest = &rest[taken..];
    }
    out
}

/// What stands behind a backslash. Gives back how much of the whole was taken, backslash included.
fn command(rest: &str, math: bool, out: &mut String) -> (usize, Option<char>) {
    let Some(first) = rest.chars().next() else { return (1, None) };
    let name = &rest[..rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len())];
    if name.is_empty() {
        let taken = 1 + first.len_utf8();
        return match first {
            '-' | '/' | '!' | '(' | ')' | '@' => (taken, None),
            '\\' | ',' | ';' | '~' if math || first != '~' => (taken, Some(' ')),
            ':' if math => (taken, Some(' ')),
            first => match mark(rest.get(..first.len_utf8()).unwrap_or_default()) {
                Some(mark) => accented(&rest[first.len_utf8()..], taken, mark),
                None => (taken, Some(first)),
            },
        };
    }
    let behind = &rest[name.len()..];
    if let Some(mark) = mark(name) {
        return accented(behind, 1 + name.len(), mark);
    }
    out.push_str(symbol(name));
    // A space behind a command only ends it.
    let spaces = usize::from(behind.starts_with(' '));
    (1 + name.len() + spaces, None)
}

/// The letter that carries a mark: `{o}`, ` o`, `o`, `{\i}`.
fn accented(rest: &str, taken: usize, mark: char) -> (usize, Option<char>) {
    let behind = rest.trim_start_matches([' ', '{']);
    let skipped = rest.len() - behind.len();
    let dotless = ["\\i", "\\j"].iter().find(|word| {
        behind.strip_prefix(**word).is_some_and(|next| !next.starts_with(|c: char| c.is_ascii_alphabetic()))
    });
    let (letter, length) = match (dotless, behind.chars().next()) {
        (Some(word), _) => (if *word == "\\i" { 'i' } else { 'j' }, 2),
        (None, Some(letter)) if letter.is_alphabetic() => (letter, letter.len_utf8()),
        _ => return (taken, None),
    };
    let taken = taken + skipped + length;
    (taken, Some(compose(letter, mark).unwrap_or(letter)))
}

/// Digits below or above the line: `_2`, `^{18}`, `_{\textrm{2}}`. Anything else stays as it is. Gives back how much
/// was taken.
fn raised(rest: &str, above: bool, out: &mut String) -> usize {
    let signs = if above { "⁰¹²³⁴⁵⁶⁷⁸⁹" } else { "₀₁₂₃₄₅₆₇₈₉" };
    let opened = ["{\\textrm{", "{\\mathrm{", "{"].iter().find_map(|open| rest[1..].strip_prefix(open));
    let (braced, inner) = (opened.is_some(), opened.unwrap_or(&rest[1..]));
    let most = if braced { 4 } else { 1 };
    let digits: Vec<u32> = inner.chars().map_while(|c| c.to_digit(10)).take(most).collect();
    if digits.is_empty() || (braced && !inner[digits.len()..].starts_with('}')) {
        out.push_str(&rest[..1]);
        return 1;
    }
    out.extend(digits.iter().filter_map(|digit| signs.chars().nth(usize::try_from(*digit).ok()?)));
    rest.len() - inner.len() + digits.len()
}

fn mark(name: &str) -> Option<char> {
    Some(match name {
        "`" => '\u{300}',
        "'" => '\u{301}',
        "^" => '\u{302}',
        "~" => '\u{303}',
        "=" => '\u{304}',
        "u" => '\u{306}',
        "." => '\u{307}',
        "\"" => '\u{308}',
        "r" => '\u{30a}',
        "H" => '\u{30b}',
        "v" => '\u{30c}',
        "d" => '\u{323}',
        "c" => '\u{327}',
        "k" => '\u{328}',
        "b" => '\u{331}',
        _ => return None,
    })
}

#[rustfmt::skip] // A line for each would hide the rest of the file.
const SYMBOLS: &[(&str, &str)] = &[
    ("aa", "å"), ("AA", "Å"), ("ae", "æ"), ("AE", "Æ"), ("oe", "œ"), ("OE", "Œ"), ("o", "ø"), ("O", "Ø"),
    ("l", "ł"), ("L", "Ł"), ("ss", "ß"), ("dh", "ð"), ("DH", "Ð"), ("dj", "đ"), ("DJ", "Đ"), ("th", "þ"),
    ("TH", "Þ"), ("ng", "ŋ"), ("NG", "Ŋ"), ("i", "ı"), ("j", "ȷ"), ("LaTeX", "LaTeX"), ("TeX", "TeX"),
    ("textendash", "–"), ("textemdash", "—"), ("textquoteleft", "‘"), ("textquoteright", "’"),
    ("textquotedblleft", "“"), ("textquotedblright", "”"), ("textquotesingle", "'"), ("guillemotleft", "«"),
    ("guillemotright", "»"), ("quotedblbase", "„"), ("textexclamdown", "¡"), ("textquestiondown", "¿"),
    ("textdegree", "°"), ("degree", "°"), ("textregistered", "®"), ("texttrademark", "™"),
    ("textcopyright", "©"), ("copyright", "©"), ("S", "§"), ("P", "¶"), ("pounds", "£"), ("texteuro", "€"),
    ("euro", "€"), ("dots", "…"), ("ldots", "…"), ("textellipsis", "…"), ("textbullet", "•"),
    ("textbackslash", "\\"), ("backslash", "\\"), ("textasciitilde", "~"), ("sim", "~"),
    ("textasciicircum", "^"), ("textunderscore", "_"), ("textbar", "|"), ("textless", "<"),
    ("textgreater", ">"), ("textbraceleft", "{"), ("textbraceright", "}"), ("textdollar", "$"),
    ("space", " "), ("quad", " "), ("times", "×"), ("pm", "±"), ("cdot", "·"), ("circ", "°"), ("infty", "∞"),
    ("le", "≤"), ("leq", "≤"), ("ge", "≥"), ("geq", "≥"), ("neq", "≠"), ("approx", "≈"), ("to", "→"),
    ("rightarrow", "→"), ("leftarrow", "←"), ("in", "∈"), ("sqrt", "√"), ("ell", "ℓ"), ("hbar", "ħ"),
    ("alpha", "α"), ("beta", "β"), ("gamma", "γ"), ("delta", "δ"), ("epsilon", "ε"), ("varepsilon", "ε"),
    ("zeta", "ζ"), ("eta", "η"), ("theta", "θ"), ("iota", "ι"), ("kappa", "κ"), ("lambda", "λ"), ("mu", "μ"),
    ("nu", "ν"), ("xi", "ξ"), ("pi", "π"), ("rho", "ρ"), ("sigma", "σ"), ("tau", "τ"), ("upsilon", "υ"),
    ("phi", "φ"), ("varphi", "φ"), ("chi", "χ"), ("psi", "ψ"), ("omega", "ω"), ("Gamma", "Γ"), ("Delta", "Δ"),
    ("Theta", "Θ"), ("Lambda", "Λ"), ("Xi", "Ξ"), ("Pi", "Π"), ("Sigma", "Σ"), ("Phi", "Φ"), ("Psi", "Ψ"),
    ("Omega", "Ω"),
];

/// Commands that are a character. Those that only say how words look are nothing, and their words stay.
fn symbol(name: &str) -> &'static str {
    SYMBOLS.iter().find(|(word, _)| *word == name).map_or("", |(_, sign)| sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_and_symbols_become_characters() {
        for (source, expected) in [
            (r#"Schr{\"o}dinger, G\"odel, K{\"{a}}fer, \"{U}ber"#, "Schrödinger, Gödel, Käfer, Über"),
            (
                r"Erd\H{o}s, Fran\c{c}ois, Ho\v{r}ava, \v Capek, {\'E}variste",
                "Erdős, François, Hořava, Čapek, Évariste",
            ),
            (
                r#"Mart{\'\i}nez, na{\"\i}ve, {\O}re, \AA{}ngstr{\"o}m, Stra{\ss}e"#,
                "Martínez, naïve, Øre, Ångström, Straße",
            ),
            (r"\'{\i}, \L{}ukasiewicz, {\o}l, \o re", "í, Łukasiewicz, øl, øre"),
            (
                r"The {DNA} of \emph{E. coli} \& more: 5\% \$3 \#1 a\_b",
                "The DNA of E. coli & more: 5% $3 #1 a_b",
            ),
            (r"CO$_2$ and $^{18}$O, $x_i$, $\alpha$-decay", "CO₂ and ¹⁸O, x_i, α-decay"),
            (r"``Quoted'' A--Z --- done~now", "“Quoted” A–Z — done now"),
            (r"{\em words} {\itshape more}", "words more"),
            ("\\", ""),
            (r"\'", ""),
            (r"\unknown", ""),
            ("日本\\'", "日本"),
        ] {
            assert_eq!(text(source), expected, "{source}");
        }
    }

    #[test]
    fn addresses_keep_their_signs() {
        assert_eq!(
            verbatim(r"https://a.example/\~{}x\_y--z\%20?a=1\&b"),
            "https://a.example/~x_y--z%20?a=1&b"
        );
        assert_eq!(verbatim(r"\url{https://a.example/{\textasciitilde}x}"), "https://a.example/~x");
        assert_eq!(verbatim(r"\href{https://a.example}{words}"), "https://a.example words ");
        assert_eq!(verbatim(r"10.1000/a\_b$<$c"), "10.1000/a_b<c");
    }
}
