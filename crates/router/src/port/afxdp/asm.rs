//! A small assembler for eBPF: enough for programs of a few dozen instructions, without a compiler.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};

/// A register. R1 to R5 are arguments of calls, which do not survive them; R0 is the result; R10 is the end of the
/// stack.
#[derive(Clone, Copy)]
pub(super) enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R10 = 10,
}

/// Bytes that an instruction loads or stores.
#[derive(Clone, Copy)]
pub(super) enum Size {
    Word = 0x00,
    Half = 0x08,
}

/// A condition of a jump.
#[derive(Clone, Copy)]
pub(super) enum If {
    Equal = 0x10,
    Above = 0x20,
    NotEqual = 0x50,
}

/// Functions of the kernel.
pub(super) enum Call {
    Lookup = 1,
    Random = 7,
    RedirectMap = 51,
}

/// Instructions, and jumps to labels that may come later.
#[derive(Default)]
pub(super) struct Code {
    instructions: Vec<u64>,
    labels: HashMap<&'static str, usize>,
    jumps: Vec<(usize, &'static str)>,
}

// Classes and sources of the operation codes.
const LDX: u8 = 0x01 | 0x60; // from memory
const ST: u8 = 0x02 | 0x60;
const STX: u8 = 0x03 | 0x60;
const JMP: u8 = 0x05;
const JMP32: u8 = 0x06;
const ALU64: u8 = 0x07;
const FROM_REGISTER: u8 = 0x08;
const ADD: u8 = 0x00;
const AND: u8 = 0x50;
const XOR: u8 = 0xa0;
const MOV: u8 = 0xb0;

impl Code {
    fn put(&mut self, op: u8, to: u8, from: u8, offset: i16, value: i32) {
        let bytes = [op, from << 4 | to];
        let [a, b] = offset.to_ne_bytes();
        let [c, d, e, f] = value.to_ne_bytes();
        self.instructions.push(u64::from_ne_bytes([bytes[0], bytes[1], a, b, c, d, e, f]));
    }

    /// `to = *(from + offset)`
    pub fn load(&mut self, size: Size, to: Reg, from: Reg, offset: i16) {
        self.put(LDX | size as u8, to as u8, from as u8, offset, 0);
    }

    /// `*(to + offset) = from`
    pub fn store(&mut self, size: Size, to: Reg, offset: i16, from: Reg) {
        self.put(STX | size as u8, to as u8, from as u8, offset, 0);
    }

    /// `*(to + offset) = value`
    pub fn store_value(&mut self, size: Size, to: Reg, offset: i16, value: u32) {
        self.put(ST | size as u8, to as u8, 0, offset, value as i32);
    }

    /// `to = from`
    pub fn copy(&mut self, to: Reg, from: Reg) {
        self.put(ALU64 | FROM_REGISTER | MOV, to as u8, from as u8, 0, 0);
    }

    /// `to = value`
    pub fn set(&mut self, to: Reg, value: i32) {
        self.put(ALU64 | MOV, to as u8, 0, 0, value);
    }

    /// `to += value`
    pub fn add(&mut self, to: Reg, value: i32) {
        self.put(ALU64 | ADD, to as u8, 0, 0, value);
    }

    /// `to &= value`
    pub fn and(&mut self, to: Reg, value: i32) {
        self.put(ALU64 | AND, to as u8, 0, 0, value);
    }

    /// `to ^= value`
    pub fn xor(&mut self, to: Reg, value: i32) {
        self.put(ALU64 | XOR, to as u8, 0, 0, value);
    }

    /// `to` = the map
    pub fn map(&mut self, to: Reg, map: &OwnedFd) {
        self.put(0x18, to as u8, 1, 0, map.as_raw_fd());
        self.instructions.push(0);
    }

    /// Jumps if the condition holds between the lower 32 bits of the register and the value.
    pub fn jump(&mut self, condition: If, a: Reg, value: u32, label: &'static str) {
        self.jumps.push((self.instructions.len(), label));
        self.put(JMP32 | condition as u8, a as u8, 0, 0, value as i32);
    }

    /// Jumps if the condition holds between the registers, pointers for instance.
    pub fn jump_registers(&mut self, condition: If, a: Reg, b: Reg, label: &'static str) {
        self.jumps.push((self.instructions.len(), label));
        self.put(JMP | FROM_REGISTER | condition as u8, a as u8, b as u8, 0, 0);
    }

    /// Jumps if a pointer that a call returned is not null.
    pub fn jump_not_null(&mut self, a: Reg, label: &'static str) {
        self.jumps.push((self.instructions.len(), label));
        self.put(JMP | If::NotEqual as u8, a as u8, 0, 0, 0);
    }

    /// Jumps.
    pub fn go(&mut self, label: &'static str) {
        self.jumps.push((self.instructions.len(), label));
        self.put(JMP, 0, 0, 0, 0);
    }

    /// Calls a function of the kernel.
    pub fn call(&mut self, function: Call) {
        self.put(JMP | 0x80, 0, 0, 0, function as i32);
    }

    /// Ends the program; R0 is its result.
    pub fn exit(&mut self) {
        self.put(JMP | 0x90, 0, 0, 0, 0);
    }

    /// The place that jumps to this label lead to.
    pub fn label(&mut self, label: &'static str) {
        self.labels.insert(label, self.instructions.len());
    }

    /// The instructions, with all jumps in place.
    ///
    /// # Panics
    /// If there is no such label.
    pub fn finish(mut self) -> Vec<u64> {
        for (at, label) in self.jumps {
            let offset = self.labels[label] as isize - at as isize - 1;
            let mut bytes = self.instructions[at].to_ne_bytes();
            bytes[2..4].copy_from_slice(&(offset as i16).to_ne_bytes());
            self.instructions[at] = u64::from_ne_bytes(bytes);
        }
        self.instructions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_encoded_and_jumps_lead_to_labels() {
        let mut code = Code::default();
        code.load(Size::Half, Reg::R5, Reg::R2, 12);
        code.jump(If::NotEqual, Reg::R5, 8, "end");
        code.set(Reg::R0, 2);
        code.label("end");
        code.exit();
        let bytes: Vec<u8> = code.finish().into_iter().flat_map(u64::to_ne_bytes).collect();
        if cfg!(target_endian = "little") {
            let expected = [
                [0x69, 0x25, 12, 0, 0, 0, 0, 0],
                [0x56, 0x05, 1, 0, 8, 0, 0, 0],
                [0xb7, 0x00, 0, 0, 2, 0, 0, 0],
                [0x95, 0x00, 0, 0, 0, 0, 0, 0],
            ];
            assert_eq!(bytes, expected.concat());
        }
    }
}
