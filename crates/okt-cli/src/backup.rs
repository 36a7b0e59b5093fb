//! `okt backup` and `okt restore`: databases and files in one folder, each part with its hash.
//!
//! No client program of PostgreSQL is needed, and no service has to stop: each database is read as it was at one moment. The
//! manifest is written last, so a folder without one is no backup.

mod restore;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::TryStreamExt as _;
use okt_config::Loaded;
use okt_store::backups::{SequenceState, Snapshot, TableState};
use okt_store::{Blobs, Schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::version::{COMMIT, VERSION};

pub(crate) use restore::{RestoreArgs, main as restore, put_back};

const MANIFEST: &str = "manifest.json";
/// As `sha256sum --check` reads it.
const SUMS: &str = "SHA256SUMS";
/// The only form so far.
const FORMAT: u32 = 1;

#[derive(Args)]
pub(crate) struct BackupArgs {
    /// Folder to write; it must not exist, or be empty.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Leave out the vectors in PostgreSQL, which `okt doctor vectors --repair` makes anew.
    #[arg(long)]
    without_vectors: bool,
}

#[derive(Deserialize, Serialize)]
struct Manifest {
    format: u32,
    okt: String,
    commit: String,
    taken_at: String,
    databases: Vec<DatabasePart>,
    files: FilesPart,
    /// Of the file with all other sums.
    sums_sha256: String,
}

#[derive(Deserialize, Serialize)]
struct DatabasePart {
    name: String,
    schemas: Vec<SchemaPart>,
}

#[derive(Deserialize, Serialize)]
struct SchemaPart {
    name: String,
    migrations: Vec<i64>,
    sequences: Vec<SequencePart>,
    tables: Vec<TablePart>,
}

#[derive(Deserialize, Serialize)]
struct SequencePart {
    name: String,
    last: i64,
    is_called: bool,
}

#[derive(Deserialize, Serialize)]
struct TablePart {
    name: String,
    columns: Vec<String>,
    rows: u64,
    file: String,
}

#[derive(Default, Deserialize, Serialize)]
struct FilesPart {
    count: u64,
    bytes: u64,
}

pub(crate) fn main(loaded: &Loaded, args: &BackupArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    let begun = Instant::now();
    let manifest = runtime.block_on(write(loaded, args))?;
    let rows: u64 = manifest.tables().map(|table| table.rows).sum();
    writeln!(
        io::stdout(),
        "{}: {rows} rows of {} tables, {} files",
        args.folder.display(),
        manifest.tables().count(),
        manifest.files.count
    )?;
    say(&format!(
        "done in {:.1} s. It holds passwords' hashes and all texts: keep it where only you can read it",
        begun.elapsed().as_secs_f64()
    ));
    say("the settings are not in it: keep okt.toml and AUTH_JWTSECRET (or okt.dev-secret) beside it");
    say(&format!("try it: okt restore --check {}", args.folder.display()));
    Ok(ExitCode::SUCCESS)
}

impl Manifest {
    fn tables(&self) -> impl Iterator<Item = &TablePart> {
        self.databases.iter().flat_map(|database| &database.schemas).flat_map(|schema| &schema.tables)
    }
}

async fn write(loaded: &Loaded, args: &BackupArgs) -> anyhow::Result<Manifest> {
    let folder = &args.folder;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("can't make {}", folder.display()))?;
    let is_empty = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    ensure!(is_empty, "{} is not empty; name a folder that is, or that is not there yet", folder.display());

    let blobs = Blobs::open(&loaded.config.providers.storage)?;
    let mut sums = Sums::create(folder)?;
    // All at once, so that the databases fit each other as well as they can. What a job has done in one of them and not yet told
    // the other it does again.
    let mut snapshots = Snapshot::take(&loaded.config).await?;
    let (mut taken_at, mut repositories) = (String::new(), Vec::new());
    for snapshot in &mut snapshots {
        taken_at = snapshot.taken_at().await?;
        repositories.extend(snapshot.repositories().await?);
    }
    let mut databases = Vec::new();
    for snapshot in &mut snapshots {
        let mut database = DatabasePart { name: snapshot.database().to_owned(), schemas: Vec::new() };
        for state in snapshot.schemas().await? {
            let mut part = SchemaPart {
                migrations: state.migrations,
                sequences: state.sequences.into_iter().map(SequencePart::from).collect(),
                tables: Vec::new(),
                name: state.schema,
            };
            for table in state.tables {
                if args.without_vectors && part.name == Schema::Vectors.name() {
                    continue;
                }
                let file = format!("databases/{}/{}.{}.copy.gz", database.name, part.name, table.name);
                let mut out = GzEncoder::new(sums.begin(&file)?, Compression::fast());
                let rows = snapshot
                    .copy_out(&part.name, &table, &repositories, |piece| out.write_all(piece))
                    .await
                    .with_context(|| format!("can't copy {}.{}", part.name, table.name))?;
                sums.end(&file, out.finish()?)?;
                part.tables.push(TablePart { name: table.name, columns: table.columns, rows, file });
            }
            database.schemas.push(part);
        }
        say(&format!("database {}: copied", database.name));
        databases.push(database);
    }
    drop(snapshots);
    let files = copy_files(&blobs, &mut sums).await?;
    let manifest = Manifest {
        format: FORMAT,
        okt: VERSION.to_owned(),
        commit: COMMIT.to_owned(),
        taken_at,
        databases,
        files,
        sums_sha256: sums.finish()?,
    };
    let mut text = serde_json::to_vec_pretty(&manifest)?;
    text.push(b'\n');
    let mut file = private(&folder.join(MANIFEST))?;
    file.write_all(&text).and_then(|()| file.sync_all()).context("can't write the manifest")?;
    File::open(folder).and_then(|folder| folder.sync_all()).context("can't write the folder")?;
    Ok(manifest)
}

/// After the rows: a file is there before the row that speaks of it. One that goes meanwhile goes with its source.
async fn copy_files(blobs: &Blobs, sums: &mut Sums) -> anyhow::Result<FilesPart> {
    let mut copied = FilesPart::default();
    let mut listed = blobs.list_all();
    while let Some(file) = listed.try_next().await? {
        let Some(mut reading) = blobs.read_stored(&file).await? else { continue };
        let path = format!("files/{}", file.path());
        let mut out = sums.begin(&path)?;
        while let Some(piece) = reading.bytes.try_next().await? {
            out.write_all(&piece).with_context(|| format!("can't write {path}"))?;
        }
        let sum = sums.end(&path, out)?;
        if let Some(hash) = file.hash()
            && hash.to_string() != sum
        {
            bail!("{path} is not what its name says: it was damaged where it is kept");
        }
        copied.count += 1;
        copied.bytes += file.size;
    }
    Ok(copied)
}

impl From<SequenceState> for SequencePart {
    fn from(state: SequenceState) -> Self {
        Self { name: state.name, last: state.last, is_called: state.is_called }
    }
}

impl From<&SequencePart> for SequenceState {
    fn from(part: &SequencePart) -> Self {
        Self { name: part.name.clone(), last: part.last, is_called: part.is_called }
    }
}

impl From<&TablePart> for TableState {
    fn from(part: &TablePart) -> Self {
        Self { name: part.name.clone(), columns: part.columns.clone() }
    }
}

/// Writes files, and a list of their hashes.
struct Sums {
    folder: PathBuf,
    list: Summed<File>,
}

impl Sums {
    fn create(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self { folder: folder.to_owned(), list: Summed::new(private(&folder.join(SUMS))?) })
    }

    fn begin(&self, path: &str) -> anyhow::Result<Summed<BufWriter<File>>> {
        let path = self.folder.join(path);
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.with_context(|| format!("can't make {}", folder.display()))?;
        }
        Ok(Summed::new(BufWriter::new(private(&path)?)))
    }

    fn end(&mut self, path: &str, written: Summed<BufWriter<File>>) -> anyhow::Result<String> {
        let (out, sum) = written.finish();
        let file = out.into_inner().map_err(io::IntoInnerError::into_error);
        file.and_then(|file| file.sync_all()).with_context(|| format!("can't write {path}"))?;
        writeln!(self.list, "{sum}  {path}")?;
        Ok(sum)
    }

    fn finish(self) -> anyhow::Result<String> {
        let (file, sum) = self.list.finish();
        file.sync_all().context("can't write the sums")?;
        Ok(sum)
    }
}

/// Counts what goes through into a hash.
struct Summed<W> {
    inner: W,
    hash: Sha256,
}

impl<W> Summed<W> {
    fn new(inner: W) -> Self {
        Self { inner, hash: Sha256::new() }
    }

    fn finish(self) -> (W, String) {
        (self.inner, hex::encode(self.hash.finalize()))
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn private(path: &Path) -> anyhow::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.with_context(|| format!("can't write {}", path.display()))
}

/// Reads a backup, and refuses one of which a part is missing, changed or left over; returns the paths of all parts.
fn read(folder: &Path) -> anyhow::Result<(Manifest, Vec<String>)> {
    let path = folder.join(MANIFEST);
    let text = fs::read(&path).with_context(|| {
        format!("{} has no {MANIFEST}: it is no backup, or one that was not finished", folder.display())
    })?;
    let manifest: Manifest =
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))?;
    ensure!(
        manifest.format == FORMAT,
        "the backup has the format {}, and this okt reads {FORMAT}; use the okt that made it ({})",
        manifest.format,
        manifest.okt
    );
    let sums = folder.join(SUMS);
    ensure!(sum(&sums)? == manifest.sums_sha256, "{} is not the one that was written", sums.display());
    let mut listed = BTreeMap::new();
    for line in BufReader::new(File::open(&sums)?).lines() {
        let line = line?;
        let (sum, path) = line.split_once("  ").with_context(|| format!("{}: {line:?}", sums.display()))?;
        let is_inside =
            !path.starts_with('/') && path.split('/').all(|part| part != ".." && !part.is_empty());
        ensure!(is_inside, "{}: {path:?} leads out of the backup", sums.display());
        listed.insert(path.to_owned(), sum.to_owned());
    }
    for (path, expected) in &listed {
        ensure!(sum(&folder.join(path))? == *expected, "{path} is not the one that was written");
    }
    for table in manifest.tables() {
        ensure!(listed.contains_key(&table.file), "{} is not among the sums", table.file);
    }
    let files = listed.keys().filter(|path| path.starts_with("files/")).count() as u64;
    ensure!(files == manifest.files.count, "{files} files are there of {}", manifest.files.count);
    Ok((manifest, listed.into_keys().collect()))
}

fn sum(path: &Path) -> anyhow::Result<String> {
    let read = || -> io::Result<String> {
        let (mut file, mut hash, mut piece) =
            (File::open(path)?, Summed::new(io::sink()), vec![0; 128 * 1024]);
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(hash.finish().1),
                length => hash.write_all(&piece[..length])?,
            }
        }
    };
    read().with_context(|| format!("can't read {}", path.display()))
}

/// Standard output is for the result.
fn say(what: &str) {
    let _ = writeln!(io::stderr(), "okt: {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backup(folder: &Path) {
        let mut sums = Sums::create(folder).unwrap();
        for (path, text) in [("databases/default/a.b.copy.gz", "rows"), ("files/repositories/r/s/h", "file")]
        {
            let mut out = sums.begin(path).unwrap();
            out.write_all(text.as_bytes()).unwrap();
            sums.end(path, out).unwrap();
        }
        let table = TablePart {
            name: "b".into(),
            columns: vec![],
            rows: 1,
            file: "databases/default/a.b.copy.gz".into(),
        };
        let schema =
            SchemaPart { name: "a".into(), migrations: vec![1], sequences: vec![], tables: vec![table] };
        let manifest = Manifest {
            format: FORMAT,
            okt: "0.1.0".into(),
            commit: String::new(),
            taken_at: String::new(),
            databases: vec![DatabasePart { name: "default".into(), schemas: vec![schema] }],
            files: FilesPart { count: 1, bytes: 4 },
            sums_sha256: sums.finish().unwrap(),
        };
        fs::write(folder.join(MANIFEST), serde_json::to_vec(&manifest).unwrap()).unwrap();
    }

    /// What is wrong with a backup after this was done to it.
    fn trouble(change: impl FnOnce(&Path)) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        backup(folder.path());
        change(folder.path());
        read(folder.path()).err().map(|error| format!("{error:#}"))
    }

    #[test]
    fn a_backup_that_is_not_whole_is_refused() {
        assert_eq!(trouble(|_| {}), None);
        let says = |change: fn(&Path), part: &str| {
            let said = trouble(change).unwrap();
            assert!(said.contains(part), "{said}");
        };
        says(|folder| fs::remove_file(folder.join(MANIFEST)).unwrap(), "not finished");
        says(
            |folder| fs::write(folder.join("files/repositories/r/s/h"), "fILE").unwrap(),
            "files/repositories/r/s/h",
        );
        says(|folder| fs::remove_file(folder.join("databases/default/a.b.copy.gz")).unwrap(), "can't read");
        says(|folder| fs::write(folder.join(SUMS), "").unwrap(), "is not the one that was written");
    }
}
