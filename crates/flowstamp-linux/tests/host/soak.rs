//! Starts many flows on a path with a delay and a kernel router that loses some of their first packets. Each
//! flow soon obeys or leaves.

use super::net::{Net, Running};
use super::skip::skip;
use std::fmt::Write;
use std::process::{Child, Command, Stdio};

/// Four flows at a time have 14 Mb/s each, 31 packets; a first window is 10.
const LAB: &str = "\
[path]
rate = \"60Mbps\"
rtt = \"25ms\"
buffer = \"2BDP\"
[router]
law = \"LAW\"
where = \"bpf\"
ETA
[host]
law = \"LAW\"
[[flows]]
name = \"page\"
app = \"http\"
size = \"1kB\"
count = 1
";

/// Prime to seven, by which the other end's run.
const ADDRESSES: u32 = 200;

/// Takes what comes to port 5300.
const SINK: &str = "\
import selectors, socket
s = socket.create_server(('', 5300), backlog=64)
poll = selectors.DefaultSelector()
poll.register(s, selectors.EVENT_READ)
print('listens', flush=True)
while True:
    for key, _ in poll.select():
        try:
            if key.fileobj is s: poll.register(s.accept()[0], selectors.EVENT_READ)
            elif not key.fileobj.recv(1 << 18): raise OSError
        except OSError:
            poll.unregister(key.fileobj)
            key.fileobj.close()
";

/// Begins so many flows, each of 40 round trips after its handshake: half of them one after the other, half four at
/// once. Each flow's windows and congestion control from its twentieth round trip on: it is frozen if it has ours and
/// no window but one. RCP's echo is a rate, which may stay as it is, and VCP's a count of packets, by which a window of
/// two needs 44 round trips for one more (alpha (rtt / t_rho)^2 of a packet in each, t_rho 200 ms): there a flow obeys
/// that has ours and a pace, as silence would have ended it.
const SOURCE: &str = "\
import collections, errno, socket, struct, sys, time
count, name, addresses = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
ROUNDS, RTT = 20, 0.025
class Flow:
    def __init__(self, number):
        self.s = socket.socket()
        self.s.bind((f'10.199.1.{10 + number % addresses}', 0))
        self.s.setblocking(False)
        self.s.setsockopt(6, 13, name.encode())
        self.begun, self.since, self.windows, self.first, self.asked = time.monotonic(), None, collections.Counter(), None, None
        self.s.connect_ex((f'10.199.2.{10 + number * 7 % addresses}', 5300))
    def step(self, now):
        info = self.s.getsockopt(6, socket.TCP_INFO, 192)
        state, = struct.unpack_from('B', info, 0)
        if state != 1: return 'failed' if now > self.begun + 10 or state == 7 else None
        try:
            self.s.send(bytes(1 << 18))
        except BlockingIOError: pass
        window, = struct.unpack_from('I', info, 80)
        acked, = struct.unpack_from('Q', info, 120)
        # A round trip counts once data flow, and lasts as long as the kernel says.
        if acked < 20_000: return 'failed' if now > self.begun + 15 else None
        rtt = max(struct.unpack_from('I', info, 68)[0] / 1e6, RTT)
        if self.since is None: self.since = now
        if now > self.since + ROUNDS * rtt: self.windows[window] += 1
        if now < self.since + 2 * ROUNDS * rtt or sum(self.windows.values()) < 8: return None
        if self.s.getsockopt(6, 13, 16).split(b'\\0')[0].decode() != name: return 'left'
        if len(self.windows) > 1 or not name.endswith('_xcp') and struct.unpack_from('Q', info, 104)[0] < 1 << 63: return 'obeyed'
        # Who is told nothing from then on, leaves after as many more, which are counted at acks.
        if now < self.since + 3 * ROUNDS * rtt: return None
        port = self.s.getsockname()[1]
        ca_state, retransmits = struct.unpack_from('BB', info, 1)
        return f'FROZEN port {port} windows {dict(self.windows)} {ca_state=} {retransmits=} rtt {rtt:.4f} acked {acked}'
results, flows, started, due = collections.Counter(), [], 0, time.monotonic()
while started < count or flows:
    now = time.monotonic()
    if started < count and now > due and len(flows) < 4:
        alone = started < count // 2
        for _ in range(1 if alone else 4 - len(flows) if not flows else 0):
            flows.append(Flow(started))
            started += 1
        due = now + (0.3 if alone else 0)
    for flow in flows[:]:
        result = flow.step(now)
        if result:
            if result.startswith('FROZEN'): print(result)
            results[result.split()[0]] += 1
            flow.s.close()
            flows.remove(flow)
    time.sleep(0.01)
print(dict(results))
";

/// A lab that runs until this goes.
struct Lab {
    id: String,
    run: Child,
}

impl Lab {
    fn start(net: &Net, law: &str) -> Option<Self> {
        let program = env!("CARGO_BIN_EXE_flowstamp-linux");
        let id = format!("s{}", net.name.rsplit('-').next().unwrap());
        let file = net.file("soak.toml");
        let eta = if law == "rcp" { "eta = 0.95" } else { "" };
        let lab = LAB.replace("LAW", law).replace("ETA", eta);
        std::fs::write(&file, format!("duration = \"7200s\"\nwarmup = \"1s\"\n{lab}")).unwrap();
        let mut run = Command::new(program);
        let run = run.args(["lab", "run", "--json", "--id", &id]).arg(file);
        let lab = Self { run: run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap(), id };
        let script = format!(
            "until ip -n {0} route get 10.199.2.2 >/dev/null 2>&1 && ip netns pids {0} | grep -q .; do sleep 0.05; done; sleep 1.5",
            lab.namespace("left")
        );
        let there = Command::new("timeout").args(["10", "sh", "-c", &script]).status().unwrap().success();
        there.then(|| lab.address()).map(|()| lab)
    }

    /// Addresses for both ends: who has lost too much shuns a peer for a while, and the next flow is not to be that peer's.
    fn address(&self) {
        let mut script = String::new();
        for (place, device, near, net, mac) in [("left", "l0", "in", 1, 1), ("right", "r0", "out", 2, 6)] {
            for last in 10..10 + ADDRESSES {
                let address = format!("10.199.{net}.{last}");
                let here = self.namespace(place);
                writeln!(script, "ip -n {here} address add {address}/24 dev {device}").unwrap();
                let router = self.namespace("router");
                let link = format!("lladdr 02:00:00:00:00:{mac:02x} dev {near} nud permanent");
                writeln!(script, "ip -n {router} neigh replace {address} {link}").unwrap();
            }
        }
        assert!(Command::new("sh").args(["-e", "-c", &script]).status().unwrap().success());
    }

    fn namespace(&self, place: &str) -> String {
        format!("fs-{}-{place}", self.id)
    }

    /// A Python program in one of its namespaces, and in its control group.
    fn python(&self, place: &str, source: &str) -> Command {
        let mut command = Command::new("sh");
        let script = format!(
            "echo $$ > $(grep -m1 cgroup2 /proc/mounts | cut -d' ' -f2)/fs-{}-lab/cgroup.procs && exec ip netns exec {} python3 -c \"$@\"",
            self.id,
            self.namespace(place)
        );
        command.args(["-c", &script, "sh", source]);
        command
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // It takes its things along.
        // SAFETY: no memory is involved.
        unsafe { libc::kill(self.run.id() as i32, libc::SIGINT) };
        let _ = self.run.wait();
    }
}

/// Two thousand flows nightly. A machine that is busy is simulated: two loops take turns with everything else.
#[test]
#[ignore = "long"]
fn flows_that_begin_obey_or_leave() {
    let nightly = std::env::var("FLOWSTAMP_NIGHTLY").is_ok_and(|v| v == "1");
    let counts = if nightly { [1200, 400, 400] } else { [24, 8, 8] };
    for (law, count) in ["xcp", "rcp", "vcp"].into_iter().zip(counts) {
        let Some(net) = Net::new() else { return };
        let Some(lab) = Lab::start(&net, law) else {
            skip("no lab starts here");
            return;
        };
        for (place, device) in [("left", "l0"), ("right", "r0")] {
            net.lose_first(&lab.namespace(place), device, 12);
        }
        let mut sink = lab.python("right", SINK);
        let _sink = Running::that_speaks(sink.stderr(Stdio::null()));
        let _busy: Vec<_> = (0..2)
            .map(|_| Running(Command::new("python3").args(["-c", "while True: pass"]).spawn().unwrap()))
            .collect();
        let ours = format!("fs_{}_{law}", lab.id);
        let mut source = lab.python("left", SOURCE);
        let output = source.args([&count.to_string(), &ours, &ADDRESSES.to_string()]).output().unwrap();
        let said = [output.stdout, output.stderr].map(|o| String::from_utf8_lossy(&o).into_owned()).concat();
        let status = net.status_of(&format!("fs-{}", lab.id));
        println!("{law}: {said}{}", status["counters"]);
        assert!(output.status.success() && !said.contains("FROZEN") && !said.contains("failed"), "{said}");
        assert!(said.contains("obeyed"), "{said}");
    }
}
