//! A law of the simulator as a congestion controller of quinn.

use crate::scone::Scone;
use crate::sender::{INITIAL_WINDOW, Sender};
use crate::stamps::Stamps;
use flowstamp_laws::registry::{Header, RouterSpec, SenderSpec};
use flowstamp_laws::sender::SenderLaw;
use flowstamp_laws::{rcp, xcp};
use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics};
use serde::de::DeserializeOwned;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// One connection's sender. Its congestion controller, its socket and its application share it.
#[derive(Debug)]
pub struct Flow {
    sender: Mutex<Sender>,
    /// Stamp packets and their echoes.
    pub stamps: Stamps,
    /// Throughput advice.
    pub scone: Scone,
}

impl Flow {
    /// Creates the sender of a connection whose datagrams have at most `mtu` bytes above UDP.
    #[must_use]
    pub fn new(spec: &SenderSpec, mtu: u16) -> Arc<Self> {
        Arc::new(Self {
            sender: Mutex::new(Sender::new(spec, Instant::now(), mtu)),
            stamps: Stamps::default(),
            scone: Scone::default(),
        })
    }

    /// The sender. A panic elsewhere leaves it usable.
    pub fn lock(&self) -> MutexGuard<'_, Sender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds the controller of the one connection that has this flow.
#[derive(Debug)]
pub struct Factory(pub Arc<Flow>);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _: Instant, current_mtu: u16) -> Box<dyn Controller> {
        self.0.lock().set_mtu(current_mtu);
        Box::new(LawController { flow: Arc::clone(&self.0) })
    }
}

/// The congestion controller of one connection.
#[derive(Debug)]
pub struct LawController {
    flow: Arc<Flow>,
}

impl Controller for LawController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.flow.lock().on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        _: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        _: &quinn_proto::RttEstimator,
    ) {
        self.flow.lock().on_ack(sent, bytes, app_limited);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.flow.lock().on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        self.flow.lock().on_congestion_event(now, sent, persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.flow.lock().set_mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        self.flow.lock().window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut sender = self.flow.lock();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = sender.window();
        metrics.pacing_rate = sender.pace().map(|rate| rate.bps() as u64);
        metrics
    }

    /// Returns a copy with a state of its own. quinn copies a controller for a new path, which servers here refuse, and
    /// for a look at its state.
    fn clone_box(&self) -> Box<dyn Controller> {
        let sender = self.flow.lock().clone();
        Box::new(Self {
            flow: Arc::new(Flow {
                sender: Mutex::new(sender),
                stamps: Stamps::default(),
                scone: Scone::default(),
            }),
        })
    }

    fn initial_window(&self) -> u64 {
        let sender = self.flow.lock();
        (INITIAL_WINDOW * f64::from(sender.packet_bytes())) as u64
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Reads a law's name, or a JSON table. `unknown` says why there is no law of another name.
fn named<T: DeserializeOwned>(text: &str, unknown: impl FnOnce(&str) -> String) -> Result<T, String> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| format!("--law: {error}"));
    }
    serde_json::from_value(serde_json::Value::String(text.to_owned())).map_err(|_| unknown(text))
}

/// Reads a law's name, or a JSON table with `law` and its parameters.
///
/// # Errors
///
/// One line that says why QUIC cannot carry the law, and which it can.
pub fn law(text: &str) -> Result<SenderSpec, String> {
    let mut spec: SenderSpec = named(text, not_carried)?;
    spec.check().map_err(|(name, why)| format!("--law: {name} {why}"))?;
    match &mut spec {
        SenderSpec::Rcp(params) => check_rcp(params)?,
        SenderSpec::Xcp(params) => check_xcp(params)?,
        _ => {}
    }
    if spec.is_over_quic() { Ok(spec) } else { Err(not_carried(spec.name())) }
}

fn check_rcp(params: &mut rcp::sender::Params) -> Result<(), String> {
    // Without it nothing would limit a flow whose path has no router of RCP's.
    params.switch = true;
    if params.weight > 1.0 {
        return Err(format!(
            "--law: weight is {}; a stamp packet has no room for one: leave it out",
            params.weight
        ));
    }
    Ok(())
}

/// Refuses what XCP's stamp packets have no room for.
fn check_xcp(params: &xcp::sender::Params) -> Result<(), String> {
    // Destructured, so that each new parameter must be honoured or refused below.
    let xcp::sender::Params {
        price,
        priority,
        desired_rate,
        negotiate,
        stamped_window,
        error_losses: _,
        pacing: _,
    } = params;
    let default = xcp::sender::Params::default();
    let why = if *price != default.price {
        format!("price is {price}; a stamp packet has no room for one")
    } else if *priority != default.priority {
        format!("priority is {priority}; a stamp packet has no room for one")
    } else if let Some(rate) = desired_rate {
        format!("desired_rate is {rate}; flows over QUIC ask for as much as there is")
    } else if *negotiate {
        "negotiate is true; flows over QUIC always become a TCP if no router answers".to_owned()
    } else if *stamped_window != default.stamped_window {
        "stamped_window is \"exact\"; a stamp packet holds only whole packets".to_owned()
    } else {
        return Ok(());
    };
    Err(format!("--law: {why}: leave it out"))
}

/// Reads the law of connections whose client names none. It must not need stamps: only a client that names the law asks
/// for them.
///
/// # Errors
///
/// One line, as from [`law`].
pub fn default_law(text: &str) -> Result<SenderSpec, String> {
    let spec = law(text)?;
    if spec.header() == Header::Plain {
        return Ok(spec);
    }
    let name = spec.name();
    Err(format!(
        "--law: {name} needs stamps, and only clients that name it ask for them; leave --law out, and use get --law {name}"
    ))
}

fn not_carried(law: &str) -> String {
    format!("--law: QUIC does not carry {law}; use one of {}", SenderSpec::names_over_quic().join(", "))
}

/// Reads a router's law, for a path in user space.
///
/// # Errors
///
/// One line that says which laws there are.
pub fn router(text: &str) -> Result<RouterSpec, String> {
    let other = |law: &str| format!("--law: a path in user space has no {law}; use none, rcp or xcp");
    let spec: RouterSpec = named(text, other)?;
    spec.check().map_err(|(name, why)| format!("--law: {name} {why}"))?;
    match spec {
        RouterSpec::None(_) | RouterSpec::Rcp(_) | RouterSpec::Xcp(_) => Ok(spec),
        _ => Err(other(spec.name())),
    }
}

/// The window of a sender in packets, as its law has it.
#[must_use]
pub fn packets(sender: &Sender) -> f64 {
    sender.law().cwnd() / f64::from(sender.packet_bytes())
}
