//! Runs statements: queries and cursors, and what `change` has.

use std::sync::Arc;

use pgwire::messages::response::{CommandComplete, TransactionStatus};
use tidetable_sql::ScalarValue;

use crate::connection::copy;
use crate::connection::rows::{Cursor, description};
use crate::connection::session::{MOST_PORTALS, Portal, Prepared, Session};
use crate::connection::watch::watched;
use crate::encode::Format;
use crate::error::{Refusal, code};
use crate::statement::{Fetched, Statement, first_word};
use crate::types::{Column, columns};

/// The form of the protocol in which a statement was sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form<'a> {
    /// As text alone: columns are told before rows.
    Simple,
    /// With values and formats: columns are told when they are asked for.
    Extended(&'a [Format]),
}

impl Session {
    /// Runs a statement, and sends what answers it.
    ///
    /// # Errors
    /// If it is refused, or fails.
    pub(super) async fn run(&mut self, text: &str, statement: &Statement, form: Form<'_>) -> Result<(), Refusal> {
        self.check_block(statement)?;
        match statement {
            Statement::Empty => Ok(()),
            Statement::Query => {
                let mut cursor = self.query(text, &[]).await?;
                let sent = self.send(&mut cursor, None, form).await?;
                self.complete(&format!("{} {sent}", tag(text)))
            }
            Statement::Show(name) => {
                let mut cursor = self.shown(name)?;
                self.send(&mut cursor, None, form).await?;
                self.complete("SHOW")
            }
            Statement::SetConfig(setting) => {
                self.apply(setting)?;
                let mut cursor = self.configured(setting)?;
                let sent = self.send(&mut cursor, None, form).await?;
                self.complete(&format!("SELECT {sent}"))
            }
            Statement::Copy { query, options } => {
                let mut cursor = self.query(query, &[]).await?;
                let sent = copy::send(&mut cursor, options, &mut self.outgoing);
                let sent = watched(&mut self.watch, &mut self.incoming, sent).await?;
                self.complete(&format!("COPY {sent}"))
            }
            Statement::Declare { cursor, is_binary, is_held, query } => {
                self.declare(cursor, *is_binary, *is_held, query).await
            }
            Statement::Fetch { cursor, rows, is_skipped } => self.fetch(cursor, *rows, *is_skipped, form).await,
            statement => self.change(statement),
        }
    }

    /// Begins a query with values for its parameters.
    pub(super) async fn query(&mut self, text: &str, values: &[ScalarValue]) -> Result<Cursor, Refusal> {
        let viewpoint = self.viewpoint();
        let begun = self.engine.begin(&viewpoint, text, values);
        let (schema, batches) = watched(&mut self.watch, &mut self.incoming, begun).await?;
        Ok(Cursor::new(Arc::new(columns(&schema)), batches))
    }

    /// Sends rows, with their columns where the form wants them. Returns how many.
    async fn send(&mut self, cursor: &mut Cursor, most: Option<usize>, form: Form<'_>) -> Result<usize, Refusal> {
        let formats = match form {
            Form::Simple => {
                self.outgoing.put(&description(&cursor.columns, &[]))?;
                Vec::new()
            }
            Form::Extended(formats) => formats_of(formats, cursor.columns.len())?,
        };
        let sent = cursor.send(most, &formats, &mut self.outgoing);
        watched(&mut self.watch, &mut self.incoming, sent).await
    }

    pub(super) fn complete(&mut self, tag: &str) -> Result<(), Refusal> {
        self.outgoing.put(&CommandComplete::new(tag.to_owned()))
    }

    async fn declare(&mut self, name: &str, is_binary: bool, is_held: bool, query: &str) -> Result<(), Refusal> {
        if self.transaction == TransactionStatus::Idle && !is_held {
            return Err(Refusal::new(
                code::NO_TRANSACTION,
                "DECLARE CURSOR can only be used in transaction blocks: send BEGIN first, or declare it WITH HOLD",
            ));
        }
        if self.portals.contains_key(name) {
            return Err(Refusal::new(code::CURSOR_NAME, format!("cursor \"{name}\" already exists")));
        }
        let cursor = self.query(query, &[]).await?;
        let formats = if is_binary { vec![Format::Binary] } else { Vec::new() };
        let prepared = Prepared {
            text: query.to_owned(),
            statement: Statement::Query,
            parameters: Vec::new(),
            columns: Some(Arc::clone(&cursor.columns)),
        };
        let prepared = Arc::new(prepared);
        let portal = Portal { prepared, values: Vec::new(), formats, rows: Some(cursor), is_done: false, is_held };
        self.add_portal(name, portal)?;
        self.complete("DECLARE CURSOR")
    }

    /// Adds a portal or a cursor.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn add_portal(&mut self, name: &str, portal: Portal) -> Result<(), Refusal> {
        if self.portals.len() >= MOST_PORTALS && !self.portals.contains_key(name) {
            let text = format!("a session has {MOST_PORTALS} cursors and portals at most: close some");
            return Err(Refusal::new(code::LIMIT, text));
        }
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    async fn fetch(&mut self, name: &str, rows: Fetched, is_skipped: bool, form: Form<'_>) -> Result<(), Refusal> {
        let mut portal = self.portals.remove(name).ok_or_else(|| no_cursor(name))?;
        let most = match rows {
            Fetched::All => None,
            Fetched::Rows(rows) => Some(rows),
        };
        let Some(cursor) = portal.rows.as_mut() else { return Err(no_cursor(name)) };

        let done = if is_skipped {
            let skipped = cursor.skip(most);
            watched(&mut self.watch, &mut self.incoming, skipped).await
        } else {
            let is_binary = portal.formats.first() == Some(&Format::Binary);
            let binary = [Format::Binary];
            let form = match form {
                Form::Simple if is_binary => {
                    let formats = formats_of(&binary, cursor.columns.len())?;
                    self.outgoing.put(&description(&cursor.columns, &formats))?;
                    Form::Extended(&binary)
                }
                form => form,
            };
            self.send(cursor, most, form).await
        };
        // A cursor whose query has failed is gone.
        let count = done?;
        self.portals.insert(name.to_owned(), portal);
        self.complete(&format!("{} {count}", if is_skipped { "MOVE" } else { "FETCH" }))
    }

    /// The columns of what a statement returns; `None` if it returns no rows.
    pub(super) fn columns_of(&self, prepared: &Prepared) -> Result<Option<Arc<Vec<Column>>>, Refusal> {
        match &prepared.statement {
            Statement::Query => Ok(prepared.columns.clone()),
            Statement::Show(name) => Ok(Some(Arc::clone(&self.shown(name)?.columns))),
            Statement::SetConfig(setting) => Ok(Some(Arc::clone(&self.configured(setting)?.columns))),
            Statement::Fetch { cursor, is_skipped: false, .. } => {
                let portal = self.portals.get(cursor).ok_or_else(|| no_cursor(cursor))?;
                Ok(portal.prepared.columns.clone())
            }
            _ => Ok(None),
        }
    }
}

/// A format for each of so many columns, of those that a client asks for: none, one for all, or one for each.
///
/// # Errors
/// If there are as many as fit to nothing.
pub(super) fn formats_of(asked: &[Format], columns: usize) -> Result<Vec<Format>, Refusal> {
    match asked {
        [] => Ok(vec![Format::Text; columns]),
        [one] => Ok(vec![*one; columns]),
        each if each.len() == columns => Ok(each.to_vec()),
        each => {
            Err(Refusal::new(code::PROTOCOL, format!("there are {columns} columns, and formats for {}", each.len())))
        }
    }
}

pub(super) fn no_statement(name: &str) -> Refusal {
    Refusal::new(code::STATEMENT_NAME, format!("prepared statement \"{name}\" does not exist"))
}

pub(super) fn no_cursor(name: &str) -> Refusal {
    Refusal::new(code::CURSOR_STATE, format!("cursor \"{name}\" does not exist"))
}

/// How the answer to a query names it.
pub(super) fn tag(text: &str) -> &'static str {
    match first_word(text).as_str() {
        "EXPLAIN" => "EXPLAIN",
        "SHOW" => "SHOW",
        _ => "SELECT",
    }
}
