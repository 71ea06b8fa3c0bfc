//! The lab's namespaces and the programs in them. The name of everything outside this process contains the
//! lab's id.

use crate::refusal::Refusal;
use anyhow::{Context, bail};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// A namespace of the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Left,
    Router,
    Path,
    Right,
}

impl Place {
    pub const ALL: [Self; 4] = [Self::Left, Self::Router, Self::Path, Self::Right];

    const fn word(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Router => "router",
            Self::Path => "path",
            Self::Right => "right",
        }
    }
}

/// A lab's name among others on this machine.
#[derive(Clone, Debug)]
pub struct Id(String);

impl Id {
    /// Accepts 1 to 8 lower-case letters and digits.
    pub fn new(text: &str) -> Result<Self, Refusal> {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if text.is_empty() || text.len() > 8 || !text.chars().all(good) {
            return Err(Refusal(format!(
                "--id: \"{text}\" must be 1 to 8 lower-case letters and digits, such as \"lab\""
            )));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    pub fn namespace(&self, place: Place) -> String {
        format!("fs-{}-{}", self.0, place.word())
    }

    /// A namespace's file.
    pub fn file(&self, place: Place) -> PathBuf {
        Path::new("/run/netns").join(self.namespace(place))
    }

    /// The directory for the applications' files.
    pub fn folder(&self) -> PathBuf {
        PathBuf::from(format!("/run/fs-{}-lab", self.0))
    }

    /// The applications' cgroup, if cgroup version 2 is mounted.
    pub fn cgroup(&self) -> Option<PathBuf> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mount = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (path, kind) = (words.next()?, words.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(path))
        })?;
        Some(mount.join(format!("fs-{}-lab", self.0)))
    }
}

/// A lock against a second lab with the same id.
pub struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Takes the lock, or refuses if another lab runs.
    pub fn take(id: &Id) -> anyhow::Result<Self> {
        let path = PathBuf::from(format!("/run/fs-{}-lab.lock", id.0));
        loop {
            let file = File::create(&path).map_err(|error| {
                Refusal(format!(
                    "{}: {error}; a lab makes network namespaces and needs to be root",
                    path.display()
                ))
            })?;
            // SAFETY: the descriptor is open.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } < 0 {
                return Err(Refusal(format!(
                    "a lab of the id \"{}\" runs already; name another with --id",
                    id.0
                ))
                .into());
            }
            let lock = Self { path: path.clone(), file };
            if lock.is_current() {
                return Ok(lock);
            }
        }
    }

    /// Whether the locked file still has its name; its previous holder may have removed it.
    fn is_current(&self) -> bool {
        let named = fs::metadata(&self.path).map(|m| m.ino());
        matches!((named, self.file.metadata()), (Ok(named), Ok(held)) if named == held.ino())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.is_current() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Runs a command to its end and returns its output; an error contains the command.
pub fn run(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            anyhow::Error::new(Refusal(format!("{program} is missing; tools/install-linux.sh installs it")))
        }
        _ => anyhow::Error::new(error).context(program.clone()),
    })?;
    if !output.status.success() {
        let words: Vec<_> = command.get_args().map(|a| a.to_string_lossy()).collect();
        bail!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Prepares a program in a namespace and the lab's cgroup. The program ends with the lab, and Ctrl-C does not
/// reach it.
pub fn command(id: &Id, place: Place, program: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("within").arg("--netns").arg(id.file(place));
    if let Some(procs) = id.cgroup().map(|path| path.join("cgroup.procs")).filter(|procs| procs.exists()) {
        command.arg("--procs").arg(procs);
    }
    command.args(["--", program]);
    Ok(command)
}

/// A separate process between [`command`] and the program. A direct fork would mark the lab's memory for copying page
/// by page, and the path's thread would wait for that.
#[derive(clap::Args)]
pub struct Within {
    #[arg(long)]
    netns: PathBuf,
    #[arg(long)]
    procs: Option<PathBuf>,
    #[arg(last = true, required = true)]
    program: Vec<std::ffi::OsString>,
}

impl Within {
    /// Executes the program; returns only on error.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        // SAFETY: no memory is involved.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::setpgid(0, 0);
        }
        let namespace = File::open(&self.netns).with_context(|| format!("{}", self.netns.display()))?;
        // SAFETY: the descriptor is open.
        if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } < 0 {
            return Err(std::io::Error::last_os_error()).context("setns");
        }
        if let Some(procs) = &self.procs {
            File::options().write(true).open(procs)?.write_all(b"0")?;
        }
        let mut program = Command::new(&self.program[0]);
        Err(program.args(&self.program[1..]).exec())
            .with_context(|| self.program[0].to_string_lossy().into_owned())
    }
}

/// Sets a value under /proc/sys/net in a namespace.
pub fn sysctl(id: &Id, place: Place, key: &str, value: &str) -> anyhow::Result<()> {
    let script = format!("echo '{value}' > /proc/sys/net/{}", key.replace('.', "/"));
    run(command(id, place, "sh")?.args(["-c", &script])).map(|_| ())
}
