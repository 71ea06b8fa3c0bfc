//! The simulator as a WebAssembly module that imports nothing (`tools/wasm.mjs` runs it under node).
//!
//! ```text
//! flowstamp_request(length) -> address    where a request of so many bytes is to be written
//! flowstamp_run() -> address              runs it; where the reply is, until the next call
//! flowstamp_reply_length() -> length      how many bytes the reply has
//! ```
//!
//! Both are JSON in UTF-8. A request has `name` (for messages), `scenario` (its TOML) and `files` (contents by path). The reply
//! has `digest`, in the form of `Results::digest`, or `error`, in one line.

use flowstamp_sim::scenario::Files;
use flowstamp_sim::{Format, load, run_many};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// What to run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    name: String,
    scenario: String,
    #[serde(default)]
    files: Files,
}

/// What came of it.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Reply {
    Digest(String),
    Error(String),
}

fn digest(request: &[u8]) -> Result<String, String> {
    let Request { name, scenario, files } =
        serde_json::from_slice(request).map_err(|e| format!("not a request: {e}"))?;
    let loaded = load(&scenario, Format::Toml, &name, &[], &files).map_err(|e| e.to_string())?;
    let results = run_many(&[loaded], None, None, &|_, _| ControlFlow::Continue(()))
        .map_err(|_| format!("{name}: stopped"))?;
    results.first().map(|r| r.digest().to_string()).ok_or_else(|| format!("{name}: no results"))
}

/// Memory that the caller reads and writes between calls: no pointer of its own is ever followed here.
static REQUEST: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static REPLY: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Makes room for a request of `length` bytes; where it is to be written.
#[expect(unsafe_code, reason = "an export has a fixed name; the prefix keeps it from being another's")]
#[unsafe(no_mangle)]
pub extern "C" fn flowstamp_request(length: usize) -> *mut u8 {
    let mut request = REQUEST.lock().unwrap_or_else(PoisonError::into_inner);
    request.clear();
    request.resize(length, 0);
    request.as_mut_ptr()
}

/// Runs the request; where the reply is.
#[expect(unsafe_code, reason = "as above")]
#[unsafe(no_mangle)]
pub extern "C" fn flowstamp_run() -> *const u8 {
    let outcome = digest(&REQUEST.lock().unwrap_or_else(PoisonError::into_inner));
    let mut reply = REPLY.lock().unwrap_or_else(PoisonError::into_inner);
    // Strings under fixed keys always serialise.
    *reply = serde_json::to_vec(&outcome.map_or_else(Reply::Error, Reply::Digest)).unwrap_or_default();
    reply.as_ptr()
}

/// How many bytes the reply has.
#[expect(unsafe_code, reason = "as above")]
#[unsafe(no_mangle)]
pub extern "C" fn flowstamp_reply_length() -> usize {
    REPLY.lock().unwrap_or_else(PoisonError::into_inner).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reply has the digest, or what is wrong in one line.
    #[test]
    fn a_mistake_is_named() {
        let of = |request: serde_json::Value| digest(request.to_string().as_bytes());
        let error = digest(b"{}").expect_err("nothing to run");
        assert_eq!(error, "not a request: missing field `name` at line 1 column 2");
        let text = "duration = \"1s\"\n[dumbbell]\nrate = { trace = \"a\" }\nrtt = \"40ms\"\nrouter = \"xcp\"\n\
                    [[flows]]\nname = \"f\"\nlaw = \"xcp\"\n";
        let error = of(serde_json::json!({"name": "n", "scenario": text})).expect_err("no trace");
        assert_eq!(error, "n: dumbbell.rate.trace: \"a\" is not among the files given: none");
        let files = serde_json::json!({"a": "10\n20\n"});
        let given = of(serde_json::json!({"name": "n", "scenario": text, "files": files}));
        assert_eq!(given.map(|digest| digest.split(' ').count()), Ok(4));
    }
}
