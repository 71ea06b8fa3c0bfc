//! Applications: the data that they produce, when, and in packets of which sizes.

use crate::sizes::Sizes;
use flowstamp_laws::units::{Bytes, Rate, Time};
#[cfg(feature = "full")]
use flowstamp_laws::video;
use schemars::JsonSchema;
use serde::de::{self, DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// The traffic that the application of each flow produces. Flows with a window queue data that they may not send yet. Datagrams leave at once.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[cfg_attr(feature = "full", derive(Deserialize))]
#[serde(tag = "kind", rename_all = "lowercase")]
#[cfg_attr(feature = "full", serde(deny_unknown_fields))]
pub enum Application {
    /// A packet at each tick of a clock. The group's `rate` is short for it.
    Constant {
        /// Payload per second. Exactly one of `rate` and `interval` is given.
        rate: Option<Rate>,
        /// Time from one packet to the next; the mean time if packets differ in size.
        interval: Option<Time>,
    },
    /// Packets of a Poisson process: the gaps between them are exponential.
    Poisson {
        /// Mean payload per second. Exactly one of `rate` and `interval` is given.
        rate: Option<Rate>,
        /// Mean time from one packet to the next.
        interval: Option<Time>,
    },
    /// Periods of packets at a constant rate alternate with periods of silence. The first period is drawn in
    /// proportion to the means. A packet that no longer fits into a period is due in the next one, so the mean rate
    /// is `rate` times the share of on-time.
    OnOff {
        /// Payload per second in an on-period. Exactly one of `rate` and `interval` is given.
        rate: Option<Rate>,
        /// Time from one packet to the next in an on-period; the mean time if packets differ in size.
        interval: Option<Time>,
        /// How long on-periods last.
        on: Periods,
        /// How long off-periods last.
        off: Periods,
    },
    /// Frames of a video. Each brings its bytes at once, at a constant number of frames per second, and begins a
    /// new packet.
    Frames {
        /// Frames per second, above 0.
        fps: f64,
        /// Bytes of payload of each frame: one size, a list that is taken in turn, or a distribution.
        sizes: MessageSizes,
    },
    /// Responses that the receiving host requests over one connection. It sends a request of one packet, as large
    /// as an ack, receives the response, thinks, and sends the next request. A lost request is sent again after the
    /// first retransmission timeout, which then doubles.
    Requests {
        /// Bytes of payload of each response: one size, a list that is taken in turn, or a distribution.
        sizes: MessageSizes,
        /// Time from the last byte of a response to the next request.
        think: Periods,
    },
    /// A video whose client, the receiving host, chooses each segment's bitrate. It requests segments as `requests` does, and fetches
    /// the next one when the buffer has room.
    #[cfg(feature = "full")]
    Video(video::Params),
}

/// The browser lab does not offer applications. Without the code that reads them its module is smaller.
#[cfg(not(feature = "full"))]
impl<'de> Deserialize<'de> for Application {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom("this build has no applications but those of a constant rate"))
    }
}

impl Application {
    /// The value of the key `kind`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Constant { .. } => "constant",
            Self::Poisson { .. } => "poisson",
            Self::OnOff { .. } => "onoff",
            Self::Frames { .. } => "frames",
            Self::Requests { .. } => "requests",
            #[cfg(feature = "full")]
            Self::Video(_) => "video",
        }
    }

    /// The sizes of frames or responses.
    #[must_use]
    pub const fn message_sizes(&self) -> Option<&MessageSizes> {
        match self {
            Self::Frames { sizes, .. } | Self::Requests { sizes, .. } => Some(sizes),
            _ => None,
        }
    }
}

/// How long something lasts: always the same, or drawn anew each time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Periods {
    /// Always the same.
    Constant(Time),
    /// Drawn.
    Drawn(DrawnPeriods),
}

/// A distribution of periods.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
pub enum DrawnPeriods {
    /// Exponential.
    Exponential {
        /// The mean.
        mean: Time,
    },
    /// Pareto: heavy-tailed.
    Pareto {
        /// The mean.
        mean: Time,
        /// Exponent of the tail, above 1; the mean diverges at 1. ns-2 has 1.5.
        shape: f64,
    },
}

/// Sizes of frames or responses, in bytes of payload.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum MessageSizes {
    /// One size for all.
    One(Bytes),
    /// Taken in turn, again and again.
    Many(Vec<Bytes>),
    /// Drawn.
    Drawn(Sizes),
}

/// Sizes of a flow's datagrams as they are on the wire, headers included.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PacketSizes {
    /// One size for all.
    One(Bytes),
    /// A mix with a name.
    Named(NamedMix),
    /// Drawn by their weights.
    Mix(Vec<WeightedSize>),
}

/// A mix of packet sizes with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NamedMix {
    /// 40, 576 and 1500 bytes in the ratio 7:4:1, the simple IMIX: 340.33 bytes on average.
    Imix,
}

/// One size of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedSize {
    /// The size.
    pub size: Bytes,
    /// How often, relative to the weights of the other sizes; above 0.
    pub weight: f64,
}

impl PacketSizes {
    /// Each size with its weight.
    #[must_use]
    pub fn weights(&self) -> Vec<(Bytes, f64)> {
        match self {
            Self::One(size) => vec![(*size, 1.0)],
            Self::Named(NamedMix::Imix) => {
                [(40, 7.0), (576, 4.0), (1500, 1.0)].map(|(size, weight)| (Bytes::new(size), weight)).to_vec()
            }
            Self::Mix(mix) => mix.iter().map(|part| (part.size, part.weight)).collect(),
        }
    }
}

/// A random delay of a datagram application's packets behind the ticks of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Jitter {
    /// `"none"`: the bare clock.
    None(NoJitter),
    /// Uniform up to this.
    UpTo(Time),
}

/// No jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoJitter {
    /// The bare clock.
    None,
}

/// A value that can be written as text, a list or a table.
trait Written: Sized {
    /// The forms that the value can have, for messages.
    const EXPECTED: &'static str;
    type List: DeserializeOwned;
    type Table: DeserializeOwned;
    fn text(text: &str) -> Result<Self, String>;
    fn list(list: Self::List) -> Option<Self>;
    fn table(table: Self::Table) -> Option<Self>;
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: Written> de::Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::text(text).map_err(E::custom)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        let list = T::List::deserialize(de::value::SeqAccessDeserializer::new(list))?;
        T::list(list).ok_or_else(|| de::Error::invalid_type(de::Unexpected::Seq, &self))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, table: A) -> Result<T, A::Error> {
        let table = T::Table::deserialize(de::value::MapAccessDeserializer::new(table))?;
        T::table(table).ok_or_else(|| de::Error::invalid_type(de::Unexpected::Map, &self))
    }
}

macro_rules! written {
    ($($name:ident),*) => { $(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: de::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                d.deserialize_any(Reader::<Self>(PhantomData))
            }
        }
    )* };
}
written!(Periods, MessageSizes, PacketSizes, Jitter);

fn parsed<T: std::str::FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|e: T::Err| e.to_string())
}

/// Like [`parsed`], where a word is allowed too: text that is no number is reported as a wrong word.
fn parsed_or_word<T: std::str::FromStr<Err: fmt::Display>>(text: &str, expected: &str) -> Result<T, String> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    parsed(text).map_err(|e| if is_number { e } else { format!("\"{text}\" must be {expected}") })
}

impl Written for Periods {
    const EXPECTED: &'static str =
        "a duration such as \"1s\", or a table such as { distribution = \"exponential\", mean = \"1s\" }";
    type List = IgnoredAny;
    type Table = DrawnPeriods;
    fn text(text: &str) -> Result<Self, String> {
        parsed(text).map(Self::Constant)
    }
    fn list(_: IgnoredAny) -> Option<Self> {
        None
    }
    fn table(table: DrawnPeriods) -> Option<Self> {
        Some(Self::Drawn(table))
    }
}

impl Written for MessageSizes {
    const EXPECTED: &'static str = "a size such as \"20kB\", a list of sizes, or a table such as { distribution = \"exponential\", mean = \"20kB\" }";
    type List = Vec<Bytes>;
    type Table = Sizes;
    fn text(text: &str) -> Result<Self, String> {
        parsed(text).map(Self::One)
    }
    fn list(list: Vec<Bytes>) -> Option<Self> {
        Some(Self::Many(list))
    }
    fn table(table: Sizes) -> Option<Self> {
        Some(Self::Drawn(table))
    }
}

impl Written for PacketSizes {
    const EXPECTED: &'static str =
        "a size such as \"200B\", \"imix\", or a list such as [{ size = \"64B\", weight = 1 }]";
    type List = Vec<WeightedSize>;
    type Table = IgnoredAny;
    fn text(text: &str) -> Result<Self, String> {
        if text == "imix" {
            return Ok(Self::Named(NamedMix::Imix));
        }
        parsed_or_word(text, Self::EXPECTED).map(Self::One)
    }
    fn list(list: Vec<WeightedSize>) -> Option<Self> {
        Some(Self::Mix(list))
    }
    fn table(_: IgnoredAny) -> Option<Self> {
        None
    }
}

impl Written for Jitter {
    const EXPECTED: &'static str = "\"none\", or a duration such as \"1ms\"";
    type List = IgnoredAny;
    type Table = IgnoredAny;
    fn text(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None(NoJitter::None));
        }
        parsed_or_word(text, Self::EXPECTED).map(Self::UpTo)
    }
    fn list(_: IgnoredAny) -> Option<Self> {
        None
    }
    fn table(_: IgnoredAny) -> Option<Self> {
        None
    }
}
