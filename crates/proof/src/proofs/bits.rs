//! Corruption: a damaged file gives an error or the same answer, never a wrong one.
//!
//! A small table is read as a whole after each damage, and sometimes verified, which must find every flip in an SST.
//! Of a large one only the damaged stripe is read again, or the whole file if the index was damaged.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use tidetable_blobs::Blobs;
use tidetable_layout::{Block, GroupBlock, KeyRange, Projection};
use tidetable_sstable::Reader;
use tidetable_store::{Snapshot, Store};
use tidetable_upkeep::{VerifyOptions, verify};

use super::{Figures, each_seed};
use crate::finding::{Finding, Result};
use crate::random::Random;
use crate::shape::{self, Shape};
use crate::sim::Shelf;

/// The answer of a reader to all that may be asked of a table.
#[derive(Debug)]
struct Answer {
    version: u64,
    blocks: Vec<Block>,
    /// Point lookups of the first and the last row of each block.
    rows: Vec<Option<Block>>,
}

fn same_block(left: &Block, right: &Block) -> bool {
    let mut groups = left.groups.iter().zip(&right.groups);
    left.keys.len() == right.keys.len()
        && (0..left.keys.len()).all(|row| left.keys.get(row) == right.keys.get(row))
        && left.groups.len() == right.groups.len()
        && groups.all(|(left, right)| match (left, right) {
            (Some(left), Some(right)) => same_group(left, right),
            (left, right) => left.is_none() && right.is_none(),
        })
}

fn same_group(left: &GroupBlock, right: &GroupBlock) -> bool {
    let names = left.qualifiers.as_ref().map(|names| (&names.dictionary, &names.codes));
    let other_names = right.qualifiers.as_ref().map(|names| (&names.dictionary, &names.codes));
    left.row_ends == right.row_ends
        && left.timestamps == right.timestamps
        && names == other_names
        && left.columns == right.columns
}

impl Answer {
    /// Reads the whole table; `rows` to look up are those of an earlier answer.
    fn of(shelf: &Shelf, rows: Option<&[Vec<u8>]>) -> Result<(Self, Vec<Vec<u8>>)> {
        let store = Store::new(Arc::new(shelf.clone()) as Arc<dyn Blobs>);
        let snapshot = store.snapshot("T")?;
        let all = Projection::all(snapshot.schema());
        let mut blocks = Vec::new();
        if let Some(whole) = snapshot.whole(&KeyRange::all()) {
            for block in snapshot.scan(&whole, &all)? {
                blocks.push(block?);
            }
        }

        let mut found: Vec<Vec<u8>> = Vec::new();
        for block in blocks.iter().filter(|block| !block.keys.is_empty()) {
            found.extend([block.keys.get(0), block.keys.get(block.keys.len() - 1)]);
        }
        let keys = rows.map_or(found, <[_]>::to_vec);
        let rows = keys.iter().map(|key| snapshot.row(key, &all)).collect::<Result<_, _>>()?;
        Ok((Self { version: snapshot.version().number, blocks, rows }, keys))
    }

    fn is(&self, other: &Self) -> bool {
        let mut rows = self.rows.iter().zip(&other.rows);
        self.version == other.version
            && self.blocks.len() == other.blocks.len()
            && self.blocks.iter().zip(&other.blocks).all(|(left, right)| same_block(left, right))
            && rows.all(|(left, right)| match (left, right) {
                (Some(left), Some(right)) => same_block(left, right),
                (left, right) => left.is_none() && right.is_none(),
            })
    }
}

struct Sound {
    shape: Shape,
    answer: Answer,
    keys: Vec<Vec<u8>>,
}

impl Sound {
    fn new(shape: Shape) -> Result<Self> {
        let (answer, keys) = Answer::of(&shape.shelf, None).map_err(|found| found.at(shape.name))?;
        if answer.blocks.is_empty() {
            return Err(Finding::new(format!("{}: it holds nothing", shape.name)));
        }
        Ok(Self { shape, answer, keys })
    }

    /// The files that a reader of the newest version needs.
    fn needed(&self) -> Result<Vec<String>> {
        let mut needed = Vec::new();
        for path in self.shape.shelf.paths() {
            if self.refuses(&path, Bytes::new(), || "nothing".to_owned())? {
                needed.push(path);
            }
        }
        if needed.len() < 2 { Err(Finding::new("a table without files is read")) } else { Ok(needed) }
    }

    /// Whether reading fails when `path` holds `bytes`; a wrong answer is a finding.
    fn refuses(&self, path: &str, bytes: Bytes, what: impl Fn() -> String) -> Result<bool> {
        let shelf = self.shape.shelf.copy();
        shelf.put(path, bytes);
        match Answer::of(&shelf, Some(&self.keys)) {
            Err(Finding::Store(_)) => Ok(true),
            Err(other) => Err(other),
            Ok((found, _)) if found.is(&self.answer) => Ok(false),
            Ok(_) => Err(Finding::new(format!("{}: {path}: {} gives a wrong answer", self.shape.name, what()))),
        }
    }

    /// Whether verify finds no damage when `path` holds `bytes`.
    fn verifies(&self, path: &str, bytes: Bytes) -> Result<bool> {
        let shelf = self.shape.shelf.copy();
        shelf.put(path, bytes);
        let store = Store::new(Arc::new(shelf) as Arc<dyn Blobs>);
        Ok(verify(&store.table("T"), VerifyOptions::default())?.is_sound())
    }
}

/// One flip in this many is also verified, which reads everything.
const VERIFIED: u64 = 16;

/// Flips every bit, or one in `one_in`, of a small table of each shape.
///
/// # Errors
/// A flip that gives a wrong answer.
pub fn every_bit(one_in: u64) -> Result<Figures> {
    let shapes: Vec<Sound> = shape::small()?.into_iter().map(Sound::new).collect::<Result<_>>()?;
    each_seed(0, shapes.len() as u64, |at| match shapes.get(at as usize) {
        Some(sound) => sound.flip_bits(one_in, at % one_in),
        None => Ok(Figures::default()),
    })
}

impl Sound {
    /// Flips the bits whose number has the remainder `rest`, of every file that a reader needs.
    fn flip_bits(&self, one_in: u64, rest: u64) -> Result<Figures> {
        let mut figures = Figures(vec![("shapes", 1)]);
        for path in self.needed()? {
            let bytes = self.shape.shelf.bytes(&path);
            figures.add(&Figures(vec![("files", 1), ("bytes", bytes.len() as u64)]));

            for bit in (0..bytes.len() as u64 * 8).filter(|bit| bit % one_in == rest) {
                let refused = self.refuses(&path, flipped(&bytes, bit), || format!("bit {bit}"))?;
                figures.add(&Figures(vec![("flips", 1), ("errors", u64::from(refused))]));
                if (bit / one_in).is_multiple_of(VERIFIED) {
                    let must = refused || path.contains("/sst/");
                    if must && self.verifies(&path, flipped(&bytes, bit))? {
                        return Err(Finding::new(format!("{}: {path}: verify misses bit {bit}", self.shape.name)));
                    }
                    figures.add(&Figures(vec![("verifies", 1)]));
                }
            }
        }
        Ok(figures)
    }
}

fn flipped(bytes: &[u8], bit: u64) -> Bytes {
    let mut flipped = bytes.to_vec();
    flipped[(bit / 8) as usize] ^= 1 << (bit % 8);
    flipped.into()
}

/// Truncates, zeroes, mixes and swaps files, and replaces them by stale ones, in every small table.
///
/// # Errors
/// A damage that gives a wrong answer; a truncated or foreign file that is accepted.
pub fn damages(seed: u64, tries: u64) -> Result<Figures> {
    let shapes: Vec<Sound> = shape::small()?.into_iter().map(Sound::new).collect::<Result<_>>()?;
    each_seed(0, shapes.len() as u64, |at| match shapes.get(at as usize) {
        Some(sound) => sound.damage_files(&shapes, &mut Random::new(seed ^ at), tries),
        None => Ok(Figures::default()),
    })
}

impl Sound {
    /// Damages each file that a reader needs in all ways; `shapes` have the files of other tables.
    fn damage_files(&self, shapes: &[Self], random: &mut Random, tries: u64) -> Result<Figures> {
        let shelf = &self.shape.shelf;
        let mut figures = Figures(vec![("shapes", 1)]);
        for path in &self.needed()? {
            let bytes = shelf.bytes(path);
            let mut tried = |name: &'static str, damaged: Bytes, must: bool| -> Result<()> {
                if damaged == bytes {
                    return Ok(());
                }
                let refused = self.refuses(path, damaged, || name.to_owned())?;
                if must && !refused {
                    return Err(Finding::new(format!("{}: {path}: {name}: it is not refused", self.shape.name)));
                }
                figures.add(&Figures(vec![(name, 1), ("errors", u64::from(refused))]));
                Ok(())
            };

            // The line break after a manifest is not part of it.
            let end = bytes.len() - usize::from(bytes.ends_with(b"\n"));
            for len in 0..end {
                tried("truncations", bytes.slice(..len), true)?;
            }
            for _ in 0..tries {
                let (a, b) = (range(&bytes, random), range(&bytes, random));
                let mut zeroed = bytes.to_vec();
                zeroed[a.clone()].fill(0);
                tried("zeroed pieces", zeroed.into(), false)?;
                tried("swapped pieces", swapped(&bytes, &a, &b), false)?;
            }

            for other in shelf.paths().iter().filter(|other| *other != path) {
                tried("swapped and stale files", shelf.bytes(other), true)?;
            }
            for other in shapes.iter().filter(|other| other.shape.name != self.shape.name) {
                for path in other.shape.shelf.paths() {
                    tried("files of other tables", other.shape.shelf.bytes(&path), false)?;
                }
            }
        }
        Ok(figures)
    }
}

fn range(bytes: &[u8], random: &mut Random) -> Range<usize> {
    let start = random.place(bytes.len());
    start..(start + 1 + random.place(96)).min(bytes.len())
}

/// Swaps two pieces of a file, of the length of the shorter one.
fn swapped(bytes: &[u8], a: &Range<usize>, b: &Range<usize>) -> Bytes {
    let len = a.len().min(b.len());
    let mut out = bytes.to_vec();
    let (left, right) = (bytes[a.start..a.start + len].to_vec(), bytes[b.start..b.start + len].to_vec());
    out[b.start..b.start + len].copy_from_slice(&left);
    if a.start + len <= b.start || b.start + len <= a.start {
        out[a.start..a.start + len].copy_from_slice(&right);
    }
    out.into()
}

/// Damages random places of large tables: flipped bits, zeroed and swapped pages of 4 KiB, truncated files.
///
/// # Errors
/// A damage that gives a wrong answer.
pub fn large(seed: u64, flips: u64, pages: u64) -> Result<Figures> {
    let mut files = Vec::new();
    for shape in shape::large()? {
        let snapshot = Store::new(Arc::new(shape.shelf.clone()) as Arc<dyn Blobs>).snapshot("T")?;
        for sst in snapshot.version().ssts() {
            files.push(File::new(&shape, &snapshot, &sst.id)?);
        }
    }

    let sizes: u64 = files.iter().map(|file| file.bytes.len() as u64).sum();
    let chunk = 250;
    let mut figures = each_seed(seed, (flips + pages).div_ceil(chunk), |at| {
        let mut random = Random::new(at);
        let mut figures = Figures::default();
        let begun = (at - seed) * chunk;
        for number in begun..(begun + chunk).min(flips + pages) {
            let Some((file, at)) = file_at(&files, random.below(sizes)) else { continue };
            let name = if number < flips { file.flip(at, &mut random) } else { file.damage(at as usize, &mut random) }?;
            figures.add(&Figures(vec![(name, 1)]));
        }
        Ok(figures)
    })?;

    figures.add(&Figures(vec![("files", files.len() as u64), ("bytes", sizes)]));
    Ok(figures)
}

/// The file that has byte `at` of all files together, and the place of the byte there.
fn file_at(files: &[File], mut at: u64) -> Option<(&File, u64)> {
    for file in files {
        let size = file.bytes.len() as u64;
        if at < size {
            return Some((file, at));
        }
        at -= size;
    }
    None
}

struct File {
    name: String,
    bytes: Bytes,
    stripes: Vec<(Range<u64>, Block)>,
    keys: Vec<Vec<u8>>,
}

impl File {
    fn new(shape: &Shape, snapshot: &Snapshot, id: &str) -> Result<Self> {
        let bytes = shape.shelf.bytes(&snapshot.table().sst_path(id));
        let reader = open(bytes.clone()).ok_or_else(|| Finding::new("a sound file is refused"))?;
        let all = Projection::all(reader.schema());
        let (mut stripes, mut keys) = (Vec::new(), Vec::new());
        for (at, stripe) in reader.stripes().iter().enumerate() {
            let block = reader.read_stripe(at, &all).map_err(|error| Finding::new(error.to_string()))?;
            keys.extend((0..block.keys.len()).step_by(997).map(|row| block.keys.get(row)));
            stripes.push((stripe.offset..stripe.offset + stripe.len, block));
        }
        Ok(Self { name: format!("{}, SST {id}", shape.name), bytes, stripes, keys })
    }

    fn flip(&self, at: u64, random: &mut Random) -> Result<&'static str> {
        let bit = at * 8 + random.below(8);
        self.check(flipped(&self.bytes, bit), &(at..at + 1), || format!("bit {bit}"))?;
        Ok("flips")
    }

    /// The page of 4 KiB that has byte `at`.
    fn page(&self, at: usize) -> Range<usize> {
        let start = at / 4096 * 4096;
        start..(start + 4096).min(self.bytes.len())
    }

    fn damage(&self, at: usize, random: &mut Random) -> Result<&'static str> {
        let whole = 0..self.bytes.len() as u64;

        match random.below(3) {
            0 => {
                let mut zeroed = self.bytes.to_vec();
                zeroed[self.page(at)].fill(0);
                self.check(zeroed.into(), &whole, || format!("the page at {at} zeroed"))?;
                Ok("zeroed pages")
            }
            1 => {
                let (a, b) = (self.page(at), self.page(random.place(self.bytes.len())));
                self.check(swapped(&self.bytes, &a, &b), &whole, || format!("{a:?} and {b:?} swapped"))?;
                Ok("swapped pages")
            }
            _ => {
                let len = at / 512 * 512;
                if open(self.bytes.slice(..len)).is_some() {
                    return Err(Finding::new(format!("{}: cut at {len} it opens", self.name)));
                }
                Ok("truncations")
            }
        }
    }

    /// Reads again all that a damage at `place` may affect.
    fn check(&self, damaged: Bytes, place: &Range<u64>, what: impl Fn() -> String) -> Result<()> {
        if damaged == self.bytes {
            return Ok(());
        }
        let Some(reader) = open(damaged) else { return Ok(()) };
        let wrong = |part: &str| Err(Finding::new(format!("{}: {}: {part}", self.name, what())));
        if reader.stripes().len() != self.stripes.len() {
            return wrong("another number of stripes");
        }

        let all = Projection::all(reader.schema());
        let inside = self.stripes.iter().any(|(stripe, _)| stripe.start <= place.start && place.end <= stripe.end);
        for (at, (stripe, block)) in self.stripes.iter().enumerate() {
            let touched = stripe.start < place.end && place.start < stripe.end;
            if inside && !touched {
                continue;
            }
            match reader.read_stripe(at, &all) {
                Ok(found) if !same_block(&found, block) => return wrong("wrong rows"),
                // Data beside the rows, such as row sums and outliers, is read only by verify, filters and sums.
                Ok(_) if inside && reader.verify_stripe(at).is_ok() => return wrong("a damaged stripe is sound"),
                _ => {}
            }
        }

        if !inside && !self.keys.iter().all(|key| reader.may_contain(key)) {
            return wrong("a key is not found");
        }
        Ok(())
    }
}

fn open(bytes: Bytes) -> Option<Reader> {
    Reader::open(Arc::new(bytes)).ok()
}
