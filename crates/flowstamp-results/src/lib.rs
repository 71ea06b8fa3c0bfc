//! Results of a run, simulated or measured in a lab: a summary, series over time, and one row per flow.
//!
//! The simulator and the labs fill in the same types and write the same folder, so that Python reads both alike.

#[cfg(feature = "folder")]
pub mod folder;
mod summary;
mod tables;

pub use summary::{
    AccessSummary, AmpduCounts, ApplicationCounts, ApplicationSummary, CellCounts, CellSummary, Distribution,
    FctSummary, GroupCounts, GroupSummary, ImpairedSummary, LinkCounts, LinkSummary, LittlesLaw, Named,
    OperationRun, OperationsSummary, PacketCount, PacketDelays, PfcDeadlock, PfcSummary, SconeSummary,
    SizeBin, StationCounts, StationSummary, Summary, TestedFlow, Took, TotalSummary, VideoCounts,
    VideoSummary, jain_index, share,
};
pub use tables::{DelayCurve, FlowRow, Seconds, Series, SeriesKey, Values, flow_columns};
