//! The page `docs/CLI.md`, made of the same words as `--help`.

use clap::{Arg, Command};

pub(crate) fn page(okt: &Command) -> String {
    let mut parts = vec![
        "# Commands".to_owned(),
        "<!-- Made by `just bless` from crates/okt-cli. Do not edit. -->".to_owned(),
        "What `okt COMMAND --help` says, of all commands.".to_owned(),
    ];
    parts.extend(okt.get_after_help().map(ToString::to_string));
    parts.extend(sections("okt", okt));
    parts.join("\n\n") + "\n"
}

/// Of a command and of those below it.
fn sections(path: &str, command: &Command) -> Vec<String> {
    let mut parts = vec![format!("## `{path}`")];
    parts.extend(command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string));
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let rows: Vec<_> = shown.map(|arg| row(arg, command.has_subcommands() && arg.is_global_set())).collect();
    if !rows.is_empty() {
        parts.push(format!("| argument | |\n|---|---|\n{}", rows.join("\n")));
    }
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        parts.extend(sections(&format!("{path} {}", below.get_name()), below));
    }
    parts
}

/// `inherited`: by the commands below.
fn row(arg: &Arg, inherited: bool) -> String {
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    let long = arg.get_long().map(|word| format!("--{word}"));
    let mut names = vec![[short, long].into_iter().flatten().collect::<Vec<_>>().join(", ")];
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut said = vec![help.split_whitespace().collect::<Vec<_>>().join(" ")];
    if arg.get_action().takes_values() {
        names.extend(arg.get_value_names().unwrap_or_default().iter().map(|value| format!("<{value}>")));
        let possible = arg.get_possible_values();
        let possible = possible.iter().filter(|value| !value.is_hide_set());
        let possible: Vec<_> = possible.map(|value| format!("`{}`", value.get_name())).collect();
        if !possible.is_empty() {
            said.push(format!("({})", possible.join(", ")));
        }
        let defaults = arg.get_default_values().iter();
        let defaults: Vec<_> = defaults.map(|value| format!("`{}`", value.to_string_lossy())).collect();
        if !defaults.is_empty() {
            said.push(format!("[default: {}]", defaults.join(", ")));
        }
    }
    if inherited {
        said.push("(also of the commands below)".to_owned());
    }
    let cell = |words: &[String]| words.join(" ").trim().replace('|', "\\|");
    format!("| `{}` | {} |", cell(&names), cell(&said))
}
