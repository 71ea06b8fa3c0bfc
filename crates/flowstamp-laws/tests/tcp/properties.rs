//! Properties that hold on any path.

use super::pipe::{DELAY, Impairments, MODES, Noted, PACKET, losing, run, tcp};
use flowstamp_laws::Time;
use flowstamp_laws::sender::{Echo, Recovery};
use flowstamp_laws::tcp::reno::{self, Reno};
use flowstamp_laws::transport::Params;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

fn modes() -> impl Strategy<Value = Recovery> {
    prop::sample::select(MODES.to_vec())
}

proptest! {
    // Seeds of past failures stand beside this file.
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    /// With an echo per packet the law counts each marked packet that arrives once, and no other; selective acks say which
    /// packet an ack is for, whatever was lost.
    #[test]
    fn marks_are_conserved(
        length in 1u32..250,
        window in 1.0..60.0f64,
        lost in prop::collection::vec(prop::bool::weighted(0.1), 0..300),
        marked in prop::collection::vec(prop::bool::weighted(0.4), 1..300),
        delayed_acks: bool,
        timeout in 1u64..100,
    ) {
        let params = Params {
            delayed_acks,
            delayed_ack_timeout: Time::from_millis(timeout),
            echo: Some(Echo::PerPacket),
            ..Params::default()
        };
        let path = Impairments {
            lose: Box::new(move |n, _| lost.get(n).copied().unwrap_or(false)),
            mark: Box::new(move |n, _| marked[n % marked.len()]),
            ..Impairments::default()
        };
        let (run, law) = tcp(&params, Recovery::Sack, window, length, &path);
        prop_assert_eq!(law.marked, run.marked);
        prop_assert!(law.least_rtt >= DELAY * 2, "{}", law.least_rtt);
    }

    /// No delivery rate is above the link's where each packet is acknowledged as it arrives, whatever is lost or marked, and
    /// asking for it changes nothing else.
    #[test]
    fn delivery_rates_are_at_most_the_links(
        length in 1u32..250,
        window in 1.0..60.0f64,
        lost in prop::collection::vec(prop::bool::weighted(0.1), 0..300),
        marked in prop::collection::vec(prop::bool::weighted(0.05), 0..300),
    ) {
        let path = Impairments {
            lose: Box::new(move |n, _| lost.get(n).copied().unwrap_or(false)),
            mark: Box::new(move |n, _| marked.get(n).copied().unwrap_or(false)),
            ..Impairments::default()
        };
        let (without, _) = tcp(&Params::default(), Recovery::Sack, window, length, &path);
        let law = reno::Params { initial_ssthresh: Some(2.0), ..reno::Params::default() };
        let mut law = Noted::<Reno>::with(&law, window);
        law.wants_rate = true;
        let with = run(&Params::default(), Recovery::Sack, length, &mut law, &path);
        prop_assert_eq!((with.sent, with.finished), (without.sent, without.finished));
        for sample in &law.rates {
            let rate = sample.rate(PACKET).bytes_per_sec() / f64::from(PACKET);
            prop_assert!(rate <= 10_000.0 * (1.0 + 1e-9), "{:?}", sample);
            prop_assert!(sample.interval >= DELAY * 2);
        }
    }

    /// `run` itself asserts that everything arrives and is acknowledged exactly once.
    #[test]
    fn everything_arrives_whatever_is_lost(
        recovery in modes(),
        length in 1u32..250,
        window in 1.0..60.0f64,
        lost in prop::collection::vec(prop::bool::weighted(0.15), 0..300),
        lost_acks in prop::collection::vec(prop::bool::weighted(0.2), 0..300),
        late in prop::collection::vec(prop_oneof![4 => Just(0u64), 1 => 0u64..30_000], 1..50),
        marked in prop::collection::vec(prop::bool::weighted(0.05), 0..300),
        delayed_acks: bool,
        limited_transmit: bool,
    ) {
        let losses = lost.iter().filter(|l| **l).count() as u32;
        let path = Impairments {
            lose: Box::new(move |n, _| lost.get(n).copied().unwrap_or(false)),
            lose_ack: Box::new(move |n| lost_acks.get(n).copied().unwrap_or(false)),
            late: Box::new(move |n| late[n % late.len()]),
            mark: Box::new(move |n, _| marked.get(n).copied().unwrap_or(false)),
        };
        let params = Params { delayed_acks, limited_transmit, ..Params::default() };
        let (run, _) = tcp(&params, recovery, window, length, &path);
        // Going back N may resend a window per timeout; nothing resends without end.
        prop_assert!(run.retransmissions <= (length + losses) * (run.timeouts + 2));
    }

    /// Without reordering SACK resends what was lost, and one rescue packet per recovery at the most.
    #[test]
    fn sack_resends_little_but_what_was_lost(
        length in 1u32..400,
        window in 1.0..80.0f64,
        lost in prop::collection::vec(prop::bool::weighted(0.1), 0..400),
        delayed_acks: bool,
    ) {
        let path = Impairments {
            lose: Box::new(move |n, _| lost.get(n).copied().unwrap_or(false)),
            ..Impairments::default()
        };
        let params = Params { delayed_acks, ..Params::default() };
        let (run, law) = tcp(&params, Recovery::Sack, window, length, &path);
        if run.timeouts == 0 {
            prop_assert!(run.retransmissions as usize <= run.lost + law.congestion.len());
        }
        prop_assert!(run.retransmissions as usize >= run.lost);
    }

    /// Original transmissions lost from a window that keeps sending, large enough that three others always arrive
    /// above: SACK needs neither timer nor copies.
    #[test]
    fn sack_needs_no_timer_where_retransmissions_arrive(
        window in 48u32..120,
        seqs in prop::collection::btree_set(100u32..140, 1..10),
    ) {
        let seqs: Vec<u32> = seqs.into_iter().collect();
        let (run, law) = tcp(&Params::default(), Recovery::Sack, f64::from(window), 600, &losing(&seqs));
        prop_assert!(run.timeouts == 0, "{} timeouts", run.timeouts);
        prop_assert_eq!(run.retransmissions as usize, seqs.len());
        // The losses span less than a window, which may border on the next.
        prop_assert!((1..=2).contains(&law.congestion.len()), "{:?}", law.congestion);
    }
}
