//! Splits a file into chunks, in order. Cheap compared to parsing: one thread reads for several that parse.

use std::fs::File;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use memchr::memrchr;

use crate::blocks::{AvroBlocks, AvroPlan, BlockInput, IpcMessages};
use crate::columnar::{ColumnarPlan, columns};
use crate::content_hash::{ContentHash, Tally, hash_all};
use crate::csv::{CsvHeader, CsvPlan, Dialect, LaterHeaders, Seam};
use crate::decompress::Decoded;
use crate::dump::CbtRows;
use crate::error::{SourceError, at_boundary};
use crate::format::Foreign;
use crate::json::{JsonPlan, Names, Paths, Wanted};
use crate::parquet::{Bits, GroupRows, GroupSlice, ParquetFile, ParquetPlan};
use crate::plan::{Declaration, Matched, match_columns, path_columns};
use crate::read::chunk::{Body, Chunk};
use crate::read::growth::{Growth, HeldContent};
use crate::read::parser::{Parser, Plan, schema_of};
use crate::read::repeated_hour::RepeatedHours;
use crate::read::stop_check::StopCheck;
use crate::read::text_start::{LONGEST_RECORD, TextStart, append_more};
use crate::spec::{Preset, SchemaMode, SourceSpec};
use crate::text_shape::{TextRules, TextShape};
use crate::value::ColumnPlan;

/// Bytes of JSON lines in which names are looked for.
const NAMED_BYTES: usize = 1 << 20;
/// Rows of a chunk of Parquet or Arrow, at most.
const SLICE_ROWS: usize = 128 << 10;

/// Iterates over the chunks of a file; ends after an error.
pub struct InputReader {
    path: String,
    parser: Arc<Parser>,
    next_index: u64,
    next_line: u64,
    /// The offset of the next chunk, see [`Chunk::offset`].
    offset: u64,
    /// Offsets at which a chunk begins, in order: no chunk reaches across.
    cuts: Vec<u64>,
    /// Offsets at which records end whatever follows, see [`crate::InputFile::breaks`].
    breaks: Vec<u64>,
    shape: TextShape,
    from: Feed,
    /// What tells the two passes of an hour apart, where the order of the rows does.
    hours: Option<Box<RepeatedHours>>,
    /// Bytes of a last line without a line end that are left for later, because the file changes.
    left: u64,
    ended: bool,
}

/// The input that is split into chunks.
enum Feed {
    Text {
        bytes: Box<Decoded>,
        dialect: Dialect,
        chunk_bytes: usize,
        carry: Vec<u8>,
        exhausted: bool,
        /// Finds the headers behind the first, of CSV that has a header.
        headers: Option<Box<LaterHeaders>>,
    },
    Parquet {
        group: usize,
        skip: usize,
        /// The rows of the group that follow, if they are read in order.
        in_order: Option<Box<GroupRows>>,
        taken: u64,
        hash: Option<(ContentHash, u64)>,
        stop_check: StopCheck,
    },
    /// With the rest of a batch that is larger than a chunk.
    Arrow {
        input: BlockInput,
        messages: IpcMessages,
        rest: Option<RecordBatch>,
    },
    Avro {
        input: BlockInput,
        blocks: AvroBlocks,
    },
    Cbt(Box<CbtRows>),
}

impl Feed {
    /// The records of a text behind its beginning.
    fn text(start: TextStart, dialect: Dialect) -> Self {
        let TextStart { bytes, buffer, exhausted, chunk_bytes, .. } = start;
        Self::Text { bytes: Box::new(bytes), dialect, chunk_bytes, carry: buffer, exhausted, headers: None }
    }
}

/// A content that a text has grown from, and where its records go on.
struct FoundSeam<'a> {
    held: &'a HeldContent,
    /// Offset in the text of the chunk that `seam` is of.
    start: u64,
    seam: Seam,
}

impl InputReader {
    /// Opens a CSV file and reads its header.
    pub(crate) fn csv(
        spec: &SourceSpec,
        columns: Vec<ColumnPlan>,
        rules: TextRules,
        bytes: Decoded,
        chunk_bytes: usize,
    ) -> Result<Self, SourceError> {
        let path = bytes.path().to_owned();
        let TextRules { reader, mut shape } = rules;
        // At least a byte order mark.
        let mut start = TextStart::read(bytes, chunk_bytes.max(3), chunk_bytes)?;
        if let Some(format) = Foreign::of(&start.buffer) {
            return Err(SourceError::Foreign { path, format });
        }
        start.skip_mark();

        let mut dialect = Dialect::new(&spec.csv, reader);
        if reader.has_strict_records() {
            start.find_line_ends(shape)?;
            dialect.has_returns = start.bytes.takes_returns_as_line_ends();
            shape.returns = dialect.has_returns;
        }
        start.skip_lines(spec.csv.skip)?;

        let mut text = Vec::new();
        let mut headers = None;
        let mut extra = 0;
        let matched = if !spec.csv.header {
            match_by_place(&mut start, &dialect, &columns, &mut shape)?
        } else if let Some(found) = start.header(&dialect)? {
            if reader.has_strict_records() {
                headers = LaterHeaders::new(&found.names, &found.text, spec.mode, &spec.time, &columns);
                text = found.text;
                extra = start.usual_width(&dialect)?.saturating_sub(found.names.len());
            }
            match_columns(&path, &found.names, Declaration::of(spec, &columns))?
        } else {
            // A file without a header is empty.
            Matched::by_place(0)
        };

        let Matched { steps, diff, path_columns } = matched;
        let refused = (spec.mode == SchemaMode::Reject && !diff.is_empty()).then(|| diff.clone());
        let schema = schema_of(&columns);
        let plan = Plan::Csv(CsvPlan { dialect, columns, header: CsvHeader { steps, text, refused }, extra });
        let parser = Parser::new(path.clone(), schema, plan, diff).with_path_columns(path_columns).with_epochs(spec);
        let (next_line, offset) = (start.line, start.offset);
        let mut feed = Feed::text(start, dialect);
        if let Feed::Text { headers: of_feed, .. } = &mut feed {
            *of_feed = headers.map(Box::new);
        }
        Ok(Self { next_line, offset, shape, ..Self::new(path, parser, feed) })
    }

    /// Opens a file of JSON lines, and finds the names of its values in its first records.
    pub(crate) fn json(
        spec: &SourceSpec,
        columns: Vec<ColumnPlan>,
        rules: TextRules,
        bytes: Decoded,
        chunk_bytes: usize,
    ) -> Result<Self, SourceError> {
        let path = bytes.path().to_owned();
        let mut start = TextStart::read(bytes, NAMED_BYTES, chunk_bytes)?;
        if let Some(format) = Foreign::instead_of_json(&start.buffer) {
            return Err(SourceError::Foreign { path, format });
        }
        start.skip_mark();
        start.find_line_ends(rules.shape)?;
        let shape = TextShape { returns: start.bytes.takes_returns_as_line_ends(), width: 0 };

        let lists = spec.lists();
        let is_otel = spec.preset == Some(Preset::Otel);
        let text = &start.buffer;
        let whole = if start.exhausted { text.len() } else { memrchr(b'\n', text).map_or(0, |end| end + 1) };
        let declared: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let names = Names::new(Wanted::Declared(&declared), &lists);
        let names = names.read(text.get(..whole).unwrap_or_default(), is_otel);
        let Matched { steps: _, diff, path_columns } = match names.records {
            0 => Matched::default(),
            _ => match_columns(&path, &names.found, Declaration::of(spec, &columns))?,
        };
        if let Some(list) = lists.iter().find(|list| names.records > 0 && !names.has_list(list)) {
            return Err(SourceError::MissingList { path, list: list.clone(), header: names.found });
        }

        let refused = (spec.mode == SchemaMode::Reject && !diff.is_empty()).then(|| diff.clone());
        let schema = schema_of(&columns);
        let paths = Paths::new(columns.iter().map(|column| column.name.as_str()), &lists).with_known(&names.found);
        let dialect = Dialect::of_lines(rules.reader);
        let plan = Plan::Json(JsonPlan { dialect, columns, paths, lists, is_otel, refused });
        let parser = Parser::new(path.clone(), schema, plan, diff).with_path_columns(path_columns).with_epochs(spec);
        Ok(Self { offset: start.offset, shape, ..Self::new(path, parser, Feed::text(start, dialect)) })
    }

    /// The same, with the breaks of the input.
    pub(crate) fn with_breaks(mut self, breaks: &[u64]) -> Self {
        self.breaks = breaks.to_vec();
        self
    }

    /// Opens a Parquet file whose footer has been read.
    pub(crate) fn parquet(
        spec: &SourceSpec,
        file: ParquetFile,
        columns: Vec<ColumnPlan>,
        path: String,
        stop_check: StopCheck,
    ) -> Result<Self, SourceError> {
        let schema = schema_of(&columns);
        let (plan, diff, path_columns) = ParquetPlan::new(spec, file, columns)?;
        let parser = Parser::new(path.clone(), schema, Plan::Parquet(plan), diff)
            .with_path_columns(path_columns)
            .with_epochs(spec);
        let from = Feed::Parquet { group: 0, skip: 0, in_order: None, taken: 0, hash: None, stop_check };
        Ok(Self::new(path, parser, from))
    }

    /// Opens an Arrow IPC file or stream, and reads its schema.
    pub(crate) fn arrow(
        spec: &SourceSpec,
        declared: Vec<ColumnPlan>,
        mut input: BlockInput,
    ) -> Result<Self, SourceError> {
        let path = input.path().to_owned();
        let messages = IpcMessages::open(&mut input)?;
        let schema = Arc::clone(messages.schema());
        Self::of_blocks(spec, path, &schema, declared, Plan::Arrow, Feed::Arrow { input, messages, rest: None })
    }

    /// Opens an Avro file, and reads its schema.
    pub(crate) fn avro(
        spec: &SourceSpec,
        declared: Vec<ColumnPlan>,
        mut input: BlockInput,
    ) -> Result<Self, SourceError> {
        let path = input.path().to_owned();
        let blocks = AvroBlocks::open(&mut input)?;
        let schema = Arc::clone(blocks.schema());
        let (decoding, name) = (blocks.decoding(), path.clone());
        let feed = Feed::Avro { input, blocks };
        Self::of_blocks(spec, path, &schema, declared, |plan| Plan::Avro(AvroPlan::new(name, plan, decoding)), feed)
    }

    /// Opens a CSV of `cbt`, and reads its columns.
    pub(crate) fn cbt(spec: &SourceSpec, declared: Vec<ColumnPlan>, bytes: Decoded) -> Result<Self, SourceError> {
        let path = bytes.path().to_owned();
        let rows = CbtRows::open(bytes)?;
        let schema = Arc::clone(rows.schema());
        Self::of_blocks(spec, path, &schema, declared, Plan::Arrow, Feed::Cbt(Box::new(rows)))
    }

    /// Opens a file of blocks with this schema.
    fn of_blocks(
        spec: &SourceSpec,
        path: String,
        schema: &SchemaRef,
        declared: Vec<ColumnPlan>,
        plan: impl FnOnce(ColumnarPlan) -> Plan,
        from: Feed,
    ) -> Result<Self, SourceError> {
        let typed = schema_of(&declared);
        let (columns, diff, path_columns) =
            ColumnarPlan::new(spec, &path, schema, declared, |schema| columns(schema, None))?;
        let parser =
            Parser::new(path.clone(), typed, plan(columns), diff).with_path_columns(path_columns).with_epochs(spec);
        Ok(Self::new(path, parser, from))
    }

    /// A reader that begins with the first line, or row, of a file.
    fn new(path: String, parser: Parser, from: Feed) -> Self {
        let (parser, cuts, breaks) = (Arc::new(parser), Vec::new(), Vec::new());
        let shape = TextShape::default();
        let (hours, left, ended) = (None, 0, false);
        Self { path, parser, next_index: 0, next_line: 1, offset: 0, cuts, breaks, shape, from, hours, left, ended }
    }

    /// The same, for rows whose times depend on their order, if `spec` has such: this reader parses them.
    ///
    /// # Errors
    /// [`SourceError::Arrow`] only for faults of this crate.
    pub(crate) fn in_order(self, spec: &SourceSpec) -> Result<Self, SourceError> {
        let hours =
            RepeatedHours::new(spec).map_err(|source| SourceError::Arrow { path: self.path.clone(), source })?;
        Ok(Self { hours: hours.map(Box::new), ..self })
    }

    /// Lets chunks begin at these offsets too. Records must begin there.
    pub fn cut_at(&mut self, offsets: &[u64]) {
        self.cuts = offsets.to_vec();
    }

    /// The parser of the chunks, usable on any thread.
    pub fn parser(&self) -> Arc<Parser> {
        Arc::clone(&self.parser)
    }

    /// Stored bytes consumed so far, for progress.
    pub fn bytes_read(&self) -> u64 {
        match &self.from {
            Feed::Text { bytes, .. } => bytes.bytes(),
            Feed::Parquet { taken, hash, .. } => hash.map_or(*taken, |(_, bytes)| bytes),
            Feed::Arrow { input, .. } | Feed::Avro { input, .. } => input.stored().bytes(),
            Feed::Cbt(rows) => rows.stored().bytes(),
        }
    }

    /// What the beginning of the text decided.
    pub fn shape(&self) -> TextShape {
        self.shape
    }

    /// Bytes of a last line without a line end that were left out, because the file changed while it was read: the line may
    /// not be whole. 0 before the reader has ended.
    pub fn bytes_left(&self) -> u64 {
        self.left
    }

    /// The hash of the stored bytes, once the reader has ended. Before that, of the bytes read so far (none for Parquet).
    pub fn content_hash(&self) -> ContentHash {
        match &self.from {
            Feed::Text { bytes, .. } => bytes.hash(),
            Feed::Parquet { hash, .. } => hash.map_or_else(|| Tally::default().hash(), |(hash, _)| hash),
            Feed::Arrow { input, .. } | Feed::Avro { input, .. } => input.stored().hash(),
            Feed::Cbt(rows) => rows.stored().hash(),
        }
    }

    /// How the file has grown since it was the longest of `held`, in ascending order, that its first bytes still hash to, with
    /// the size of that content. Reads to the end, unless it has not grown.
    pub(crate) fn growth(mut self, held: &[&HeldContent]) -> Result<Option<(u64, Growth)>, SourceError> {
        let (first, parser) = (self.offset, self.parser());
        let mut held = held.iter().copied().filter(|held| held.size >= first).peekable();
        let mut found: Option<FoundSeam<'_>> = None;
        while held.peek().is_some() || found.is_some() {
            let Some(chunk) = self.next().transpose()? else { break };
            let (Body::Text { bytes, .. }, Feed::Text { bytes: read, dialect, .. }) = (&chunk.body, &self.from) else {
                return Ok(None);
            };
            let (start, end) = (chunk.offset, chunk.offset + bytes.len() as u64);

            while let Some(held) = held.next_if(|held| held.size <= end) {
                if read.marked(held.size) != Some(held.hash) {
                    continue;
                }
                let seam = dialect.seam(bytes, (held.size - start) as usize, &|rows| {
                    let body = Body::of_text(bytes.slice(rows), dialect);
                    parser.parse(Chunk { body, ..chunk.clone() }).is_ok_and(|parsed| parsed.batch.num_rows() > 0)
                });
                // Rather a content to which whole records were added.
                if seam.next.is_some() || found.as_ref().is_none_or(|found| found.seam.next.is_none()) {
                    found = Some(FoundSeam { held, start, seam });
                }
            }
        }

        let Some(FoundSeam { held, start, seam: Seam { next, new_break } }) = found else { return Ok(None) };
        let [from, new_break] = [next, new_break].map(|place| place.map(|place| start + place as u64));
        let (bytes, hash) = (self.bytes_read(), self.content_hash());
        Ok(Some((held.size, Growth { from, new_break, before: held.hash, bytes, hash })))
    }

    fn advance(&mut self) -> Result<Option<Chunk>, SourceError> {
        match &mut self.from {
            Feed::Text { .. } => self.next_text(),
            Feed::Parquet { .. } => self.next_slice(),
            Feed::Arrow { .. } => self.next_batch(),
            Feed::Avro { .. } => self.next_blocks(),
            Feed::Cbt(_) => self.next_cbt(),
        }
    }

    fn next_text(&mut self) -> Result<Option<Chunk>, SourceError> {
        let Feed::Text { bytes, dialect, chunk_bytes, carry, exhausted, headers } = &mut self.from else {
            return Ok(None);
        };
        let chunk_bytes = *chunk_bytes;
        let mut buffer = std::mem::take(carry);
        buffer.reserve((chunk_bytes + 64).saturating_sub(buffer.len()));
        let next_break = self.breaks.iter().find(|at| **at > self.offset).map(|at| (at - self.offset) as usize);

        let end = loop {
            if !*exhausted && buffer.len() < chunk_bytes {
                let missing = chunk_bytes - buffer.len();
                *exhausted = bytes.append(&mut buffer, missing)? < missing;
            }
            if *exhausted && self.left == 0 && buffer.last().is_some_and(|last| *last != b'\n') && bytes.has_changed() {
                let whole = memrchr(b'\n', &buffer).map_or(0, |end| end + 1);
                self.left = (buffer.len() - whole) as u64;
                buffer.truncate(whole);
            }
            let unbroken = next_break.and_then(|at| buffer.get(..at));
            match dialect.cut(unbroken.unwrap_or(&buffer), chunk_bytes, *exhausted || unbroken.is_some()) {
                0 if *exhausted => break buffer.len(),
                0 if buffer.len() >= LONGEST_RECORD => {
                    let (path, line) = (self.path.clone(), self.next_line);
                    return Err(SourceError::RecordTooLong { path, line, bytes: buffer.len() });
                }
                0 => *exhausted = append_more(bytes, &mut buffer, chunk_bytes)?,
                end => break end,
            }
        };
        if buffer.is_empty() {
            return Ok(None);
        }
        let inside = self.offset + 1..self.offset + end as u64;
        let end = self.cuts.iter().find(|cut| inside.contains(cut)).map_or(end, |cut| (cut - self.offset) as usize);
        let end = match (headers, self.parser.plan()) {
            (Some(headers), Plan::Csv(plan)) => {
                let records = buffer.get(..end).unwrap_or_default();
                end_before_header(headers, plan, records, &self.path, self.next_line)?
            }
            _ => end,
        };

        // The larger part stays where it is: a chunk must not keep the memory of a buffer that was read for a long quote.
        if buffer.len() - end > end {
            let chunk = buffer.get(..end).unwrap_or_default().to_vec();
            buffer.drain(..end);
            *carry = std::mem::replace(&mut buffer, chunk);
        } else {
            carry.extend_from_slice(buffer.get(end..).unwrap_or_default());
            buffer.truncate(end);
        }

        let (first_line, offset) = (self.next_line, self.offset);
        self.offset += buffer.len() as u64;
        let body = Body::of_text(Bytes::from(buffer), dialect);
        if let Body::Text { lines, .. } = body {
            self.next_line += lines as u64;
        }
        Ok(Some(self.chunk(first_line, offset, body)))
    }

    fn next_slice(&mut self) -> Result<Option<Chunk>, SourceError> {
        let Feed::Parquet { group, skip, in_order, taken, .. } = &mut self.from else { return Ok(None) };
        let parser = Arc::clone(&self.parser);
        let Plan::Parquet(plan) = parser.plan() else { return Ok(None) };
        while let Some((rows, bytes)) = plan.file.groups().nth(*group) {
            let left = rows.saturating_sub(*skip);
            if left == 0 {
                *group += 1;
                *skip = 0;
                *in_order = None;
                continue;
            }

            let mut slice = GroupSlice { group: *group, skip: *skip, rows: left.min(SLICE_ROWS), decoded: None };
            if plan.reads_in_order(*group, SLICE_ROWS) {
                let following = match in_order {
                    Some(following) => following,
                    None => in_order.insert(Box::new(plan.rows(*group)?)),
                };
                let decoded = plan.next_rows(following, slice.rows)?;
                slice.rows = decoded.as_ref().map_or(0, RecordBatch::num_rows);
                slice.decoded = decoded;
                if slice.rows == 0 {
                    return Err(SourceError::Changed { path: self.path.clone() });
                }
            }

            *taken += (bytes as f64 * slice.rows as f64 / rows as f64) as u64;
            *skip += slice.rows;
            let first_row = self.next_line;
            self.next_line += slice.rows as u64;
            return Ok(Some(self.chunk(first_row, first_row - 1, Body::Parquet(slice))));
        }
        self.hash_parquet(&plan.file)?;
        Ok(None)
    }

    /// Hashes the stored bytes of a Parquet file, whose last slice was read.
    fn hash_parquet(&mut self, file: &ParquetFile) -> Result<(), SourceError> {
        let Feed::Parquet { hash, stop_check, .. } = &mut self.from else { return Ok(()) };
        let mut tally = Tally::default();
        match file.bits() {
            Bits::Memory { stored: Some(stored), .. } => {
                *hash = Some(*stored);
                return Ok(());
            }
            Bits::Memory { bytes, .. } => tally.add(bytes),
            Bits::Local { path, .. } => File::open(path)
                .and_then(|file| hash_all(&mut stop_check.read(file), &mut tally))
                .map_err(|source| SourceError::Io { path: self.path.clone(), source })?,
        }
        *hash = Some((tally.hash(), tally.bytes()));
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<Chunk>, SourceError> {
        let Feed::Arrow { input, messages, rest } = &mut self.from else { return Ok(None) };
        let first_row = self.next_line;
        let batch = match rest.take() {
            Some(batch) => batch,
            None => match messages.next(input, first_row - 1)? {
                Some(batch) => batch,
                None => return Ok(None),
            },
        };
        let rows = batch.num_rows().min(SLICE_ROWS);
        if rows < batch.num_rows() {
            *rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        let ends_unmarked = rest.is_none() && messages.ends_unmarked(input)?;
        self.next_line += rows as u64;
        let body = Body::Batch { batch: batch.slice(0, rows), ends_unmarked };
        Ok(Some(self.chunk(first_row, first_row - 1, body)))
    }

    fn next_blocks(&mut self) -> Result<Option<Chunk>, SourceError> {
        let Feed::Avro { input, blocks } = &mut self.from else { return Ok(None) };
        let first_record = self.next_line;
        let Some(found) = blocks.next(input, first_record - 1)? else { return Ok(None) };
        self.next_line += found.records as u64;
        Ok(Some(self.chunk(first_record, first_record - 1, Body::Avro(found))))
    }

    fn next_cbt(&mut self) -> Result<Option<Chunk>, SourceError> {
        let Feed::Cbt(rows) = &mut self.from else { return Ok(None) };
        let first_row = self.next_line;
        let Some(batch) = rows.next()? else { return Ok(None) };
        self.next_line += batch.num_rows() as u64;
        let body = Body::Batch { batch, ends_unmarked: false };
        Ok(Some(self.chunk(first_row, first_row - 1, body)))
    }

    /// The chunk, parsed if its times depend on its order.
    fn ordered(&mut self, chunk: Chunk) -> Result<Chunk, SourceError> {
        let Some(hours) = &mut self.hours else { return Ok(chunk) };
        let decoded = self.parser.decode(chunk.clone())?;
        let parsed = hours.settle(decoded).map_err(|source| SourceError::Arrow { path: self.path.clone(), source })?;
        Ok(Chunk { body: Body::Parsed(Box::new(parsed)), ..chunk })
    }

    fn chunk(&mut self, first_line: u64, offset: u64, body: Body) -> Chunk {
        let index = self.next_index;
        self.next_index += 1;
        let header = match &self.from {
            Feed::Text { headers: Some(headers), .. } => headers.in_force.clone(),
            _ => None,
        };
        Chunk { index, first_line, offset, body, header }
    }
}

impl Iterator for InputReader {
    type Item = Result<Chunk, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let path = self.path.clone();
        let next =
            at_boundary(&path, || self.advance()).and_then(|next| next.map(|chunk| self.ordered(chunk)).transpose());
        let next = next.transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Where records of one header end among `records`, which begin on `line`. A header with which they begin is in force from
/// here on.
///
/// # Errors
/// [`SourceError::LaterHeader`] and [`SourceError::DuplicateColumn`], where the mode does not allow it.
fn end_before_header(
    headers: &mut LaterHeaders,
    plan: &CsvPlan,
    records: &[u8],
    path: &str,
    line: u64,
) -> Result<usize, SourceError> {
    let mut from = 0;
    loop {
        let rest = records.get(from..).unwrap_or_default();
        let Some(found) = headers.find(&plan.dialect, &plan.columns, rest) else { return Ok(records.len()) };
        let (start, end) = (from + found.place.start, from + found.place.end);
        if start > 0 {
            return Ok(start);
        }
        let declaration = Declaration { columns: &plan.columns, mode: headers.mode, time: &headers.time };
        let matched = match_columns(path, &found.names, declaration);
        let Matched { steps, diff, .. } = matched.map_err(|error| match error {
            SourceError::MissingColumn { path, column, header, .. } => {
                SourceError::LaterHeader { path, line, column, header }
            }
            error => error,
        })?;
        headers.go_on(found, line, steps, diff);
        from = end;
    }
}

/// Matches columns to their places in a file without a header. The path names the last of the columns, behind those of the
/// file, unless the file has all of them.
fn match_by_place(
    start: &mut TextStart,
    dialect: &Dialect,
    columns: &[ColumnPlan],
    shape: &mut TextShape,
) -> Result<Matched, SourceError> {
    let mut matched = Matched::by_place(columns.len());
    let named = path_columns(start.bytes.path(), columns, |_| false)?;
    if named.is_empty() {
        return Ok(matched);
    }

    if shape.width == 0 {
        shape.width = start.usual_width(dialect)? as u32;
    }
    if (shape.width as usize) < columns.len() {
        matched.path_columns = named;
    }
    matched.steps.retain(|step| !matched.path_columns.iter().any(|column| Some(column.index) == *step));
    Ok(matched)
}

#[cfg(test)]
mod tests {
    use tidetable_layout::FieldType;

    use super::*;
    use crate::spec::ColumnSpec;
    use crate::storage::Storage;

    const CHUNK: usize = 1 << 20;
    const MIB: usize = 1 << 20;

    /// One stray quote must cost neither the memory of the rest of the file nor more than its own line.
    #[test]
    fn an_open_quote_holds_a_bounded_part_of_a_file() {
        let root = tempfile::tempdir().unwrap();
        let line = format!("{},2\n", "x".repeat(4096));
        let lines = 44 * MIB / line.len();
        let mut text = format!("a,b\ny,1\n\"open,2\n{}", line.repeat(lines));
        // Closed far behind the bound: as good as never.
        text.push_str("z\",3\nlast,4\n");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
        std::fs::write(root.path().join("a.csv"), &text).unwrap();
        std::fs::write(root.path().join("b.csv.gz"), packed.finish().unwrap()).unwrap();

        let storage = Storage::new(root.path().to_owned(), None).with_chunk_bytes(CHUNK);
        for file in ["a.csv", "b.csv.gz"] {
            let spec = SourceSpec {
                files: vec![file.to_owned()],
                columns: vec![ColumnSpec::new("a", FieldType::Text), ColumnSpec::new("b", FieldType::UInt64)],
                time: "a".to_owned(),
                ..SourceSpec::default()
            };
            let mut reader = storage.open(&spec, &storage.discover(&spec).unwrap()[0]).unwrap();
            let parser = reader.parser();
            let (mut rows, mut rejected) = (0, Vec::new());
            while let Some(chunk) = reader.next() {
                let Feed::Text { carry, .. } = &reader.from else { panic!("not text") };
                let chunk = chunk.unwrap();
                let Body::Text { bytes, .. } = &chunk.body else { panic!("not text") };
                assert!(
                    carry.capacity() <= 40 * MIB && bytes.len() <= 2 * CHUNK,
                    "{} {}",
                    carry.capacity(),
                    bytes.len()
                );
                let parsed = parser.parse(chunk).unwrap();
                rows += parsed.batch.num_rows();
                rejected.extend(parsed.rejected.iter().map(ToString::to_string));
            }
            assert_eq!(rows, lines + 3, "{file}");
            assert_eq!(
                rejected,
                ["line 3: the quote opened on line 3 is never closed; reading goes on with the line after it"]
            );
        }
    }
}
