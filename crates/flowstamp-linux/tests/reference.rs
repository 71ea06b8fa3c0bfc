//! Checks that the reference page of `flowstamp host`, `router` and `lab` equals the program's `--help`.
//!
//! `FLOWSTAMP_ACCEPT=1 cargo test --test reference` rewrites the page. It is separate from the page of the
//! other commands, whose test also runs where this program cannot be built.

use std::fmt::Write;
use std::process::Command;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/linux.md");

fn help(command: &str) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_flowstamp-linux")).args([command, "--help"]).output().unwrap();
    assert!(output.status.success(), "{command} --help: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim().lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn the_reference_page_is_what_the_program_says() {
    let mut page = String::from(
        "<!-- Made by crates/flowstamp-linux/tests/reference.rs; change the program's own descriptions instead. -->\n\n\
         # Linux command reference\n\n\
         The help of the Linux commands. They need the program `flowstamp-linux`, which `make linux` builds. \
         [Linux](../linux.md) explains them by examples.\n",
    );
    for command in ["host", "router", "lab"] {
        write!(page, "\n## `flowstamp {command}`\n\n```text\n{}```\n", help(command)).unwrap();
    }
    if std::env::var_os("FLOWSTAMP_ACCEPT").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let there = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        there == page,
        "{PAGE} is not what the program says: FLOWSTAMP_ACCEPT=1 cargo test --test reference writes it"
    );
}
