//! Flows that come and go take their memory from flows that have left: nothing is allocated for them.
#![expect(unsafe_code, reason = "a global allocator cannot be written without")]

use flowstamp_sim::{Format, Simulation, load};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, counting. This file has one test, so that no other one is counted.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to `System` with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and flows in the second half of 20 s of web flows, and packets lost in the whole run.
fn second_half(law: &str, router: &str) -> (u64, u64, u64) {
    let text = format!(
        r#"
        duration = "20s"
        [dumbbell]
        rate = "200Mbps"
        rtt = "50ms"
        buffer = "8BDP"
        router = "{router}"
        [[flows]]
        name = "web"
        law = "{law}"
        [flows.web]
        flows_per_s = 1680.0
        sizes = {{ distribution = "exponential", mean = "10kB" }}
        [probes]
        links = false
        groups = false
        "#
    );
    let loaded = load(&text, Format::Toml, "test.toml", &[], Path::new(".")).expect("a scenario");
    let mut half = None;
    let mut last = 0;
    let sim = Simulation::new(&loaded, None).expect("a network");
    let results = sim
        .run(&mut |p| {
            // A reading before the last events is at most their 65,536 short of the total.
            last = ALLOCATIONS.load(Ordering::Relaxed);
            if half.is_none() && p.simulated >= p.duration / 2 {
                half = Some((last, p.simulated.as_secs_f64()));
            }
            ControlFlow::Continue(())
        })
        .expect("nobody stops it");
    let (before, since) = half.expect("the run has a second half");
    assert!(before > 0, "nothing is counted");
    let flows = results.flows.iter().filter(|f| f.start_s >= since).count() as u64;
    (last - before, flows, results.summary.packets.expect("a whole run").lost)
}

#[test]
fn flows_come_and_go_without_allocation() {
    for (law, router) in [("rcp", "rcp"), ("xcp", "xcp"), ("sack", "none")] {
        let (allocations, flows, lost) = second_half(law, router);
        assert!(flows > 15_000, "{law}: {flows} flows are no test");
        // The memory for a lost packet is allocated for its flow only, and is not tested here.
        assert_eq!(lost, 0, "{law}: the buffer is too small for this test");
        // The records of results grow as vectors do, twice as large each time: once while the number of flows doubles.
        // The others are high-water marks that may still rise: flows at one time, their timers, packets of a link.
        assert!(allocations <= 8, "{law}: {allocations} allocations for {flows} flows");
    }
}
