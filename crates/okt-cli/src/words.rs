//! `okt completions` and `okt man`: what shells and `man` know of the commands, made of the same words as `--help`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use clap_complete::Shell;

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell. For bash: `okt completions bash > ~/.local/share/bash-completion/completions/okt`.
    shell: Shell,
}

#[derive(Args)]
pub(crate) struct ManArgs {
    /// The folder to write into, such as `~/.local/share/man/man1`.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn completions(args: &CompletionsArgs, command: &mut clap::Command) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, command, "okt", &mut text);
    std::io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(args: &ManArgs, command: clap::Command) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(command, &args.folder))
        .with_context(|| format!("can't write to {}", args.folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
