//! Tests that user settings reach the kernel's configuration or are refused by name. They need no root and no
//! kernel.

use super::*;
use crate::bpf::bytes_of;
use flowstamp_laws::rcp::router::Params as Rcp;
use flowstamp_wire::option::MicrosFloat;
use toml::Value;

fn link() -> LinkProperties {
    let (rate, limit) = (Some(Rate::from_mbps(100.0)), Some(Limit::Bytes(64_000)));
    LinkProperties { rate, limit, own_weight: 1.0, eta: 1.0, min_interval: Time::from_millis(1) }
}

/// The parameters of a router's law, as they are written.
fn table(spec: &RouterSpec) -> toml::Table {
    let mut table = toml::Table::try_from(spec).expect("a table");
    table.remove("law");
    table
}

fn with(law: &Law, sets: &[&str]) -> Result<(types::fs_config, types::fs_link), Refusal> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let Given { spec, eta, min_interval } = given(law, &sets, None, None)?;
    let rate = link().rate.filter(|_| !law.blind);
    translate(&spec, &LinkProperties { rate, eta, min_interval, ..link() })
}

fn bytes((config, first): (types::fs_config, types::fs_link)) -> Vec<u8> {
    [bytes_of(&config), bytes_of(&first)].concat()
}

fn refusal(law: &Law, sets: &[&str]) -> String {
    with(law, sets).expect_err("refused").0
}

/// Other values of the same type, which the registry may accept or not.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Float(v) => [0.5 * v, 0.9 * v, 1.5 * v, 0.3, 2.0].map(Value::Float).to_vec(),
        Value::String(text) if text.parse::<Time>().is_ok() => {
            ["15us", "700us", "3ms", "30ms", "7s"].map(|t| Value::String(t.into())).to_vec()
        }
        Value::String(text) if text.parse::<flowstamp_laws::Bytes>().is_ok() => {
            ["40B", "1500B", "9kB"].map(|t| Value::String(t.into())).to_vec()
        }
        Value::String(text) if text.ends_with("pkt") => {
            ["0.001pkt", "6pkt", "4kB"].map(|t| Value::String(t.into())).to_vec()
        }
        Value::String(text) if ["average", "counter"].contains(&text.as_str()) => {
            ["average", "counter"].map(|t| Value::String(t.into())).to_vec()
        }
        Value::String(text) if text == "min-max" => {
            ["proportional", "priority"].map(|t| Value::String(t.into())).to_vec()
        }
        Value::String(text) if text == "paper" => vec![Value::String("emulation".into())],
        Value::String(text) if text == "full" => vec![Value::String("rest".into())],
        Value::Integer(v) => vec![Value::Integer(v - 1), Value::Integer(v + 1)],
        Value::String(text) if text == "known" => {
            ["unknown", "wifi"].map(|t| Value::String(t.into())).to_vec()
        }
        Value::Boolean(v) => vec![Value::Boolean(!v)],
        other => panic!("a parameter of a new kind: {other}"),
    }
}

/// Every key that the registry knows: from the table of defaults and, for unset defaults, from the error
/// message that lists all keys.
fn keys(law: &'static Law) -> Vec<String> {
    let said = refusal(law, &["no-such-parameter=1"]);
    let keys: Vec<String> = said.split('`').skip(3).step_by(2).map(str::to_owned).collect();
    assert!(keys.len() > 5, "{said}");
    keys
}

#[test]
fn every_parameter_of_the_registry_reaches_the_kernel_or_is_refused_by_name() {
    for law in ROUTERS {
        let default = given(law, &[], None, None).expect("defaults");
        let table = table(&default.spec);
        let before = bytes(with(law, &[]).expect("the kernel has the defaults"));
        for key in keys(law) {
            // Unset parameters have a type, too.
            let unset = || match key.as_str() {
                "q_max" => Value::String("64kB".to_owned()),
                "chi" | "tau" | "weight" | "max_fill" | "rtt_gain" => Value::Float(0.2),
                "max_weight" => Value::Float(4.0),
                _ => Value::String("1ms".to_owned()),
            };
            let value = table.get(&key).cloned().unwrap_or_else(unset);
            let (mut carried, mut refused) = (0, 0);
            for other in others(&value).into_iter().filter(|other| *other != value) {
                let set = format!("{key}={other}");
                // The registry accepts another window only with this capacity.
                let also = (key == "wifi_window").then_some("capacity=wifi");
                let sets: Vec<&str> = also.into_iter().chain([set.as_str()]).collect();
                let owned: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
                let spec = match given(law, &owned, None, None) {
                    Ok(given) => given.spec,
                    // Each law that is told a capacity has one of the two alternatives.
                    Err(Refusal(said)) if key == "capacity" && said.contains("there is no") => continue,
                    Err(Refusal(said)) => panic!("{}: {set} is of its kind: {said}", law.name),
                };
                if spec.check().is_err() {
                    continue;
                }
                match with(law, &sets) {
                    Ok(after) => {
                        assert_ne!(bytes(after), before, "{}: {set} is dropped in silence", law.name);
                        carried += 1;
                    }
                    Err(Refusal(said)) => {
                        assert!(said.contains(&format!("{} parameter `{key}` = ", law.name)), "{said}");
                        assert!(said.contains("leave it") || said.contains("it must be"), "{said}");
                        refused += 1;
                    }
                }
            }
            assert!(carried + refused > 0, "{}: nothing was tried of {key}", law.name);
        }
    }
}

/// The kernel's bounds of ABC's RTT follow from shares of the RTT that the registry has.
#[test]
fn abcs_bounds_follow_from_the_registrys_defaults() {
    let of = |rtt| flowstamp_laws::abc::router::Params { rtt: Some(rtt), ..Default::default() };
    let rtt = Time::from_secs(1);
    assert_eq!(of(rtt).rate_window() * abc::WINDOWS, rtt);
    let longest = Time::from_secs(20);
    assert!(of(abc::LONGEST_RTT).delta() <= longest && of(abc::LONGEST_RTT + rtt).delta() > longest);
    let refused = refusal(ROUTERS[4], &["rtt=16s"]);
    assert!(refused.contains("abc parameter `rtt` = 16s"), "{refused}");
}

#[test]
fn what_the_kernels_laws_lack_is_refused_in_words() {
    let [rcp, xcp, vcp, xcp_b, abc] = ROUTERS;
    for (law, set, said) in [
        (
            rcp,
            "fairness=1",
            "rcp parameter `fairness` = 1.0 cannot be carried out by the kernel's law; leave it at 0.0",
        ),
        (
            rcp,
            "capacity=unknown",
            "`capacity` = unknown cannot be carried out by the kernel's law; leave it at known",
        ),
        (
            abc,
            "variant=emulation",
            "abc parameter `variant` = emulation cannot be carried out by the kernel's law; leave it at paper",
        ),
        (abc, "rate_window=10us", "abc parameter `rate_window` = 10us cannot"),
        (rcp, "growth=0.2", "`growth` = 0.2 cannot"),
        (
            rcp,
            "long_share=0.5",
            "`long_share` = 0.5 cannot be carried out by hosts, whose option has no age; leave it at 1.0",
        ),
        (rcp, "long_after=1MB", "`long_after` = 1MB cannot"),
        (
            rcp,
            "levels=4",
            "`levels` = 4 cannot be carried out by hosts, whose option has no age; leave it at 2",
        ),
        (rcp, "level_ratio=2", "`level_ratio` = 2.0 cannot"),
        (
            rcp,
            "max_weight=4",
            "`max_weight` = 4.0 cannot be carried out by hosts, whose option has no weight",
        ),
        (
            rcp,
            "rtt_gain=0.02",
            "`rtt_gain` = 0.02 cannot be carried out by the kernel's law; leave it at unset",
        ),
        (
            rcp,
            "rtt_share=0.5",
            "`rtt_share` = 0.5 cannot be carried out by the kernel's law; leave it at 1.0",
        ),
        (
            rcp,
            "max_interval=500us",
            "`max_interval` = 500us cannot be carried out by the kernel's law; it must be 1ms to 20s",
        ),
        (rcp, "max_allowable_rtt=30s", "it must be 10us to 20s"),
        (rcp, "alpha=11", "rcp parameter `alpha` is 11; it must be 0 to 10"),
        (rcp, "gamma=0.1", "--set gamma=0.1: unknown key `gamma`"),
        (rcp, "law=xcp", "the law is --law's"),
        (rcp, "alpha", "it must be KEY=VALUE"),
        (rcp, "alpha=fast", "--set alpha=fast: \"fast\" must be a number"),
        (rcp, "max_interval=10", "--set max_interval=10: "),
        (xcp, "eta=0.9", "unknown key `eta`"),
        (
            xcp,
            "min_interval=1us",
            "xcp parameter `min_interval` = 1us cannot be carried out by the kernel's law; it must be 100us to 20s",
        ),
        (xcp, "min_queue_interval=1us", "`min_queue_interval` = 1us cannot"),
        (
            xcp,
            "queue_window=100",
            "`queue_window` = 100.0 cannot be carried out by the kernel's law; it must be 0.001 to 16.0",
        ),
        (
            xcp,
            "fairness=priority",
            "`fairness` = priority cannot be carried out by the kernel's law; leave it at min-max",
        ),
        (
            xcp,
            "target_queue=10ms",
            "`target_queue` = 10ms cannot be carried out by the kernel's law; leave it at unset",
        ),
        (xcp, "max_rtt=1us", "it must be 10us to 20s"),
        (
            vcp,
            "tcp_friendly=true",
            "vcp parameter `tcp_friendly` = true cannot be carried out by the kernel's law; leave it at false",
        ),
        (vcp, "red_max_p=0.2", "`red_max_p` = 0.2 cannot"),
        (vcp, "t_rho=20s", "`t_rho` = 20s cannot be carried out by the kernel's law; it must be 1ms to 16s"),
        (vcp, "t_q=500us", "`t_q` = 500us cannot"),
        (vcp, "t_q=300ms", "vcp parameter `t_q` is 300ms; it must be at most t_rho, 200ms"),
        (vcp, "k_q=17", "`k_q` = 17.0 cannot be carried out by the kernel's law; it must be 0.0 to 16.0"),
        (vcp, "eta=0.9", "unknown key `eta`"),
        (xcp_b, "kappa=0pkt", "xcp-b parameter `kappa` is 0pkt; it must be above 0"),
        (
            xcp_b,
            "kappa=0.001pkt",
            "`kappa` = 0.001pkt cannot be carried out by the kernel's law; it must be 0.01pkt to 1000000pkt",
        ),
        (xcp_b, "kappa=3", "--set kappa=3: "),
        (xcp_b, "q_max=0B", "xcp-b parameter `q_max` is 0B; it must be the size of the buffer"),
        (xcp_b, "q_max=5GB", "`q_max` = 5GB cannot be carried out by the kernel's law; it must be 1B to "),
        (xcp_b, "chi=2", "xcp-b parameter `chi` is 2; it must be"),
        (xcp_b, "min_interval=1us", "xcp-b parameter `min_interval` = 1us cannot"),
        (xcp_b, "queue_window=1", "unknown key `queue_window`"),
    ] {
        let refusal = refusal(law, &[set]);
        assert!(refusal.contains(said), "{set}: {refusal}");
    }
    assert!(refusal(rcp, &["alpha=0.4", "alpha=0.5"]).contains("twice"));
    let set = |key: &str| {
        given(
            if key == "eta" { rcp } else { xcp },
            &[format!("{key}={}", if key == "eta" { "0.9" } else { "2ms" })],
            Some(0.8),
            Some(Time::from_millis(3)),
        )
    };
    assert!(set("eta").err().expect("refused").0.contains("--eta is rcp's eta: set only one of them"));
    assert!(set("min_interval").err().expect("refused").0.contains("--min-interval is xcp's min_interval"));
    assert!(
        translate(&RouterSpec::default(), &link())
            .expect_err("refused")
            .0
            .contains("it has rcp, xcp, vcp, xcp-b")
    );
}

#[test]
fn the_path_carries_all_but_an_age() {
    let spec = |p: Rcp| RouterSpec::Rcp(p);
    on_path(&spec(Rcp { fairness: 1.0, ..Rcp::default() })).expect("the registry's own law");
    let said = on_path(&spec(Rcp { long_share: 0.5, ..Rcp::default() })).expect_err("refused").0;
    assert!(said.contains("`long_share`"), "{said}");
}

#[test]
fn the_kernels_own_defaults_are_the_laws_parameters_where_it_has_them() {
    let [rcp, xcp, vcp] = LAWS;
    let share = |q32: u64| q32 as f64 / 4_294_967_296.0;
    let (config, first) = with(rcp, &[]).expect("defaults");
    assert!((share(config.eta_q32) - 0.95).abs() < 1e-9);
    assert_eq!(config.rcp.min_interval_ns, 1_000_000);
    // An initial rate above the target is used as requested: C offers the law's rate until the first
    // decision.
    let (_, full) = with(rcp, &["initial_rate=1"]).expect("all of the link");
    assert_eq!((full.offer, full.rcp.rate_q16), (12_500, 12_500_000 << 16));
    assert!(first.rcp.rate_q16 < full.rcp.rate_q16);
    let (config, _) = with(rcp, &["eta=0.9"]).expect("a target of its own");
    assert_eq!(config.rcp.target_rate_q16, q16(0.9 * 12.5e6));
    let (config, _) = with(xcp, &[]).expect("defaults");
    assert_eq!(config.xcp.capacity_q16, q16(0.95 * 12.5e6));
    assert_eq!((config.xcp.min_interval_ns, config.xcp.min_queue_interval_ns), (1_000_000, 2_000_000));
    // RTTs of 20.5 us or more are ignored, and RTTs are whole microseconds.
    let (config, _) = with(rcp, &["max_allowable_rtt=20.5us"]).expect("a bound");
    assert_eq!(config.rcp.max_rtt_us, 21);
    let (config, first) = with(vcp, &[]).expect("defaults");
    assert_eq!(config.vcp.target_rate_q16, q16(0.95 * 12.5e6));
    assert_eq!(
        (config.vcp.t_rho_ns, config.vcp.t_q_ns, config.vcp.t_rho_us),
        (200_000_000, 10_000_000, 200_000)
    );
    assert_eq!((first.vcp.code, first.interval_ns), (1, 200_000_000));
    // Half, and an eighth.
    assert_eq!((config.vcp.k_q_q32, config.vcp.queue_weight_q32), (1 << 31, 1 << 29));
    // A timer cannot follow a twentieth of 4 ms.
    let (config, _) = with(vcp, &["t_rho=4ms"]).expect("a short one");
    assert_eq!((config.vcp.t_q_ns, config.queue_interval_ns), (1_000_000, 1_000_000));
    // --eta is what the law calls gamma.
    let Given { spec, eta, min_interval } = given(vcp, &[], Some(0.8), None).expect("a target");
    let (config, _) = translate(&spec, &LinkProperties { eta, min_interval, ..link() }).expect("a law");
    assert_eq!(config.vcp.target_rate_q16, q16(0.8 * 12.5e6));
    let twice = given(vcp, &["gamma=0.9".to_owned()], Some(0.8), None).err().expect("refused").0;
    assert!(twice.contains("--eta is vcp's gamma: set only one of them"), "{twice}");
}

/// Numbers of section 3 with those of section 4.2.1: kappa 3 packets, Qmax 64 kB.
#[test]
fn xcp_bs_parameters_reach_the_kernel() {
    let [.., xcp_b, _] = ROUTERS;
    let parameters = |sets: &[&str]| with(xcp_b, sets).expect("a law").0.xcp_b;
    let p = parameters(&[]);
    assert_eq!((p.kappa_q16, p.in_packets, p.n), (3 << 16, 1, 0));
    // 1 / (5 - 0.4 - 0.2263) of 64,000 bytes is 14,632.9.
    assert!((p.most_q16 as f64 / 65536.0 - 14_632.9).abs() < 0.1, "{p:?}");
    assert_eq!((p.weight_q32, p.rest_q32), (1 << 30, 3 << 30));
    // (3/4)^6 is 729/4096, of three packets 0.534, and a billionth more.
    assert_eq!(p.border_q24, 3 * 729 * 4096 + 1);
    assert_eq!(parameters(&["q_max=6.4kB"]).most_q16, (p.most_q16 as f64 / 10.0).round() as u64);
    assert_eq!(parameters(&["q_max=64kB", "chi=0.5"]).most_q16, 32_000 << 16);
    assert_eq!(parameters(&["detection=counter", "n=5.55"]).n, 6);
    assert_eq!((p.shuffle_rest, parameters(&["shuffle=rest"]).shuffle_rest), (0, 1));
    let bytes = parameters(&["kappa=4kB", "tau=0.5"]);
    assert_eq!((bytes.kappa_q16, bytes.in_packets, bytes.border_q24), (4000 << 16, 0, 2000 << 24));
    // A queueing discipline's limit in packets counts full-sized packets; an explicit q_max has priority.
    let Given { spec, eta, min_interval } = given(xcp_b, &[], None, None).expect("defaults");
    let of = |limit| translate(&spec, &LinkProperties { rate: None, limit, eta, min_interval, ..link() });
    let (config, first) = of(Some(Limit::Packets(100))).expect("a limit");
    assert!((config.xcp_b.most_q16 as f64 / 65536.0 - 151_400.0 / 4.3737).abs() < 0.1);
    assert_eq!((first.xcp_b.under_used, first.xcp_b.each_q16, config.link_rate_q16), (1, 1 << 16, 0));
    assert!(of(None).expect_err("refused").0.contains("--set q_max=64kB"));
}

#[test]
fn a_law_without_a_rate_takes_none_and_others_need_one() {
    let [rcp, .., xcp_b, _] = ROUTERS;
    let of = |law, rate| {
        let Given { spec, eta, min_interval } = given(law, &[], None, None).expect("defaults");
        translate(&spec, &LinkProperties { rate, eta, min_interval, ..link() }).expect_err("refused").0
    };
    assert_eq!(
        of(xcp_b, link().rate),
        "--rate: xcp-b goes by its queue and takes no rate; leave it out, or use xcp"
    );
    assert!(of(rcp, None).contains("set it with --rate, or use xcp-b if it is unknown"));
    let eta = given(xcp_b, &[], Some(0.9), None).err().expect("refused").0;
    assert!(eta.contains("--eta 0.9: it is a share of the rate, which xcp-b does not know"), "{eta}");
}

#[test]
fn variables_are_those_of_the_registrys_laws() {
    for law in ROUTERS {
        let spec = given(law, &[], None, None).expect("defaults").spec;
        let mut names = Vec::new();
        spec.build(&flowstamp_laws::router::RouterView::of(link().rate.expect("known")))
            .expect("a router's law")
            .variables(&mut |name, _| names.push(name));
        for variable in law.variables {
            assert!(names.contains(&variable.name), "{}: {} is not in {names:?}", law.name, variable.name);
        }
    }
}

#[test]
fn the_first_states_variables_are_the_parameters() {
    let [rcp, ..] = LAWS;
    let (config, first) = {
        let (config, mut first) =
            with(rcp, &["eta=0.5", "initial_rate=0.1", "initial_rtt=30ms"]).expect("a law");
        first.own_capacity_q16 = config.link_rate_q16;
        (config, first)
    };
    let of = |name| {
        let variable = rcp.variables.iter().find(|v| v.name == name).expect("there is one");
        (variable.of)(&config, &first)
    };
    assert!((of("rate_bps") - 10e6).abs() < 1.0);
    assert!((of("avg_rtt_s") - 0.03).abs() < 1e-9);
    // eta C over R.
    assert!((of("flows_estimate") - 5.0).abs() < 1e-6);
}

#[test]
fn what_the_option_says_is_what_the_law_reads() {
    let [rcp, xcp, _] = LAWS;
    let carried = option::Stamp { value: 1250, rtt: MicrosFloat::from_micros(2000), last: 4 };
    assert_eq!((rcp.read)(&carried).0, [1.25e6, 0.002, 0.0]);
    assert_eq!((rcp.write)(&(rcp.read)(&carried)), 1250);
    assert_eq!((rcp.write)(&Stamp([0.0; 3])), 1, "a rate of zero would mean none");
    let carried = option::Stamp { value: -700i32 as u32, ..carried };
    assert_eq!((xcp.read)(&carried).0, [0.0005, 0.002, -700.0]);
    assert_eq!((xcp.write)(&(xcp.read)(&carried)), carried.value);
    for law in LAWS {
        assert_eq!(of_header(law.header), Some(law));
        assert_eq!(numbered(law.number.into()), Some(law));
        assert_eq!(named(law.name), Some(law));
        // No router lowers the stamp that `router bench` sends, so it round-trips unchanged.
        let least = option::Stamp { value: law.least, ..carried };
        let mut stamp = (law.read)(&least);
        let spec = given(law, &[], None, None).expect("defaults").spec;
        let view = flowstamp_laws::router::LinkView { now: Time::ZERO, queue_bytes: 0, queue_packets: 0 };
        let packet = flowstamp_laws::router::PacketOut { size: 1500, stamp: &mut stamp, bits: &mut 0 };
        spec.build(&flowstamp_laws::router::RouterView::of(link().rate.expect("known")))
            .expect("a law")
            .on_departure(view, packet, || 0.5);
        assert_eq!((law.write)(&stamp), law.least);
    }
}
