//! Compiles the BPF programs, and the same C laws for the host, where tests hold them against Rust's.

use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

fn main() {
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    // Where Debian keeps asm/types.h.
    let multiarch = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    for name in ["host", "path", "police", "router", "scone", "udp"] {
        let source = format!("bpf/{name}.bpf.c");
        SkeletonBuilder::new()
            .source(&source)
            // Else each of its bytes is an expression in Rust, which takes most of the crate's compilation.
            .reference_obj(true)
            .clang("../../tools/bpf-cc")
            .clang_args(["-Ibpf", &multiarch, "-Wall", "-Werror", "-mcpu=v3"])
            .build_and_generate(out.join(format!("{name}.skel.rs")))
            .unwrap_or_else(|e| panic!("{source}: {e:?}; tools/install-linux.sh installs what it needs"));
    }
    cc::Build::new()
        .file("bpf/laws_on_host.c")
        .file("bpf/sender_on_host.c")
        .file("bpf/scone_on_host.c")
        .file("bpf/vcp_on_host.c")
        .file("bpf/xcpb_on_host.c")
        .file("bpf/abc_on_host.c")
        .include("bpf")
        .opt_level(2)
        .warnings(true)
        .compile("flowstamp_laws");
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=../../tools/bpf-cc");
}
