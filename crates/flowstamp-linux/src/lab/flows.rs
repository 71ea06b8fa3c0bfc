//! Groups of flows in a lab's file: application, law and settings. A setting that the application or the law does not support is
//! refused.

use crate::law::{self, Law};
use flowstamp_laws::liar::Hears;
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::units::{Bytes, Rate, Time};
use flowstamp_laws::video;
use serde::{Deserialize, Serialize};

/// The congestion control of a group's senders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// A law of Flowstamp, which runs in the kernel through BPF.
    Stamped(&'static Law),
    /// A congestion control of the kernel, by name.
    Kernel(&'static str),
    /// A law that only `flowstamp quic` has on hosts, by name.
    Quic(&'static str),
}

/// The kernel's congestion controls that a lab supports; the first is the default.
const KERNELS: [&str; 3] = ["cubic", "bbr", "reno"];

impl Control {
    /// The name in a lab's file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stamped(law) => law.name,
            Self::Kernel(name) | Self::Quic(name) => name,
        }
    }

    /// The law, if it is one of Flowstamp's.
    pub const fn law(self) -> Option<&'static Law> {
        match self {
            Self::Stamped(law) => Some(law),
            Self::Kernel(_) | Self::Quic(_) => None,
        }
    }

    /// The error for a law that the hosts' TCP does not have.
    pub fn unknown(name: &str) -> String {
        let there = law::LAWS.iter().map(|law| law.name).chain(KERNELS).collect::<Vec<_>>().join(", ");
        format!("no law {name:?} on hosts; there are {there}, and others for app = \"h3\"")
    }

    /// Whether the simulator has this congestion control.
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
        let quic = || SenderSpec::names_over_quic().into_iter().find(|law| *law == name).map(Self::Quic);
        let found = law::named(&name).map(Self::Stamped).or_else(kernel).or_else(quic);
        found.ok_or_else(|| serde::de::Error::custom(Self::unknown(&name)))
    }
}

/// The application that sends the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Application {
    /// iperf3, as fast as possible.
    #[default]
    Iperf3,
    /// nginx and curl: each flow is one download.
    Http,
    /// `flowstamp quic get`: each flow is one download over HTTP/3.
    H3,
    /// `flowstamp quic video`: each flow is a video over HTTP/3, whose client asks for SCONE's advice.
    Video,
}

impl Application {
    /// Whether its flows use TCP.
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
    /// Which feedback the flows obey. If a flow is to ignore some, the path replaces that feedback in the echoes.
    #[serde(default = "all")]
    pub hears: Hears,
    /// Maximum rate of each flow, enforced by the kernel's pacing. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Rate>,
    /// The video and its client, as in a scenario. Default: the client's defaults, and a video that lasts to the lab's end.
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
                "curl does not pace downloads; leave out pace, or use app = \"iperf3\""
            }
            Self { pace: Some(pace), .. } if pace.bps() < 8000.0 => {
                return Err(format!("pace is {pace}; it must be 8kbps or more"));
            }
            Self { law: Some(_), .. } if is_download => "downloads use the hosts' law; set host.law",
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
        let there = SenderSpec::names_over_quic();
        if !there.contains(&name) {
            return Err(format!("QUIC does not carry {name}; use one of {}", there.join(", ")));
        }
        let wrong = match self {
            Self { pace: Some(_), .. } => {
                "QUIC sends at its law's pace; leave out pace, or use app = \"iperf3\""
            }
            Self { app: Application::Video, size: Some(_), .. } => {
                "bitrates and length decide a video's size; leave out size"
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
            return Err("iperf3 runs for whole seconds; change start, every or stop so that each flow lasts whole seconds".to_owned());
        }
        Ok(())
    }

    /// The same flows as a table of a scenario, or the reason why the simulator cannot run them.
    pub fn scenario(&self, law: Control, duration: Time) -> Result<serde_json::Value, String> {
        if self.app == Application::Video {
            return Err(format!(
                "flows.{}: a lab with videos cannot become a scenario; write the scenario yourself",
                self.name
            ));
        }
        if !law.is_simulated() {
            return Err(format!("the simulator has no {}", law.name()));
        }
        let sender = match (self.hears, self.pace) {
            (Hears::All, None) => serde_json::json!(law.name()),
            (Hears::All, Some(_)) => {
                return Err(format!(
                    "flows.{}.pace: the simulator paces only flows that ignore feedback; leave out pace",
                    self.name
                ));
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
    /// Index of its group in the lab.
    pub group: usize,
    /// Its number in the group.
    pub index: u32,
    /// When its program starts.
    pub start: Time,
}
