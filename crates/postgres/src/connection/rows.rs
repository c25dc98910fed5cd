//! Rows of a query on their way to a client.

use std::sync::Arc;

use futures::StreamExt;
use pgwire::messages::data::{FieldDescription, RowDescription};

use crate::encode::{Format, Rows};
use crate::engine::Batches;
use crate::error::Refusal;
use crate::types::Column;
use crate::wire::Outgoing;

/// Rows of a query, of which some were sent.
pub(super) struct Cursor {
    pub(super) columns: Arc<Vec<Column>>,
    batches: Batches,
    current: Option<Rows>,
    next: usize,
}

impl Cursor {
    pub(super) fn new(columns: Arc<Vec<Column>>, batches: Batches) -> Self {
        Self { columns, batches, current: None, next: 0 }
    }

    /// The rows that come next, and the place of the first of them; `None` at the end.
    pub(super) async fn rows(&mut self) -> Result<Option<(&Rows, &mut usize)>, Refusal> {
        while self.current.as_ref().is_none_or(|rows| self.next >= rows.count()) {
            let Some(batch) = self.batches.next().await.transpose()? else { return Ok(None) };
            self.current = Some(Rows::new(&batch, &self.columns)?);
            self.next = 0;
        }
        Ok(self.current.as_ref().map(|rows| (rows, &mut self.next)))
    }

    /// Sends at most `most` rows, or all, as they come. Returns how many.
    pub(super) async fn send(
        &mut self,
        most: Option<usize>,
        formats: &[Format],
        outgoing: &mut Outgoing,
    ) -> Result<usize, Refusal> {
        let mut sent = 0;
        while most.is_none_or(|most| sent < most) {
            let Some((rows, next)) = self.rows().await? else { break };
            while *next < rows.count() && most.is_none_or(|most| sent < most) {
                outgoing.put_row(rows, *next, formats);
                *next += 1;
                sent += 1;
                outgoing.flush_full().await.map_err(gone)?;
            }
        }
        Ok(sent)
    }

    /// Skips at most `most` rows, or all. Returns how many.
    pub(super) async fn skip(&mut self, most: Option<usize>) -> Result<usize, Refusal> {
        let mut skipped = 0;
        while most.is_none_or(|most| skipped < most) {
            let Some((rows, next)) = self.rows().await? else { break };
            let count = (rows.count() - *next).min(most.map_or(usize::MAX, |most| most - skipped));
            *next += count;
            skipped += count;
        }
        Ok(skipped)
    }
}

/// A client that is gone, which needs no answer.
pub(super) fn gone(error: std::io::Error) -> Refusal {
    Refusal::protocol(format!("the client is gone: {error}"))
}

/// The message that tells columns, with the format of each.
pub(super) fn description(columns: &[Column], formats: &[Format]) -> RowDescription {
    let field = |(place, column): (usize, &Column)| {
        let format = formats.get(place).copied().unwrap_or_default();
        let (oid, length) = (column.kind.oid(), column.kind.length());
        FieldDescription::new(column.name.clone(), 0, 0, oid, length, column.modifier, format.code())
    };
    RowDescription::new(columns.iter().enumerate().map(field).collect())
}
