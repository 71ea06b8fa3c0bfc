//! Groups of flows in a lab's file: their application, their law, and settings that these cannot carry out.

use super::carried;
use crate::law::{self, Law};
use flowstamp_laws::liar::Hears;
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::units::{Bytes, Rate, Time};
use flowstamp_laws::video;
use serde::{Deserialize, Serialize};

/// A congestion control of hosts: one of our laws, one of the kernel's, or a law that only QUIC has here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// One of our laws.
    Stamped(&'static Law),
    /// One of the kernel's, by name.
    Kernel(&'static str),
    /// One of the laws of `flowstamp quic`, by name.
    Quic(&'static str),
}

/// The kernel's congestion controls that a lab supports; the first is the default.
const KERNELS: [&str; 3] = ["cubic", "bbr", "reno"];

impl Control {
    /// Its name in a lab's file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stamped(law) => law.name,
            Self::Kernel(name) | Self::Quic(name) => name,
        }
    }

    /// The law, if it is one of ours.
    pub const fn law(self) -> Option<&'static Law> {
        match self {
            Self::Stamped(law) => Some(law),
            Self::Kernel(_) | Self::Quic(_) => None,
        }
    }

    /// Why the hosts' TCP has no such law.
    pub fn unknown(name: &str) -> String {
        let there = law::LAWS.iter().map(|law| law.name).chain(KERNELS).collect::<Vec<_>>().join(", ");
        format!("no law {name:?} on hosts; there are {there}, and others for app = \"h3\"")
    }

    /// Whether the simulator supports it.
    fn is_simulated(self) -> bool {
        SenderSpec::NAMES.contains(&self.name())
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::Kernel(KERNELS[0])
    }
}

impl Serialize for Control {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Control {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let kernel = || KERNELS.into_iter().find(|kernel| *kernel == name).map(Self::Kernel);
        let quic = || carried::laws().find(|law| *law == name).map(Self::Quic);
        let found = law::named(&name).map(Self::Stamped).or_else(kernel).or_else(quic);
        found.ok_or_else(|| serde::de::Error::custom(Self::unknown(&name)))
    }
}

/// The application that makes the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Application {
    /// iperf3, as fast as possible.
    #[default]
    Iperf3,
    /// nginx and curl: one download each.
    Http,
    /// `flowstamp quic get`: one download each by HTTP/3.
    H3,
    /// `flowstamp quic video`: a video each by HTTP/3, whose clients ask for SCONE's advice.
    Video,
}

impl Application {
    /// Whether its flows are TCP's.
    pub fn is_tcp(self) -> bool {
        !matches!(self, Self::H3 | Self::Video)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// Name in results.
    pub name: String,
    #[serde(default)]
    pub app: Application,
    /// Congestion control, if different from the hosts'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<Control>,
    #[serde(default = "one_flow")]
    pub count: u32,
    /// Start of the first flow.
    #[serde(default)]
    pub start: Time,
    /// Time between the starts of consecutive flows.
    #[serde(default)]
    pub every: Time,
    /// When the flows stop sending. Default: at the lab's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// Size of each transfer. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Which feedback the flows obey. For a flow that ignores some, the path forges the echoes.
    #[serde(default = "all")]
    pub hears: Hears,
    /// Maximum rate of each flow, enforced by the kernel's pacing. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Rate>,
    /// The video and its client, as in a scenario. Default: the client's defaults, and no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<video::Params>,
}

fn all() -> Hears {
    Hears::All
}

fn one_flow() -> u32 {
    1
}

impl Flows {
    /// Refuses settings that the application or the law does not support.
    pub fn check(&self, control: Control) -> Result<(), String> {
        if self.video.is_some() && self.app != Application::Video {
            return Err("video is for app = \"video\"; leave it out".to_owned());
        }
        if !self.app.is_tcp() {
            return self.check_quic(control);
        }
        if let Control::Quic(name) = control {
            return Err(Control::unknown(name));
        }
        let is_download = self.app == Application::Http;
        let wrong = match self {
            Self { size: None, .. } if is_download => "a download needs a size, such as \"100kB\"",
            Self { size: Some(_), .. } if !is_download => {
                "iperf3 stops once its last byte is written, not delivered; use app = \"http\""
            }
            Self { pace: Some(_), .. } if is_download => {
                "downloads go as fast as they may; leave out pace, or use app = \"iperf3\""
            }
            Self { pace: Some(pace), .. } if pace.bps() < 8000.0 => {
                return Err(format!("pace is {pace}; it must be 8kbps or more"));
            }
            Self { law: Some(_), .. } if is_download => "downloads go by the hosts' law; set host.law",
            _ => {
                if self.hears != Hears::All && !control.law().is_some_and(|law| law.header.is_tested()) {
                    let name = control.name();
                    return Err(format!("hears: {name} gives flows no individual feedback; use rcp or xcp"));
                }
                return Ok(());
            }
        };
        Err(wrong.to_owned())
    }

    /// Refuses settings that flows over QUIC do not support.
    fn check_quic(&self, control: Control) -> Result<(), String> {
        let name = control.name();
        if !carried::laws().any(|law| law == name) {
            let there = carried::laws().collect::<Vec<_>>().join(", ");
            return Err(format!("QUIC does not carry {name}; use one of {there}"));
        }
        let wrong = match self {
            Self { pace: Some(_), .. } => {
                "QUIC sends at its law's pace; leave out pace, or use app = \"iperf3\""
            }
            Self { app: Application::Video, size: Some(_), .. } => {
                "a video has sizes of its own; leave out size"
            }
            Self { size: Some(_), stop: Some(_), .. } => "a download ends with its size; leave out stop",
            _ if self.hears != Hears::All => {
                "the path can forge only TCP's echoes; leave out hears, or use app = \"iperf3\""
            }
            Self { video: Some(video), .. } => {
                return video.check().map_err(|(key, why)| format!("video.{key} {why}"));
            }
            _ => return Ok(()),
        };
        Err(wrong.to_owned())
    }

    /// Checks that the flows start and stop within the lab.
    pub fn check_times(&self, duration: Time) -> Result<(), String> {
        let later = self.every.as_ps().saturating_mul(u64::from(self.count.max(1) - 1));
        let last = Time::from_ps(self.start.as_ps().saturating_add(later));
        if last >= duration {
            return Err("its last flow starts after the lab's end".to_owned());
        }
        let Some(stop) = self.stop else { return Ok(()) };
        if self.app == Application::Http {
            return Err("a download ends with its size; leave out stop".to_owned());
        }
        if stop <= last {
            return Err(format!("stop is {stop}; it must be after its last flow's start, {last}"));
        }
        if !self.app.is_tcp() {
            return Ok(());
        }
        let whole = |time: Time| time.as_ps().is_multiple_of(flowstamp_laws::units::PS_PER_SEC);
        if !whole(stop.saturating_sub(self.start)) || (self.count > 1 && !whole(self.every)) {
            return Err("iperf3 counts in whole seconds; each flow must last a whole number".to_owned());
        }
        Ok(())
    }

    /// The same flows for the simulator, or why it cannot run them.
    pub fn scenario(&self, law: Control, duration: Time) -> Result<serde_json::Value, String> {
        if self.app == Application::Video {
            return Err(format!("flows.{}: a lab's videos have no scenario; write one", self.name));
        }
        if !law.is_simulated() {
            return Err(format!("the simulator has no {}", law.name()));
        }
        let sender = match (self.hears, self.pace) {
            (Hears::All, None) => serde_json::json!(law.name()),
            (Hears::All, Some(_)) => {
                return Err(format!("flows.{}.pace: the simulator paces no flow that obeys", self.name));
            }
            (hears, pace) => {
                serde_json::json!({"law": format!("{}-liar", law.name()), "hears": hears, "pace": pace})
            }
        };
        Ok(serde_json::json!({
            "name": self.name, "law": sender, "count": self.count, "start": self.start, "every": self.every,
            "size": self.size, "stop": self.stop.filter(|stop| *stop < duration),
        }))
    }
}

/// A planned flow.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// Its group in the lab.
    pub group: usize,
    /// Its number in the group.
    pub index: u32,
    /// When its program starts.
    pub start: Time,
}
