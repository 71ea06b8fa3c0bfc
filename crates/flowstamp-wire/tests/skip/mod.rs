//! Tests that find no place to run in say why; those of `flowstamp-linux` use it too.

use std::io::Write;

/// Says why this test does nothing here: on standard error, and in the file that `make test` makes its list from.
///
/// # Panics
///
/// If that file cannot be written.
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
    if let Some(path) = std::env::var_os("FLOWSTAMP_SKIPPED") {
        let test = std::thread::current().name().unwrap_or("?").to_owned();
        let mut list =
            std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a file to write to");
        // One write: tests of several threads share the file.
        list.write_all(format!("{}\t{test}\t{reason}\n", env!("CARGO_CRATE_NAME")).as_bytes())
            .expect("room for a line");
    }
}
