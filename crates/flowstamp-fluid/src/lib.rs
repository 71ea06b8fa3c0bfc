//! Theory of the papers' laws: flow completion times and stability.
//!
//! - [`sizes`]: flow-size distributions with their quantiles and truncated moments.
//! - [`formulas`]: mean flow completion times of PS, SRPT, FB/LAS and FCFS (Dukkipati 2007, equations 2.1, 3.5, 4.1, 6.1).
//! - [`u_curve`]: mean flow duration against the rate that flows send at (section 3.3 and appendix A).
//! - [`servers`]: the same servers as exact event simulations, for the flows of a run.
//! - [`buffers`]: series of numbers as bytes, for bindings.
//! - [`bianchi`]: throughput and collisions of IEEE 802.11's DCF in saturation (Bianchi 2000, with a retry limit and freezing).
//! - [`control`]: models of the papers' laws with their delays, solved in time and in the frequency domain.
//! - [`dctcp`]: queue and marks of DCTCP in the steady state (Alizadeh et al. 2010, section 3.3).
//! - [`stability`]: stability of the linear loops of XCP and RCP (Katabi 2002, appendix B; Dukkipati 2007, section 5.1).
//! - [`stats`]: batch means, warm-up removal, completion times by size bin, Little's law.
//!
//! Sizes are bytes and durations seconds. Both are real numbers, because this crate is mathematics, not a clock. Rates are
//! [`flowstamp_laws::Rate`] and round-trip times [`flowstamp_laws::Time`].

pub mod bianchi;
pub mod buffers;
pub mod control;
pub mod dctcp;
pub mod formulas;
pub mod quadrature;
pub mod servers;
pub mod sizes;
pub mod stability;
pub mod stats;
pub mod u_curve;
