//! The thread that forwards frames between the two interfaces when they are due.

use super::device::{By, Device};
use super::flows::Flows;
use super::lateness::Lateness;
use super::liars::Liars;
use super::link::{EmulatedLink, LinkSpecification};
use super::{clock_ns, frame, monotonic_ns};
use anyhow::Context;
use flowstamp_laws::units::Time;
use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// The properties of a path.
pub struct Specification {
    /// The kind of its devices.
    pub by: By,
    /// The interfaces, each by its network namespace's file and its name: first the data's input, then their
    /// output.
    pub interfaces: [(PathBuf, String); 2],
    /// The link of the data and the link of the acks.
    pub links: [LinkSpecification; 2],
    /// Bytes that each flow exchanges before its data.
    pub preambles: Vec<u64>,
    /// Flows that misreport feedback, if any.
    pub liars: Option<Liars>,
}

/// The measurements after the path has ended.
#[derive(Debug)]
pub struct Report {
    /// The link of the data and the link of the acks.
    pub links: [EmulatedLink; 2],
    pub flows: Flows,
    /// How late packets left.
    pub lateness: Lateness,
    /// Packets dropped because they arrived faster than the path received them.
    pub overruns: u64,
    /// CPU time of the thread in seconds, and the frames received in it.
    pub cpu_s: f64,
    pub frames: u64,
    pub real_time: bool,
}

/// A running path, which ends when it is dropped.
pub struct EmulatedPath {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<Report>>>,
    /// Origin of all its times.
    pub epoch: Epoch,
}

/// An instant on the monotonic clock that serves as the origin of times.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    monotonic_ns: u64,
}

impl Epoch {
    /// Makes the current time the origin.
    pub fn start() -> Self {
        Self { monotonic_ns: monotonic_ns() }
    }

    /// The time at a reading of the monotonic clock, in seconds; zero before the epoch.
    pub fn since(self, monotonic_s: f64) -> Time {
        Time::from_nanos(((monotonic_s * 1e9) as u64).saturating_sub(self.monotonic_ns))
    }

    /// The current time.
    pub fn now(self) -> Time {
        self.at(monotonic_ns())
    }

    /// The time at a reading of the monotonic clock, in nanoseconds.
    fn at(self, monotonic_ns: u64) -> Time {
        Time::from_nanos(monotonic_ns.saturating_sub(self.monotonic_ns))
    }
}

impl EmulatedPath {
    /// Starts forwarding; returns once both interfaces are open.
    pub fn start(spec: Specification) -> anyhow::Result<Self> {
        let epoch = Epoch::start();
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, opened) = mpsc::channel();
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("path".to_owned())
            .spawn(move || {
                let devices = open(&spec);
                let mut failed = false;
                let devices = devices.inspect_err(|_| failed = true);
                let _ = ready.send(!failed);
                Forwarder::new(spec, devices?, epoch).run(&stopped)
            })
            .context("the path's thread")?;
        let mut path = Self { stop, thread: Some(thread), epoch };
        if opened.recv() != Ok(true) {
            path.join()?;
        }
        Ok(path)
    }

    /// Whether the thread still runs.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    fn join(&mut self) -> anyhow::Result<Report> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(report)) => report,
            _ => anyhow::bail!("the path's thread ended by itself"),
        }
    }

    /// Stops the path and returns its measurements.
    pub fn stop(mut self) -> anyhow::Result<Report> {
        self.join()
    }
}

impl Drop for EmulatedPath {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.join();
        }
    }
}

/// Opens the interfaces, each in its network namespace; the calling thread moves there.
fn open(spec: &Specification) -> anyhow::Result<[Device; 2]> {
    let device = |(file, name): &(PathBuf, String)| {
        let namespace = File::open(file).with_context(|| format!("{}", file.display()))?;
        // SAFETY: the descriptor is open; the call moves this thread alone.
        if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } < 0 {
            return Err(std::io::Error::last_os_error()).context("setns");
        }
        Device::open(spec.by, name)
    };
    Ok([device(&spec.interfaces[0])?, device(&spec.interfaces[1])?])
}

/// Gives the thread real-time priority, above ordinary programs and below the kernel's own threads. Returns
/// whether that succeeded.
pub fn real_time() -> bool {
    let parameters = libc::sched_param { sched_priority: 10 };
    // SAFETY: the kernel reads `parameters`.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}

/// Asks the kernel to keep CPUs awake while the file is open (Documentation/power/pm_qos_interface.rst). A
/// sleeping CPU wakes late, and a virtual one may wait for its host. `None` if the kernel does not support
/// it.
fn awake() -> Option<File> {
    let mut request = File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    request.write_all(&0i32.to_ne_bytes()).ok()?;
    Some(request)
}

/// Keeps the path's pages in memory, so that none must be read back when needed.
fn keep_memory() {
    // SAFETY: no memory is involved. Where it is refused, pages may go as before.
    unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) };
}

/// The CPU that the path is pinned to, if there are several.
pub const PROCESSOR: usize = 0;

/// Pins the thread to its CPU, so that other work can avoid that CPU.
fn pin() {
    // SAFETY: all zero is an empty set, and the kernel reads its size. If the kernel refuses, the thread
    // stays unpinned.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(PROCESSOR, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// Maximum number of buffers kept for reuse.
const SPARE_FRAMES: usize = 4096;
/// Maximum sleep, so that a stop is noticed, in nanoseconds.
const MAX_SLEEP_NS: u64 = 20_000_000;

struct Forwarder {
    devices: [Device; 2],
    links: [EmulatedLink; 2],
    flows: Flows,
    liars: Option<Liars>,
    lateness: Lateness,
    /// From the warm-up to the end of statistics.
    measured: Range<Time>,
    spare: Vec<Vec<u8>>,
    frames: u64,
    epoch: Epoch,
}

impl Forwarder {
    fn new(spec: Specification, devices: [Device; 2], epoch: Epoch) -> Self {
        let (warmup, until, every) = (spec.links[0].warmup, spec.links[0].until, spec.links[0].every);
        Self {
            devices,
            links: spec.links.map(EmulatedLink::new),
            flows: Flows::new(&spec.preambles, warmup, until, every),
            liars: spec.liars,
            lateness: Lateness::default(),
            measured: warmup..until,
            spare: Vec::new(),
            frames: 0,
            epoch,
        }
    }

    fn run(mut self, stop: &AtomicBool) -> anyhow::Result<Report> {
        let real_time = real_time();
        let _request = awake();
        keep_memory();
        pin();
        while !stop.load(Ordering::Relaxed) {
            self.receive()?;
            let now = self.epoch.now();
            for link in &mut self.links {
                link.advance(now);
            }
            self.flows.advance(now);
            self.send(now)?;
            self.sleep();
        }
        let overruns = self.devices.iter_mut().map(Device::overruns).sum::<Result<_, _>>()?;
        let (cpu_s, frames) = (clock_ns(libc::CLOCK_THREAD_CPUTIME_ID) as f64 * 1e-9, self.frames);
        Ok(Report {
            links: self.links,
            flows: self.flows,
            lateness: self.lateness,
            overruns,
            cpu_s,
            frames,
            real_time,
        })
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        for (side, device) in self.devices.iter_mut().enumerate() {
            loop {
                let mut bytes = self.spare.pop().unwrap_or_default();
                bytes.clear();
                let Some(came_ns) = device.receive(&mut bytes).context("the path's receiving")? else {
                    self.spare.push(bytes);
                    break;
                };
                if bytes.is_empty() {
                    self.spare.push(bytes);
                    continue;
                }
                self.frames += 1;
                let at = self.epoch.at(came_ns);
                self.flows.advance(at);
                if let Some(segment) = frame::segment(&bytes) {
                    if side == 0 {
                        self.flows.data(at, &segment);
                    } else {
                        self.flows.answer(at, &segment);
                        if let Some(liars) = &mut self.liars {
                            liars.answer(&mut bytes, &segment);
                        }
                    }
                } else if let Some(datagram) = frame::datagram(&bytes) {
                    self.flows.datagram(at, &datagram);
                }
                if let Some(back) = self.links[side].arrive(at, bytes) {
                    self.spare.push(back);
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, now: Time) -> anyhow::Result<()> {
        for (side, link) in self.links.iter_mut().enumerate() {
            let out = &mut self.devices[1 - side];
            loop {
                // Lost frames are removed when they are due, so that they delay no other.
                let lost = link.due(now).next().is_some_and(|frame| frame.lost);
                let sent = if lost {
                    1
                } else {
                    out.send(link.due(now).take_while(|f| !f.lost).map(|f| f.bytes.as_slice()))
                        .context("the path's sending")?
                };
                if sent == 0 {
                    break;
                }
                let left = self.epoch.now();
                for _ in 0..sent {
                    let Some(frame) = link.take() else { break };
                    if !lost && self.measured.contains(&frame.deadline) {
                        self.lateness.add(frame.deadline, left);
                    }
                    if self.spare.len() < SPARE_FRAMES {
                        self.spare.push(frame.bytes);
                    }
                }
            }
        }
        Ok(())
    }

    /// Sleeps until the next packet is due or a frame arrives.
    fn sleep(&self) {
        let next = self.links.iter().filter_map(EmulatedLink::deadline).min();
        let now = self.epoch.now();
        let ns = next.map_or(MAX_SLEEP_NS, |at| at.saturating_sub(now).as_ps() / 1000).min(MAX_SLEEP_NS);
        let timeout = libc::timespec { tv_sec: 0, tv_nsec: ns as i64 };
        let mut waits = [0, 1].map(|side| libc::pollfd {
            fd: self.devices[side].descriptor(),
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: two entries; the kernel reads `timeout`.
        unsafe { libc::ppoll(waits.as_mut_ptr(), 2, &raw const timeout, std::ptr::null()) };
    }
}
