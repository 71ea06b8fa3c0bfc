//! Links and groups as a user gives them: against the models of one link and max-min fairness. VCP's rest is tested in Python.

use flowstamp_fluid::control::routes::{FluidLaw, Group, MOST_GROUPS, Routes};
use flowstamp_fluid::control::settle::{self, Shared};
use proptest::prelude::*;

const XCP: FluidLaw = FluidLaw::Xcp { alpha: 0.4, beta: 0.226, gamma: 0.1 };
const RCP: FluidLaw = FluidLaw::Rcp { alpha: 0.4, beta: 0.226 };

fn group(over: &[(usize, f64)], rtt: f64, flows: f64) -> Group {
    Group { over: over.to_vec(), rtt, flows }
}

/// One group over both links, one over each; the second link has half the capacity.
fn parking_lot() -> Routes {
    let groups =
        [group(&[(0, 0.0), (1, 0.25)], 1.5, 1.0), group(&[(0, 0.0)], 0.5, 1.0), group(&[(1, 0.0)], 1.0, 1.0)];
    Routes::new(&[1.0, 0.5], &groups).expect("a network")
}

#[test]
fn rcp_comes_to_rest_max_min_fair() {
    let routes = parking_lot();
    assert_eq!(routes.max_min(), [0.25, 0.75, 0.25]);
    let rows = routes.rows(RCP, &[0.1, 0.2, 0.3], &[0.0, 400.0]).expect("rows");
    // It starts with the highest rate over each link: the long flow has that of the second.
    assert_eq!(&rows[..5], [0.0, 0.0, 0.2, 0.2, 0.3]);
    for (found, rest) in rows[5..].iter().zip([0.0, 0.0, 0.25, 0.75, 0.25]) {
        assert!((found - rest).abs() < 1e-9, "{rows:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// Links that nobody shares do what each does alone, whatever room the model has for more.
    #[test]
    fn links_that_share_no_flow_are_each_as_alone(
        rtts in prop::collection::vec(0.2..2.0f64, 1..4),
        links in 1..5usize,
        start in 0.2..1.5f64,
        xcp in any::<bool>(),
    ) {
        let law = if xcp { XCP } else { RCP };
        let n = rtts.len() as f64;
        let mean = rtts.iter().sum::<f64>() / n;
        let groups: Vec<Group> = (0..links)
            .flat_map(|link| rtts.iter().map(move |rtt| group(&[(link, 0.0)], *rtt, 1.0)))
            .collect();
        prop_assume!(groups.len() <= MOST_GROUPS);
        let times: Vec<f64> = (0..40).map(|t| f64::from(t) * mean).collect();
        let routes = Routes::new(&vec![1.0; links], &groups).unwrap();
        let rows = routes.rows(law, &vec![start / n; groups.len()], &times).unwrap();
        let shared = if xcp { settle::SharedLaw::Xcp(0.1) } else { settle::SharedLaw::Rcp };
        let one = Shared::new(shared, &rtts, &vec![1.0; rtts.len()], [start - 1.0, 0.0]).unwrap();
        let own: Vec<f64> = (0..40).map(f64::from).collect();
        let expected = one.rows(0.4, 0.226, &own).unwrap();
        for (row, expected) in rows.chunks(links + groups.len()).zip(expected.chunks(2 + rtts.len())) {
            for link in 0..links {
                // In the one link's scale: queues over capacity times mean RTT, rates over the even part.
                prop_assert!((row[link] / mean - expected[1]).abs() < 1e-6, "{row:?}, not {expected:?}");
                for i in 0..rtts.len() {
                    let rate = row[links + link * rtts.len() + i] * n;
                    prop_assert!((rate - expected[2 + i]).abs() < 1e-6, "{row:?}, not {expected:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_no_network_is_refused() {
    let told =
        |capacities: &[f64], groups: &[Group]| Routes::new(capacities, groups).err().unwrap_or_default();
    let good = group(&[(0, 0.0)], 1.0, 1.0);
    assert_eq!(told(&[1.0; 9], std::slice::from_ref(&good)), "9 links; there must be 1 to 8");
    assert_eq!(told(&[1.0], &[]), "0 routes; there must be 1 to 16");
    assert_eq!(told(&[1.0], &[group(&[(1, 0.0)], 1.0, 1.0)]), "a route has link 1; there are 1, from 0 on");
    let unsound = "capacities, RTTs and flows must be above 0";
    for bad in [
        group(&[], 1.0, 1.0),
        group(&[(0, 1.0)], 1.0, 1.0),
        group(&[(0, 0.0)], 1.0, 0.0),
        group(&[(0, 0.0)], f64::NAN, 1.0),
    ] {
        assert!(told(&[1.0], &[bad]).starts_with(unsound));
    }
    assert!(told(&[0.0], std::slice::from_ref(&good)).starts_with(unsound));
    let routes = Routes::new(&[1.0], &[good]).unwrap();
    assert_eq!(routes.rows(RCP, &[], &[0.0]).unwrap_err(), "0 rates to start with; there must be 1");
    let apart = Routes::new(&[1.0, 1.0], &[group(&[(0, 0.0), (1, 1e-7)], 1.0, 1.0)]).unwrap();
    assert!(apart.rows(XCP, &[0.1], &[1.0]).unwrap_err().starts_with("delays are from"));
}
