//! Compiles the router of hardware/rtl with Verilator, and the kernel's laws in C for the host, if FLOWSTAMP_HARDWARE is
//! set. `make hardware` sets it. Then the flag `model` is on, and the tests that need both exist.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Models: prefix, law, data width. They are those of model/shim.cpp.
const MODELS: [(&str, u8, u16); 7] = [
    ("Rcp64", 1, 64),
    ("Rcp256", 1, 256),
    ("Rcp512", 1, 512),
    ("Xcp64", 2, 64),
    ("Xcp512", 2, 512),
    ("Vcp64", 3, 64),
    ("Vcp512", 3, 512),
];

fn main() {
    println!("cargo:rustc-check-cfg=cfg(model)");
    println!("cargo:rerun-if-env-changed=FLOWSTAMP_HARDWARE");
    if std::env::var_os("FLOWSTAMP_HARDWARE").is_none() {
        return;
    }
    println!("cargo:rustc-cfg=model");
    for path in ["../../hardware/rtl", "../flowstamp-linux/bpf", "model"] {
        println!("cargo:rerun-if-changed={path}");
    }
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let root = verilator(&["--getenv".to_owned(), "VERILATOR_ROOT".to_owned()]);
    let include = Path::new(root.trim()).join("include");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .opt_level(2)
        .warnings(false)
        .include(&include)
        .include(include.join("vltstd"));
    for (prefix, law, width) in MODELS {
        let folder = out.join(prefix);
        let _ = std::fs::remove_dir_all(&folder);
        verilator(&[
            "--cc".to_owned(),
            "-O3".to_owned(),
            "--x-assign".to_owned(),
            "fast".to_owned(),
            "-I../../hardware/rtl".to_owned(),
            "--Mdir".to_owned(),
            folder.display().to_string(),
            "--prefix".to_owned(),
            prefix.to_owned(),
            format!("-GLAW={law}"),
            format!("-GDATA_WIDTH={width}"),
            "../../hardware/rtl/lint.vlt".to_owned(),
            "../../hardware/rtl/flowstamp_router.sv".to_owned(),
        ]);
        build.include(&folder).files(sources(&folder));
    }
    build
        .files(["verilated.cpp", "verilated_threads.cpp"].map(|name| include.join(name)))
        .file("model/shim.cpp")
        .compile("flowstamp_model");
    println!("cargo:rustc-link-lib=dylib=pthread");
    cc::Build::new()
        .files(["laws", "vcp"].map(|name| format!("../flowstamp-linux/bpf/{name}_on_host.c")))
        .include("../flowstamp-linux/bpf")
        .opt_level(2)
        .compile("flowstamp_laws");
}

/// Runs Verilator and returns what it prints.
fn verilator(arguments: &[String]) -> String {
    let output = Command::new("verilator")
        .args(arguments)
        .output()
        .expect("verilator runs; apt-get install verilator");
    assert!(output.status.success(), "verilator: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The C++ files of a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder)
        .expect("verilator has made it")
        .map(|entry| entry.expect("readable").path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "cpp")).collect()
}
