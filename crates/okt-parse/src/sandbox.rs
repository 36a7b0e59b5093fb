//! A process locks itself in, before it looks at what somebody else has written.
//!
//! Four locks, each of which holds without the others: limits of the kernel on memory, time and files; no path can be
//! opened and no port reached (Landlock); and of the hundreds of system calls those remain that reading, writing and
//! memory need (seccomp). None can be taken off again.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, AccessNet, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope, path_beneath_rules,
};
use rlimit::Resource;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// All the memory that the process may have, its programs included: the service itself, and what it reads PDFs with.
pub const MEMORY: u64 = 704 * 1024 * 1024;
/// Files that a program may have open which loads libraries and models of its own.
const FILES: u64 = 32;
/// Seconds of work; a second later the process is ended without being asked.
pub const CPU_SECONDS: u64 = 30;

/// What could not be locked.
#[derive(Debug, thiserror::Error)]
#[error("the parser could not enter its sandbox, so it reads nothing: {0}")]
pub struct SandboxError(String);

/// Starts this program anew with the memory that it may have, and without an environment; returns at once in the one
/// that was started so. An allocator reserves address space when a program begins, by what it finds there: a limit that
/// came later would find more taken than it allows.
pub fn begin() -> Result<(), SandboxError> {
    let begin = || {
        let (soft, hard) = Resource::AS.get()?;
        if soft <= MEMORY {
            return Ok(());
        }
        Resource::AS.set(MEMORY, MEMORY.min(hard))?;
        Err(Command::new("/proc/self/exe").args(std::env::args_os().skip(1)).env_clear().exec())
    };
    begin().map_err(|error: io::Error| SandboxError(format!("memory: {error}")))
}

/// Becomes a program that has to open files of its own, under the same limits. It may read and start what is installed,
/// nothing else, and of the system calls it has those that starting takes besides. Here Landlock is no lock among others:
/// without it the program could read every file that we can, so it is not started.
pub fn become_program(command: &mut Command, folders: &[&Path]) -> SandboxError {
    let locked = || {
        limits(FILES).map_err(|error| SandboxError(format!("limits: {error}")))?;
        only_below(folders).map_err(|error| SandboxError(format!("Landlock: {error}")))?;
        few_calls(true).map_err(|error| SandboxError(format!("seccomp: {error}")))
    };
    match locked() {
        Ok(()) => {
            let error = command.exec();
            SandboxError(format!("{}: {error}", command.get_program().display()))
        }
        Err(error) => error,
    }
}

/// Everything that is needed later must be open and loaded by now, and no other thread be running. A kernel without
/// Landlock leaves the other locks, of which seccomp alone refuses every file and every connection.
pub fn lock() -> Result<(), SandboxError> {
    limits(8).map_err(|error| SandboxError(format!("limits: {error}")))?;
    no_paths_and_ports().map_err(|error| SandboxError(format!("Landlock: {error}")))?;
    few_calls(false).map_err(|error| SandboxError(format!("seccomp: {error}")))
}

fn limits(files: u64) -> io::Result<()> {
    for (resource, soft, hard) in [
        (Resource::AS, MEMORY, MEMORY),
        (Resource::CPU, CPU_SECONDS, CPU_SECONDS + 1),
        (Resource::NOFILE, files, files),
        (Resource::FSIZE, 0, 0),
        (Resource::CORE, 0, 0),
        (Resource::NPROC, 0, 0),
    ] {
        // Whoever started the process may have left it less.
        let (_, most) = resource.get()?;
        resource.set(soft.min(most), hard.min(most))?;
    }
    Ok(())
}

fn no_paths_and_ports() -> Result<(), landlock::RulesetError> {
    let abi = ABI::V6;
    let RestrictionStatus { ruleset, .. } = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .restrict_self()?;
    // On an older kernel as much of it as that knows.
    let (RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced) =
        ruleset;
    Ok(())
}

/// As above, but what is below these folders can be read and started. The program's standard streams are open already.
fn only_below(folders: &[&Path]) -> Result<(), Box<dyn std::error::Error>> {
    let abi = ABI::V6;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(folders, AccessFs::from_read(abi)))?
        .restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err("this kernel does not have it".into());
    }
    Ok(())
}

/// Whatever is not on the list fails as if it were not permitted: the engine looks for fonts, finds none and goes on.
fn few_calls(starts: bool) -> Result<(), Box<dyn std::error::Error>> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = CALLS.iter().map(|&call| (call, Vec::new())).collect();
    if starts {
        rules.extend(STARTING.iter().map(|&call| (call, Vec::new())));
    }
    if starts {
        // Its own limits may be read; those of others, and changing any, are none of its business.
        let own = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, 0)?;
        let unchanged = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
        rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![own, unchanged])?]);
    }
    // Memory may be had, but not to run what has been written into it.
    for call in [libc::SYS_mmap, libc::SYS_mprotect].into_iter().filter(|_| !starts) {
        let executable = u64::try_from(libc::PROT_EXEC)?;
        let not_executable =
            SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(executable), 0)?;
        rules.insert(call, vec![SeccompRule::new(vec![not_executable])?]);
    }
    // A signal to itself is how a process ends that can't go on; others are none of its business.
    let itself =
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, std::process::id().into())?;
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![itself])?]);
    let refused = SeccompAction::Errno(u32::try_from(libc::EPERM)?);
    let filter =
        SeccompFilter::new(rules, refused, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(seccompiler::apply_filter(&program)?)
}

/// What a program and its loader need to start and to find their files. No threads, no processes, no connections.
const STARTING: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_openat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    libc::SYS_pread64,
    libc::SYS_newfstatat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    libc::SYS_statx,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_getrusage,
];

/// Reading and writing what is open, memory, time, locks between threads, signals of its own, and the end.
const CALLS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];
