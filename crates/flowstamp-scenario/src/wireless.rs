//! Parameters of a cell of IEEE 802.11 whose stations share the medium by DCF.
//!
//! A user names a standard and changes single values ([`Dcf`]); a simulator has all values ([`DcfParams`]). Clauses are
//! those of IEEE 802.11-2012: 8 frames, 9.3 DCF, 16 DSSS, 17 HR/DSSS (802.11b), 18 OFDM, 19 ERP (802.11g).

use flowstamp_laws::Refused;
use flowstamp_laws::units::{Bytes, Rate, Ratio, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest packet that 802.11 carries, LLC and SNAP headers included (aMSDUMaximumLength).
pub const MAX_MSDU: Bytes = Bytes::new(2304);

/// Maximum number of frames in an A-MPDU: as many as the bitmap of a block ack has bits (802.11-2012, 8.3.1.9.3).
pub const MAX_AMPDU_FRAMES: u32 = 64;

/// The longest A-MPDU (802.11ac, clause 22: 2^20 - 1).
const MAX_AMPDU: Bytes = Bytes::new(1_048_575);

/// The standard from which a cell's values come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Standard {
    /// HR/DSSS, long preamble: 1 to 11 Mb/s.
    #[default]
    #[serde(rename = "802.11b")]
    B,
    /// ERP-OFDM with 9 us slots and without protection, for cells without an 802.11b station: 6 to 54 Mb/s.
    #[serde(rename = "802.11g")]
    G,
    /// 802.11b as ns-2 has it: control frames at 1 Mb/s and 34 bytes of MAC header.
    #[serde(rename = "802.11b-ns2")]
    BNs2,
    /// 802.11g as ns-2 scripts set it: 20 us of preamble and header, a SIFS of 16 us, no symbols.
    #[serde(rename = "802.11g-ns2")]
    GNs2,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::B => "802.11b",
            Self::G => "802.11g",
            Self::BNs2 => "802.11b-ns2",
            Self::GNs2 => "802.11g-ns2",
        })
    }
}

/// Preamble and header in front of a frame, for PHYs that have two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preamble {
    /// `plcp`.
    #[default]
    Long,
    /// `plcp_short`, except for frames at the PHY's lowest rate, which have no short preamble.
    Short,
}

/// The DCF rules that stations follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Rules {
    /// The standard's.
    #[default]
    #[serde(rename = "standard")]
    Standard,
    /// Those of ns-2's `Mac/802_11`. A backoff is drawn from 0 to CW-1. A frame always waits for DIFS and a
    /// backoff, however long the medium has been idle. Durations in frames are rounded to whole microseconds. EIFS
    /// counts as busy, and DIFS comes after it. A station that still sends when the others have ended waits for its
    /// ack instead. A CTS that arrives sets the count of failed RTS to zero.
    #[serde(rename = "ns-2")]
    Ns2,
}

macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// All numbers of a cell.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct DcfParams {
            /// Where the numbers come from that the user has not given.
            pub standard: Standard,
            $($(#[$doc])* pub $name: $type,)*
            /// Rate of acks and CTS, whatever the data rate. None: the highest of `basic_rates` not above the data rate.
            pub control_rate: Option<Rate>,
            /// Time that a station waits for an ack or a CTS before it starts DIFS. None: EIFS less DIFS.
            pub ack_timeout: Option<Time>,
            /// EIFS. None: SIFS, an ack at `mandatory_rate` and DIFS.
            pub eifs: Option<Time>,
        }

        /// A cell's standard, and the values that differ from it.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Dcf {
            /// The standard from which all other values come.
            pub standard: Standard,
            $($(#[$doc])* pub $name: Option<$type>,)*
            /// Rate of acks and CTS at every data rate. Default: the highest of `basic_rates` that is not above the
            /// data rate.
            pub control_rate: Option<Rate>,
            /// Time that a station waits for an ack or a CTS before it starts DIFS. `scale` does not change it.
            /// Default: EIFS less DIFS. Stations that collided then resume together with the others. The standard's
            /// value is SIFS, a slot and aPHY-RX-START-Delay (9.3.2.8), 222us in 802.11b. With it, stations that
            /// collided resume ahead of the others.
            pub ack_timeout: Option<Time>,
            /// How long stations wait, instead of DIFS, after a frame that they could not read; `scale` does not
            /// change it. Default: SIFS, an ack at `mandatory_rate` and DIFS. For 802.11g stations that also know
            /// 802.11b's rates, the ack is at the lowest of those: 342us in all.
            pub eifs: Option<Time>,
        }

        impl Dcf {
            /// All parameters.
            #[must_use]
            pub fn params(&self) -> DcfParams {
                let mut params = DcfParams::of(self.standard);
                $(if let Some(value) = &self.$name { params.$name.clone_from(value); })*
                params.control_rate = self.control_rate;
                params.ack_timeout = self.ack_timeout;
                params.eifs = self.eifs;
                params
            }
        }
    };
}

parameters! {
    /// Length of a backoff slot.
    slot: Time,
    /// Gap between the frames of one exchange. DIFS is this and two slots.
    sifs: Time,
    /// Upper end of the first backoff in slots; the lower end is 0.
    cw_min: u32,
    /// Largest upper end of a backoff in slots.
    cw_max: u32,
    /// Maximum number of transmissions of an RTS, or of a frame without one, before the frame is given up.
    short_retry_limit: u32,
    /// Maximum number of transmissions of a frame with an RTS before it is given up.
    long_retry_limit: u32,
    /// Length above which an RTS announces a frame, MAC header and FCS included. By default no frame is that long.
    rts_threshold: Bytes,
    /// The preamble of frames.
    preamble: Preamble,
    /// Duration of the long preamble and PLCP header.
    plcp: Time,
    /// Duration of the short preamble and PLCP header.
    plcp_short: Time,
    /// Duration of a symbol. After the PLCP header a frame lasts a whole number of symbols; with 0s it lasts as
    /// long as its bits.
    symbol: Time,
    /// Bits that the PHY adds to a frame: OFDM's SERVICE field and tail.
    service_bits: u32,
    /// Silence after a frame that counts as part of the frame.
    signal_extension: Time,
    /// MAC header of data frames.
    mac_header: Bytes,
    /// Frame check sequence of data frames.
    fcs: Bytes,
    /// LLC and SNAP headers.
    llc: Bytes,
    /// Available data rates.
    rates: Vec<Rate>,
    /// Rates that all stations can receive. Control frames use them.
    basic_rates: Vec<Rate>,
    /// The PHY's lowest mandatory rate, from which EIFS follows.
    mandatory_rate: Rate,
    /// The DCF rules that stations follow.
    rules: Rules,
    /// Maximum number of frames that a station sends to one receiver in one turn on the medium, 1 to 64: an A-MPDU,
    /// which a block ack answers (802.11n and later). With 1, the default, each frame has a turn and an ack of its
    /// own.
    ampdu_frames: u32,
    /// Maximum length of an A-MPDU, with headers and padding. A single frame may be longer.
    ampdu_bytes: Bytes,
    /// Maximum duration of an A-MPDU on the air, with its preamble. `scale` does not change it. A single frame may
    /// last longer.
    ampdu_time: Time,
    /// Divides slots and SIFS, and multiplies data and basic rates (Abrantes and Ricardo 2006, table 1).
    scale: Ratio,
    /// Whether `scale` also applies to what the PHY adds: preamble and header, symbols, signal extension and the
    /// rate of EIFS. A cell at scale 20 then carries 20 times as much. Otherwise it carries 3.5 times as much with
    /// ten stations, and four times with one.
    scale_plcp: bool,
}

/// Data rates of 802.11b, Mb/s.
const HR_DSSS: &[f64] = &[1.0, 2.0, 5.5, 11.0];
/// Data rates of ERP-OFDM, Mb/s.
const ERP_OFDM: &[f64] = &[6.0, 9.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0];

fn mbps(rates: &[f64]) -> Vec<Rate> {
    rates.iter().map(|r| Rate::from_mbps(*r)).collect()
}

impl DcfParams {
    /// The parameters of a standard.
    #[must_use]
    pub fn of(standard: Standard) -> Self {
        match standard {
            Standard::B => Self::b(),
            Standard::G => Self::g(),
            Standard::BNs2 => Self::b_ns2(),
            Standard::GNs2 => Self::g_ns2(),
        }
    }

    /// 802.11b.
    #[must_use]
    pub fn b() -> Self {
        Self {
            standard: Standard::B,
            slot: Time::from_micros(20), // clause 17's characteristics
            sifs: Time::from_micros(10),
            cw_min: 31,
            cw_max: 1023,
            short_retry_limit: 7, // annex C, dot11ShortRetryLimit: "transmission attempts"
            long_retry_limit: 4,  // annex C, dot11LongRetryLimit
            rts_threshold: Bytes::new(2347), // the default of 802.11-1999; no frame is longer than 2346 bytes
            preamble: Preamble::Long,
            plcp: Time::from_micros(144 + 48),
            plcp_short: Time::from_micros(72 + 24), // clause 17
            symbol: Time::from_micros(1), // clause 17, TXTIME: the LENGTH field is in microseconds, rounded up
            service_bits: 0,
            signal_extension: Time::ZERO,
            mac_header: Bytes::new(24), // clause 8, no fourth address and no QoS
            fcs: Bytes::new(4),
            llc: Bytes::new(8), // RFC 1042
            rates: mbps(HR_DSSS),
            basic_rates: mbps(&HR_DSSS[..2]), // the mandatory rates of DSSS, clause 16
            mandatory_rate: Rate::from_mbps(1.0),
            control_rate: None,
            ack_timeout: None,
            eifs: None,
            rules: Rules::Standard,
            ampdu_frames: 1,
            ampdu_bytes: Bytes::new(65_535), // 802.11-2012, 8.4.2.58.3: the longest that 802.11n can announce
            ampdu_time: Time::from_micros(5484), // 802.11ac, clause 22: aPPDUMaxTime, which 802.11-2016 has for 802.11n, too
            scale: Ratio::new(1.0),
            scale_plcp: false,
        }
    }

    /// 802.11g: ERP-OFDM alone.
    #[must_use]
    pub fn g() -> Self {
        Self {
            standard: Standard::G,
            slot: Time::from_micros(9), // clause 19's characteristics, short slot
            sifs: Time::from_micros(10),
            cw_min: 15,
            plcp: Time::from_micros(16 + 4), // clause 18: preamble and SIGNAL
            plcp_short: Time::from_micros(16 + 4),
            symbol: Time::from_micros(4),           // clause 18
            service_bits: 16 + 6,                   // clause 18: SERVICE and tail
            signal_extension: Time::from_micros(6), // clause 19, TXTIME
            rates: mbps(ERP_OFDM),
            basic_rates: mbps(&[6.0, 12.0, 24.0]), // clause 18: the mandatory rates of OFDM
            mandatory_rate: Rate::from_mbps(6.0),
            ..Self::b()
        }
    }

    /// 802.11b as ns-2's `Mac/802_11` has it by default.
    #[must_use]
    pub fn b_ns2() -> Self {
        Self {
            standard: Standard::BNs2,
            symbol: Time::ZERO,
            mac_header: Bytes::new(30), // with the fourth address
            llc: Bytes::ZERO,
            basic_rates: mbps(&HR_DSSS[..1]),
            rules: Rules::Ns2,
            ..Self::b()
        }
    }

    /// 802.11g as scripts for ns-2 set it: `SlotTime_` 9 us, `SIFS_` 16 us, `CWMin_` 15, `PreambleLength_` 96,
    /// `PLCPHeaderLength_` 24, `PLCPDataRate_` and `basicRate_` 6 Mb/s.
    #[must_use]
    pub fn g_ns2() -> Self {
        Self {
            standard: Standard::GNs2,
            slot: Time::from_micros(9),
            sifs: Time::from_micros(16),
            cw_min: 15,
            plcp: Time::from_micros(20),
            plcp_short: Time::from_micros(20),
            rates: mbps(ERP_OFDM),
            basic_rates: mbps(&ERP_OFDM[..1]),
            mandatory_rate: Rate::from_mbps(6.0),
            ..Self::b_ns2()
        }
    }

    /// Refuses invalid parameters.
    ///
    /// # Errors
    /// The parameter's name, its value, and a value that would be right.
    pub fn check(&self) -> Result<(), Refused> {
        let whole = |name, value: u32, least: u32, most: u32| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err((name, format!("is {value}; it must be {least} to {most}")))
        };
        let time = |name, value: Time, least: Time| {
            if (least..=Time::from_secs(1)).contains(&value) {
                return Ok(());
            }
            Err((name, format!("is {value}; it must be {least} to 1s")))
        };
        time("slot", self.slot, Time::from_nanos(1))?;
        for (name, value) in [
            ("sifs", self.sifs),
            ("plcp", self.plcp),
            ("plcp_short", self.plcp_short),
            ("symbol", self.symbol),
            ("signal_extension", self.signal_extension),
            ("ack_timeout", self.ack_timeout.unwrap_or_default()),
            ("eifs", self.eifs.unwrap_or_default()),
        ] {
            time(name, value, Time::ZERO)?;
        }
        whole("cw_max", self.cw_max, 1, 65_535)?;
        whole("cw_min", self.cw_min, 1, self.cw_max)?;
        whole("short_retry_limit", self.short_retry_limit, 1, 255)?;
        whole("long_retry_limit", self.long_retry_limit, 1, 255)?;
        whole("service_bits", self.service_bits, 0, 1000)?;
        self.check_ampdu()?;
        for (name, size) in [("mac_header", self.mac_header), ("fcs", self.fcs), ("llc", self.llc)] {
            if size.get() > 1000 {
                return Err((name, format!("is {size}; it must be 0B to 1000B")));
            }
        }
        for (name, rates) in [
            ("rates", &self.rates[..]),
            ("basic_rates", &self.basic_rates[..]),
            ("mandatory_rate", &[self.mandatory_rate][..]),
            ("control_rate", self.control_rate.as_slice()),
        ] {
            if rates.is_empty() && name != "control_rate" {
                return Err((name, "is empty; it must have one rate at least".to_owned()));
            }
            if let Some(rate) = rates.iter().find(|r| !(1e3..=1e12).contains(&r.bps())) {
                return Err((name, format!("has {rate}; it must be 1kbps to 1Tbps")));
            }
        }
        if !(1e-3..=1e3).contains(&self.scale.get()) {
            return Err(("scale", format!("is {}; it must be 0.001 to 1000", self.scale)));
        }
        Ok(())
    }

    fn check_ampdu(&self) -> Result<(), Refused> {
        let (frames, bytes, time) = (self.ampdu_frames, self.ampdu_bytes, self.ampdu_time);
        if !(1..=MAX_AMPDU_FRAMES).contains(&frames) {
            return Err(("ampdu_frames", format!("is {frames}; it must be 1 to {MAX_AMPDU_FRAMES}")));
        }
        if frames > 1 && self.rules == Rules::Ns2 {
            let message = format!("is {frames}, but ns-2's rules have no A-MPDU");
            return Err(("ampdu_frames", message + "; leave it out, or set rules = \"standard\""));
        }
        if !(1..=MAX_AMPDU.get()).contains(&bytes.get()) {
            return Err(("ampdu_bytes", format!("is {bytes}; it must be 1B to {MAX_AMPDU}")));
        }
        if !(Time::from_nanos(1)..=Time::from_secs(1)).contains(&time) {
            return Err(("ampdu_time", format!("is {time}; it must be 1ns to 1s")));
        }
        Ok(())
    }

    /// Bytes of a data frame's headers and FCS, on top of the packet.
    #[must_use]
    pub fn overhead(&self) -> u64 {
        (self.mac_header + self.fcs + self.llc).get()
    }

    /// Refuses a data rate that the standard does not have.
    ///
    /// # Errors
    /// One line: the rate, and the rates that exist.
    pub fn check_rate(&self, rate: Rate) -> Result<(), String> {
        if self.rates.contains(&rate) {
            return Ok(());
        }
        let known: Vec<_> = self.rates.iter().map(Rate::to_string).collect();
        Err(format!(
            "is {rate}, a rate that {} lacks; it has {} (`rates` can name others)",
            self.standard,
            known.join(", ")
        ))
    }

    /// Refuses a packet that is longer than a frame can carry.
    ///
    /// # Errors
    /// One line: the packet's size, and the maximum.
    pub fn check_packet(&self, packet: Bytes) -> Result<(), String> {
        let most = MAX_MSDU.get().saturating_sub(self.llc.get());
        if packet.get() <= most {
            return Ok(());
        }
        Err(format!("is {packet}; a frame of {} carries {} at most", self.standard, Bytes::new(most)))
    }
}

/// A station of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StationParams {
    /// Its data rate: of what it sends and of what is sent to it. None for an access point, whose frames go at the other
    /// station's rate. Between two stations that have one, the lower is taken.
    pub rate: Option<Rate>,
    /// Share of data frames that are lost though nothing collides, of those it sends and of those sent to it. The MAC repeats them.
    pub error_rate: Ratio,
}

impl StationParams {
    /// The access point.
    pub const ACCESS_POINT: Self = Self { rate: None, error_rate: Ratio::new(0.0) };

    /// A station of this rate whose frames are not lost.
    #[must_use]
    pub const fn at(rate: Rate) -> Self {
        Self { rate: Some(rate), error_rate: Ratio::new(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_is_as_the_standard_has_it() {
        let read = |text: &str| toml::from_str::<Dcf>(text).map(|d| d.params());
        assert_eq!(read(""), Ok(DcfParams::b()));
        for standard in [Standard::B, Standard::G, Standard::BNs2, Standard::GNs2] {
            let params = read(&format!("standard = \"{standard}\"")).expect("a standard");
            assert_eq!(params, DcfParams::of(standard));
            assert_eq!(params.check(), Ok(()));
        }
        let given = "standard = \"802.11g\"\nslot = \"20us\"\ncontrol_rate = \"6Mbps\"\npreamble = \"short\"";
        let expected = DcfParams {
            slot: Time::from_micros(20),
            control_rate: Some(Rate::from_mbps(6.0)),
            preamble: Preamble::Short,
            ..DcfParams::g()
        };
        assert_eq!(read(given), Ok(expected));
        assert!(read("slots = \"9us\"").is_err_and(|e| e.message().contains("unknown field `slots`")));
        assert!(read("slot = 9").is_err_and(|e| e.message().contains("a time with its unit")));
    }

    #[test]
    fn text_round_trips() {
        let dcf = Dcf {
            standard: Standard::GNs2,
            cw_max: Some(63),
            rates: Some(mbps(&[5.5, 220.0])),
            scale: Some(Ratio::new(20.0)),
            ..Dcf::default()
        };
        let text = toml::to_string(&dcf).expect("TOML");
        assert_eq!(toml::from_str(&text), Ok(dcf), "{text}");
        let schema = schemars::schema_for!(Dcf).to_value();
        assert_eq!(schema["additionalProperties"], false);
        assert!(schema["properties"]["rts_threshold"]["description"].is_string());
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let refused = |change: &dyn Fn(&mut DcfParams)| {
            let mut params = DcfParams::b();
            change(&mut params);
            let (name, message) = params.check().expect_err("refused");
            format!("{name} {message}")
        };
        assert_eq!(refused(&|p| p.slot = Time::ZERO), "slot is 0s; it must be 1ns to 1s");
        assert_eq!(refused(&|p| p.cw_min = 2047), "cw_min is 2047; it must be 1 to 1023");
        assert_eq!(refused(&|p| p.short_retry_limit = 0), "short_retry_limit is 0; it must be 1 to 255");
        assert_eq!(
            refused(&|p| p.basic_rates.clear()),
            "basic_rates is empty; it must have one rate at least"
        );
        assert_eq!(
            refused(&|p| p.control_rate = Some(Rate::ZERO)),
            "control_rate has 0bps; it must be 1kbps to 1Tbps"
        );
        assert_eq!(refused(&|p| p.scale = Ratio::new(0.0)), "scale is 0; it must be 0.001 to 1000");
        assert_eq!(refused(&|p| p.ampdu_frames = 65), "ampdu_frames is 65; it must be 1 to 64");
        assert_eq!(
            refused(&|p| (p.ampdu_frames, p.rules) = (2, Rules::Ns2)),
            "ampdu_frames is 2, but ns-2's rules have no A-MPDU; leave it out, or set rules = \"standard\""
        );
        assert_eq!(refused(&|p| p.ampdu_bytes = Bytes::ZERO), "ampdu_bytes is 0B; it must be 1B to 1048575B");
        assert_eq!(refused(&|p| p.ampdu_time = Time::ZERO), "ampdu_time is 0s; it must be 1ns to 1s");
    }

    #[test]
    fn a_rate_that_the_standard_lacks_is_refused_unless_named() {
        let fast = Rate::from_mbps(54.0);
        let mut params = DcfParams::b_ns2();
        assert_eq!(
            params.check_rate(fast),
            Err("is 54Mbps, a rate that 802.11b-ns2 lacks; it has 1Mbps, 2Mbps, 5.5Mbps, 11Mbps (`rates` can name others)"
                .to_owned())
        );
        params.rates.push(fast);
        assert_eq!(params.check_rate(fast), Ok(()));
        assert_eq!(DcfParams::g().check_rate(fast), Ok(()));
        let jumbo = DcfParams::g().check_packet(Bytes::new(9000));
        assert_eq!(jumbo, Err("is 9kB; a frame of 802.11g carries 2296B at most".to_owned()));
        assert_eq!(DcfParams::g().check_packet(Bytes::new(2296)), Ok(()));
    }
}
