//! Marks and their echoes.

use super::pipe::{Impairments, MODES, losing, tcp};
use flowstamp_laws::Time;
use flowstamp_laws::sender::{Echo, Recovery};
use flowstamp_laws::transport::Params;

#[test]
fn marks_reduce_the_window_once_per_window_and_are_answered_by_cwr() {
    for recovery in MODES {
        // Every packet of the second window is marked.
        let path = Impairments { mark: Box::new(|_, p| (40..80).contains(&p.seq)), ..Impairments::default() };
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 400, &path);
        assert_eq!(run.retransmissions + run.timeouts, 0);
        assert_eq!(law.congestion.len(), 1, "{recovery:?}: {:?}", law.congestion);
        assert_eq!(law.congestion, [40]);
        assert_eq!(run.sent.iter().filter(|p| p.cwr).count(), 1);
        // The echo lasts from the first mark until CWR arrives.
        let cwr = run.sent.iter().find(|p| p.cwr).expect("cwr").seq;
        assert_eq!(run.echoes as u32, cwr - 40);
    }
}

/// A mark and then a timeout: the receiver echoes until it sees CWR, and going back N sends nothing new for long.
#[test]
fn echoes_end_with_the_first_packet_after_a_timeout() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let path = Impairments {
            mark: Box::new(|_, p| !p.retransmission && p.seq == 30),
            lose: Box::new(|_, p| !p.retransmission && (31..300).contains(&p.seq)),
            ..Impairments::default()
        };
        let (run, _) = tcp(&Params::default(), recovery, 300.0, 400, &path);
        assert!(run.timeouts >= 1, "{recovery:?}");
        // The window grows again: 270 packets take slow start and some linear growth, not 270 round trips of 40 ms.
        assert!(run.finished < Time::from_secs(5), "{recovery:?}: {}", run.finished);
    }
}

#[test]
fn lasting_marks_reduce_the_window_about_once_per_round_trip() {
    let path = Impairments { mark: Box::new(|_, _| true), ..Impairments::default() };
    let (run, law) = tcp(&Params::default(), Recovery::NewReno, 32.0, 200, &path);
    // 32, 16, 8, 4 and then 2 for ever: a window's packets per reduction, and never more often than that.
    let rounds = run.finished.as_secs_f64() / 0.0401;
    let n = law.congestion.len() as f64;
    assert!(n <= rounds && n >= rounds / 2.0 - 1.0, "{n} reductions in {rounds} round trips");
    assert_eq!(law.congestion[..3], [32, 16, 8]);
}

#[test]
fn without_ecn_marks_mean_nothing() {
    let params = Params { ecn: Some(false), ..Params::default() };
    let path = Impairments { mark: Box::new(|_, _| true), ..Impairments::default() };
    let (run, law) = tcp(&params, Recovery::Sack, 20.0, 200, &path);
    assert_eq!((run.echoes, law.congestion.len()), (0, 0));
    assert!(run.sent.iter().all(|p| !p.cwr));
}

#[test]
fn a_loss_in_a_marked_window_reduces_once() {
    for recovery in MODES {
        let mut path = losing(&[60]);
        path.mark = Box::new(|_, p| p.seq == 45);
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 400, &path);
        assert_eq!((run.retransmissions, run.timeouts), (1, 0));
        assert_eq!(law.congestion.len(), 1, "{recovery:?}");
    }
}

#[test]
fn an_echo_per_packet_reduces_once_per_window_and_leaves_the_window_to_the_law() {
    for recovery in MODES {
        let params = Params { echo: Some(Echo::PerPacket), ..Params::default() };
        let path = Impairments { mark: Box::new(|_, p| (40..80).contains(&p.seq)), ..Impairments::default() };
        let (run, law) = tcp(&params, recovery, 40.0, 400, &path);
        assert_eq!((run.echoes, law.marked, run.marked), (40, 40, 40), "{recovery:?}");
        assert_eq!((law.marks, &law.congestion[..]), (1, &[40][..]), "{recovery:?}");
        assert_eq!(run.sent.iter().filter(|p| p.cwr).count(), 1);
        // RFC 3168 section 6.1.2, by the law's own doing: acks with an echo add nothing.
        assert_eq!(law.in_recovery, 0);
        let marked = run.windows.iter().position(|w| *w < 40.0).expect("a reduction");
        assert!(run.windows[marked..marked + 39].iter().all(|w| *w == run.windows[marked]));
    }
}
