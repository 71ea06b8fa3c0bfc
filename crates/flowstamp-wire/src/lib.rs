//! Writes simulated packets as they would look on a real wire.
//!
//! ```text
//!   Ethernet II | IPv4, protocol 253 | XCP, 20 bytes | TCP (+ SACK)     <- frame::FrameSpec
//!                           or   254 | RCP, 12 bytes |
//!                           or   251 | PCP, 16 bytes |
//!   14            20                   frame::Shim     20..48
//!   `------------------- captured ------------------------------'-- payload: zeros, not captured
//! ```
//!
//! - [`xcp`]: codec of the header of the XCP Internet-Draft, version 3;
//! - [`rcp`]: codec of RCP's header, 12 bytes;
//! - [`pcp`]: codec of PCP's header, 16 bytes;
//! - [`mod@option`]: codec of the TCP option in which real hosts carry XCP and RCP;
//! - [`quic_stamp`]: codec of the QUIC packet in which hosts without root carry a stamp;
//! - [`scone`]: codec of SCONE packets, throughput advice in QUIC datagrams;
//! - [`mod@codec`]: maps a header of the registry to its codec, and a stamp to that header's fields;
//! - [`mod@field`]: shared parts of the codecs;
//! - [`frame`]: builds a packet's headers, checksums included, without allocation;
//! - [`radio`]: writes such a packet as a frame of 802.11 behind radiotap, and 802.11's control frames;
//! - [`pcapng`]: writes such frames to a capture file that Wireshark reads;
//! - [`DISSECTOR`]: the Wireshark plug-in that reads the headers back, and the TCP option of hosts on Linux.
//!
//! Nothing here opens a file, reads a clock or allocates per packet.
//!
//! # Reading a capture
//!
//! ```text
//! tshark -X lua_script:flowstamp.lua -r run.pcapng -T fields -e frame.time_epoch -e xcp.rtt -e xcp.delta_throughput
//! ```
//!
//! `flowstamp.lua` is [`DISSECTOR`] written to a file. The command also works as root, where tshark prints
//! `Running as user "root"...` on standard error. As root tshark loads the script only if `run_user_scripts_when_superuser` is true
//! in the system's `init.lua`, as it is in the file that Wireshark 4.0 and Debian's package ship. If it is false, tshark as root
//! ignores the script silently and then says `Some fields aren't valid: xcp.rtt`. No option, environment variable or personal
//! `init.lua` overrides that. Then run tshark as another user, who can read the files:
//!
//! ```text
//! HOME=/tmp setpriv --reuid=65534 --regid=65534 --clear-groups tshark -X lua_script:...
//! ```

#[cfg(feature = "frames")]
pub mod abc;
#[cfg(feature = "frames")]
pub mod codec;
#[cfg_attr(not(feature = "frames"), expect(dead_code, reason = "the headers of frames share it"))]
pub mod field;
#[cfg(feature = "frames")]
pub mod frame;
pub mod option;
pub mod pcapng;
#[cfg(feature = "frames")]
pub mod pcp;
pub mod quic_stamp;
#[cfg(feature = "frames")]
pub mod radio;
#[cfg(feature = "frames")]
pub mod rcp;
pub mod scone;
#[cfg(feature = "frames")]
pub mod vcp;
#[cfg(feature = "frames")]
pub mod xcp;

/// Source of the Wireshark Lua dissector, for Wireshark and tshark 4.0 and later. It decodes the headers of the simulator's captures,
/// as `xcp.*` on IP protocol 253, `rcp.*` on 254 and `precise.*` on 251 (PCP; Wireshark already has another protocol named pcp). It
/// decodes the TCP option of real hosts as `flowstamp.*`, and SCONE packets as `scone.*`.
///
/// Write it to a file and pass `-X lua_script:FILE`, or put it in the personal Lua plug-in folder
/// (Help > About Wireshark > Folders).
pub const DISSECTOR: &str = concat!(
    include_str!("../dissector/headers.lua"),
    include_str!("../dissector/option.lua"),
    include_str!("../dissector/scone.lua")
);
