//! Playback of videos, by flow and by group.

use super::Finished;
use crate::host::Watched;
use crate::results::{VideoCounts, VideoSummary};
use flowstamp_laws::units::Time;
use flowstamp_laws::video::Viewed;

/// Playback of a flow's video in the whole run.
pub(super) fn row(sim: &Finished, flow: u32) -> Option<VideoCounts> {
    sim.hosts.watched.get(&flow).map(|watched| counts([watched.end].into_iter()))
}

/// Playback of the videos of group `number`.
pub(super) fn summary(sim: &Finished, number: usize) -> Option<VideoSummary> {
    let of_group = |record: &u32| sim.hosts.records[*record as usize].group as usize == number;
    let watched =
        || sim.hosts.watched.iter().filter(|(record, _)| of_group(record)).map(|(_, watched)| *watched);
    watched().next()?;
    Some(VideoSummary {
        after_warmup: counts(watched().map(Watched::after_warmup)),
        whole_run: counts(watched().map(|watched| watched.end)),
    })
}

fn counts(viewers: impl Iterator<Item = Viewed>) -> VideoCounts {
    let mut sum = VideoCounts::default();
    let mut bitrates_bps = 0.0;
    for viewed in viewers {
        sum.played_s += viewed.played.as_secs_f64();
        sum.stalled_s += viewed.stalled.as_secs_f64();
        sum.startup_s += viewed.startup.as_secs_f64();
        sum.stalls += u64::from(viewed.stalls);
        sum.segments += u64::from(viewed.segments);
        sum.switches += u64::from(viewed.switches);
        bitrates_bps += viewed.bitrates_bps;
    }
    let shown_s = sum.played_s + sum.stalled_s;
    sum.stalled_share = (shown_s > 0.0).then(|| sum.stalled_s / shown_s);
    sum.bitrate_bps = (sum.segments > 0).then(|| bitrates_bps / sum.segments as f64);
    sum
}

impl Watched {
    /// Playback and requests after warm-up.
    fn after_warmup(self) -> Viewed {
        let Self { end, at_warmup } = self;
        let less = |of: fn(&Viewed) -> Time| of(&end).saturating_sub(of(&at_warmup));
        Viewed {
            startup: less(|viewed| viewed.startup),
            played: less(|viewed| viewed.played),
            stalled: less(|viewed| viewed.stalled),
            ended: less(|viewed| viewed.ended),
            stalls: end.stalls - at_warmup.stalls,
            segments: end.segments - at_warmup.segments,
            switches: end.switches - at_warmup.switches,
            bitrates_bps: end.bitrates_bps - at_warmup.bitrates_bps,
        }
    }
}
