//! `okt mcp install`: writes the service into the file in which an agent looks for its servers.
//!
//! What else is in the file stays. A file that is no plain JSON, such as one with comments, is left alone, and what to write there
//! is printed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use url::Url;

use super::endpoint;
use crate::client::given;

#[derive(Args)]
pub(super) struct InstallArgs {
    /// The agent.
    #[arg(value_enum)]
    agent: Agent,
    /// The address of the service, such as `https://okt.example.org`; `OKT_URL` if it is not given.
    #[arg(long)]
    url: Option<String>,
    /// What the agent calls the service.
    #[arg(long, default_value = "okt")]
    name: String,
    /// Print what would be written, and to which file.
    #[arg(long)]
    print: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Agent {
    /// Claude Desktop, which starts `okt mcp`; needs `OKT_API_KEY`.
    Claude,
    ClaudeCode,
    Cursor,
    Vscode,
    Windsurf,
    Gemini,
}

/// Where people keep things on this machine.
struct Places {
    home: PathBuf,
    /// Of settings of programs with a window.
    programs: PathBuf,
}

impl Places {
    fn of(environment: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let folder = |name: &str| environment(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let home = folder("HOME").or_else(|| folder("USERPROFILE"));
        let home = home.context("there is no home folder: HOME is not set")?;
        let programs = if cfg!(target_os = "macos") {
            home.join("Library/Application Support")
        } else if cfg!(windows) {
            folder("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"))
        } else {
            folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"))
        };
        Ok(Self { home, programs })
    }
}

impl Agent {
    fn file(self, places: &Places) -> PathBuf {
        let Places { home, programs } = places;
        match self {
            Self::Claude => programs.join("Claude/claude_desktop_config.json"),
            Self::ClaudeCode => home.join(".claude.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Vscode => programs.join("Code/User/mcp.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Self::Gemini => home.join(".gemini/settings.json"),
        }
    }

    const fn section(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            _ => "mcpServers",
        }
    }

    /// What stands in the file. With a key the agent need not ask anybody.
    fn entry(self, service: &Url, key: Option<&str>) -> anyhow::Result<Value> {
        let base = service.as_str().trim_end_matches('/');
        let url = format!("{base}/mcp");
        let mut entry = match self {
            Self::Claude => {
                let program = std::env::current_exe().context("cannot find the path of this program")?;
                let key =
                    key.context("Claude Desktop starts a program, which needs a key: set OKT_API_KEY")?;
                return Ok(
                    json!({"command": program, "args": ["mcp", "--url", base], "env": {"OKT_API_KEY": key}}),
                );
            }
            Self::ClaudeCode | Self::Vscode => json!({"type": "http", "url": url}),
            Self::Cursor => json!({ "url": url }),
            Self::Windsurf => json!({ "serverUrl": url }),
            Self::Gemini => json!({ "httpUrl": url }),
        };
        if let Some(key) = key {
            entry["headers"] = json!({"Authorization": format!("Bearer {key}")});
        }
        Ok(entry)
    }
}

pub(super) fn main(args: &InstallArgs) -> anyhow::Result<ExitCode> {
    let (service, key) = (endpoint(args.url.as_deref())?, given(None, "OKT_API_KEY"));
    let file = args.agent.file(&Places::of(|name| std::env::var(name).ok())?);
    let entry = args.agent.entry(&service, key.as_deref())?;
    let mut out = std::io::stdout();
    if args.print {
        let shown = args.agent.entry(&service, key.as_ref().map(|_| "okt_…"))?;
        let shown = json!({args.agent.section(): {&args.name: shown}});
        writeln!(out, "{}\n{}", file.display(), serde_json::to_string_pretty(&shown)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    write(&file, args.agent.section(), &args.name, entry)?;
    writeln!(out, "wrote {} into {}; start the agent anew", args.name, file.display())?;
    if key.is_none() {
        writeln!(out, "the agent will ask you to sign in; for a machine without a browser set OKT_API_KEY")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Puts the entry into the section of the file, which is made where there is none.
fn write(file: &Path, section: &str, name: &str, entry: Value) -> anyhow::Result<()> {
    let before = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("can't read {}", file.display())),
    };
    let mut whole = match before.trim() {
        "" => Value::Object(Map::new()),
        text => serde_json::from_str(text).with_context(|| {
            format!("{} is no plain JSON; use --print and write it there yourself", file.display())
        })?,
    };
    let servers =
        whole.as_object_mut().map(|whole| whole.entry(section).or_insert_with(|| Value::Object(Map::new())));
    let Some(Value::Object(servers)) = servers else {
        bail!("{} has no place for servers; use --print and write it there yourself", file.display());
    };
    servers.insert(name.to_owned(), entry);
    let mut text = serde_json::to_string_pretty(&whole)?;
    text.push('\n');
    replace(file, &text).with_context(|| format!("can't write {}", file.display()))
}

/// All of it or nothing, and for nobody else to read: it may have a key in it.
fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    // Where it is a link, what it leads to is replaced.
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().context("it is in no folder")?;
    std::fs::create_dir_all(folder)?;
    let beside = folder.join(format!(".okt-{}.tmp", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&beside).and_then(|mut out| {
        out.write_all(text.as_bytes())?;
        out.sync_all()
    });
    let done = written.and_then(|()| std::fs::rename(&beside, &file));
    if done.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    Ok(done?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Agent; 6] =
        [Agent::Claude, Agent::ClaudeCode, Agent::Cursor, Agent::Vscode, Agent::Windsurf, Agent::Gemini];

    fn service() -> Url {
        "https://okt.example/".parse().unwrap()
    }

    #[test]
    fn what_else_is_in_a_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places { home: folder.path().join("home"), programs: folder.path().join("programs") };
        for agent in ALL {
            let (file, section) = (agent.file(&places), agent.section());
            write(&file, section, "okt", agent.entry(&service(), Some("okt_1")).unwrap()).unwrap();
            let mut whole: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
            whole["theme"] = "dark".into();
            whole[section]["other"] = json!({"command": "other"});
            std::fs::write(&file, whole.to_string()).unwrap();
            write(&file, section, "okt", agent.entry(&service(), Some("okt_2")).unwrap()).unwrap();
            let after = std::fs::read_to_string(&file).unwrap();
            assert!(after.contains("okt_2") && !after.contains("okt_1"), "{after}");
            let after: Value = serde_json::from_str(&after).unwrap();
            assert_eq!(
                (&after["theme"], &after[section]["other"]["command"]),
                (&json!("dark"), &json!("other"))
            );
            assert_eq!(
                std::fs::read_dir(file.parent().unwrap())
                    .unwrap()
                    .filter(|entry| {
                        entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".tmp")
                    })
                    .count(),
                0
            );
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            }
        }
    }

    #[test]
    fn a_file_that_is_no_plain_json_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        for text in ["{ // mine\n}", "[]", "{\"servers\": 7}", "{"] {
            std::fs::write(&file, text).unwrap();
            assert!(write(&file, "servers", "okt", json!({})).is_err(), "{text}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn an_entry_has_a_key_where_there_is_one() {
        for agent in ALL.into_iter().filter(|agent| *agent != Agent::Claude) {
            let without = agent.entry(&service(), None).unwrap().to_string();
            assert!(without.contains("https://okt.example/mcp") && !without.contains("Bearer"), "{without}");
            let with = agent.entry(&service(), Some("okt_1")).unwrap();
            assert_eq!(with["headers"]["Authorization"], "Bearer okt_1");
        }
        assert!(Agent::Claude.entry(&service(), None).is_err());
        let claude = Agent::Claude.entry(&service(), Some("okt_1")).unwrap();
        assert_eq!(claude["args"], json!(["mcp", "--url", "https://okt.example"]));
    }
}
