//! Checks that this CPU has the instructions that the build requires.
//!
//! A build for x86-64-v3 uses AVX2 and BMI everywhere, without run-time dispatch. Without them the process would end
//! with SIGILL and no message. `is_x86_feature_detected!` does not help: it is `true` at compile time for required
//! features, so this module executes CPUID itself.
//!
//! This code is compiled with the same features. It only compares integers with constants, and its message is one
//! constant, so that the compiler has no use for AVX or BMI. `packaging/test.py` tests it on an emulated old CPU.

use std::io::Write;
use std::process::ExitCode;

/// The error message.
const REFUSAL: &[u8] = b"error: this CPU lacks instructions that this build of tidetable is made of\n  help: the packages need \
    x86-64-v3 (AVX2, BMI1, BMI2, F16C, FMA, LZCNT, MOVBE): Intel since Haswell, AMD since Zen;\n        on an older CPU build \
    tidetable from its source with `just install`, which goes by the CPU that it runs on\n";

/// CPUID and XCR0 feature bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Registers {
    /// ECX of leaf 1.
    basic: u32,
    /// EBX of leaf 7.
    extended: u32,
    /// ECX of leaf 0x8000_0001.
    amd: u32,
    /// XCR0: the register state that the system saves on a context switch.
    saved: u64,
}

/// Leaf 1: XGETBV is enabled.
const OSXSAVE: u32 = 1 << 27;
/// XCR0: SSE and AVX state.
const AVX_STATE: u64 = 0b110;
/// XCR0: SSE, AVX and AVX-512 state.
const AVX512_STATE: u64 = 0b1110_0110;

/// The features that this build requires: none for plain x86-64.
const DEMANDED: Registers = Registers {
    basic: bit(cfg!(target_feature = "sse3"), 0)
        | bit(cfg!(target_feature = "ssse3"), 9)
        | bit(cfg!(target_feature = "fma"), 12)
        | bit(cfg!(target_feature = "sse4.1"), 19)
        | bit(cfg!(target_feature = "sse4.2"), 20)
        | bit(cfg!(target_feature = "movbe"), 22)
        | bit(cfg!(target_feature = "popcnt"), 23)
        | bit(cfg!(target_feature = "avx"), 27)
        | bit(cfg!(target_feature = "avx"), 28)
        | bit(cfg!(target_feature = "f16c"), 29),
    extended: bit(cfg!(target_feature = "bmi1"), 3)
        | bit(cfg!(target_feature = "avx2"), 5)
        | bit(cfg!(target_feature = "bmi2"), 8)
        | bit(cfg!(target_feature = "avx512f"), 16)
        | bit(cfg!(target_feature = "avx512dq"), 17)
        | bit(cfg!(target_feature = "avx512cd"), 28)
        | bit(cfg!(target_feature = "avx512bw"), 30)
        | bit(cfg!(target_feature = "avx512vl"), 31),
    amd: bit(cfg!(target_feature = "lzcnt"), 5),
    saved: if cfg!(target_feature = "avx512f") {
        AVX512_STATE
    } else if cfg!(target_feature = "avx") {
        AVX_STATE
    } else {
        0
    },
};

const fn bit(demanded: bool, place: u32) -> u32 {
    (demanded as u32) << place
}

/// Writes the message to standard error and returns the exit code, if a required feature is missing.
pub(crate) fn refuse() -> Option<ExitCode> {
    if has(DEMANDED, read()) {
        return None;
    }
    // If that fails, the exit code remains.
    let _ = std::io::stderr().write_all(REFUSAL);
    Some(ExitCode::FAILURE)
}

/// Whether all required features are present.
fn has(demanded: Registers, found: Registers) -> bool {
    found.basic & demanded.basic == demanded.basic
        && found.extended & demanded.extended == demanded.extended
        && found.amd & demanded.amd == demanded.amd
        && found.saved & demanded.saved == demanded.saved
}

/// Reads the features. Unknown leaves count as zero: some CPUs return another leaf instead.
#[expect(unsafe_code, reason = "XCR0 can be read in no other way")]
#[allow(unused_unsafe, reason = "reading a leaf was unsafe in older compilers")]
fn read() -> Registers {
    use std::arch::x86_64::{__cpuid_count, _xgetbv};
    const EXTENDED: u32 = 0x8000_0000;
    // SAFETY: every x86-64 has the instruction.
    let leaf = |number| unsafe { __cpuid_count(number, 0) };
    let basic = leaf(1).ecx;
    let extended = if leaf(0).eax >= 7 { leaf(7).ebx } else { 0 };
    let amd = if leaf(EXTENDED).eax > EXTENDED { leaf(EXTENDED + 1).ecx } else { 0 };
    // SAFETY: the CPU has the instruction, and the system allows it, where this bit is set.
    let saved = if basic & OSXSAVE == 0 { 0 } else { unsafe { _xgetbv(0) } };
    Registers { basic, extended, amd, saved }
}

#[cfg(test)]
mod tests {
    use super::{AVX_STATE, DEMANDED, OSXSAVE, Registers, has, read};

    /// The features of a build for x86-64-v3.
    const V3: Registers = Registers { basic: 0x38d8_1201, extended: 0x128, amd: 0x20, saved: AVX_STATE };
    const NONE: Registers = Registers { basic: 0, extended: 0, amd: 0, saved: 0 };
    /// As documented by the makers, under a system that saves the state.
    const HASWELL: Registers = Registers { basic: 0x7ffa_fbff, extended: 0x27ab, amd: 0x21, saved: 0b111 };
    const IVY_BRIDGE: Registers = Registers { basic: 0x7fba_e3ff, extended: 0x281, amd: 0x1, saved: 0b111 };
    const NEHALEM: Registers = Registers { basic: 0x0098_e3fd, extended: 0, amd: 0x1, saved: 0 };

    #[test]
    fn new_enough_or_not() {
        assert!(has(V3, HASWELL));
        assert!(!has(V3, IVY_BRIDGE), "it has AVX, and no AVX2");
        assert!(!has(V3, NEHALEM));
        assert!(has(NONE, NEHALEM) && has(NONE, NONE), "a build for any x86-64 demands nothing");
    }

    #[test]
    fn each_bit_counts() {
        for place in 0..32 {
            let lacking = |found: u32| found & !(1 << place);
            let tries = [
                (V3.basic, Registers { basic: lacking(HASWELL.basic), ..HASWELL }),
                (V3.extended, Registers { extended: lacking(HASWELL.extended), ..HASWELL }),
                (V3.amd, Registers { amd: lacking(HASWELL.amd), ..HASWELL }),
            ];
            for (demanded, found) in tries {
                assert_eq!(has(V3, found), demanded & (1 << place) == 0, "bit {place} of {found:x?}");
            }
        }
    }

    #[test]
    fn registers_that_the_system_does_not_save() {
        assert!(!has(V3, Registers { saved: 0b011, ..HASWELL }), "the halves that AVX added would be lost");
        assert!(!has(V3, Registers { saved: 0, ..HASWELL }));
        assert_ne!(HASWELL.basic & OSXSAVE, 0);
    }

    #[test]
    fn what_this_build_demands() {
        if cfg!(all(target_feature = "avx2", not(target_feature = "avx512f"))) {
            assert_eq!(DEMANDED, V3);
        } else if cfg!(not(target_feature = "sse3")) {
            assert_eq!(DEMANDED, NONE);
        }
        assert!(has(DEMANDED, read()), "the test itself runs here");
    }
}
