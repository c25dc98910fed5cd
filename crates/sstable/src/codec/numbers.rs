//! Encoding and decoding of the numbers of one stream: chooses a codec, and reads and writes its pages.

use bytes::Bytes;
use pco::wrapped::{ChunkCompressor, ChunkDecompressor, FileCompressor, FileDecompressor};
use pco::{ChunkConfig, DeltaSpec, ModeSpec, PagingSpec};

use crate::codec::decimal_scaling::Scale;
use crate::codec::lane::Lane;
use crate::codec::{delta_order, pfor};
use crate::coding::Input;
use crate::error::{ReadError, WriteError};
use crate::format::Codec;
use crate::options::Compression;

/// The chosen encoding of the values of a stream. Made by [`Plan::choose`]; then [`Plan::setup`] is written once and [`Plan::page`]
/// for each page in order.
pub(crate) enum Plan {
    /// [`Codec::Absent`]: there are no values.
    Absent,
    /// [`Codec::Const`], with the bits of the value.
    Const(u64),
    /// [`Codec::Step`], with the bits of the first value and of the step.
    Step(u64, u64),
    /// [`Codec::Pco`], or with a scale [`Codec::DecimalScaling`]. The number is that of the next page.
    Pco(Option<Scale>, Box<ChunkCompressor>, usize),
    /// [`Codec::Pfor`], with the encoded pages.
    Pfor(PforPages),
    /// [`Codec::Raw`]: no other codec saves anything.
    Raw,
}

/// PFOR pages, encoded during planning to know their size.
pub(crate) struct PforPages {
    scale: Scale,
    /// The delta order of all pages.
    order: usize,
    /// The encoded pages, one after the other.
    data: Vec<u8>,
    /// The end of each page in `data`, which the next one starts at.
    ends: Vec<usize>,
    /// The number of the page that is written next.
    next: usize,
}

impl PforPages {
    /// Encodes `integers` in pages of as many values as `pages` says.
    fn new(scale: Scale, integers: &[i64], pages: &[usize]) -> Self {
        let order = pfor::order(integers);
        // Telemetry takes about two bytes a value.
        let mut data = Vec::with_capacity(integers.len() * 2);
        let mut rest = integers;
        let mut ends = Vec::with_capacity(pages.len());
        for count in pages {
            let (page, later) = rest.split_at(*count);
            pfor::put(page, order, &mut data);
            ends.push(data.len());
            rest = later;
        }
        Self { scale, order, data, ends, next: 0 }
    }

    /// The bytes of the next page.
    fn next(&mut self) -> &[u8] {
        let start = self.next.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(self.next).copied().unwrap_or(start);
        self.next += 1;
        self.data.get(start..end).unwrap_or_default()
    }
}

impl Plan {
    /// Chooses the encoding of the non-null `values` of a stream. Fresh files get PFOR if a scale is found, which is fast; dense files
    /// get pco, which is smaller. What does not save space is stored raw.
    ///
    /// `pages` has the number of values of each page, and `gaps` says that some records are null, which rules out [`Codec::Step`].
    ///
    /// # Errors
    /// If pco fails.
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

        let pages: Vec<usize> = pages.iter().copied().filter(|count| *count > 0).collect();
        let scaled = Scale::find(values);
        let (plan, size) = match scaled {
            Some((scale, integers)) if level == Compression::Fresh => {
                let framed = PforPages::new(scale, &integers, &pages);
                let size = framed.data.len();
                (Self::Pfor(framed), size)
            }
            // Floats that are not decimals: pco detects their structure.
            None if T::FLOATS => Self::pco(None, values, pco_config(level, pages))?,
            Some((scale, integers)) if !scale.is_plain::<T>() => {
                Self::pco(Some(scale), &integers, integers_config(level, pages, &integers))?
            }
            _ => Self::pco(None, values, integers_config(level, pages, values))?,
        };

        Ok(if size < values.len() * T::WIDTH { plan } else { Self::Raw })
    }

    /// A pco plan and its size in bytes, as pco estimates it. `values` are scaled integers if there is a scale.
    fn pco<T: Lane>(scale: Option<Scale>, values: &[T], config: ChunkConfig) -> Result<(Self, usize), WriteError> {
        let chunk = FileCompressor::default().chunk_compressor(values, &config)?;
        let pages: usize = (0..chunk.n_per_page().len()).map(|page| chunk.page_size_hint(page)).sum();
        let size = pages + chunk.meta_size_hint();
        Ok((Self::Pco(scale, Box::new(chunk), 0), size))
    }

    /// The codec that the stream's entry names.
    pub(crate) fn codec(&self) -> Codec {
        match self {
            Self::Absent => Codec::Absent,
            Self::Const(_) => Codec::Const,
            Self::Step(..) => Codec::Step,
            Self::Pco(None, ..) => Codec::Pco,
            Self::Pco(Some(_), ..) => Codec::DecimalScaling,
            Self::Pfor(_) => Codec::Pfor,
            Self::Raw => Codec::Raw,
        }
    }

    /// The number of decimals, if the values are stored as scaled integers.
    pub(crate) fn decimals(&self) -> Option<u8> {
        match self {
            Self::Pco(Some(scale), ..) | Self::Pfor(PforPages { scale, .. }) => Some(scale.decimals()),
            _ => None,
        }
    }

    /// Appends the stream's setup, from which [`Decoder::new`] makes its decoder.
    ///
    /// # Errors
    /// If pco fails.
    pub(crate) fn setup(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match self {
            Self::Absent | Self::Raw => {}
            Self::Const(value) => out.extend_from_slice(&value.to_le_bytes()),
            Self::Step(first, step) => {
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&step.to_le_bytes());
            }
            Self::Pfor(pages) => {
                pages.scale.write(out);
                out.push(pages.order as u8);
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

    /// Appends the next page, which holds `values`. They are those that the plan was chosen for, in order.
    ///
    /// # Errors
    /// If pco fails.
    pub(crate) fn page<T: Lane>(&mut self, values: &[T], out: &mut Vec<u8>) -> Result<(), WriteError> {
        match self {
            Self::Pco(_, chunk, next) if !values.is_empty() => {
                chunk.write_page(*next, &mut *out)?;
                *next += 1;
            }
            Self::Pfor(pages) if !values.is_empty() => out.extend_from_slice(pages.next()),
            Self::Raw => {
                out.reserve(values.len() * T::WIDTH);
                values.iter().for_each(|value| value.put(out));
            }
            _ => {}
        }
        Ok(())
    }
}

fn pco_config(level: Compression, pages: Vec<usize>) -> ChunkConfig {
    ChunkConfig::default().with_compression_level(level.pco_level()).with_paging_spec(PagingSpec::Exact(pages))
}

/// The pco configuration of integers: the delta order is estimated by us, and common factors are removed by [`Scale`], so pco need
/// not search for either.
fn integers_config<T: Lane>(level: Compression, pages: Vec<usize>, values: &[T]) -> ChunkConfig {
    let differences = match delta_order::differences(values, None) {
        0 => DeltaSpec::NoOp,
        order => DeltaSpec::TryConsecutive(order),
    };
    pco_config(level, pages).with_mode_spec(ModeSpec::Classic).with_delta_spec(differences)
}

/// Whether `values` are `first`, `first + step`, .., at least three of them.
fn steps<T: Lane>(values: &[T], first: u64, step: u64) -> bool {
    let mut expected = first;
    values.len() > 2
        && values.iter().all(|value| {
            let fits = T::of_bits(expected).bits() == value.bits();
            expected = expected.wrapping_add(step);
            fits
        })
}

/// Decodes the pages of a stream; the counterpart of [`Plan`]. Keeps scratch buffers, so one decoder serves all pages of a read.
pub(crate) enum Decoder<T: Lane> {
    /// Every value is this one.
    Const(T),
    /// The bits of the first value of the stream, and the step between values.
    Step(u64, u64),
    Pco(Box<ChunkDecompressor<T>>),
    /// With the delta order, and a scratch buffer of integers.
    Pfor(Scale, usize, Vec<i64>),
    /// With a scratch buffer of integers.
    DecimalScaling(Scale, Box<ChunkDecompressor<i64>>, Vec<i64>),
    Raw,
}

/// The position of a page in its stream, counted in non-null values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageExtent {
    /// The index in the stream of the page's first value. Matters to [`Decoder::Step`] only, which has no nulls.
    pub(crate) first: usize,
    /// The number of values of the page.
    pub(crate) present: usize,
}

impl<T: Lane> Decoder<T> {
    /// The decoder for a stream whose entry names `codec` and has this setup.
    ///
    /// # Errors
    /// If the codec is not one of numbers, or the setup is damaged.
    pub(crate) fn new(codec: Codec, mut setup: Input) -> Result<Self, ReadError> {
        let corrupt = setup.corrupt();

        let decoder = match codec {
            Codec::Const => Self::Const(T::of_bits(setup.u64()?)),
            Codec::Step => Self::Step(setup.u64()?, setup.u64()?),
            Codec::Raw => Self::Raw,
            Codec::Pfor => {
                let (scale, order) = (Scale::read::<T>(&mut setup)?, usize::from(setup.u8()?));
                if order > delta_order::ORDERS {
                    return Err(corrupt);
                }
                Self::Pfor(scale, order, Vec::new())
            }
            Codec::Pco => return Ok(Self::Pco(pco(&setup.rest()).ok_or(corrupt)?)),
            Codec::DecimalScaling => {
                let scale = Scale::read::<T>(&mut setup)?;
                return Ok(Self::DecimalScaling(scale, pco(&setup.rest()).ok_or(corrupt)?, Vec::new()));
            }
            _ => return Err(corrupt),
        };

        setup.finish()?;
        Ok(decoder)
    }

    /// The number of decimals, if the values are stored as scaled integers.
    pub(crate) fn decimals(&self) -> Option<u8> {
        match self {
            Self::DecimalScaling(scale, ..) | Self::Pfor(scale, ..) => Some(scale.decimals()),
            _ => None,
        }
    }

    /// Fills `out` with the first values of a page whose bytes are `payload`. Values before `from` need not be decoded and may be
    /// anything. `out` may be longer than needed for speed, see [`Self::room`]. `None` if the page is damaged.
    pub(crate) fn read(&mut self, payload: &Bytes, page: PageExtent, from: usize, out: &mut [T]) -> Option<()> {
        let PageExtent { first, present } = page;
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
            Self::Pfor(scale, order, integers) => {
                integers.resize(out.len(), 0);
                pfor::read(payload, *order, present, from, integers)?;
                scale.apply(integers.get(from..)?, out.get_mut(from..)?);
            }
            Self::DecimalScaling(scale, chunk, integers) => {
                integers.resize(out.len(), 0);
                unpack(chunk, payload, present, integers)?;
                scale.apply(integers, out);
            }
        }

        Some(())
    }

    /// The length of a buffer for the first `wanted` of `present` values: pco decodes batches of 256, so a multiple of that avoids a
    /// copy.
    pub(crate) fn room(wanted: usize, present: usize) -> usize {
        wanted.next_multiple_of(256).min(present)
    }
}

/// Opens the pco chunk whose header and metadata are `setup`.
fn pco<T: Lane>(setup: &[u8]) -> Option<Box<ChunkDecompressor<T>>> {
    let (file, rest) = FileDecompressor::new(setup).ok()?;
    let (chunk, rest) = file.chunk_decompressor::<T, _>(rest).ok()?;
    rest.is_empty().then(|| Box::new(chunk))
}

/// Fills `out` with the first of the `present` values of a pco page. `None` if the page is damaged.
pub(super) fn unpack<T: Lane>(
    chunk: &mut ChunkDecompressor<T>,
    payload: &Bytes,
    present: usize,
    out: &mut [T],
) -> Option<()> {
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

    fn round_trip<T: Lane>(values: &[T], [fresh, dense]: [Codec; 2]) {
        round_trip_at(values, Compression::Fresh, fresh);
        round_trip_at(values, Compression::Dense, dense);
    }

    fn round_trip_at<T: Lane>(values: &[T], level: Compression, expected: Codec) {
        let pages: Vec<_> = values.chunks(300).map(<[T]>::len).collect();
        let mut plan = Plan::choose(values, &pages, false, level).unwrap();
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
            decoder.read(&payload, PageExtent { first, present: page.len() }, 0, &mut out).unwrap();
            assert!(out.iter().zip(page).all(|(a, b)| a.bits() == b.bits()));
            let some = Decoder::<T>::room(7, page.len());
            let mut out = vec![T::default(); some];
            decoder.read(&payload, PageExtent { first, present: page.len() }, 0, &mut out).unwrap();
            assert!(out.iter().zip(page).all(|(a, b)| a.bits() == b.bits()));
            first += page.len();
        }
    }

    #[test]
    fn every_codec_round_trips() {
        let both = |codec| [codec, codec];
        round_trip(&[7u64; 1000], both(Codec::Const));
        round_trip(&[-0.0f64; 10], both(Codec::Const));
        round_trip(&(0..1000).map(|i| 5 - 3 * i).collect::<Vec<i32>>(), both(Codec::Step));
        round_trip(&[u64::MAX, 1, 3], both(Codec::Step));
        let scaled = [Codec::Pfor, Codec::DecimalScaling];
        round_trip(&(0..1000).map(|i| f64::from(i % 77) / 100.0).collect::<Vec<_>>(), scaled);
        round_trip(&(0..1000).map(|i| 4096 * (i % 77)).collect::<Vec<u64>>(), scaled);
        round_trip(&(0..1000).map(|i| i % 77).collect::<Vec<i32>>(), [Codec::Pfor, Codec::Pco]);
        round_trip(&(0..1000).map(|i| u64::MAX - i % 77).collect::<Vec<_>>(), [Codec::Pfor, Codec::Pco]);
        round_trip(&(0..1000).map(|i| f64::from(i % 77) / 7.0).collect::<Vec<_>>(), both(Codec::Pco));
        let mixed = (1..1000u64).map(|i| i.wrapping_mul(0xBF58_476D_1CE4_E5B9).rotate_left(i as u32));
        round_trip(&mixed.collect::<Vec<_>>(), both(Codec::Raw));
        let odd = [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001), 0.0, -0.0, f64::INFINITY];
        round_trip(&odd.iter().copied().cycle().take(2000).collect::<Vec<_>>(), both(Codec::Pco));
    }
}
