//! The layouts that were chosen, and the job that has them.

use tidetable_layout::SourceSchema;
use toml::{Table, Value};

use crate::advice::apart::Apart;
use crate::advice::generate::Proposed;
use crate::advice::job_text::{job_with, quoted, with_entry};
use crate::advice::pairs::{Pair, Second, Third};
use crate::advice::refused::Refused;
use crate::comparison::{Comparison, Economy};
use crate::error::Result;

/// The layouts proposed for a workload, with what was measured of the best and what they cost: the result of
/// [`advise`](crate::advice::advise).
#[derive(Debug, Clone)]
pub struct Advice {
    /// Candidates that were ranked, the best first.
    pub candidates: Vec<Proposed>,
    /// Candidates, and second tables, that rules refuse at the declared scale, and why.
    pub refused: Vec<Refused>,
    /// Source rows on which candidates were ranked, on which the best were measured, and all.
    pub rows: [u64; 3],
    /// The best candidates, at most five, measured on the larger sample.
    pub comparison: Comparison,
    /// Loads, nodes and monthly prices of the layouts of `comparison`, in its order.
    pub economy: Economy,
    /// Pairs of tables that cost less than the best alone, cheapest first.
    pub pairs: Vec<Pair>,
    /// A table of the newest rows as a third one, if that costs less.
    pub(super) third: Option<Third>,
    /// Kinds of events of which each query wants one.
    pub(super) apart: Option<Apart>,
    /// Tables that are wanted at most.
    pub(super) most_tables: usize,
    /// Columns of the source.
    pub(super) schema: SourceSchema,
}

impl Advice {
    /// Index of the best single layout.
    pub fn best(&self) -> usize {
        self.economy.scores.iter().position(|score| score.place == 1).unwrap_or_default()
    }

    /// The place of a single layout, from 1. If a pair is chosen and no single layout serves the workload, none has the first.
    pub fn place(&self, at: usize) -> Option<usize> {
        let is_kept = self.economy.costs.get(self.best()).is_some_and(|best| best.standing().is_none());
        let shift = usize::from(!self.pairs.is_empty() && !is_kept);
        Some(self.economy.scores.get(at)?.place + shift)
    }

    /// Index of the layout that is chosen, alone or as the first of two tables.
    pub fn chosen(&self) -> usize {
        self.pairs.first().map_or_else(|| self.best(), |pair| pair.first)
    }

    /// The names of the tables that cost least: two, if a pair does.
    pub fn winners(&self) -> Vec<String> {
        match self.pairs.first() {
            Some(pair) => pair.names.to_vec(),
            None => self.comparison.layouts.get(self.best()).map(|it| it.measured.layout.clone()).into_iter().collect(),
        }
    }

    /// The job file `text` under another name, with the winners instead of its tables.
    ///
    /// # Errors
    /// If `text` is not valid TOML.
    pub fn job_of_winners(&self, text: &str, name: &str) -> Result<String> {
        let pair = self.pairs.first();
        let second = pair.map(|pair| pair.second);
        let other = if let Some(Second::Layout(at)) = second { Some(at) } else { None };
        let layouts = [Some(self.chosen()), other].into_iter().flatten();
        let chosen: Vec<&Proposed> = layouts.filter_map(|at| self.proposed(at)).collect();

        if let Some(tables) = self.tables_apart() {
            return job_with(text, name, &self.schema, &tables.iter().collect::<Vec<_>>());
        }

        let job = job_with(text, name, &self.schema, &chosen)?;
        let Some(first) = self.proposed(self.chosen()) else { return Ok(job) };
        match pair {
            Some(Pair { second: Second::Days, .. }) => {
                with_entry(&job, "exports", format!("{}_day", first.name), self.days_of(first))
            }
            Some(pair @ Pair { second: Second::Newest, names: [_, name], .. }) => {
                with_entry(&job, "tables", name.clone(), self.newest_of(first, pair))
            }
            _ => Ok(job),
        }
    }

    /// The tables of the kinds of events, if the choice is one table and these are no more than are wanted.
    pub(super) fn tables_apart(&self) -> Option<Vec<Proposed>> {
        let apart = self.apart.as_ref().filter(|apart| self.pairs.is_empty() && apart.count() <= self.most_tables)?;
        let time = self.schema.fields.get(self.schema.time).map(|field| field.name.as_str()).unwrap_or_default();
        apart.tables(self.proposed(self.best())?, time)
    }

    /// The candidate of a layout that was measured.
    fn proposed(&self, at: usize) -> Option<&Proposed> {
        let name = &self.comparison.layouts.get(at)?.measured.layout;
        self.candidates.iter().find(|proposed| proposed.name == *name)
    }

    /// An export of each day of a table, in the order of its columns.
    fn days_of(&self, first: &Proposed) -> Table {
        let time = self.schema.fields.get(self.schema.time).map(|field| field.name.clone());
        let order: Vec<String> = first.key.iter().cloned().chain(time).map(|name| quoted(&name)).collect();
        let sql = format!("SELECT * FROM {} ORDER BY {}", quoted(&first.name), order.join(", "));
        Table::from_iter([
            ("per".to_owned(), "day".into()),
            ("name".to_owned(), format!("{}_{{day:%Y%m%d}}", first.name).into()),
            ("query".to_owned(), Table::from_iter([("sql".to_owned(), sql.into())]).into()),
        ])
    }

    /// A table of the newest row of each entity of another, the second of a pair.
    fn newest_of(&self, first: &Proposed, pair: &Pair) -> Table {
        let [_, row_key] = pair.row_keys.clone();
        let time = self.schema.fields.get(self.schema.time).map(|field| field.name.clone()).unwrap_or_default();

        let except = pair.key.iter().cloned().chain([time.clone()]).map(Value::from).collect::<Vec<_>>();
        let mut each = column_section("{column}", "{value}");
        each.insert("each".to_owned(), "*".into());
        each.insert("except".to_owned(), except.into());
        let columns = vec![Value::from(column_section("time", &format!("{{{time}}}"))), each.into()];
        let family = Table::from_iter([("columns".to_owned(), Value::Array(columns))]);

        let sql = format!("SELECT * FROM {}", quoted(&first.name));
        let query = Table::from_iter([("sql".to_owned(), sql.into())]);
        Table::from_iter([
            ("from".to_owned(), Table::from_iter([("query".to_owned(), query.into())]).into()),
            ("row_key".to_owned(), row_key.into()),
            ("window".to_owned(), "none".into()),
            ("upsert".to_owned(), "row".into()),
            ("families".to_owned(), Table::from_iter([("d".to_owned(), family.into())]).into()),
        ])
    }
}

/// A column of a family as a job file declares it, by the templates of its qualifier and value.
fn column_section(qualifier: &str, value: &str) -> Table {
    Table::from_iter([("qualifier".to_owned(), qualifier.into()), ("value".to_owned(), value.into())])
}
