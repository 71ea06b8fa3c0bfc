use flowstamp_fluid::control::{proof::proof, switched};
#[test]
fn explore() {
    for beta in [0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0] {
        let t = std::time::Instant::now();
        let a = switched::border(beta, 3000.0, 1e-4);
        let b = switched::border(beta, 1000.0, 1e-4);
        let t1 = t.elapsed();
        let t = std::time::Instant::now();
        let (mut low, mut high) = (0.2f64.min(a), 1.57);
        for _ in 0..9 { let m = (low + high) / 2.0; if proof(m, beta).is_some() { low = m } else { high = m } }
        println!("{beta} {a:.4} {b:.4} proof {low:.3} {:?} left {:?} {:?} {:?}", proof(0.05, beta).map(|p| p.epsilon), proof(1e-3, beta).is_some(), t1, t.elapsed());
    }
    for (a, b) in [(0.4, 0.226), (0.4, 0.5), (0.1, 1.0), (0.01, 1e-4), (0.001, 0.1), (0.4, 1e-4), (1e-3, 1e-6), (1.5, 0.1), (1.44, 0.246), (1.4, 0.3), (1.2, 0.6), (0.8, 0.6), (0.4, 1e-6)] {
        let t = std::time::Instant::now();
        let p = proof(a, b);
        println!("{a} {b} {:?} {:?}", p.map(|p| (p.epsilon, p.ahead.len(), p.products.len())), t.elapsed());
    }
}
