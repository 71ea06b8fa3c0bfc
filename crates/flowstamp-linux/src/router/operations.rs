//! Counts the operations of RCP's law per packet in the compiled program `fs_rcp_work` of router.bpf.c. It
//! consists of the same inlined functions as `fs_router`, with the packet's values as arguments.
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

    /// The thesis, section 6: at most 3 additions, 2 comparisons and 1 write. The multiplication of a frame's
    /// RTT by its number of packets (segmentation offload) is not in the thesis.
    #[test]
    fn the_law_does_no_more_for_a_packet_than_the_thesis_says() {
        let wanted = Operations { additions: 3, other_arithmetic: 1, comparisons: 2, writes: 1 };
        assert_eq!(count().expect("counted"), wanted);
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
