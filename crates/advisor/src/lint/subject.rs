//! What checks look at: a job, and a table with the parts of its row key.

use std::ops::Range;

use tidetable_job::{Job, Table};
use tidetable_layout::error::Place;
use tidetable_layout::outline::{FieldForm, PartContent, TemplatePart, template_parts};
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::time::DAY;
use tidetable_layout::{Field, FieldType};
use tidetable_store::GcRule;

use super::found::Edit;
use crate::cost::Prices;
use crate::facts::{DataFacts, TableFacts};

/// Most versions that a rule of garbage collection is asked about: more are no bound.
const MANY: usize = 1 << 20;
/// Most days that a rule of garbage collection is asked about: more are no bound.
const MOST_DAYS: i64 = 36_500;

/// A job and what is known of its data.
#[derive(Debug)]
pub(crate) struct JobSubject<'a> {
    pub(crate) job: &'a Job,
    pub(crate) tables: Vec<TableSubject<'a>>,
    /// Ids of all rules.
    pub(crate) rules: Vec<&'static str>,
    /// The price list that has the quotas and the capacities of a node.
    pub(crate) prices: &'a Prices,
}

impl<'a> JobSubject<'a> {
    pub(crate) fn new(job: &'a Job, data: Option<&'a DataFacts>, prices: &'a Prices, rules: Vec<&'static str>) -> Self {
        let mut tables = Vec::with_capacity(job.tables.len());
        for table in &job.tables {
            let facts = data.and_then(|data| data.table(&table.spec.name));
            tables.push(TableSubject::new(job, prices, table, facts));
        }
        Self { job, tables, rules, prices }
    }
}

/// A table of the job.
#[derive(Debug)]
pub(crate) struct TableSubject<'a> {
    pub(crate) job: &'a Job,
    /// The price list that has the quotas and the capacities of a node.
    pub(crate) prices: &'a Prices,
    pub(crate) table: &'a Table,
    /// Its data; `None` without.
    pub(crate) facts: Option<&'a TableFacts>,
    parts: Vec<TemplatePart>,
    fields: Vec<KeyField>,
}

/// A column in the row key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyField {
    pub(crate) name: String,
    pub(crate) form: FieldForm,
    pub(crate) kind: FieldType,
    /// Bytes of the template.
    pub(crate) span: Range<usize>,
    /// Whether another field follows without text between them.
    pub(crate) touches_next: bool,
}

impl KeyField {
    /// Whether it prints a time, or parts of one.
    pub(crate) fn is_time(&self) -> bool {
        let of_time = matches!(self.kind, FieldType::Timestamp | FieldType::Date);
        of_time && !matches!(self.form, FieldForm::Salt(_) | FieldForm::Hash)
    }

    pub(crate) fn is_integer(&self) -> bool {
        matches!(self.kind, FieldType::UInt64 | FieldType::Int64)
    }

    /// Bytes it prints at least.
    pub(crate) fn least_width(&self) -> usize {
        match &self.form {
            FieldForm::ZeroPad(width) => usize::from(*width),
            FieldForm::SpacePad(width) => usize::from(*width),
            FieldForm::Time(shape) => shape.width.unwrap_or(1),
            FieldForm::Epoch => 10,
            FieldForm::MsReversed => 19,
            FieldForm::BigEndian => 8,
            FieldForm::Hash => 16,
            _ => 1,
        }
    }
}

impl<'a> TableSubject<'a> {
    fn new(job: &'a Job, prices: &'a Prices, table: &'a Table, facts: Option<&'a TableFacts>) -> Self {
        let parts = template_parts(&table.spec.row_key);
        let mut fields = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let PartContent::Field { name, form } = &part.content else { continue };
            let column = table.layout.source().fields.iter().find(|field| field.name == *name);
            let next = parts.get(at + 1).map(|next| &next.content);
            fields.push(KeyField {
                name: name.clone(),
                form: form.clone(),
                kind: column.map_or(FieldType::Text, |field| field.kind),
                span: part.span.clone(),
                touches_next: matches!(next, Some(PartContent::Field { .. })),
            });
        }
        Self { job, prices, table, facts, parts, fields }
    }

    pub(crate) fn name(&self) -> &'a str {
        &self.table.spec.name
    }

    /// The columns of the row key, from left to right.
    pub(crate) fn fields(&self) -> &[KeyField] {
        &self.fields
    }

    /// Name of the event time.
    pub(crate) fn time(&self) -> &'a str {
        let source = self.table.layout.source();
        source.fields.get(source.time).map(|field| field.name.as_str()).unwrap_or_default()
    }

    /// Whether the row key holds the event time or parts of it.
    pub(crate) fn has_time(&self) -> bool {
        self.fields.iter().any(|field| field.is_time() && field.name == self.time())
    }

    /// Bytes of the row key at least.
    pub(crate) fn least_key(&self) -> usize {
        let literals = self.parts.iter().filter_map(|part| match &part.content {
            PartContent::Literal(text) => Some(text.len()),
            PartContent::Field { .. } => None,
        });
        literals.sum::<usize>() + self.fields.iter().map(KeyField::least_width).sum::<usize>()
    }

    /// Byte range of the name of the table in the job file.
    pub(crate) fn at(&self) -> Range<usize> {
        self.table.places.of(Place::Table, 0..0)
    }

    /// Byte range in the job file of the bytes `part` of the row key's template.
    pub(crate) fn key_at(&self, part: Range<usize>) -> Range<usize> {
        self.table.places.of(Place::RowKey, part)
    }

    /// Byte range in the job file of the row key's template.
    pub(crate) fn whole_key(&self) -> Range<usize> {
        self.key_at(0..self.table.spec.row_key.len())
    }

    /// A column of the source that tells who or what a row is about and is not in the key: the first of text, else the
    /// first integer.
    pub(crate) fn promotable(&self) -> Option<String> {
        let columns = self.table.layout.source().fields.iter();
        let free = columns.filter(|column| !self.fields.iter().any(|field| field.name == column.name));
        let free: Vec<&Field> = free.filter(|column| column.name != self.time()).collect();

        if let Some(text) = free.iter().find(|column| column.kind == FieldType::Text) {
            return Some(format!("{{{}}}", text.name));
        }
        let integer = free.iter().find(|column| matches!(column.kind, FieldType::UInt64 | FieldType::Int64))?;
        Some(format!("{{{}:010}}", integer.name))
    }

    /// Whether each event is a version more of a column of this family, of which the newest wins.
    pub(crate) fn is_versioned(&self, family: &str) -> bool {
        self.table.layout.stored().groups.iter().any(|group| {
            let is_series = group.qualifier == QualifierKind::Constant && group.timestamps == TimestampKind::Stored;
            let wins = group.columns.iter().any(|column| column.family == family && column.merge.is_newest());
            is_series && wins && !group.keeps_duplicates()
        })
    }

    /// The template with `field` printed as `text`, with a delimiter where it needs one now.
    pub(crate) fn with_field(&self, field: &KeyField, text: &str) -> Option<Edit> {
        let delimiter = if field.touches_next { "#" } else { "" };
        self.with_key(|key| {
            Some(format!("{}{text}{delimiter}{}", key.get(..field.span.start)?, key.get(field.span.end..)?))
        })
    }

    /// The template with its fields in the order `order` (indexes of fields, or other text), joined by its delimiter. Text
    /// before the first field and behind the last stays.
    pub(crate) fn with_order(&self, order: &[String]) -> Option<Edit> {
        let (first, last) = (self.fields.first()?, self.fields.last()?);
        let between = self.parts.iter().find_map(|part| match &part.content {
            PartContent::Literal(_) if part.span.start >= first.span.end && part.span.end <= last.span.start => {
                self.table.spec.row_key.get(part.span.clone())
            }
            _ => None,
        });
        let joined = order.join(between.unwrap_or("#"));
        self.with_key(|key| Some(format!("{}{joined}{}", key.get(..first.span.start)?, key.get(last.span.end..)?)))
    }

    /// The text of a field of the template, from brace to brace.
    pub(crate) fn written(&self, field: &KeyField) -> String {
        self.table.spec.row_key.get(field.span.clone()).unwrap_or_default().to_owned()
    }

    /// The texts of fields of the template, in their order.
    pub(crate) fn written_all(&self, fields: &[KeyField]) -> Vec<String> {
        fields.iter().map(|field| self.written(field)).collect()
    }

    /// An edit of the template; none if the file writes it with escapes.
    pub(crate) fn with_key(&self, change: impl FnOnce(&str) -> Option<String>) -> Option<Edit> {
        let at = self.table.places.row_key()?;
        let text = change(&self.table.spec.row_key)?;
        // A quote or a backslash would need an escape.
        (!text.contains(['"', '\\', '\''])).then_some(Edit { at, text })
    }

    /// An edit of a family's garbage-collection rule: replaced, or added in the line below the family's header.
    pub(crate) fn with_gc(&self, family: usize, rule: &str) -> Option<Edit> {
        if let Some(at) = self.table.places.gc(family) {
            return Some(Edit { at, text: rule.to_owned() });
        }
        let header = self.table.places.of(Place::Family(family), 0..0);
        let text = &self.job.text;
        let start = text.get(..header.start)?.rfind('\n').map_or(0, |at| at + 1);
        let end = text.get(header.end..)?.find('\n').map_or(text.len(), |at| header.end + at);
        let is_header = text.get(start..end)?.trim_start().starts_with('[');
        is_header.then(|| Edit { at: end..end, text: format!("\ngc = \"{rule}\"") })
    }

    /// Most versions that garbage collection leaves in a column of a family, however old they are; `None` if there is no
    /// such bound, by number or by age.
    pub(crate) fn versions_kept(&self, family: &str) -> Option<usize> {
        let rule = self.gc(family)?;
        let (old, now) = (0, i64::MAX / 2);
        if !rule.drops(MANY, old, now) {
            return None;
        }
        // The rule removes every cell with at least so many newer ones: the least number is searched for.
        let (mut low, mut high) = (0, MANY);
        while low < high {
            let middle = low + (high - low) / 2;
            if rule.drops(middle, old, now) { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }

    /// The number of versions of a column that garbage collection leaves however new they are.
    pub(crate) fn newest_kept(&self, family: &str) -> Option<usize> {
        let rule = self.gc(family)?;
        let now = 0;
        (0..MANY).find(|newer| rule.drops(*newer, now, now)).filter(|kept| *kept > 0)
    }

    /// Days after which garbage collection has dropped every cell of a row; infinite if it leaves some.
    pub(crate) fn days_kept(&self) -> f64 {
        let families = self.table.spec.families.iter();
        families.map(|family| self.gc(&family.name).map_or(f64::INFINITY, |rule| days_kept(&rule))).fold(0.0, f64::max)
    }

    fn gc(&self, family: &str) -> Option<GcRule> {
        let (_, rule) = self.table.gc.iter().find(|(name, _)| name == family)?;
        GcRule::parse(rule).ok()
    }
}

/// Days after which a rule drops a cell that no newer one replaces.
fn days_kept(rule: &GcRule) -> f64 {
    if !rule.drops(0, 0, MOST_DAYS * DAY) {
        return f64::INFINITY;
    }

    let (mut low, mut high) = (0, MOST_DAYS);
    while low < high {
        let middle = low + (high - low) / 2;
        if rule.drops(0, 0, middle * DAY) { high = middle } else { low = middle + 1 }
    }
    low as f64
}
