//! Pool of encoders, and the ranks of their interned names.

use std::sync::{Arc, Mutex, PoisonError};

use tidetable_layout::Layout;
use tidetable_layout::encode::{Dictionary, Encoder, KeyNumbers};

use crate::sort::chunk::{AllRanks, Prefixes};
use crate::sort::ranks::Ranks;
use crate::work::Work;

/// Events of a prefix of row keys, on average, from which prefixes are worth looking up.
const WORTH_LOOKUP: u64 = 2;

/// Pool of idle encoders, each with the number of its dictionaries.
pub(crate) struct Encoders<'a> {
    layout: &'a Layout,
    /// The numbers that row keys may become.
    numbers: Option<Arc<KeyNumbers>>,
    idle: Mutex<Idle<'a>>,
    /// The ranks of the names at their last use.
    known: Mutex<Option<KnownRanks>>,
}

/// Cached ranks. They are right as long as no dictionary has grown.
struct KnownRanks {
    /// Names in each dictionary when they were ranked.
    lengths: Vec<usize>,
    ranks: Arc<AllRanks>,
}

struct Idle<'a> {
    encoders: Vec<NumberedEncoder<'a>>,
    made: usize,
    /// Events encoded since names were given up.
    events: u64,
    keys: KeyEncoding,
}

/// How row keys are encoded: as names, or as numbers where names would be too many.
#[derive(Clone)]
enum KeyEncoding {
    /// Prefixes become names, and are looked up.
    Known,
    /// The same without looking them up: most are new.
    New,
    /// The whole key becomes a number.
    Numbers(Arc<KeyNumbers>),
}

/// An encoder with the number of its dictionaries, by which chunks refer to them.
pub(crate) struct NumberedEncoder<'a> {
    pub(crate) number: usize,
    pub(crate) encoder: Encoder<'a>,
}

impl<'a> Encoders<'a> {
    /// Encoders of `layout` for a work. Its deletes are matched with the names of prefixes.
    pub(crate) fn new(layout: &'a Layout, work: &Work) -> Self {
        let numbers = layout.key_numbers().filter(|_| work.tombstones.is_empty()).map(Arc::new);
        let keys = match &numbers {
            // One name has all events, and could not be cut.
            Some(numbers) if numbers.is_all_tail() => KeyEncoding::Numbers(Arc::clone(numbers)),
            _ => KeyEncoding::Known,
        };
        let idle = Idle { encoders: Vec::new(), made: 0, events: 0, keys };
        Self { layout, numbers, idle: Mutex::new(idle), known: Mutex::default() }
    }

    /// Takes an idle encoder, or makes one if all are at work.
    pub(crate) fn take(&self) -> NumberedEncoder<'a> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(encoder) = idle.encoders.pop() {
            return encoder;
        }

        idle.made += 1;
        let encoder = match &idle.keys {
            KeyEncoding::Known => self.layout.encoder(),
            KeyEncoding::New => self.layout.encoder().without_lookup_of_prefixes(),
            KeyEncoding::Numbers(numbers) => self.layout.encoder().with_key_numbers(numbers),
        };
        NumberedEncoder { number: idle.made - 1, encoder }
    }

    /// Gives an encoder back that encoded so many events.
    pub(crate) fn put(&self, encoder: NumberedEncoder<'a>, events: u64) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.events += events;
        idle.encoders.push(encoder);
    }

    /// Approximate bytes of the names interned by idle encoders, and of their ranks.
    pub(crate) fn memory(&self) -> u64 {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let groups = self.layout.stored().groups.len();
        let mut bytes = 0;
        for NumberedEncoder { encoder, .. } in &idle.encoders {
            let qualifiers = (0..groups).filter_map(|group| encoder.qualifiers(group));
            let ranks: usize = qualifiers.chain([encoder.prefixes()]).map(Ranks::memory_of).sum();
            bytes += (encoder.memory() + ranks) as u64;
        }
        bytes
    }

    /// Gives up all names. All encoders must be idle, and no waiting cell may refer to a name.
    pub(crate) fn forget(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let prefixes: usize = idle.encoders.iter().map(|idle| idle.encoder.prefixes().len()).sum();
        if idle.events < prefixes as u64 * WORTH_LOOKUP {
            idle.keys = self.numbers.clone().map_or(KeyEncoding::New, KeyEncoding::Numbers);
        }

        idle.encoders.clear();
        idle.made = 0;
        idle.events = 0;
        drop(idle);

        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ranks over the dictionaries of all encoders, all of which must be idle. Cached until a new name is interned:
    /// entities are mostly known after their first reading.
    pub(crate) fn ranks(&self, groups: usize) -> Arc<AllRanks> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.encoders.sort_by_key(|encoder| encoder.number);
        let mut prefixes = Vec::new();
        let mut qualifiers: Vec<Vec<&Dictionary>> = vec![Vec::new(); groups];
        for NumberedEncoder { encoder, .. } in &idle.encoders {
            prefixes.push(encoder.prefixes());
            for (group, names) in qualifiers.iter_mut().enumerate() {
                names.extend(encoder.qualifiers(group));
            }
        }

        let dictionaries = prefixes.iter().chain(qualifiers.iter().flatten());
        let lengths: Vec<usize> = dictionaries.map(|names| names.len()).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|known| known.lengths == lengths) {
            return Arc::clone(&known.ranks);
        }

        // Frees the old ranks first: they are as large as all names.
        *known = None;
        let qualifiers = qualifiers.iter().map(|names| (!names.is_empty()).then(|| Ranks::new(names))).collect();
        let prefixes = match &idle.keys {
            KeyEncoding::Numbers(numbers) => Prefixes::Numbers(Arc::clone(numbers)),
            KeyEncoding::Known | KeyEncoding::New => Prefixes::Names(Ranks::new(&prefixes)),
        };

        let ranks = Arc::new(AllRanks { prefixes, qualifiers });
        *known = Some(KnownRanks { lengths, ranks: Arc::clone(&ranks) });
        ranks
    }
}
