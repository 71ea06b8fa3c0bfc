//! The simulator as a WebAssembly module without imports: `tools/wasm.mjs` runs it under node, the browser lab in a page.
//!
//! ```text
//! flowstamp_request(length) -> address    reserves space for a request of `length` bytes and returns its address
//! flowstamp_run() -> address              answers the request and returns the address of the reply, valid until the next call
//! flowstamp_reply_length() -> length      returns the reply's length in bytes
//! ```
//!
//! Requests and replies are JSON in UTF-8. A module has one run at a time. A request has one key:
//!
//! | request | effect | reply |
//! |---|---|---|
//! | `{"start": {"name", "scenario", "files"}}` | lays out a scenario: a name for messages, its TOML or JSON text, file contents by path | `groups` and `links` by name |
//! | `{"step": {"until"}}` | runs on until a time, such as `"12us"` | `now_s` |
//! | `{"set": {"key", "value"}}` | sets a value from now on | `now_s` |
//! | `{"look": {"since", "link"}}` | none | `series` as kind, name and metric, if `since` is zero; `samples` after `since`, each a time and the values of all series; `packets` on the link: number of the group, 1 for data, position in thousandths of the link or -1 before it |
//! | `{"gains": {}}` | none | `gains`: name and default alpha and beta of router laws that have them |
//! | `{"senders": {}}` | none | `senders`: name of each sender law that sends on its own, and of its default router law or null |
//! | `{"digest": {}}` | none | `digest` of the results so far, in the form of `Results::digest` |
//!
//! The reply to an invalid request is `{"error": "..."}`, in one line.

use flowstamp_laws::registry::{RouterSpec, SenderSpec};
use flowstamp_laws::tree::{Tree, Value};
use flowstamp_laws::units::Time;
use flowstamp_sim::scenario::Files;
use flowstamp_sim::{Crossing, Format, Simulation, StepError, load};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// A request; exactly one field is set.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Request {
    start: Option<Start>,
    step: Option<Step>,
    set: Option<Set>,
    look: Option<Look>,
    gains: Option<Nothing>,
    senders: Option<Nothing>,
    digest: Option<Nothing>,
}

impl Request {
    /// Number of fields that are set.
    fn keys(&self) -> usize {
        let runs = [self.start.is_some(), self.step.is_some(), self.set.is_some()];
        let tells =
            [self.look.is_some(), self.gains.is_some(), self.senders.is_some(), self.digest.is_some()];
        runs.into_iter().chain(tells).map(usize::from).sum()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    name: String,
    scenario: String,
    #[serde(default)]
    files: Files,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    until: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    key: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    since: String,
    link: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Serialize)]
#[serde(untagged)]
enum Reply {
    Started {
        groups: Vec<String>,
        links: Vec<String>,
    },
    Now {
        now_s: f64,
    },
    Seen {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        series: Vec<(&'static str, String, String)>,
        samples: Vec<Vec<f64>>,
        packets: Vec<(u32, u8, i32)>,
    },
    Gains {
        gains: Vec<(&'static str, f64, f64)>,
    },
    Senders {
        senders: Vec<(&'static str, Option<&'static str>)>,
    },
    Digest {
        digest: String,
    },
    Error {
        error: String,
    },
}

/// Answers a request on `run`.
fn answer(run: &mut Option<Simulation>, request: &[u8]) -> Result<Reply, String> {
    let request: Value = serde_json::from_slice(request).map_err(|e| format!("not a request: {e}"))?;
    let request = Request::deserialize(Tree(&request)).map_err(|e| format!("not a request: {e}"))?;
    if request.keys() != 1 {
        return Err("not a request: it must have one key".to_owned());
    }
    if let Some(Start { name, scenario, files }) = request.start {
        let format = if scenario.starts_with('{') { Format::Json } else { Format::Toml };
        let loaded = load(&scenario, format, &name, &[], &files).map_err(|e| e.to_string())?;
        let new = Simulation::new(&loaded, None).map_err(|e| e.to_string())?;
        let names = |names: &mut dyn Iterator<Item = &str>| names.map(str::to_owned).collect();
        let reply = Reply::Started { groups: names(&mut new.groups()), links: names(&mut new.links()) };
        *run = Some(new);
        return Ok(reply);
    }
    if let Some(Nothing {}) = request.gains {
        let gains = RouterSpec::all().into_iter().filter_map(|law| {
            let gains = law.traits().gains?;
            Some((law.name(), gains.alpha, gains.beta))
        });
        return Ok(Reply::Gains { gains: gains.collect() });
    }
    if let Some(Nothing {}) = request.senders {
        let senders = SenderSpec::all().into_iter().filter_map(|law| {
            law.traits().stands_alone().then(|| (law.name(), law.router().map(|router| router.name())))
        });
        return Ok(Reply::Senders { senders: senders.collect() });
    }
    let run = run.as_mut().ok_or("nothing has been started")?;
    if let Some(Step { until }) = request.step {
        let until = time("until", &until)?;
        run.run_until(until, &mut |_| ControlFlow::Continue(())).map_err(|e| match e {
            StepError::Stopped => "stopped".to_owned(),
            StepError::Refused(e) => e.to_string(),
        })?;
    }
    if let Some(Set { key, value }) = request.set {
        run.set(&key, &value).map_err(|e| e.to_string())?;
    }
    if let Some(Look { since, link }) = request.look {
        return Ok(look(run, time("since", &since)?, &link));
    }
    if let Some(Nothing {}) = request.digest {
        let results = run.results().map_err(|e| e.to_string())?;
        return Ok(Reply::Digest { digest: results.digest().to_string() });
    }
    Ok(Reply::Now { now_s: run.now().as_secs_f64() })
}

fn time(key: &str, text: &str) -> Result<Time, String> {
    text.parse::<Time>().map_err(|e| format!("{key}: {e}"))
}

fn look(run: &Simulation, since: Time, link: &str) -> Reply {
    let seen = run.series_since(since);
    let mut samples: Vec<Vec<f64>> = Vec::new();
    for ((time_s, key), value) in seen.time_s.iter().zip(&seen.key).zip(&seen.value) {
        if *key == 0 {
            samples.push(vec![*time_s]);
        }
        samples.iter_mut().last().into_iter().for_each(|sample| sample.push(*value));
    }
    let keys = if since == Time::ZERO { seen.keys } else { Vec::new() };
    let packet = |packet: &Crossing| {
        let part = packet.part.map_or(-1, |part| (part * 1000.0) as i32);
        (packet.group, u8::from(packet.data), part)
    };
    Reply::Seen {
        series: keys.into_iter().map(|key| (key.kind, key.name, key.metric)).collect(),
        samples,
        packets: run.crossing(link).iter().map(packet).collect(),
    }
}

/// Memory that the caller reads and writes between calls. This module follows no pointer of the caller's.
static REQUEST: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static REPLY: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static RUN: Mutex<Option<Simulation>> = Mutex::new(None);

/// Reserves space for a request of `length` bytes and returns its address.
#[expect(unsafe_code, reason = "an export has a fixed name; the prefix keeps it from being another's")]
#[unsafe(no_mangle)]
pub extern "C" fn flowstamp_request(length: usize) -> *mut u8 {
    let mut request = REQUEST.lock().unwrap_or_else(PoisonError::into_inner);
    request.clear();
    request.resize(length, 0);
    request.as_mut_ptr()
}

/// Answers the request and returns the address of the reply.
#[expect(unsafe_code, reason = "as above")]
#[unsafe(no_mangle)]
pub extern "C" fn flowstamp_run() -> *const u8 {
    let mut run = RUN.lock().unwrap_or_else(PoisonError::into_inner);
    let outcome = answer(&mut run, &REQUEST.lock().unwrap_or_else(PoisonError::into_inner));
    let mut reply = REPLY.lock().unwrap_or_else(PoisonError::into_inner);
    // Strings and numbers under fixed keys always serialise.
    *reply = serde_json::to_vec(&outcome.unwrap_or_else(|error| Reply::Error { error })).unwrap_or_default();
    reply.as_ptr()
}

/// The reply's length in bytes.
#[expect(unsafe_code, reason = "as above")]
#[unsafe(no_mangle)]
pub extern "C" fn flowstamp_reply_length() -> usize {
    REPLY.lock().unwrap_or_else(PoisonError::into_inner).len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const TEXT: &str = "duration = \"1s\"\n[dumbbell]\nrate = \"10Mbps\"\nrtt = \"40ms\"\nrouter = \"xcp\"\n\
                        [[flows]]\nname = \"f\"\nlaw = \"xcp\"\n[probes]\nevery = \"100ms\"\n";

    fn ask(run: &mut Option<Simulation>, request: &Value) -> Value {
        let reply = answer(run, request.to_string().as_bytes());
        serde_json::to_value(reply.unwrap_or_else(|error| Reply::Error { error })).expect("a reply")
    }

    #[test]
    fn a_run_is_started_stepped_changed_and_seen() {
        let mut run = None;
        let started = ask(&mut run, &json!({"start": {"name": "n", "scenario": TEXT}}));
        assert_eq!(started, json!({"groups": ["f"], "links": ["bottleneck", "bottleneck.reverse"]}));
        assert_eq!(ask(&mut run, &json!({"step": {"until": "350ms"}})), json!({"now_s": 0.35}));
        let seen = ask(&mut run, &json!({"look": {"since": "0s", "link": "bottleneck"}}));
        let series = seen["series"].as_array().expect("series").len();
        assert_eq!(seen["samples"].as_array().map(Vec::len), Some(3));
        assert!(
            seen["samples"]
                .as_array()
                .expect("samples")
                .iter()
                .all(|s| s.as_array().map(Vec::len) == Some(1 + series))
        );
        let packets = seen["packets"].as_array().expect("packets").clone();
        let parts: Vec<i64> = packets.iter().map(|p| p[2].as_i64().expect("a part")).collect();
        // A link at 10 Mb/s holds 20 packets in 16 ms; the next packet to arrive has travelled most of it.
        assert!((15..=25).contains(&parts.iter().filter(|part| **part >= 0).count()), "{parts:?}");
        assert!(parts.windows(2).all(|pair| pair[0] >= pair[1]), "{parts:?}");
        let later = ask(&mut run, &json!({"look": {"since": "350ms", "link": ""}}));
        assert_eq!(later, json!({"samples": [], "packets": []}));
        assert_eq!(
            ask(&mut run, &json!({"set": {"key": "dumbbell.rate", "value": "5Mbps"}})),
            json!({"now_s": 0.35})
        );
        ask(&mut run, &json!({"step": {"until": "1s"}}));
        let digest = ask(&mut run, &json!({"digest": {}}));
        assert_eq!(digest["digest"].as_str().map(|digest| digest.split(' ').count()), Some(4));
    }

    #[test]
    fn gains_are_told_before_anything_runs() {
        let told = ask(&mut None, &json!({"gains": {}}));
        let xcp = told["gains"].as_array().expect("laws").iter().find(|law| law[0] == "xcp");
        assert_eq!(xcp, Some(&json!(["xcp", 0.4, 0.226])));
    }

    #[test]
    fn senders_are_told_with_their_routers() {
        let told = ask(&mut None, &json!({"senders": {}}));
        let senders = told["senders"].as_array().expect("laws");
        assert!(senders.contains(&json!(["xcp", "xcp"])) && senders.contains(&json!(["sack", null])));
        assert!(!senders.iter().any(|law| law[0] == "udp"));
    }

    #[test]
    fn a_mistake_is_named() {
        let mut run = None;
        let mut error =
            |request: Value| ask(&mut run, &request)["error"].as_str().expect("an error").to_owned();
        assert_eq!(error(json!({"step": {"until": "1s"}})), "nothing has been started");
        let missing = error(json!({"start": {"name": "n"}}));
        assert!(missing.starts_with("not a request: `scenario` is missing"), "{missing}");
        for keys in [json!({}), json!({"gains": {}, "digest": {}})] {
            assert_eq!(error(keys), "not a request: it must have one key");
        }
        let text = TEXT.replace("\"10Mbps\"", "{ trace = \"a\" }");
        let no_file = error(json!({"start": {"name": "n", "scenario": text}}));
        assert_eq!(no_file, "n: dumbbell.rate.trace: \"a\" is not among the files given: none");
        let files = json!({"a": "10\n20\n"});
        assert!(
            ask(&mut run, &json!({"start": {"name": "n", "scenario": text, "files": files}}))
                .get("error")
                .is_none()
        );
        let mut error =
            |request: Value| ask(&mut run, &request)["error"].as_str().expect("an error").to_owned();
        assert!(error(json!({"step": {"until": "2s"}})).contains("at most duration, 1s"));
        assert!(error(json!({"step": {"until": "2"}})).starts_with("until: "));
        assert!(
            error(json!({"set": {"key": "seed", "value": "2"}})).contains("seed: cannot change in mid-run")
        );
    }
}
