//! Locks itself in as the parser does, then tries what a hostile document would like to do, and says what came of it.
//! `tests/it/locked_in.rs` runs it.

use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;

use okt_parse::sandbox;
use rlimit::Resource;

pub fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(2).collect();
    let mut out = std::io::stdout().lock();
    match arguments.first().map(String::as_str) {
        Some("try") => {
            let address = arguments.get(1).ok_or("name an address that listens")?;
            let variables = std::env::vars_os().count();
            sandbox::lock()?;
            writeln!(out, "environment: {variables}")?;
            for (what, tried) in attempts(address) {
                let result = tried().map_or_else(|error| error.to_string(), |()| "it could".to_owned());
                writeln!(out, "{what}: {result}")?;
            }
        }
        Some("memory") => {
            sandbox::lock()?;
            let mut held: Vec<Vec<u8>> = Vec::new();
            while held.len() < 4_096 {
                held.push(vec![1; 1024 * 1024]);
            }
            writeln!(out, "held {} MiB", held.len())?;
        }
        Some("time") => {
            // A second instead of the half minute that the parser has; `lock` leaves what is less.
            Resource::CPU.set(1, 1)?;
            sandbox::lock()?;
            let mut number = 1_u64;
            while number != 0 {
                number = std::hint::black_box(number | 1);
            }
            writeln!(out, "counted {number}")?;
        }
        _ => return Err("try ADDRESS, memory or time".into()),
    }
    Ok(())
}

type Attempt<'a> = Box<dyn Fn() -> std::io::Result<()> + 'a>;

#[expect(clippy::disallowed_methods, reason = "it must not be possible, however it is done")]
fn attempts(address: &str) -> Vec<(&'static str, Attempt<'_>)> {
    vec![
        ("open a file", Box::new(|| File::open("/etc/passwd").map(drop))),
        ("open itself", Box::new(|| File::open("/proc/self/maps").map(drop))),
        ("list a folder", Box::new(|| std::fs::read_dir("/").map(drop))),
        ("look at a file", Box::new(|| std::fs::metadata("/etc/passwd").map(drop))),
        ("write a file", Box::new(|| File::create("/tmp/okt-locked-in").map(drop))),
        ("connect", Box::new(move || TcpStream::connect(address).map(drop))),
        ("listen", Box::new(|| TcpListener::bind("127.0.0.1:0").map(drop))),
        ("send a datagram", Box::new(|| UdpSocket::bind("127.0.0.1:0").map(drop))),
        ("start a program", Box::new(|| Command::new("/bin/true").status().map(drop))),
        ("start a thread", Box::new(|| std::thread::Builder::new().spawn(|| ()).map(drop))),
        ("raise its limits", Box::new(|| Resource::AS.set(sandbox::MEMORY * 2, sandbox::MEMORY * 2))),
    ]
}
