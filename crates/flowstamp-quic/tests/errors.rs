//! Errors of the program: one line, which says what would be right.

use std::process::Command;

#[test]
fn errors_are_one_line_that_says_what_would_be_right() {
    let get = ["get", "https://127.0.0.1:1/bytes/1", "--insecure"];
    let path = ["path", "--listen", "127.0.0.1:0", "--delay", "20ms", "--rate"];
    let video = ["video", "https://127.0.0.1:1/", "--insecure"];
    let cases: [(&[&str], &str); 18] = [
        (&["get", "127.0.0.1:1/bytes/1", "--insecure"], "it must be like https://127.0.0.1:4433/"),
        (&["get", "http://127.0.0.1:1/", "--insecure"], "HTTP/3 needs https://"),
        (&get[..2], "trust any server with --insecure"),
        (
            &["get", "https://127.0.0.1:1/", "--fingerprint", "e80c"],
            "the 64 hexadecimal digits that `serve` prints",
        ),
        (&[get[0], get[1], get[2], "--law", "cubik"], "does not carry cubik; use one of xcp, rcp, reno"),
        (&[get[0], get[1], get[2], "--law", "vcp"], "does not carry vcp; use one of xcp, rcp, reno"),
        (&[get[0], get[1], get[2], "--mtu", "9000"], "it must be 1200 to 1420"),
        (&[&path[..], &["10Mbs"]].concat(), "use one of bps, kbps, Mbps"),
        (&[&path[..], &["10Mbps", "--law", "xpc"]].concat(), "has no xpc; use none, rcp or xcp"),
        (&[&path[..], &["10Mbps", "--scone-rate", "5kbps"]].concat(), "use at least 100kbps"),
        (&["serve", "--listen", "127.0.0.1:0", "--law", "rcp"], "leave --law out, and use get --law rcp"),
        (&[&get[..], &["--every", "1"]].concat(), "--json"),
        (&[&get[..], &["--seconds", "0"]].concat(), "a number of seconds, from 0.001"),
        (&[&video[..], &["--choice", "luck"]].concat(), "expected one of `buffer`, `rate`, `advice`"),
        (&[&video[..], &["--segment", "20s"]].concat(), "segment is 20s; it must be 1s to 10s"),
        (&[&video[..], &["--player", "{\"careful\": 1}"]].concat(), "--player: unknown field `careful`"),
        (&["serve", "--listen", "127.0.0.1"], "an IP address and a port, like 127.0.0.1:4433"),
        (&["serve", "--listen", "127.0.0.1:0", "--root", "/no/such"], "--root: there is no folder /no/such"),
    ];
    for (arguments, right) in cases {
        let done =
            Command::new(env!("CARGO_BIN_EXE_flowstamp-quic")).arg("quic").args(arguments).output().unwrap();
        let told = String::from_utf8(done.stderr).unwrap();
        assert!(!done.status.success(), "{arguments:?}");
        assert!(told.starts_with("flowstamp: ") && told.lines().count() == 1, "{arguments:?}: {told}");
        assert!(told.contains(right), "{arguments:?}: {told}");
    }
}
