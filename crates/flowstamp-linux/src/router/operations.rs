//! Counts the operations of RCP's law in two compiled programs of router.bpf.c: `fs_rcp_work` for a packet and
//! `fs_rcp_interval_work` for an interval. They consist of the same inlined functions as the router, with their values as
//! arguments.
//!
//! Counted are additions and subtractions, other arithmetic, conditional jumps, and writes to the stamp.
//! Storing a sum belongs to its addition. Loads and moves do not count. Neither does what only `fs_router`
//! does: finding and reading the option, byte order, the verifier's bounds checks, map lookups, and the
//! checksum after a write.

use super::program::{RouterSkelBuilder, types::fs_work};
use libbpf_rs::libbpf_sys::bpf_insn;
use libbpf_rs::skel::SkelBuilder;
use serde::Serialize;
use std::mem::{MaybeUninit, offset_of};

/// Operations for one packet with a valid RTT and a lowered rate, which is the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Operations {
    /// Additions and subtractions, including increments.
    pub additions: u32,
    /// Multiplications, divisions, shifts and other arithmetic.
    pub other_arithmetic: u32,
    /// Conditional jumps.
    pub comparisons: u32,
    /// Writes to the stamp.
    pub writes: u32,
}

/// Counts the operations of the built program.
pub fn count() -> anyhow::Result<Operations> {
    libbpf_rs::set_print(None);
    let mut object = MaybeUninit::uninit();
    let open = RouterSkelBuilder::default().open(&mut object)?;
    of(open.progs.fs_rcp_work.insns())
}

/// Opcodes' parts: linux/bpf.h and linux/bpf_common.h.
mod code {
    pub const LD: u8 = 0;
    pub const LDX: u8 = 1;
    pub const ST: u8 = 2;
    pub const STX: u8 = 3;
    pub const ALU: u8 = 4;
    pub const JMP: u8 = 5;
    pub const JMP32: u8 = 6;
    pub const ALU64: u8 = 7;
    pub const ADD: u8 = 0x00;
    pub const SUB: u8 = 0x10;
    pub const MOV: u8 = 0xb0;
    pub const JA: u8 = 0x00;
    pub const EXIT: u8 = 0x90;
    pub const CALL: u8 = 0x80;
    pub const ATOMIC: u8 = 0xc0;
}

fn of(instructions: &[bpf_insn]) -> anyhow::Result<Operations> {
    let mut found = Operations::default();
    let sums = offset_of!(fs_work, sums)..offset_of!(fs_work, bytes);
    let mut rest = instructions.iter();
    while let Some(instruction) = rest.next() {
        let (class, operation) = (instruction.code & 7, instruction.code & 0xf0);
        match class {
            // A 64-bit constant takes two instruction slots.
            code::LD => drop(rest.next()),
            code::LDX => {}
            code::ALU | code::ALU64 => match operation {
                code::MOV => {}
                code::ADD | code::SUB => found.additions += 1,
                _ => found.other_arithmetic += 1,
            },
            code::JMP | code::JMP32 => match operation {
                code::JA | code::EXIT => {}
                code::CALL => anyhow::bail!("fs_rcp_work calls a function: what is in there is not counted"),
                _ => found.comparisons += 1,
            },
            code::ST | code::STX => {
                anyhow::ensure!(instruction.code & 0xe0 != code::ATOMIC, "fs_rcp_work has atomic operations");
                let at = instruction.off as usize;
                if at == offset_of!(fs_work, stamp) {
                    found.writes += 1;
                } else {
                    anyhow::ensure!(
                        sums.contains(&at),
                        "fs_rcp_work writes to offset {at}, which belongs to no sum"
                    );
                }
            }
            8.. => unreachable!("three bits"),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUL: u8 = 0x20;
    const DIV: u8 = 0x30;
    const MOD: u8 = 0x90;

    /// The most operations of one kind on any path through the program for an interval.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    struct Interval {
        /// Additions and subtractions.
        additions: u32,
        /// Conditional jumps.
        comparisons: u32,
        /// Multiplications and divisions.
        products: u32,
    }

    /// Counts the operations of the built program for an interval.
    fn count_interval() -> anyhow::Result<Interval> {
        libbpf_rs::set_print(None);
        let mut object = MaybeUninit::uninit();
        let open = RouterSkelBuilder::default().open(&mut object)?;
        longest(open.progs.fs_rcp_interval_work.insns())
    }

    /// Goes through the program from its end: all jumps are forward.
    fn longest(instructions: &[bpf_insn]) -> anyhow::Result<Interval> {
        let mut from = vec![Interval::default(); instructions.len() + 1];
        for (at, instruction) in instructions.iter().enumerate().rev() {
            let (class, operation) = (instruction.code & 7, instruction.code & 0xf0);
            let jumps = matches!(class, code::JMP | code::JMP32);
            let target = |offset: i64| {
                let target = at as i64 + 1 + offset;
                anyhow::ensure!(offset >= 0 && target < from.len() as i64, "instruction {at} jumps back");
                Ok(from[target as usize])
            };
            let mut most = match operation {
                code::EXIT if jumps => Interval::default(),
                code::CALL if jumps => {
                    anyhow::bail!("the program calls a function, whose operations are not counted")
                }
                code::JA if class == code::JMP32 => target(instruction.imm.into())?,
                code::JA if jumps => target(instruction.off.into())?,
                _ if jumps => {
                    let (taken, next) = (target(instruction.off.into())?, from[at + 1]);
                    Interval {
                        additions: taken.additions.max(next.additions),
                        comparisons: taken.comparisons.max(next.comparisons) + 1,
                        products: taken.products.max(next.products),
                    }
                }
                // A 64-bit constant takes two instruction slots, of which the second does nothing.
                _ => from[at + 1],
            };
            if matches!(class, code::ALU | code::ALU64) {
                match operation {
                    code::ADD | code::SUB => most.additions += 1,
                    MUL | DIV | MOD => most.products += 1,
                    _ => {}
                }
            }
            from[at] = most;
        }
        Ok(from[0])
    }

    /// The thesis, section 6: at most 3 additions, 2 comparisons and 1 write. The multiplication of a frame's
    /// RTT by its number of packets (segmentation offload) is not in the thesis.
    #[test]
    fn the_law_does_no_more_for_a_packet_than_the_thesis_says() {
        let wanted = Operations { additions: 3, other_arithmetic: 1, comparisons: 2, writes: 1 };
        assert_eq!(count().expect("counted"), wanted);
    }

    /// Figure R6.1.4 reads the counts of `interval` from this file. Compilers differ in how they scale the interval's products,
    /// and in what they make branches of: the file has the counts of clang 14 and of clang 22, which zig has.
    #[test]
    fn the_stored_counts_are_those_of_the_programs() {
        let stored = include_str!("../../../../figures/operations.json");
        let stored: serde_json::Value = serde_json::from_str(stored).expect("JSON");
        assert_eq!(stored["packet"], serde_json::json!(count().expect("counted")));
        let counted = serde_json::json!(count_interval().expect("counted"));
        let near = |stored: &serde_json::Value| {
            counted.as_object().expect("counts").iter().all(|(name, counted)| {
                let [counted, stored] = [counted, &stored[name]].map(|n| n.as_f64().expect("a count"));
                (counted - stored).abs() <= 0.1 * stored
            })
        };
        assert!(
            near(&stored["interval"]) || near(&stored["clang_22_interval"]),
            "{counted}, but figures/operations.json has {stored}"
        );
    }

    #[test]
    fn what_is_added_is_counted() {
        let instruction = |code, off| bpf_insn { code, off, ..Default::default() };
        let more = [
            instruction(code::ALU64 | code::ADD, 0),
            instruction(code::ALU | code::SUB, 0),
            instruction(code::ALU64 | 0x20, 0),
            instruction(code::ALU64 | code::MOV, 0),
            instruction(code::JMP | 0x20, 1),
            instruction(code::JMP | code::JA, 1),
            instruction(code::STX | 0x60, offset_of!(fs_work, stamp) as i16),
            instruction(code::JMP | code::EXIT, 0),
        ];
        let wanted = Operations { additions: 2, other_arithmetic: 1, comparisons: 1, writes: 1 };
        assert_eq!(of(&more).expect("counted"), wanted);
        assert!(of(&[instruction(code::JMP | code::CALL, 0)]).is_err());
        assert!(of(&[instruction(code::STX | 0x60, offset_of!(fs_work, carried) as i16)]).is_err());
    }
}
