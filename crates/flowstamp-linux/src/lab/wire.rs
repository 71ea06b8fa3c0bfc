//! The path in a lab's file.

use crate::law;
use crate::path::QueueKind;
use flowstamp_laws::medium::Capacity;
use flowstamp_laws::units::{Rate, Ratio, Time};
use flowstamp_scenario::rows::without_mark;
use flowstamp_scenario::{Buffer, LinkRate};
use serde::{Deserialize, Serialize};

/// Size of a full frame.
pub const PACKET_BYTES: u64 = law::PACKET_BYTES as u64;

/// The path, the same both ways unless `reverse_rate` says otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Capacity: a rate, or `steps` or a `trace`, as in a scenario.
    pub rate: LinkRate,
    /// Capacity of the direction of the acks. Default: as `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_rate: Option<Rate>,
    /// Round-trip propagation time.
    pub rtt: Time,
    /// Buffer size. `BDP` is the capacity times `rtt`, with the mean capacity if it varies.
    #[serde(default)]
    pub buffer: Buffer,
    /// Queue in the direction of the data: `droptail`, or `fq_codel`.
    #[serde(default, skip_serializing_if = "is_droptail")]
    pub queue: QueueKind,
    /// Probability that a packet is lost, in each direction.
    #[serde(default)]
    pub loss: Ratio,
    /// The capacity that `rate` describes, and its mean over the lab's duration, if it varies.
    #[serde(skip)]
    resolved: Option<(Capacity, Rate)>,
}

fn is_droptail(queue: &QueueKind) -> bool {
    *queue == QueueKind::Droptail
}

/// Range of rates for a kernel shaper, in bits/s: at lower rates, a packet takes longer than its timers
/// support.
const SHAPED: [f64; 2] = [1e5, 1e10];

impl Path {
    pub const fn varies(&self) -> bool {
        matches!(self.rate, LinkRate::Varying(_))
    }

    /// Reads the rate's steps or trace; the trace's path is relative to `folder`.
    pub fn resolve(&mut self, folder: &std::path::Path, duration: Time) -> Result<(), String> {
        let LinkRate::Varying(varying) = &mut self.rate else { return Ok(()) };
        let mut text = String::new();
        if let Some(trace) = &mut varying.trace {
            *trace = folder.join(&*trace);
            text = std::fs::read_to_string(&*trace).map_err(|error| {
                let reason = error.to_string();
                let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
                format!("path.rate.trace: \"{}\" cannot be read: {reason}", trace.display())
            })?;
        }
        let capacity = self
            .rate
            .capacity("path.rate", duration, |_| without_mark(&text).to_owned())
            .map_err(|error| format!("{}: {}", error.key, error.message))?;
        let mean = capacity.mean(Time::ZERO, duration);
        self.resolved = Some((capacity, mean));
        Ok(())
    }

    /// Capacity of the direction of the data.
    pub fn capacity(&self) -> Capacity {
        match (&self.rate, &self.resolved) {
            (LinkRate::Constant(rate), _) => Capacity::Constant(*rate),
            (_, Some((capacity, _))) => capacity.clone(),
            (_, None) => Capacity::Constant(Rate::ZERO),
        }
    }

    /// Capacity of the direction of the acks.
    pub fn reverse_capacity(&self) -> Capacity {
        self.reverse_rate.map_or_else(|| self.capacity(), Capacity::Constant)
    }

    /// Mean rate over the lab's duration.
    pub fn mean_rate(&self) -> Rate {
        match (&self.rate, &self.resolved) {
            (LinkRate::Constant(rate), _) => *rate,
            (_, resolved) => resolved.as_ref().map_or(Rate::ZERO, |(_, mean)| *mean),
        }
    }

    pub fn buffer_bytes(&self) -> u64 {
        let rate = self.mean_rate();
        (match self.buffer {
            Buffer::Bdp(f) => f * rate.bytes_in(self.rtt),
            Buffer::Bytes(b) => b.as_f64(),
            Buffer::Packets(n) => f64::from(n) * PACKET_BYTES as f64,
            Buffer::Time(t) => rate.bytes_in(t),
        })
        .round() as u64
    }

    /// Upper limit on the 98th percentile of packets' lateness in a valid run: 1 ms, but at most 5% of the
    /// RTT.
    pub fn lateness_bound(&self) -> Time {
        Time::from_millis(1).min(Time::from_ps(self.rtt.as_ps() / 20))
    }

    /// Refuses invalid values. `shaped` says that the kernel limits the link's rate.
    pub fn check(&self, shaped: bool) -> Result<(), String> {
        let rates = [Some(self.mean_rate()), self.reverse_rate];
        for (key, rate) in ["rate", "reverse_rate"].into_iter().zip(rates) {
            let Some(rate) = rate.filter(|rate| !(1e4..=1e11).contains(&rate.bps())) else { continue };
            return Err(format!("path.{key} is {rate}; it must be 10kbps to 100Gbps"));
        }
        if let (true, Capacity::Steps(steps)) = (shaped, self.capacity())
            && let Some((at, rate)) =
                steps.iter().find(|(_, rate)| !(SHAPED[0]..=SHAPED[1]).contains(&rate.bps()))
        {
            return Err(format!(
                "path.rate.steps has {rate} at {at}; with where = \"bpf\" it must be 100kbps to 10Gbps"
            ));
        }
        if shaped && !is_droptail(&self.queue) {
            return Err(
                "path.queue: with where = \"bpf\" the queue is the kernel's FIFO; leave out path.queue"
                    .to_owned(),
            );
        }
        if self.rtt < Time::from_micros(200) || self.rtt > Time::from_secs(10) {
            return Err(format!("path.rtt is {}; it must be 200us to 10s", self.rtt));
        }
        if self.buffer_bytes() < PACKET_BYTES {
            return Err(format!("path.buffer is {}; it must hold a packet of {PACKET_BYTES} B", self.buffer));
        }
        if self.loss.get() >= 1.0 {
            return Err("path.loss is 1 or more; it must be below 1, such as \"1%\"".to_owned());
        }
        Ok(())
    }
}
