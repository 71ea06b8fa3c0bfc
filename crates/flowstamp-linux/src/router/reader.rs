//! A separate process that reads routers' maps, so that the process that answers network requests needs no
//! privileges.
//!
//! ```text
//! server: user nobody, no capability  -- one byte ------------------->  reader: CAP_BPF
//!                                     <-- status, length, text -------
//! ```
//!
//! No network input reaches the reader, because a question has no content. The reader opens the pins at each
//! question, and so notices a router that was attached again. It ends with the process that asks.

use super::privileges;
use crate::refusal::Refusal;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// The server's end of the connection to the reader.
pub struct Reader(UnixStream);

/// The text, or an error in one line.
type Answer = Result<String, String>;

impl Reader {
    /// Forks the reader, which answers each question with the result of `read` and drops its copy of
    /// `closed`. The calling process must have no other thread, and may drop its privileges afterwards.
    pub fn start<C>(closed: C, read: impl Fn() -> anyhow::Result<String>) -> anyhow::Result<(Self, C)> {
        if !privileges::holds(privileges::CAP_BPF) {
            return Err(Refusal("--metrics needs root, or CAP_BPF".into()).into());
        }
        let (asks, answers) = UnixStream::pair()?;
        // SAFETY: no other thread holds a lock that the child would wait for.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error().into()),
            0 => {
                drop((asks, closed));
                let ended = keep_reading(answers, read);
                std::process::exit(i32::from(ended.is_err()))
            }
            _ => Ok((Self(asks), closed)),
        }
    }

    /// Asks once and returns the answer.
    pub fn ask(&mut self) -> io::Result<Answer> {
        self.0.write_all(b"?")?;
        let mut head = [0; 5];
        self.0.read_exact(&mut head)?;
        let [is_text, length @ ..] = head;
        let mut text = vec![0; u32::from_ne_bytes(length) as usize];
        self.0.read_exact(&mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(if is_text == 1 { Ok(text) } else { Err(text) })
    }
}

/// Answers until the server ends. Root can read its own directories without CAP_DAC_OVERRIDE; another user
/// keeps that capability to read root's.
fn keep_reading(mut stream: UnixStream, read: impl Fn() -> anyhow::Result<String>) -> anyhow::Result<()> {
    // SAFETY: no arguments.
    let root = unsafe { libc::geteuid() } == 0;
    let needed = [privileges::CAP_BPF, privileges::CAP_DAC_OVERRIDE];
    privileges::keep_held(&needed[..if root { 1 } else { 2 }])?;
    let mut question = [0];
    while stream.read(&mut question)? == 1 {
        let (is_text, text) = match read() {
            Ok(text) => (1, text),
            Err(error) => (0, error.to_string()),
        };
        let mut answer = vec![is_text];
        answer.extend(u32::try_from(text.len())?.to_ne_bytes());
        answer.extend(text.as_bytes());
        stream.write_all(&answer)?;
    }
    Ok(())
}
