//! The classes of packets that a link tells apart.

use crate::packet::{DATA, Labels, Packet};

/// How packets are divided into classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classifier {
    /// The router law's own protocol, and everything else.
    Protocol,
    /// One class for all packets.
    None,
    /// Acks and answers, and packets in the direction of data.
    Acks,
    /// L4S packets, and all others.
    L4s,
    /// The `label` of each packet's flow.
    Labels(Ranks),
}

/// The labels that a network uses, the greatest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Number of labels.
    count: u8,
    /// Rank of each label; 0 is the greatest.
    of: [u8; Labels::COUNT],
    /// The label at each rank.
    labels: [u8; Labels::COUNT],
}

impl Ranks {
    /// Names of labels, and of their queues in probes.
    const NAMES: [(&'static str, &'static str); Labels::COUNT] = [
        ("label0", "label0_queue_bytes"),
        ("label1", "label1_queue_bytes"),
        ("label2", "label2_queue_bytes"),
        ("label3", "label3_queue_bytes"),
        ("label4", "label4_queue_bytes"),
        ("label5", "label5_queue_bytes"),
        ("label6", "label6_queue_bytes"),
        ("label7", "label7_queue_bytes"),
    ];

    /// Ranks these labels. There must be at least one.
    #[must_use]
    pub fn new(labels: &[u8]) -> Self {
        let mut ranks = Self { count: 0, of: [0; Labels::COUNT], labels: [0; Labels::COUNT] };
        for label in (0..Labels::COUNT as u8).rev().filter(|label| labels.contains(label)) {
            ranks.of[usize::from(label)] = ranks.count;
            ranks.labels[usize::from(ranks.count)] = label;
            ranks.count += 1;
        }
        ranks
    }

    fn names(&self) -> Vec<(&'static str, &'static str)> {
        self.labels[..usize::from(self.count)].iter().map(|label| Self::NAMES[usize::from(*label)]).collect()
    }
}

impl Classifier {
    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.names().len()
    }

    /// Names of the classes, and of their queues in probes.
    pub(super) fn names(&self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::None => vec![("all", "queue_bytes")],
            Self::Protocol => vec![("own", "own_queue_bytes"), ("other", "other_queue_bytes")],
            Self::Acks => vec![("ack", "ack_queue_bytes"), ("data", "data_queue_bytes")],
            Self::L4s => vec![("l4s", "l4s_queue_bytes"), ("classic", "classic_queue_bytes")],
            Self::Labels(ranks) => ranks.names(),
        }
    }

    #[inline]
    pub(super) fn class(&self, own: bool, packet: &Packet, labels: &Labels) -> usize {
        usize::from(match self {
            Self::Labels(ranks) => return usize::from(ranks.of[usize::from(labels.of(packet.flow))]),
            Self::None => false,
            Self::Protocol => !own,
            Self::Acks => packet.flags & DATA != 0,
            Self::L4s => !packet.is_l4s(),
        })
    }
}
