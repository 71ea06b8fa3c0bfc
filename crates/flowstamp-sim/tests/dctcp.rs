//! explore
mod common;
use common::run;
use flowstamp_fluid::dctcp::SteadyState;
use flowstamp_laws::units::{Rate, Time};
#[test]
fn explore() {
    for (rate, gbps, k, n, ms) in [
        ("1Gbps", 1.0, 20, 2, 400),
        ("10Gbps", 10.0, 65, 2, 400),
        ("10Gbps", 10.0, 40, 2, 400),
        ("10Gbps", 10.0, 40, 10, 400),
    ] {
        let text = format!(
            r#"
            duration = "{ms}ms"
            warmup = "100ms"
            packet = "1500B"
            [dumbbell]
            rate = "{rate}"
            rtt = "100us"
            buffer = "1000pkt"
            queue = {{ kind = "red", step = {k} }}
            [[flows]]
            name = "f"
            law = "dctcp"
            count = {n}
            [probes]
            every = "2us"
            links = true
            flows = true
            "#
        );
        let r = run(&text);
        let l = &r.summary.links["bottleneck"];
        let rtt = r.flows.iter().map(|f| f.min_rtt_s.unwrap()).fold(f64::MAX, f64::min);
        println!("rtt {rtt} mean queue {}", l.mean_queue_bytes / 1500.0);
        println!("share {} max {}", l.marks as f64 / l.arrivals as f64, l.max_queue_bytes / 1500.0);
        let key =
            r.series.keys.iter().position(|k| k.name == "bottleneck" && k.metric == "queue_bytes").unwrap()
                as u32;
        let q: Vec<(f64, f64)> = (0..r.series.key.len())
            .filter(|i| r.series.key[*i] == key && r.series.time_s[*i] > 0.1)
            .map(|i| (r.series.time_s[i], r.series.value[i] / 1500.0))
            .collect();
        let (mut cycles, mut above, mut mins, mut maxs, mut low, mut high) =
            (0, false, vec![], vec![], f64::MAX, 0.0f64);
        for (_, x) in &q {
            low = low.min(*x);
            high = high.max(*x);
            if !above && *x > f64::from(k) {
                above = true;
                mins.push(low);
                high = *x;
            }
            if above && *x < f64::from(k - n) {
                above = false;
                cycles += 1;
                maxs.push(high);
                low = *x;
            }
        }
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let c = gbps * 1e9 / 12000.0;
        let rttq = rtt + l.mean_queue_bytes / 1500.0 / c;
        println!(
            "min {} max {} meanmin {} meanmax {} period {} rtts",
            q.iter().map(|x| x.1).fold(f64::MAX, f64::min),
            q.iter().map(|x| x.1).fold(0.0, f64::max),
            mean(&mins),
            mean(&maxs),
            0.3 / f64::from(cycles) / rttq
        );
        for (i, k) in
            r.series.keys.iter().enumerate().filter(|(_, k)| k.kind == "flow" && k.metric == "cwnd_packets")
        {
            let w: Vec<f64> = (0..r.series.key.len())
                .filter(|j| r.series.key[*j] == i as u32 && r.series.time_s[*j] > 0.1)
                .map(|j| r.series.value[j])
                .collect();
            let cuts = w.windows(2).filter(|p| p[1] < p[0]).count();
            println!(
                "min {} cuts {} period {} max {} min {} mean {}",
                k.name,
                cuts,
                0.3 / cuts as f64 / rttq,
                w.iter().copied().fold(0.0, f64::max),
                w.iter().copied().fold(f64::MAX, f64::min),
                mean(&w)
            );
        }
        for held in [0.0, 1.0] {
            println!(
                "{:?}",
                SteadyState::new(
                    n as u32,
                    Rate::from_gbps(gbps),
                    Time::from_secs_f64(rtt),
                    1500,
                    f64::from(k),
                    held
                )
            );
        }
    }
}
