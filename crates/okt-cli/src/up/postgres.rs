//! A PostgreSQL of one's own: its data in a folder, its port on this machine alone, its password in a file.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rand::TryRng;

use super::owner::Owner;
use super::{say, seconds};

/// The login, which owns everything. okt itself works as a role that row-level security binds.
const LOGIN: &str = "okt";
/// initdb makes it.
const DATABASE: &str = "postgres";
/// Below the range that the kernel gives to outgoing connections, so that none of those takes it while the server is stopped.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
const TRIES: usize = 50;
/// What recovery after a power cut may take.
const PATIENCE: Duration = Duration::from_mins(2);
/// More than any system numbers its processes to.
const NOBODY: i32 = i32::MAX - 1;
/// What it says, in English as all that `initdb` was told to, when processes of a killed server are still there.
const LEFT_RUNNING: &str = "pre-existing shared memory block";
/// How much of its log is shown when it does not start.
const TAIL: usize = 15;

/// Where it is kept, and who runs it.
#[derive(Clone)]
pub(super) struct Server {
    home: PathBuf,
    data: PathBuf,
    owner: Option<Owner>,
}

/// With the programs to run it.
#[derive(Clone)]
pub(super) struct Ready {
    server: Server,
    programs: PathBuf,
}

/// What `postmaster.pid` says.
struct Postmaster {
    process: u32,
    status: String,
}

impl Server {
    pub(super) fn new(home: PathBuf, owner: Option<Owner>) -> anyhow::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&home).with_context(|| made(&home))?;
        if let Some(owner) = &owner {
            owner.gets(&home)?;
            owner.enters(&home)?;
        }
        Ok(Self { data: home.join("data"), home, owner })
    }

    /// The major version that the data is of, once there is some.
    pub(super) fn major(&self) -> anyhow::Result<Option<u32>> {
        let file = self.data.join("PG_VERSION");
        match fs::read_to_string(&file) {
            Ok(text) => Ok(text.trim().parse().ok()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("can't read {}", file.display())),
        }
    }

    pub(super) const fn with(self, programs: PathBuf) -> Ready {
        Ready { server: self, programs }
    }

    /// Its file, where a server has written one that can be read.
    fn postmaster(&self) -> Option<Postmaster> {
        let text = fs::read_to_string(self.data.join("postmaster.pid")).ok()?;
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        Some(Postmaster { process: lines.first()?.parse().ok()?, status: (*lines.get(7)?).to_owned() })
    }

    /// Whether a server runs on this data: by its process, since the number in a file may be that of another program by now.
    fn is_running(&self) -> bool {
        let Ok(text) = fs::read_to_string(self.data.join("postmaster.pid")) else { return false };
        let process = text.lines().next().and_then(|line| line.trim().parse().ok());
        let data = self.data.display().to_string();
        process.and_then(command_of).is_some_and(|command| command.contains(&data))
    }
}

/// The address of the server that is kept there, and runs or ran last.
pub(super) fn url(home: &Path) -> anyhow::Result<String> {
    let read = |name: &str| {
        let file = home.join(name);
        fs::read_to_string(&file).with_context(|| format!("can't read {}", file.display()))
    };
    let (password, port) = (read("password")?, read("port")?);
    Ok(format!("postgres://{LOGIN}:{}@127.0.0.1:{}/{DATABASE}", password.trim(), port.trim()))
}

/// How a process was called, if there is one of this number.
fn command_of(process: u32) -> Option<String> {
    if Path::new("/proc/self").exists() {
        let line = fs::read(format!("/proc/{process}/cmdline")).ok()?;
        return Some(String::from_utf8_lossy(&line).replace('\0', " "));
    }
    let output = Command::new("ps").args(["-o", "command=", "-p", &process.to_string()]).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned()).filter(|line| !line.trim().is_empty())
}

impl Ready {
    /// Starts it, or takes over one that was left running; returns its address.
    pub(super) fn start(&self) -> anyhow::Result<String> {
        let (begun, server) = (Instant::now(), &self.server);
        if !server.data.exists() {
            self.make()?;
        }
        self.await_old()?;
        if !server.is_running() {
            self.disown_stale()?;
            let port = self.choose_port()?;
            self.launch(port)?;
            say(&format!("PostgreSQL started in {} (port {port})", seconds(begun)));
        }
        url(&server.home)
    }

    /// What it is told to finish it finishes; who is connected is disconnected.
    pub(super) fn stop(&self) -> anyhow::Result<()> {
        if !self.server.is_running() {
            return Ok(());
        }
        let seconds = PATIENCE.as_secs().to_string();
        let stopped =
            self.run("pg_ctl", &["-D", &self.data(), "-m", "fast", "-w", "-t", &seconds, "stop"])?;
        if !stopped.status.success() && self.server.is_running() {
            bail!("PostgreSQL did not stop: {}; its log is {}", said(&stopped), self.log().display());
        }
        Ok(())
    }

    /// Whole or not at all: it is made under another name.
    fn make(&self) -> anyhow::Result<()> {
        let Server { home, data, owner } = &self.server;
        let (begun, new) = (Instant::now(), home.join("data.new"));
        if new.exists() {
            fs::remove_dir_all(&new).with_context(|| format!("can't remove {}", new.display()))?;
        }
        let password = home.join("password");
        if !password.exists() {
            secret(&password, owner.as_ref()).with_context(|| made(&password))?;
        }
        let (at, file) = (new.display().to_string(), password.display().to_string());
        let arguments = [
            "-D",
            &at,
            "-U",
            LOGIN,
            "-A",
            "scram-sha-256",
            "--pwfile",
            &file,
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ];
        let output = self.run("initdb", &arguments)?;
        if !output.status.success() {
            bail!("PostgreSQL's initdb failed: {}", said(&output));
        }
        fs::rename(&new, data).with_context(|| made(data))?;
        say(&format!("made a database in {}", seconds(begun)));
        Ok(())
    }

    /// One that was left alone may be in the middle of starting or stopping.
    fn await_old(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while self.server.is_running() {
            match self.server.postmaster() {
                Some(old) if old.status == "ready" => {
                    say(&format!("took over the PostgreSQL that runs already (process {})", old.process));
                    return Ok(());
                }
                _ if begun.elapsed() > PATIENCE => bail!(
                    "a PostgreSQL that was left running in {} neither starts nor stops; its log is {}",
                    self.server.home.display(),
                    self.log().display()
                ),
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        }
        Ok(())
    }

    /// Left by a server that was killed. PostgreSQL tells by itself that nobody runs, and finds what such a server may have left
    /// running, so the file stays. But the number in it may be that of another program by now, which it would take for a
    /// server: then it gets a number that no process has.
    fn disown_stale(&self) -> anyhow::Result<()> {
        let file = self.server.data.join("postmaster.pid");
        let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
        say("PostgreSQL was not stopped the last time; it recovers");
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        if first.trim().parse().ok().and_then(command_of).is_none() {
            return Ok(());
        }
        fs::write(&file, format!("{NOBODY}\n{rest}")).with_context(|| made(&file))
    }

    /// One that was killed may have left processes, which end at the latest with the statement that they are at. PostgreSQL does
    /// not wait for them, so this does.
    fn launch(&self, port: u16) -> anyhow::Result<()> {
        let (begun, mut told) = (Instant::now(), false);
        while let Some(why) = self.refusal(port)? {
            if !why.contains(LEFT_RUNNING) || begun.elapsed() > PATIENCE {
                bail!("PostgreSQL did not start; the end of its log ({}):\n{why}", self.log().display());
            }
            if !told {
                say("waiting for what the PostgreSQL of the last time has left running");
                told = true;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        Ok(())
    }

    /// Starts it; what its log says where that is refused.
    fn refusal(&self, port: u16) -> anyhow::Result<Option<String>> {
        let settings = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200"
        );
        let (data, log) = (self.data(), self.log());
        let before = fs::metadata(&log).map_or(0, |meta| meta.len());
        let (file, seconds) = (log.display().to_string(), PATIENCE.as_secs().to_string());
        let arguments = ["-D", &data, "-l", &file, "-w", "-t", &seconds, "-o", &settings, "start"];
        let output = self.run("pg_ctl", &arguments)?;
        if output.status.success() {
            return Ok(None);
        }
        let text = fs::read(&log).unwrap_or_default();
        let new = usize::try_from(before).ok().and_then(|before| text.get(before..)).unwrap_or(&text);
        let new = String::from_utf8_lossy(new);
        let lines: Vec<&str> = new.lines().collect();
        Ok(Some(lines[lines.len().saturating_sub(TAIL)..].join("\n")))
    }

    /// That of the last start, if it is free.
    fn choose_port(&self) -> anyhow::Result<u16> {
        let file = self.server.home.join("port");
        let last = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        let port = match last.filter(is_free) {
            Some(port) => port,
            None => {
                (0..TRIES).map(|_| random_port()).find_map(|port| port.ok().filter(is_free)).with_context(
                    || format!("there is no free port from {} to {} on 127.0.0.1", PORTS.start, PORTS.end),
                )?
            }
        };
        fs::write(&file, port.to_string()).with_context(|| made(&file))?;
        Ok(port)
    }

    fn data(&self) -> String {
        self.server.data.display().to_string()
    }

    fn log(&self) -> PathBuf {
        self.server.home.join("log")
    }

    /// As its owner, and out of the way of Ctrl-C: okt stops it when it has finished itself.
    fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<Output> {
        let program = self.programs.join(program);
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(&self.server.home).stdin(Stdio::null()).process_group(0);
        // Its settings are those on its command line.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        if let Some(owner) = &self.server.owner {
            owner.runs(&mut command);
        }
        command.output().with_context(|| format!("can't run {}", program.display()))
    }
}

/// Random, for its owner's eyes.
fn secret(file: &Path, owner: Option<&Owner>) -> anyhow::Result<()> {
    let mut bytes = [0; 24];
    rand::rngs::SysRng
        .try_fill_bytes(&mut bytes)
        .context("cannot get random bytes from the operating system")?;
    let aside = file.with_extension("new");
    let mut opened = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&aside)?;
    opened.write_all(hex::encode(bytes).as_bytes())?;
    opened.sync_all()?;
    if let Some(owner) = owner {
        owner.gets(&aside)?;
    }
    Ok(fs::rename(&aside, file)?)
}

fn random_port() -> anyhow::Result<u16> {
    let mut bytes = [0; 2];
    rand::rngs::SysRng.try_fill_bytes(&mut bytes)?;
    Ok(PORTS.start + u16::from_ne_bytes(bytes) % (PORTS.end - PORTS.start))
}

fn made(path: &Path) -> String {
    format!("can't write {}", path.display())
}

fn said(output: &Output) -> String {
    let text = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    String::from_utf8_lossy(text).trim().to_owned()
}
