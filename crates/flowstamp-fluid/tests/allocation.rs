//! Models go on as long as they are asked to without memory of their own per step.
#![expect(unsafe_code, reason = "a global allocator cannot be written without")]

use flowstamp_fluid::control::delay::{Solution, System};
use flowstamp_fluid::control::models::{self, Switched};
use flowstamp_fluid::control::network::{Paths, Rcp, Xcp};
use flowstamp_fluid::control::network_vcp::Vcp;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

/// The system's allocator, counting.
struct Counting;

thread_local! {
    // Counted for each thread, because the test runner's own thread allocates at any time.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends may have no counter any more.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call goes to `System` with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { std::alloc::System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { std::alloc::System.dealloc(block, layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { std::alloc::System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations in 200 round trips, 6400 steps, after those of `new`.
fn counted<const N: usize, S: System<N>>(what: &str, system: S, start: [f64; N]) {
    let at_first = ALLOCATIONS.get();
    let mut solution = Solution::new(system, start, 1.0 / 32.0).expect("a step below the delays");
    let before = ALLOCATIONS.get();
    assert!(before > at_first, "{what}: nothing is counted");
    solution.advance(200.0).expect("a solution");
    assert_eq!(ALLOCATIONS.get() - before, 0, "{what}");
}

#[test]
fn steps_take_no_memory() {
    // With gains that go on swinging, so that all switches are among the steps.
    counted("switched", Switched { alpha: 1.45, beta: 0.3, floor: true, error: 0.0 }, [0.5, 0.0]);
    let one = models::Rcp { alpha: 1.5, beta: 0.6, most: 2.0, buffer: 0.2, queue_in_rtt: true };
    counted("RCP", one, [2.0, 0.0]);
    let paths = Paths {
        capacities: [1.0, 0.5],
        flows: [1.0, 1.0, 1.0],
        rtts: [1.5, 0.5, 1.0],
        passes: [[Some(0.0), Some(0.25)], [Some(0.0), None], [None, Some(0.0)]],
    };
    let xcp = Xcp::<2, 3, 5>::new(1.8, 1.2, 0.1, paths).expect("a network");
    counted("XCP of two links", xcp, [0.0, 0.0, 2.0, 1.0, 1.0]);
    let rcp = Rcp::<2, 3, 4>::new(1.5, 0.6, paths).expect("a network").with_buffers([0.5, f64::INFINITY]);
    counted("RCP of two links", rcp, [0.0, 0.0, 0.5, 0.5]);
    let vcp = Vcp { kappa: 0.25, addition: 0.01, target: 0.98, t_rho: 1.0, paths };
    counted("VCP of two links", vcp, [0.1; 3]);
}
