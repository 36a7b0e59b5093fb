//! `okt admin`: what an operator does at the keyboard.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use okt_app::{App, Origin, RevokedIn};
use okt_config::{Loaded, Secret};
use okt_interchange::origin::{self, SigningKey};
use okt_model::{Error, Revoked};
use okt_store::{Blobs, Databases, Purpose};
use rand::TryRng as _;
use rand::rngs::SysRng;

use crate::secret::signing_secret;

#[derive(Args)]
pub(crate) struct AdminArgs {
    #[command(subcommand)]
    command: AdminCommand,
}

#[derive(Subcommand)]
enum AdminCommand {
    /// Make an existing user sysadmin. Takes effect immediately, without a restart.
    Promote {
        /// The e-mail address of the account.
        email: String,
    },
    /// Set a new password for an account, and revoke its sessions and OAuth grants. Prints a random password, once.
    ResetPassword {
        /// The e-mail address of the account.
        email: String,
        /// Read the password from the first line of standard input instead.
        #[arg(long)]
        stdin: bool,
    },
    /// Move a repository to another named database. It is read-only during the move. If the move is interrupted, run it
    /// again; to abort it, move the repository to its current database.
    MoveRepository {
        /// Id or slug of the repository.
        repository: String,
        /// Name of the target database in the configuration.
        #[arg(long, value_name = "DATABASE")]
        to: String,
    },
    /// Remove what was imported from a key from all repositories, and take nothing of it any more: what it signed, and what it
    /// pushed to a registry. Facts that other sources say as well stay.
    RevokeOrigin {
        /// Id of a signing key (okp_…) or of a key of a registry (okg_…).
        key: String,
        /// Only show what would be removed.
        #[arg(long)]
        dry_run: bool,
    },
    /// Print a new key for `providers.registry.signing_key`, and its id, by which others trust it.
    SigningKey,
}

pub(crate) fn main(loaded: &Loaded, args: &AdminArgs) -> anyhow::Result<ExitCode> {
    if matches!(args.command, AdminCommand::SigningKey) {
        return signing_key();
    }
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    runtime.block_on(async {
        Databases::reach(&loaded.config).await?;
        let databases = Databases::open(&loaded.config, &[Purpose::Worker]).await?;
        let databases = databases.into_iter().next().context("no database was opened")?;
        let secret = signing_secret(loaded)?;
        let blobs = Blobs::open(&loaded.config.providers.storage)?;
        let app = App::new(loaded.config.clone(), databases.clone(), blobs, None, secret.expose().as_bytes());
        let done = run(&app, &args.command).await;
        databases.close().await;
        done
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn run(app: &App, command: &AdminCommand) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    match command {
        AdminCommand::Promote { email } => {
            let origin = Origin::service("okt admin promote");
            let promoted =
                app.promote_by_email(&origin, email).await.map_err(|error| in_words(error, email))?;
            let said = if promoted { "is sysadmin now" } else { "was sysadmin already" };
            writeln!(out, "{email} {said}")?;
        }
        AdminCommand::ResetPassword { email, stdin } => {
            let given = if *stdin { Some(line_of_stdin()?) } else { None };
            let origin = Origin::service("okt admin reset-password");
            let password = app.reset_password(&origin, email, given).await;
            let password = password.map_err(|error| in_words(error, email))?;
            // Apart, so that the password can be handed on by itself.
            let mut err = std::io::stderr();
            if *stdin {
                writeln!(err, "{email} has the new password; its sessions and OAuth grants have ended")?;
            } else {
                writeln!(
                    err,
                    "{email} has a new password, shown this once; its sessions and OAuth grants have ended"
                )?;
                writeln!(out, "{}", password.expose())?;
            }
        }
        AdminCommand::MoveRepository { repository, to } => {
            let origin = Origin::service("okt admin move-repository");
            let moved = app.move_repository(&origin, repository, to).await?;
            for (table, rows) in &moved.rows {
                writeln!(out, "{table:>20} {rows:>12} rows")?;
            }
            if moved.from == *to {
                writeln!(out, "{repository} lives in {to}")?;
            } else {
                writeln!(out, "{repository} moved from {} to {to}", moved.from)?;
            }
        }
        AdminCommand::RevokeOrigin { key, dry_run } => {
            let origin = Origin::service("okt admin revoke-origin");
            // As it goes: what was removed before something fails is removed.
            let (mut found_any, mut left_out, mut written) = (false, false, Ok(()));
            let told = |found: RevokedIn| {
                found_any = true;
                left_out |= found.revoked.is_none();
                if written.is_ok() {
                    written = writeln!(out, "{}", revoked_line(&found));
                }
            };
            app.revoke_origin(&origin, key, *dry_run, told).await?;
            written?;
            match (found_any, dry_run) {
                (false, _) => writeln!(out, "nothing here came from {key}")?,
                (true, true) => writeln!(out, "this would be removed; nothing was")?,
                (true, false) => {}
            }
            if !dry_run {
                writeln!(out, "{key} is revoked")?;
                anyhow::ensure!(!left_out, "not everything could be removed: run this again");
            }
        }
        AdminCommand::SigningKey => {}
    }
    Ok(())
}

/// What was removed from a repository.
fn revoked_line(found: &RevokedIn) -> String {
    let slug = &found.repository.slug;
    let Some(revoked) = found.revoked else {
        return format!("{slug} is being moved to another database: run this again when it has moved");
    };
    let Revoked {
        imports,
        sources,
        emptied,
        facts,
        concepts,
        summaries,
        definitions,
        reports,
        investigations,
    } = revoked;
    format!(
        "{slug}: {imports} imports: {sources} sources removed, {emptied} sources emptied, {facts} statements, {concepts} concepts, \
         {summaries} summaries, {definitions} definitions, {reports} reports, {investigations} investigations"
    )
}

fn signing_key() -> anyhow::Result<ExitCode> {
    let mut seed = [0; 32];
    SysRng.try_fill_bytes(&mut seed).context("the system has no random numbers")?;
    let written = origin::written(&seed);
    let key = SigningKey::read(&written).context("a key could not be read back")?;
    // Apart, so that the key can be handed on by itself.
    writeln!(std::io::stderr(), "The id of the key is {}. The key is shown this once:", key.id())?;
    writeln!(std::io::stdout(), "{written}")?;
    Ok(ExitCode::SUCCESS)
}

/// Without the end of the line.
fn line_of_stdin() -> anyhow::Result<Secret> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("cannot read the password from standard input")?;
    Ok(Secret::from(line.trim_end_matches(['\r', '\n']).to_owned()))
}

/// What is wrong, with the address that was looked for.
fn in_words(error: Error, email: &str) -> anyhow::Error {
    match error {
        Error::NotFound("user") => anyhow::anyhow!("no account has the e-mail address {email}"),
        Error::Invalid(errors) => {
            let fields: Vec<_> = errors.iter().map(|one| format!("{} {}", one.field, one.message)).collect();
            anyhow::anyhow!("{email}: {}", fields.join("; "))
        }
        error => error.into(),
    }
}
