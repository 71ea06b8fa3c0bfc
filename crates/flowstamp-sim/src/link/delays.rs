//! Propagation delay of links on which each packet has its own.
//!
//! ```text
//! delay = max(0, base(t) + jitter)      t: the instant at which the packet leaves the transmitter
//!
//! base(t)   the link's `delay`, or its `delays` at t
//! jitter    of mean 0:  uniform   spread (2 U - 1)
//!                       normal    deviation sqrt(-2 ln U) cos(2 pi V)           (Box and Muller 1958)
//!                       Pareto    m (U^(-1/a) - a/(a - 1)),  m = deviation (a - 1) sqrt(1 - 2/a)
//! ```

use crate::medium::VaryingDelay;
use crate::random::Stream;
use crate::scenario::LinkJitter;
use flowstamp_laws::units::Time;

/// The propagation delay of a link on which each packet has its own.
#[derive(Clone, Debug)]
pub struct OwnDelays {
    constant: Time,
    varying: Option<VaryingDelay>,
    jitter: Option<LinkJitter>,
    random: Stream,
}

impl OwnDelays {
    /// Delays around `varying` if given, else around `constant`.
    #[must_use]
    pub fn new(
        constant: Time,
        varying: Option<VaryingDelay>,
        jitter: Option<LinkJitter>,
        random: Stream,
    ) -> Self {
        Self { constant, varying, jitter, random }
    }

    /// The delay of a packet that leaves the transmitter at `time`.
    pub fn draw(&mut self, time: Time) -> Time {
        let base = self.varying.as_ref().map_or(self.constant, |varying| varying.at(time));
        let Some(jitter) = self.jitter else { return base };
        let seconds = jitter_s(jitter, &mut self.random);
        let size = Time::from_secs_f64(seconds.abs());
        if seconds < 0.0 { base.saturating_sub(size) } else { base.saturating_add(size) }
    }
}

/// The random part of a delay, seconds.
fn jitter_s(jitter: LinkJitter, random: &mut Stream) -> f64 {
    match jitter {
        LinkJitter::Uniform { spread } => spread.as_secs_f64() * (2.0 * random.uniform() - 1.0),
        LinkJitter::Normal { deviation } => deviation.as_secs_f64() * random.normal(),
        LinkJitter::Pareto { deviation, shape } => {
            let scale = deviation.as_secs_f64() * (shape - 1.0) * (1.0 - 2.0 / shape).sqrt();
            let mean = scale * shape / (shape - 1.0);
            random.pareto(mean, shape) - mean
        }
    }
}
