//! The emulated path: a wire between two interfaces with a rate, a delay, a buffer and losses, each way.
//!
//! ```text
//!   free     = max(now, free) + size / C       when the link is free again
//!   deadline = free + delay                    when the packet is due at the other interface
//! ```
//!
//! A packet's times follow only from arrival times. A late forwarder therefore changes neither the queue nor
//! what a router's law sees, only the time of sending. The path counts that lateness packet by packet, and
//! the results use it to decide whether the run is valid.
//!
//! Sizes are those of Ethernet frames without checksum, as `tbf` counts them.

mod device;
mod flows;
mod forward;
mod frame;
mod lateness;
mod liars;
mod link;
mod queue;

pub use device::By;
pub use flows::{Flow, Flows, PORTS, number_of};
pub use forward::{EmulatedPath, Epoch, PROCESSOR, Report, Specification, real_time};
pub use lateness::Summary as LatenessSummary;
pub use liars::Liars;
pub use link::{EmulatedLink, LinkSpecification};
pub use queue::Kind as QueueKind;

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes `time`.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The monotonic clock in nanoseconds, which the path and the kernel's programs use.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}
