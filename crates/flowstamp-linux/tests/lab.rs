//! Runs a lab end to end on this kernel. Needs root and a lab's programs; prints the reason if skipped.

#[path = "../../flowstamp-wire/tests/skip/mod.rs"]
mod skip;

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Exit code of a run that says nothing: the machine was too busy.
const INVALID: i32 = 3;

/// The summary of a lab; none where it cannot run, or the machine stays too busy for it.
fn summary(name: &str, text: &str) -> Option<Value> {
    // SAFETY: no arguments.
    let root = unsafe { libc::geteuid() } == 0;
    let there = |program: &str| {
        std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|p| p.join(program).is_file()))
    };
    if !root || !PathBuf::from("/sys/kernel/btf/vmlinux").exists() || !there("iperf3") || !there("tc") {
        skip::skip("labs need root, a kernel with BTF, iproute2 and iperf3");
        return None;
    }
    let file = std::env::temp_dir().join(format!("flowstamp-lab-{name}-{}.toml", std::process::id()));
    std::fs::write(&file, text).expect("written");
    // Another id for each process: tests of two checkouts run side by side.
    let id = format!("t{}{}", &name[..1], std::process::id() % 100_000);
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowstamp-linux"));
        let output = command.args(["lab", "run", "--json", "--id", &id]).arg(&file).output().expect("built");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() || output.status.code() == Some(INVALID), "{said}");
        let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (summary["valid"] == true).then_some(summary)
    };
    let found = (0..3).find_map(|_| run());
    let _ = std::fs::remove_file(&file);
    if found.is_none() {
        skip::skip("this machine is too busy to keep a lab's times");
    }
    found
}

const RTT_S: f64 = 0.04;
const Q_MAX: f64 = 30_000.0;
const ALPHA: f64 = 0.4;
/// Mb/s, each for four seconds.
const STEPS: [f64; 3] = [5.0, 20.0, 10.0];

/// XCP-b in the kernel, on a link of unknown rate: the link is used, and the queue stays within the law's parameters.
#[test]
fn xcp_b_follows_a_link_whose_rate_steps() {
    let [first, second, third] = STEPS;
    let lab = format!(
        r#"
        duration = "12s"
        warmup = "1s"
        [path]
        rate = {{ steps = [["0s", "{first}Mbps"], ["4s", "{second}Mbps"], ["8s", "{third}Mbps"]] }}
        reverse_rate = "100Mbps"
        rtt = "40ms"
        buffer = "1MB"
        [router]
        law = "xcp-b"
        where = "bpf"
        q_max = "30kB"
        [host]
        law = "xcp"
        [[flows]]
        name = "long"
        count = 2
        "#
    );
    let Some(summary) = summary("steps", &lab) else { return };
    let link = &summary["links"]["bottleneck"];
    let number = |name: &str| link[name].as_f64().unwrap_or_else(|| panic!("no {name}: {link}"));
    println!("{link}");
    // Figure 4: up to Qmax for a capacity that stays. Where it falls by dC, equation 6 takes alpha of what is too much in each interval,
    // beginning with the second after the step (one to see it, a round trip until senders have obeyed): that is
    // dC d (2 + 1 + (1 - alpha) + (1 - alpha)^2 + ...) more, with a d in which Qmax waits.
    let fall = (second - third) * 1e6 / 8.0;
    let d = RTT_S + Q_MAX / (third * 1e6 / 8.0);
    let bound = Q_MAX + fall * d * (2.0 + 1.0 / ALPHA);
    assert!(number("max_queue_bytes") <= bound, "above {bound}: {link}");
    assert_eq!(number("drops"), 0.0, "{link}");
    // Equation 7 gives chi Qmax / d in each d: from 5 to 20 Mb/s takes 15 Mb/s d^2 / (8 chi Qmax), half a second of 11. A tenth of
    // the link is more than that leaves, twice: at the start and at the step.
    assert!(number("utilization") >= 0.9, "{link}");
    // Nobody took the law's queue for another bottleneck's.
    let left = summary["hosts"]["groups"]["long"]["left"].as_array().map(Vec::len);
    assert_eq!(left, Some(0), "{}", summary["hosts"]);
}

/// A flow that takes each echo for the largest, and sends 10 Mb/s whatever it is told, beside two that obey: the kernel's police holds it to half of that,
/// and tests the others without harm.
#[test]
#[ignore = "long"]
fn the_police_isolates_who_does_not_obey() {
    for law in ["xcp", "rcp"] {
        let lab = format!(
            r#"
            duration = "9s"
            [path]
            rate = "20Mbps"
            rtt = "40ms"
            buffer = "1BDP"
            [router]
            law = "{law}"
            where = "bpf"
            police = {{ heavy = "3Mbps" }}
            [host]
            law = "{law}"
            [[flows]]
            name = "honest"
            count = 2
            [[flows]]
            name = "liar"
            start = "2s"
            hears = "largest"
            pace = "10Mbps"
            "#
        );
        let Some(summary) = summary(&format!("{law}-police"), &lab) else { return };
        let tested = summary["links"]["bottleneck"]["police"].as_array().expect("there is a police");
        let of = |group: &'static str| tested.iter().filter(move |flow| flow["group"] == group);
        // RCP's are suspect above the rate that they were told, XCP's whenever they are heavy.
        assert!(law == "rcp" || of("honest").count() == 2, "{law}: {tested:?}");
        assert!(of("honest").all(|flow| flow["isolations"] == 0), "{law}: {tested:?}");
        let [liar] = of("liar").collect::<Vec<_>>()[..] else { panic!("{law}: {tested:?}") };
        assert_eq!(liar["isolations"], 1, "{law}: {liar}");
        assert!(liar["drops"].as_u64() > Some(0), "{law}: {liar}");
    }
}
