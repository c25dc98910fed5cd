//! Numbers of one stream: constant, stepping, pco of them or of the integers they are by a scale, or their own bytes.

use bytes::Bytes;
use pco::data_types::Number;
use pco::wrapped::{ChunkCompressor, ChunkDecompressor, FileCompressor, FileDecompressor};
use pco::{ChunkConfig, ModeSpec, PagingSpec};

use crate::error::{ReadError, WriteError};
use crate::format::Codec;
use crate::options::Compression;
use crate::order;
use crate::scaled::{self, Scale};
use crate::wire::Input;

/// A type of number that streams hold.
pub(crate) trait Lane: Number + Default {
    /// Bytes of one.
    const WIDTH: usize;
    /// Its bits, sign-extended where it is signed and narrow.
    fn bits(self) -> u64;
    /// Of the low bits.
    fn of_bits(bits: u64) -> Self;
    /// Appends its bytes.
    fn put(self, out: &mut Vec<u8>);
    /// Of its bytes; `bytes` is [`Self::WIDTH`] long, or the answer is the default.
    fn of_bytes(bytes: &[u8]) -> Self;
    /// Whether it may have decimals.
    const FLOATS: bool;
    /// How many decimals `values` have, and what integers they are without the point; `None` if they are none.
    fn decimals(values: &[Self]) -> Option<(u8, Vec<i64>)>;
    /// Of such an integer; `power` is 10 to the number of decimals.
    fn of_decimal(integer: i64, power: f64) -> Self;
}

macro_rules! lane {
    ($type:ty, $to:expr, $of:expr, $floats:expr, $decimals:expr, $of_decimal:expr) => {
        impl Lane for $type {
            const WIDTH: usize = size_of::<$type>();
            fn bits(self) -> u64 {
                $to(self)
            }
            fn of_bits(bits: u64) -> Self {
                $of(bits)
            }
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn of_bytes(bytes: &[u8]) -> Self {
                bytes.first_chunk().copied().map(Self::from_le_bytes).unwrap_or_default()
            }
            const FLOATS: bool = $floats;
            fn decimals(values: &[Self]) -> Option<(u8, Vec<i64>)> {
                $decimals(values)
            }
            fn of_decimal(integer: i64, power: f64) -> Self {
                $of_decimal(integer, power)
            }
        }
    };
}

macro_rules! integer_lane {
    ($type:ty, $to:expr, $of:expr) => {
        lane!(
            $type,
            $to,
            $of,
            false,
            |values: &[$type]| Some((0, values.iter().map(|value| value.bits().cast_signed()).collect())),
            |integer: i64, _| Self::of_bits(integer.cast_unsigned())
        );
    };
}

integer_lane!(u64, |v| v, |bits| bits);
integer_lane!(i64, i64::cast_unsigned, u64::cast_signed);
integer_lane!(u32, u64::from, |bits| bits as u32);
integer_lane!(i32, |v| i64::from(v).cast_unsigned(), |bits: u64| bits as u32 as i32);
lane!(f64, f64::to_bits, f64::from_bits, true, scaled::decimals, scaled::quotient);

/// How the present values of a stream will be written.
pub(crate) enum Plan {
    /// As [`Codec::Absent`].
    Absent,
    /// As [`Codec::Const`].
    Const(u64),
    /// As [`Codec::Step`].
    Step(u64, u64),
    /// As [`Codec::Pco`], with the next pco page; as [`Codec::Scaled`] if there is a scale.
    Pco(Option<Scale>, Box<ChunkCompressor>, usize),
    /// As [`Codec::Raw`].
    Raw,
}

impl Plan {
    /// Chooses for `values`, of which `pages` says how many lie in each page; `gaps`: some records have no value.
    pub(crate) fn choose<T: Lane>(
        values: &[T],
        pages: &[usize],
        gaps: bool,
        level: Compression,
    ) -> Result<Self, WriteError> {
        let Some(first) = values.first().map(|value| value.bits()) else { return Ok(Self::Absent) };
        let step = values.get(1).map_or(0, |second| second.bits().wrapping_sub(first));
        if step == 0 && values.iter().all(|value| value.bits() == first) {
            return Ok(Self::Const(first));
        }
        if !gaps && steps(values, first, step) {
            return Ok(Self::Step(first, step));
        }
        let pages = pages.iter().copied().filter(|count| *count > 0).collect();
        let config =
            ChunkConfig::default().with_compression_level(level.pco_level()).with_paging_spec(PagingSpec::Exact(pages));
        let scaled = Scale::find(values);
        let chunk = match &scaled {
            Some((_, integers)) => FileCompressor::default().chunk_compressor(integers, &integer(config, integers))?,
            // What floats have in common that are no decimals, pco knows best.
            None if T::FLOATS => FileCompressor::default().chunk_compressor(values, &config)?,
            None => FileCompressor::default().chunk_compressor(values, &integer(config, values))?,
        };
        let hint: usize = (0..chunk.n_per_page().len()).map(|page| chunk.page_size_hint(page)).sum();
        let worth = hint + chunk.meta_size_hint() < values.len() * T::WIDTH;
        Ok(if worth { Self::Pco(scaled.map(|(scale, _)| scale), Box::new(chunk), 0) } else { Self::Raw })
    }

    pub(crate) fn codec(&self) -> Codec {
        match self {
            Self::Absent => Codec::Absent,
            Self::Const(_) => Codec::Const,
            Self::Step(..) => Codec::Step,
            Self::Pco(None, ..) => Codec::Pco,
            Self::Pco(Some(_), ..) => Codec::Scaled,
            Self::Raw => Codec::Raw,
        }
    }

    pub(crate) fn setup(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match self {
            Self::Absent | Self::Raw => {}
            Self::Const(value) => out.extend_from_slice(&value.to_le_bytes()),
            Self::Step(first, step) => {
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&step.to_le_bytes());
            }
            Self::Pco(scale, chunk, _) => {
                if let Some(scale) = scale {
                    scale.write(out);
                }
                FileCompressor::default().write_header(&mut *out)?;
                chunk.write_meta(&mut *out)?;
            }
        }
        Ok(())
    }

    /// Writes the next page, which holds `values`.
    pub(crate) fn page<T: Lane>(&mut self, values: &[T], out: &mut Vec<u8>) -> Result<(), WriteError> {
        match self {
            Self::Pco(_, chunk, next) if !values.is_empty() => {
                chunk.write_page(*next, &mut *out)?;
                *next += 1;
            }
            Self::Raw => {
                out.reserve(values.len() * T::WIDTH);
                values.iter().for_each(|value| value.put(out));
            }
            _ => {}
        }
        Ok(())
    }
}

/// For integers that have nothing in common.
fn integer<T: Lane>(config: ChunkConfig, values: &[T]) -> ChunkConfig {
    config.with_mode_spec(ModeSpec::Classic).with_delta_spec(order::delta(values))
}

fn steps<T: Lane>(values: &[T], first: u64, step: u64) -> bool {
    let mut expected = first;
    values.len() > 2
        && values.iter().all(|value| {
            let fits = T::of_bits(expected).bits() == value.bits();
            expected = expected.wrapping_add(step);
            fits
        })
}

/// Reads the pages of a stream.
pub(crate) enum Decoder<T: Lane> {
    Const(T),
    Step(u64, u64),
    Pco(Box<ChunkDecompressor<T>>),
    /// With room for integers.
    Scaled(Scale, Box<ChunkDecompressor<i64>>, Vec<i64>),
    Raw,
}

impl<T: Lane> Decoder<T> {
    /// Of a stream's codec and setup.
    pub(crate) fn new(codec: Codec, mut setup: Input) -> Result<Self, ReadError> {
        let corrupt = setup.corrupt();
        let decoder = match codec {
            Codec::Const => Self::Const(T::of_bits(setup.u64()?)),
            Codec::Step => Self::Step(setup.u64()?, setup.u64()?),
            Codec::Raw => Self::Raw,
            Codec::Pco => return Ok(Self::Pco(pco(&setup.rest()).ok_or(corrupt)?)),
            Codec::Scaled => {
                let scale = Scale::read::<T>(&mut setup)?;
                return Ok(Self::Scaled(scale, pco(&setup.rest()).ok_or(corrupt)?, Vec::new()));
            }
            _ => return Err(corrupt),
        };
        setup.finish()?;
        Ok(decoder)
    }

    /// Fills `out` with the first values of a page of `present` values, the first of which is value `first` of the
    /// stream. For speed `out` may be a little longer than asked for: see [`Self::room`].
    pub(crate) fn read(&mut self, payload: &Bytes, first: usize, present: usize, out: &mut [T]) -> Option<()> {
        if out.len() > present {
            return None;
        }
        match self {
            Self::Const(value) => out.fill(*value),
            Self::Step(start, step) => {
                let mut bits = start.wrapping_add(step.wrapping_mul(first as u64));
                for slot in out {
                    *slot = T::of_bits(bits);
                    bits = bits.wrapping_add(*step);
                }
            }
            Self::Raw => {
                if payload.len() != present * T::WIDTH {
                    return None;
                }
                for (slot, bytes) in out.iter_mut().zip(payload.chunks_exact(T::WIDTH)) {
                    *slot = T::of_bytes(bytes);
                }
            }
            Self::Pco(chunk) => unpack(chunk, payload, present, out)?,
            Self::Scaled(scale, chunk, integers) => {
                integers.resize(out.len(), 0);
                unpack(chunk, payload, present, integers)?;
                scale.apply(integers, out);
            }
        }
        Some(())
    }

    /// How many values to make room for when the first `wanted` of `present` are needed.
    pub(crate) fn room(wanted: usize, present: usize) -> usize {
        wanted.next_multiple_of(256).min(present)
    }
}

fn pco<T: Lane>(setup: &[u8]) -> Option<Box<ChunkDecompressor<T>>> {
    let (file, rest) = FileDecompressor::new(setup).ok()?;
    let (chunk, rest) = file.chunk_decompressor::<T, _>(rest).ok()?;
    rest.is_empty().then(|| Box::new(chunk))
}

/// Fills `out` with the first of `present` values of a page.
fn unpack<T: Lane>(chunk: &mut ChunkDecompressor<T>, payload: &Bytes, present: usize, out: &mut [T]) -> Option<()> {
    if out.is_empty() {
        return Some(());
    }
    let mut page = chunk.page_decompressor(payload.as_ref(), present).ok()?;
    let progress = page.read(out).ok()?;
    (progress.n_processed == out.len()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Lane>(values: &[T], expected: Codec) {
        let pages: Vec<_> = values.chunks(300).map(<[T]>::len).collect();
        let mut plan = Plan::choose(values, &pages, false, Compression::Fresh).unwrap();
        assert_eq!(plan.codec(), expected);
        let mut setup = Vec::new();
        plan.setup(&mut setup).unwrap();
        let mut decoder = Decoder::<T>::new(expected, Input::new(setup.into(), 0, "test")).unwrap();
        let mut first = 0;
        for page in values.chunks(300) {
            let mut payload = Vec::new();
            plan.page(page, &mut payload).unwrap();
            let payload = Bytes::from(payload);
            let mut out = vec![T::default(); page.len()];
            decoder.read(&payload, first, page.len(), &mut out).unwrap();
            assert!(out.iter().zip(page).all(|(a, b)| a.bits() == b.bits()));
            let some = Decoder::<T>::room(7, page.len());
            let mut out = vec![T::default(); some];
            decoder.read(&payload, first, page.len(), &mut out).unwrap();
            assert!(out.iter().zip(page).all(|(a, b)| a.bits() == b.bits()));
            first += page.len();
        }
    }

    #[test]
    fn every_codec_round_trips() {
        round_trip(&[7u64; 1000], Codec::Const);
        round_trip(&[-0.0f64; 10], Codec::Const);
        round_trip(&(0..1000).map(|i| 5 - 3 * i).collect::<Vec<i32>>(), Codec::Step);
        round_trip(&[u64::MAX, 1, 3], Codec::Step);
        round_trip(&(0..1000).map(|i| f64::from(i % 77) / 100.0).collect::<Vec<_>>(), Codec::Scaled);
        round_trip(&(0..1000).map(|i| f64::from(i % 77) / 7.0).collect::<Vec<_>>(), Codec::Pco);
        round_trip(&(0..1000).map(|i| 4096 * (i % 77)).collect::<Vec<u64>>(), Codec::Scaled);
        round_trip(&(0..1000).map(|i| i % 77).collect::<Vec<i32>>(), Codec::Pco);
        round_trip(&[i64::MAX, i64::MIN], Codec::Raw);
        let odd = [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001), 0.0, -0.0, f64::INFINITY];
        round_trip(&odd.iter().copied().cycle().take(2000).collect::<Vec<_>>(), Codec::Pco);
    }
}
