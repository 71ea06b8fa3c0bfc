//! QUIC hosts with the laws of the simulator, without root and without a kernel module.
//!
//! ```text
//!   flowstamp_laws: SenderLaw        the very laws of the simulator
//!     sender, records                what a law hears, from what quinn tells
//!     controller                     quinn's congestion controller, of one connection
//!     socket, departure, alarm       quinn's socket, with the law's pace
//!     stamps, headers, scone         stamp packets and their echoes, and advice
//!     endpoint, handshake, tls, ids  quinn's endpoints, and SCONE's transport parameter
//!     serve, get, video              HTTP/3: the commands
//!     path                           a path in user space, for tests without root
//! ```

#![expect(clippy::disallowed_methods, reason = "real hosts read the clock; laws are told the time")]

pub mod alarm;
pub mod controller;
pub mod departure;
pub mod endpoint;
pub mod get;
pub mod handshake;
pub mod headers;
pub mod ids;
pub mod path;
pub mod records;
pub mod scone;
pub mod sender;
pub mod serve;
pub mod socket;
pub mod stamps;
pub mod tls;
pub mod video;
