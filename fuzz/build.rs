//! Compiles what routers run in the kernel for this machine.

fn main() {
    let folder = "../crates/flowstamp-linux/bpf";
    cc::Build::new()
        .file("packet_on_host.c")
        .include(folder)
        .opt_level(1)
        .warnings(false)
        .compile("flowstamp_packet");
    println!("cargo:rerun-if-changed={folder}");
    println!("cargo:rerun-if-changed=packet_on_host.c");
}
