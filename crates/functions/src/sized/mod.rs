//! Bounds the memory of values whose size is an argument, such as `repeat('x', n)` or `range(n)`.
//!
//! DataFusion accounts for what operators keep, not for what functions make. Under a memory limit these functions first
//! estimate the size of their values, are refused beyond a share of the limit, and count the values until these are dropped.

pub(crate) mod concatenation;
pub(crate) mod planning;

use std::fmt::{self, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, make_array};
use arrow::buffer::Buffer;
use arrow::compute::cast;
use arrow::compute::kernels::length::length;
use arrow::datatypes::{DataType, FieldRef, Int64Type, IntervalMonthDayNanoType, TimeUnit};
use bytes::Bytes;
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::chain;
use crate::sized::concatenation::CountedConcatenations;
use crate::sized::planning::is_planning_thread;

/// Bytes of a constant that planning computes; larger ones are computed when they are needed, and counted.
const MAX_CONSTANT_BYTES: usize = 64 << 10;
/// Bytes of values from which on operators have so much less.
const MIN_RESERVED_BYTES: usize = 1 << 20;
/// What may be held beyond half of the limit, bytes.
const SPARE_BYTES: usize = 8 << 20;
/// Nanoseconds of a day.
const DAY_NANOS: i64 = 86_400_000_000_000;

/// Estimates the bytes of the values of a function for a number of rows, never too small.
type Size = fn(&[Arg], usize) -> Result<usize>;

/// The functions whose result may be of any size, by name, with the estimate of that size.
const FUNCTIONS: [(&str, Size); 15] = [
    ("repeat", repeated_text),
    ("lpad", padded),
    ("rpad", padded),
    ("replace", replaced),
    ("regexp_replace", replaced_by_pattern),
    ("overlay", texts_together),
    ("concat", texts_together),
    ("concat_ws", separated),
    ("range", series),
    ("generate_series", series),
    ("array_repeat", repeated_value),
    ("array_resize", resized),
    ("array_to_string", joined),
    ("array_concat", lists_together),
    ("array_replace_all", with_items_replaced),
];

/// Replaces the functions of `builder` that make values of any size, for a memory limit of `limit` bytes. `pool` has the rest of
/// the memory.
pub fn bound_sizes(mut builder: SessionStateBuilder, limit: usize, pool: &Arc<dyn MemoryPool>) -> SessionStateBuilder {
    let held = Held { bytes: AtomicUsize::new(0), limit: limit / 2 + SPARE_BYTES, pool: Arc::clone(pool) };
    let held = Arc::new(held);
    let of_texts = Arc::clone(&held);
    let counted = move |inner: Arc<ScalarUDF>| {
        let function = SizedFunction { inner, size: texts_together, held: Arc::clone(&of_texts) };
        Arc::new(ScalarUDF::new_from_impl(function))
    };
    builder = builder.with_analyzer_rule(Arc::new(CountedConcatenations { counted: Box::new(counted) }));
    for function in builder.scalar_functions().get_or_insert_with(Vec::new) {
        let size = FUNCTIONS.iter().find(|(name, _)| *name == function.name()).map(|(_, size)| *size);
        if let Some(size) = size {
            let (inner, held) = (Arc::clone(function), Arc::clone(&held));
            *function = Arc::new(ScalarUDF::new_from_impl(SizedFunction { inner, size, held }));
        }
    }
    builder
}

/// The bytes of the values that sized functions made and that still exist.
#[derive(Debug)]
struct Held {
    bytes: AtomicUsize,
    limit: usize,
    pool: Arc<dyn MemoryPool>,
}

impl Held {
    /// Counts values of `function`.
    ///
    /// # Errors
    /// If more would be held than the limit allows.
    fn hold(self: &Arc<Self>, function: &str, bytes: usize) -> Result<HeldBytes> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut held = HeldBytes { of: Arc::clone(self), bytes, reservation: None };
        if before.saturating_add(bytes) > self.limit {
            let limit = self.limit;
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{function} makes values of {bytes} bytes, and {before} of {limit} for such values are in use"
            )));
        }
        if bytes >= MIN_RESERVED_BYTES {
            let reservation = MemoryConsumer::new(function).register(&self.pool);
            reservation.grow(bytes);
            held.reservation = Some(reservation);
        }
        Ok(held)
    }
}

/// Bytes of one value; they stop counting when it is dropped.
#[derive(Debug)]
struct HeldBytes {
    of: Arc<Held>,
    bytes: usize,
    reservation: Option<MemoryReservation>,
}

impl HeldBytes {
    /// Counts `bytes` if they are fewer.
    fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.of.bytes.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        self.bytes = bytes;
        if let Some(reservation) = &mut self.reservation {
            reservation.resize(bytes);
        }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The largest buffer of an array, counted as long as it lives.
struct HeldBuffer {
    buffer: Buffer,
    _held: HeldBytes,
}

impl AsRef<[u8]> for HeldBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

/// A function of which the size of the result is known from its arguments, and checked before it runs.
struct SizedFunction {
    inner: Arc<ScalarUDF>,
    size: Size,
    held: Arc<Held>,
}

impl fmt::Debug for SizedFunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PartialEq for SizedFunction {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for SizedFunction {}

impl Hash for SizedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl ScalarUDFImpl for SizedFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(kinds)
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.inner.return_type(kinds)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let number_rows = args.number_rows;
        let rows = if is_constant { 1 } else { number_rows };
        let values = args.args.iter().map(Arg::of).collect::<Result<Vec<_>>>()?;
        let bytes = (self.size)(&values, rows)?;
        if bytes <= MAX_CONSTANT_BYTES && is_constant {
            return self.inner.invoke_with_args(args);
        }
        // A constant is repeated for each row.
        let bytes = bytes.saturating_mul(number_rows.max(1) / rows.max(1));
        let name = if chain::concatenates(&self.inner) { "||" } else { self.name() };
        let mut held = self.held.hold(name, bytes)?;
        // What a rule of the optimizer computes is kept as long as the plan.
        if is_constant && is_planning_thread() {
            return exec_err!("constants of {bytes} bytes are computed later");
        }

        let made = self.inner.invoke_with_args(args)?.into_array(number_rows)?.to_data();
        held.shrink(made.get_slice_memory_size()?);
        Ok(ColumnarValue::Array(make_array(holding(made, held)?)))
    }
}

/// The same array, whose largest buffer counts as `held` until it is dropped.
fn holding(data: ArrayData, held: HeldBytes) -> Result<ArrayData> {
    let own = data.buffers().iter().map(Buffer::len).max().unwrap_or_default();
    let inner = data.child_data().iter().enumerate().max_by_key(|(_, child)| child.get_array_memory_size());

    if let Some((at, child)) = inner.filter(|(_, child)| child.get_array_memory_size() > own) {
        let mut children = data.child_data().to_vec();
        children[at] = holding(child.clone(), held)?;
        return Ok(data.into_builder().child_data(children).build()?);
    }

    let Some(at) = data.buffers().iter().position(|buffer| buffer.len() == own).filter(|_| own > 0) else {
        return Ok(data);
    };

    let mut buffers = data.buffers().to_vec();
    let buffer = buffers[at].clone();
    buffers[at] = Buffer::from(Bytes::from_owner(HeldBuffer { buffer, _held: held }));
    Ok(data.into_builder().buffers(buffers).build()?)
}

/// An argument: an array, or one value for all rows.
struct Arg {
    values: ArrayRef,
    is_constant: bool,
}

impl Arg {
    fn of(value: &ColumnarValue) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Array(values) => Self { values: Arc::clone(values), is_constant: false },
            ColumnarValue::Scalar(value) => Self { values: value.to_array_of_size(1)?, is_constant: true },
        })
    }

    /// The values as 64-bit integers by row, 0 for null.
    fn numbers(&self) -> Result<Numbers> {
        Ok(Numbers { values: cast(&self.values, &DataType::Int64)?, is_constant: self.is_constant })
    }

    /// Bytes of texts, or items of lists, by row.
    fn lengths(&self) -> Result<Numbers> {
        match self.values.data_type() {
            DataType::Null => Self::of(&ColumnarValue::Scalar(ScalarValue::Int64(None)))?.numbers(),
            _ => Ok(Numbers { values: cast(&length(&self.values)?, &DataType::Int64)?, is_constant: self.is_constant }),
        }
    }

    /// Bytes that the value of a row takes in a result.
    fn bytes(&self, row: usize) -> Result<usize> {
        let row = if self.is_constant { 0 } else { row };
        Ok(self.values.slice(row, 1).to_data().get_slice_memory_size()?)
    }
}

struct Numbers {
    values: ArrayRef,
    is_constant: bool,
}

impl Numbers {
    fn at(&self, row: usize) -> i64 {
        let row = if self.is_constant { 0 } else { row };
        match self.values.as_primitive_opt::<Int64Type>() {
            Some(values) if row < values.len() && values.is_valid(row) => values.value(row),
            _ => 0,
        }
    }

    /// The number of a row as a size: 0 if it is negative.
    fn size(&self, row: usize) -> usize {
        usize::try_from(self.at(row)).unwrap_or_default()
    }
}

fn sum(rows: usize, of_row: impl Fn(usize) -> usize) -> usize {
    (0..rows).map(of_row).fold(0, usize::saturating_add)
}

fn repeated_text(args: &[Arg], rows: usize) -> Result<usize> {
    let [text, times] = args else { return Ok(0) };
    let (text, times) = (text.lengths()?, times.numbers()?);
    Ok(sum(rows, |row| text.size(row).saturating_mul(times.size(row))))
}

/// A character has at most four bytes, unless texts are of one byte each.
fn padded(args: &[Arg], rows: usize) -> Result<usize> {
    let [text, width, fill @ ..] = args else { return Ok(0) };
    let is_ascii = std::iter::once(text).chain(fill).all(|text| is_ascii(&text.values));
    let (text, width, factor) = (text.lengths()?, width.numbers()?, if is_ascii { 1 } else { 4 });
    Ok(sum(rows, |row| text.size(row).min(width.size(row)).saturating_add(width.size(row).saturating_mul(factor))))
}

fn is_ascii(texts: &ArrayRef) -> bool {
    match texts.data_type() {
        DataType::Utf8 => texts.as_string::<i32>().is_ascii(),
        DataType::LargeUtf8 => texts.as_string::<i64>().is_ascii(),
        DataType::Utf8View => texts.as_string_view().is_ascii(),
        _ => false,
    }
}

/// Each place of the text may be replaced, at most as many as texts of the replaced length fit.
fn replaced(args: &[Arg], rows: usize) -> Result<usize> {
    let [text, from, to] = args else { return Ok(0) };
    let (text, from, to) = (text.lengths()?, from.lengths()?, to.lengths()?);
    Ok(sum(rows, |row| {
        let places = text.size(row) / from.size(row).max(1) + 1;
        text.size(row).saturating_add(places.saturating_mul(to.size(row)))
    }))
}

/// The replacement may contain what is replaced, once for two of its bytes.
fn replaced_by_pattern(args: &[Arg], rows: usize) -> Result<usize> {
    let [text, _, to, ..] = args else { return Ok(0) };
    let (text, to) = (text.lengths()?, to.lengths()?);
    Ok(sum(rows, |row| {
        let places = text.size(row).saturating_add(1);
        places.saturating_mul(to.size(row).saturating_add(1))
    }))
}

fn texts_together(args: &[Arg], rows: usize) -> Result<usize> {
    let texts = args.iter().map(text_lengths).collect::<Result<Vec<_>>>()?;
    Ok(sum(rows, |row| texts.iter().map(|text| text.size(row)).fold(0, usize::saturating_add)))
}

/// Bytes of an argument as text: those of other types are short.
fn text_lengths(arg: &Arg) -> Result<Numbers> {
    match arg.values.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary | DataType::BinaryView => {
            arg.lengths()
        }
        _ => Arg::of(&ColumnarValue::Scalar(ScalarValue::Int64(Some(64))))?.numbers(),
    }
}

fn separated(args: &[Arg], rows: usize) -> Result<usize> {
    let Some((separator, texts)) = args.split_first() else { return Ok(0) };
    let separators = text_lengths(separator)?;
    let separators = sum(rows, |row| separators.size(row).saturating_mul(texts.len()));
    Ok(texts_together(texts, rows)?.saturating_add(separators))
}

/// `range(stop)`, `range(start, stop)` and `range(start, stop, step)` of integers, dates and times.
fn series(args: &[Arg], rows: usize) -> Result<usize> {
    let (start, stop, step) = match args {
        [stop] => (None, stop, None),
        [start, stop] => (Some(start), stop, None),
        [start, stop, step] => (Some(start), stop, Some(step)),
        _ => return Ok(0),
    };
    if args.iter().any(|arg| *arg.values.data_type() == DataType::Null) {
        return Ok(0);
    }

    // Ticks of the values in a nanosecond, or in a step of integers.
    let tick = match stop.values.data_type() {
        DataType::Date32 => DAY_NANOS,
        DataType::Date64 => 1_000_000,
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        _ => 1,
    };

    let start = start.map(Arg::numbers).transpose()?;
    let (stop, steps) = (stop.numbers()?, step.map(steps).transpose()?);
    Ok(sum(rows, |row| {
        let start = start.as_ref().map_or(0, |start| start.at(row));
        let span = (i128::from(stop.at(row)) - i128::from(start)) * i128::from(tick);
        let step = i128::from(steps.as_ref().map_or(1, |steps| steps.at(row)));
        let values = if step == 0 || span.signum() * step.signum() < 0 { 0 } else { span / step + 1 };
        usize::try_from(values).unwrap_or(usize::MAX).saturating_mul(8)
    }))
}

/// Steps of a series, at least as short as they are: integers, or nanoseconds of intervals.
fn steps(step: &Arg) -> Result<Numbers> {
    let Some(intervals) = step.values.as_primitive_opt::<IntervalMonthDayNanoType>() else { return step.numbers() };
    let nanos = intervals.iter().map(|step| {
        let step = step?;
        let days = i64::from(step.months).saturating_mul(28).saturating_add(i64::from(step.days));
        Some(days.saturating_mul(DAY_NANOS).saturating_add(step.nanoseconds))
    });
    let values: ArrayRef = Arc::new(nanos.collect::<arrow::array::Int64Array>());
    Ok(Numbers { values, is_constant: step.is_constant })
}

fn repeated_value(args: &[Arg], rows: usize) -> Result<usize> {
    let [value, times] = args else { return Ok(0) };
    let times = times.numbers()?;
    copies(value, &times, rows)
}

/// Bytes of `times` copies of the values.
fn copies(value: &Arg, times: &Numbers, rows: usize) -> Result<usize> {
    let mut bytes: usize = 0;
    for row in 0..rows {
        let of_row = match times.size(row) {
            0 => 0,
            times => value.bytes(row)?.saturating_mul(times),
        };
        bytes = bytes.saturating_add(of_row);
    }
    Ok(bytes)
}

fn resized(args: &[Arg], rows: usize) -> Result<usize> {
    let [list, size, rest @ ..] = args else { return Ok(0) };
    let mut bytes = copies(list, &Arg::of(&ColumnarValue::Scalar(ScalarValue::Int64(Some(1))))?.numbers()?, rows)?;
    let size = size.numbers()?;
    // Without a value it is null, which takes as much as a value.
    bytes = bytes.saturating_add(match rest {
        [value] => copies(value, &size, rows)?,
        _ => sum(rows, |row| size.size(row).saturating_mul(16)),
    });
    Ok(bytes)
}

fn joined(args: &[Arg], rows: usize) -> Result<usize> {
    let [list, separator, ..] = args else { return Ok(0) };
    let (items, separator) = (list.lengths()?, text_lengths(separator)?);
    // Numbers as text are longer than they are.
    let texts = copies(list, &Arg::of(&ColumnarValue::Scalar(ScalarValue::Int64(Some(1))))?.numbers()?, rows)?;
    let separators = sum(rows, |row| items.size(row).saturating_mul(separator.size(row).saturating_add(24)));
    Ok(texts.saturating_add(separators))
}

fn with_items_replaced(args: &[Arg], rows: usize) -> Result<usize> {
    let [list, _, item] = args else { return Ok(0) };
    Ok(lists_together(std::slice::from_ref(list), rows)?.saturating_add(copies(item, &list.lengths()?, rows)?))
}

fn lists_together(args: &[Arg], rows: usize) -> Result<usize> {
    let once = Arg::of(&ColumnarValue::Scalar(ScalarValue::Int64(Some(1))))?.numbers()?;
    args.iter().try_fold(0_usize, |bytes, list| Ok(bytes.saturating_add(copies(list, &once, rows)?)))
}
