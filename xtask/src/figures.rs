//! Figures in a page: a table between two marks, a row for each measurement. Rows of what was not measured anew stay as they are,
//! and so do those that missed their limit.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::cargo::cargo;

const BEGIN: &str = "<!-- figures -->\n";
const END: &str = "<!-- end of figures -->\n";
const HEAD: &str = "\n| | what | figure | | measured |\n|---|---|---|---|---|\n";

/// A measurement: what `okt-test` calls it, and what it shows.
pub struct Measurement {
    pub name: &'static str,
    pub what: &'static str,
}

/// What came of one.
pub struct Figure {
    pub name: &'static str,
    pub what: &'static str,
    pub text: String,
    pub verdict: &'static str,
}

/// Builds `okt` and `okt-test` optimised; returns the latter. These alone: optimising a whole program is slow, and nobody measures
/// the others.
pub fn okt_test() -> anyhow::Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--release", "--locked"]);
    build.args(["-p", "okt-cli", "-p", "okt-testkit", "--bin", "okt", "--bin", "okt-test"]);
    ensure!(build.status().context("can't run cargo")?.success(), "the build failed");
    // Beside this program's own folder, wherever builds go here.
    let own = std::env::current_exe()?;
    let builds = own.parent().and_then(Path::parent).context("this program lies in a folder")?;
    Ok(builds.join("release/okt-test"))
}

/// Those that were named, or all.
pub fn chosen<'a>(all: &'a [Measurement], named: &[String]) -> anyhow::Result<Vec<&'a Measurement>> {
    for name in named {
        ensure!(all.iter().any(|one| one.name == name), "there is no measurement {name}");
    }
    Ok(all.iter().filter(|one| named.is_empty() || named.iter().any(|name| one.name == name)).collect())
}

/// Runs it, shows what it prints, and keeps the lines that are figures.
#[expect(clippy::print_stderr, reason = "a chore talks to the person who runs it")]
pub fn measure(
    measurement: &Measurement,
    command: &mut Command,
    is_figure: impl Fn(&str) -> bool,
) -> anyhow::Result<Figure> {
    let mut running = command.stdout(Stdio::piped()).spawn().context("can't run okt-test")?;
    let (mut kept, mut inconclusive) = (Vec::new(), false);
    let printed = running.stdout.take();
    let read = printed.into_iter().flat_map(|printed| BufReader::new(printed).lines()).try_for_each(|line| {
        let line = line?;
        eprintln!("{line}");
        inconclusive |= line.contains("INCONCLUSIVE");
        if is_figure(&line) {
            kept.push(line.replace('|', "/").split_whitespace().collect::<Vec<_>>().join(" "));
        }
        io::Result::Ok(())
    });
    let ended = running.wait()?;
    read?;
    let verdict = match (ended.success(), inconclusive) {
        (true, _) => "held",
        (false, true) => "INCONCLUSIVE",
        (false, false) => "**missed**",
    };
    let text = if kept.is_empty() { "it came to no figure".to_owned() } else { kept.join("; ") };
    Ok(Figure { name: measurement.name, what: measurement.what, text, verdict })
}

/// Puts the figures into a page below the root of the workspace.
pub fn write(page: &str, order: &[Measurement], figures: &[Figure]) -> anyhow::Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    let processors = std::thread::available_parallelism()?;
    let (day, commit) = (said("date", &["-u", "+%F"])?, said("git", &["rev-parse", "--short", "HEAD"])?);
    let text = fs::read_to_string(&page).with_context(|| format!("can't read {}", page.display()))?;
    let when = format!("{day}, {commit}, {processors} processors");
    let text = with(&text, order, figures, &when).with_context(|| page.display().to_string())?;
    fs::write(&page, text).with_context(|| format!("can't write {}", page.display()))
}

fn with(text: &str, order: &[Measurement], figures: &[Figure], when: &str) -> anyhow::Result<String> {
    let (before, rest) = text.split_once(BEGIN).context("the page has no mark where figures begin")?;
    let (old, after) = rest.split_once(END).context("the page has no mark where figures end")?;
    let mut rows: BTreeMap<&str, String> =
        old.lines().filter_map(|line| Some((name_of(line)?, line.to_owned()))).collect();
    for Figure { name, what, text, verdict } in figures {
        rows.insert(name, format!("| `{name}` | {what} | {text} | {verdict} | {when} |"));
    }
    let mut table = HEAD.to_owned();
    for row in order.iter().filter_map(|measurement| rows.get(measurement.name)) {
        table.push_str(row);
        table.push('\n');
    }
    Ok(format!("{before}{BEGIN}{table}\n{END}{after}"))
}

/// Of a row.
fn name_of(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name)
}

fn said(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| format!("can't run {program}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_anew_stays() {
        let order = [Measurement { name: "one", what: "1" }, Measurement { name: "two", what: "2" }];
        let page = format!("# Page\n\n{BEGIN}{HEAD}| `two` | 2 | 5 ms | held | once |\n\n{END}The end.\n");
        let figure = Figure { name: "one", what: "1", text: "7 ms".to_owned(), verdict: "**missed**" };
        let text = with(&page, &order, &[figure], "today").unwrap();
        let rows = "| `one` | 1 | 7 ms | **missed** | today |\n| `two` | 2 | 5 ms | held | once |\n";
        assert_eq!(text, format!("# Page\n\n{BEGIN}{HEAD}{rows}\n{END}The end.\n"));
        assert_eq!(with(&text, &order, &[], "later").unwrap(), text);
        assert!(with("# Page", &order, &[], "today").is_err());
    }

    /// A table of promises is worth what its tests are: each that is named by a whole sentence has to be there.
    #[test]
    fn every_test_that_a_promise_names_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut code = String::new();
        gather(&root.join("crates"), "rs", &mut code);
        let mut promises = String::new();
        gather(&root.join("docs/trust"), "md", &mut promises);
        let is_known = |name: &str| match name.strip_suffix('…') {
            Some(begin) => code.contains(&format!("fn {begin}")),
            None => code.contains(&format!("fn {name}(")),
        };
        let named = promises.split('`').skip(1).step_by(2).filter_map(|words| words.rsplit("::").next());
        let is_sentence = |name: &&str| {
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '…');
            name.matches('_').count() >= 3 && name.chars().all(is_word)
        };
        let named: Vec<&str> = named.filter(is_sentence).collect();
        assert!(named.len() > 100, "only {} tests are named", named.len());
        let unknown: Vec<&str> = named.into_iter().filter(|name| !is_known(name)).collect();
        assert!(unknown.is_empty(), "no test is called {unknown:?}");
    }

    fn gather(folder: &Path, end: &str, into: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                gather(&path, end, into);
            } else if path.extension().is_some_and(|found| found == end) {
                into.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }
}
