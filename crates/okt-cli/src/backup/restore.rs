//! `okt restore`: into an empty installation, whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Args;
use flate2::read::GzDecoder;
use okt_config::Loaded;
use okt_store::backups::{self, Restore, SequenceState, TableState};
use okt_store::{Blobs, Databases, Schema};

use super::{Manifest, SchemaPart, TablePart, read, say};

/// What is handed on at once.
const PIECE: usize = 256 * 1024;

#[derive(Args)]
pub(crate) struct RestoreArgs {
    /// The folder that `okt backup` has written.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Only check that the backup is whole; no database is asked.
    #[arg(long, conflicts_with = "replace")]
    check: bool,
    /// Delete everything that okt has in the databases and in its storage of files first.
    #[arg(long)]
    replace: bool,
}

pub(crate) fn main(
    args: &RestoreArgs,
    load: impl FnOnce() -> anyhow::Result<Loaded>,
) -> anyhow::Result<ExitCode> {
    let (manifest, parts) = read(&args.folder)?;
    if args.check {
        writeln!(
            io::stdout(),
            "{}: whole, of okt {} at {}; {} parts",
            args.folder.display(),
            manifest.okt,
            manifest.taken_at,
            parts.len()
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    into(&load()?, &args.folder, args.replace, &manifest, &parts)?;
    Ok(ExitCode::SUCCESS)
}

/// Into an installation that has nothing yet.
pub(crate) fn put_back(loaded: &Loaded, folder: &Path) -> anyhow::Result<()> {
    let (manifest, parts) = read(folder)?;
    into(loaded, folder, false, &manifest, &parts)
}

fn into(
    loaded: &Loaded,
    folder: &Path,
    replace: bool,
    manifest: &Manifest,
    parts: &[String],
) -> anyhow::Result<()> {
    let begun = Instant::now();
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    let rows = runtime.block_on(restore(loaded, folder, replace, manifest, parts))?;
    say(&format!("{rows} rows and {} files of {} are back", manifest.files.count, manifest.taken_at));
    say(&format!(
        "done in {:.1} s. Start okt with the AUTH_JWTSECRET (or okt.dev-secret) that it had",
        begun.elapsed().as_secs_f64()
    ));
    if !loaded.config.providers.embedding.model.is_empty() && !has_vectors(manifest, loaded) {
        say("vectors are not in the backup; make them anew: okt doctor vectors --repair");
    }
    Ok(())
}

fn has_vectors(manifest: &Manifest, loaded: &Loaded) -> bool {
    let in_postgres = loaded.config.providers.vector_store.host.is_empty();
    let mut schemas = manifest.databases.iter().flat_map(|database| &database.schemas);
    in_postgres && schemas.any(|schema| schema.name == Schema::Vectors.name() && !schema.tables.is_empty())
}

/// Files first: a row may only speak of a file that is there.
async fn restore(
    loaded: &Loaded,
    folder: &Path,
    replace: bool,
    manifest: &Manifest,
    parts: &[String],
) -> anyhow::Result<u64> {
    let config = &loaded.config;
    let blobs = Blobs::open(&config.providers.storage)?;
    let places = places(manifest, &backups::targets(config)?)?;
    let mut occupied = backups::occupied(config).await?;
    if !blobs.is_empty().await? {
        occupied.push("the storage of files has some".to_owned());
    }
    if !occupied.is_empty() {
        if !replace {
            bail!(
                "there is something here already: {}. Restore into empty databases and an empty storage, or delete all of it: \
                 okt restore --replace {}",
                occupied.join("; "),
                folder.display()
            );
        }
        backups::clear(config).await?;
        blobs.remove_all().await?;
        say("deleted what was here");
    }
    for path in parts {
        if let Some(stored) = path.strip_prefix("files/") {
            put_file(&blobs, &folder.join(path), stored).await?;
        }
    }
    say(&format!("files: {} are back", manifest.files.count));
    let mut rows = 0;
    for (database, schemas) in places {
        rows += put_database(loaded, folder, &database, &schemas).await?;
        say(&format!("database {database}: is back"));
    }
    // A backup of the release before becomes one of this.
    Databases::migrate(config).await?;
    Ok(rows)
}

/// What goes where: by the names that the backup has.
fn places<'a>(
    manifest: &'a Manifest,
    targets: &BTreeMap<(String, String), String>,
) -> anyhow::Result<BTreeMap<String, Vec<&'a SchemaPart>>> {
    let mut places: BTreeMap<String, Vec<&SchemaPart>> = BTreeMap::new();
    for database in &manifest.databases {
        for schema in &database.schemas {
            let named = targets.get(&(database.name.clone(), schema.name.clone()));
            // Of these there is one, whatever its database is called.
            let alone = [Schema::System.name(), Schema::Tasks.name()].contains(&schema.name.as_str());
            let found = named.or_else(|| {
                let mut there = targets.iter().filter(|((_, name), _)| alone && *name == schema.name);
                there.next().map(|(_, target)| target)
            });
            let target = found.with_context(|| {
                format!(
                    "the backup has repositories in databases.{0}, and the settings name no such database: add \
                     [databases.{0}] with its url",
                    database.name
                )
            })?;
            let there = places.entry(target.clone()).or_default();
            ensure!(
                there.iter().all(|other| other.name != schema.name),
                "two databases of the backup would become one ({target}); give databases.{} a url of its own",
                database.name
            );
            there.push(schema);
        }
    }
    Ok(places)
}

async fn put_file(blobs: &Blobs, from: &Path, stored: &str) -> anyhow::Result<()> {
    let mut file = File::open(from).with_context(|| format!("can't read {}", from.display()))?;
    let mut incoming = blobs.begin_stored(stored)?;
    loop {
        let mut piece = vec![0; PIECE];
        let length = file.read(&mut piece).with_context(|| format!("can't read {}", from.display()))?;
        if length == 0 {
            break;
        }
        piece.truncate(length);
        incoming.write(Bytes::from(piece)).await?;
    }
    let blob = incoming.finish().await?;
    ensure!(stored.ends_with(&blob.hash.to_string()), "{} is not what its name says", from.display());
    Ok(())
}

async fn put_database(
    loaded: &Loaded,
    folder: &Path,
    database: &str,
    schemas: &[&SchemaPart],
) -> anyhow::Result<u64> {
    let wanted: BTreeMap<String, Vec<i64>> =
        schemas.iter().map(|schema| (schema.name.clone(), schema.migrations.clone())).collect();
    let (mut restore, made): (Restore, BTreeSet<String>) =
        Restore::begin(&loaded.config, database, &wanted).await?;
    let mut rows = 0;
    for schema in schemas {
        if !made.contains(&schema.name) {
            say(&format!(
                "database {database}: this server can't have {} (no pgvector), so it is left out",
                schema.name
            ));
            continue;
        }
        let tables: Vec<TableState> = schema.tables.iter().map(TableState::from).collect();
        for state in restore.order(&schema.name, tables).await? {
            let Some(table) = schema.tables.iter().find(|table| table.name == state.name) else { continue };
            let copied = put_table(&mut restore, folder, schema, table, &state).await?;
            ensure!(
                copied == table.rows,
                "{}.{} has {copied} rows instead of {}",
                schema.name,
                table.name,
                table.rows
            );
            rows += copied;
        }
        let sequences: Vec<SequenceState> = schema.sequences.iter().map(SequenceState::from).collect();
        restore.set_sequences(&schema.name, &sequences).await?;
    }
    restore.finish().await?;
    Ok(rows)
}

async fn put_table(
    restore: &mut Restore,
    folder: &Path,
    schema: &SchemaPart,
    table: &TablePart,
    state: &TableState,
) -> anyhow::Result<u64> {
    let path = folder.join(&table.file);
    let file = File::open(&path).with_context(|| format!("can't read {}", path.display()))?;
    let mut lines = GzDecoder::new(BufReader::new(file));
    let next = move || {
        let mut piece = vec![0; PIECE];
        let length = lines.read(&mut piece)?;
        piece.truncate(length);
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    };
    let copied = restore.copy_in(&schema.name, state, next).await;
    copied.with_context(|| format!("can't restore {}.{}", schema.name, table.name))
}
