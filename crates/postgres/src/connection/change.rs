//! Statements that change the session: blocks, settings, what it has prepared.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use futures::StreamExt;
use pgwire::messages::response::TransactionStatus;
use pgwire::messages::startup::ParameterStatus;

use crate::connection::rows::Cursor;
use crate::connection::run::{no_cursor, no_statement};
use crate::connection::session::Session;
use crate::error::{Refusal, code, warning};
use crate::statement::{Discarded, Setting, Statement, Told};
use crate::types::columns;

/// The column of a `SELECT set_config(..)`.
const SET_CONFIG: &str = "set_config";

impl Session {
    /// Does what a statement says about the session.
    ///
    /// # Errors
    /// If it is refused.
    pub(super) fn change(&mut self, statement: &Statement) -> Result<(), Refusal> {
        let tag = match statement {
            Statement::Begin => {
                if self.transaction == TransactionStatus::Transaction {
                    let text = "there is already a transaction in progress";
                    self.outgoing.put(&warning(code::ACTIVE_TRANSACTION, text))?;
                }
                self.transaction = TransactionStatus::Transaction;
                self.settings.begin();
                "BEGIN"
            }
            Statement::Commit | Statement::Rollback => {
                // A block that has failed commits nothing.
                let is_kept = *statement == Statement::Commit && self.transaction != TransactionStatus::Error;
                if self.transaction == TransactionStatus::Idle {
                    self.outgoing.put(&warning(code::NO_TRANSACTION, "there is no transaction in progress"))?;
                }
                self.transaction = TransactionStatus::Idle;
                self.forget_portals();
                self.end_settings(is_kept)?;
                if is_kept { "COMMIT" } else { "ROLLBACK" }
            }
            Statement::RollbackTo => {
                if self.transaction == TransactionStatus::Error {
                    self.transaction = TransactionStatus::Transaction;
                }
                "ROLLBACK"
            }
            Statement::Accepted(tag) => tag,
            Statement::Set(setting) => {
                self.apply(setting)?;
                match setting {
                    Setting::ResetAll | Setting::Value { value: None, .. } => "RESET",
                    _ => "SET",
                }
            }
            Statement::Deallocate(Some(name)) => {
                if self.statements.remove(name).is_none() {
                    return Err(no_statement(name));
                }
                "DEALLOCATE"
            }
            Statement::Deallocate(None) => {
                self.statements.clear();
                "DEALLOCATE ALL"
            }
            Statement::Discard(discarded) => self.discard(*discarded)?,
            Statement::Close(Some(name)) => {
                if self.portals.remove(name).is_none() {
                    return Err(no_cursor(name));
                }
                "CLOSE CURSOR"
            }
            Statement::Close(None) => {
                self.portals.clear();
                "CLOSE CURSOR ALL"
            }
            _ => return Err(Refusal::internal("a statement was taken for one about the session")),
        };
        self.complete(tag)
    }

    /// Forgets what a `DISCARD` names. Returns the tag that answers it.
    fn discard(&mut self, discarded: Discarded) -> Result<&'static str, Refusal> {
        match discarded {
            Discarded::Plans => return Ok("DISCARD PLANS"),
            Discarded::Temp => return Ok("DISCARD TEMP"),
            Discarded::Sequences => return Ok("DISCARD SEQUENCES"),
            Discarded::All => {}
        }
        if self.transaction != TransactionStatus::Idle {
            let text = "DISCARD ALL cannot run inside a transaction block: send COMMIT first";
            return Err(Refusal::new(code::ACTIVE_TRANSACTION, text));
        }
        self.statements.clear();
        self.portals.clear();
        self.apply(&Setting::ResetAll)?;
        Ok("DISCARD ALL")
    }

    /// Applies a setting, and tells the client what it must know of it.
    ///
    /// # Errors
    /// If the setting cannot have the value.
    pub(super) fn apply(&mut self, setting: &Setting) -> Result<(), Refusal> {
        let Told { settings, warning: noted } = self.settings.apply(setting)?;
        self.report(settings)?;
        match noted {
            Some(noted) => self.outgoing.put(&warning(noted.code, noted.text)),
            None => Ok(()),
        }
    }

    /// Ends the settings of a block, and tells the client of those that it knows.
    ///
    /// # Errors
    /// If a message is longer than clients take.
    pub(super) fn end_settings(&mut self, is_kept: bool) -> Result<(), Refusal> {
        let changed = self.settings.end(is_kept);
        self.report(changed)
    }

    fn report(&mut self, settings: Vec<(String, String)>) -> Result<(), Refusal> {
        settings.into_iter().try_for_each(|(name, value)| self.outgoing.put(&ParameterStatus::new(name, value)))
    }

    /// The rows of a `SHOW`.
    ///
    /// # Errors
    /// If there is no such setting.
    pub(super) fn shown(&self, name: &str) -> Result<Cursor, Refusal> {
        if name == "all" {
            let (names, values) = self.settings.all().unzip();
            return texts(&["name", "setting"], vec![names, values]);
        }
        let unknown = || Refusal::new(code::SETTING, format!("unrecognized configuration parameter \"{name}\""));
        texts(&[name], vec![vec![self.settings.get(name).ok_or_else(unknown)?]])
    }

    /// The row of a `SELECT set_config(..)`: the value that the setting has.
    ///
    /// # Errors
    /// If it cannot be held in memory.
    pub(super) fn configured(&self, setting: &Setting) -> Result<Cursor, Refusal> {
        let value = match setting {
            Setting::Value { name, .. } => self.settings.get(name).unwrap_or_default(),
            _ => "",
        };
        texts(&[SET_CONFIG], vec![vec![value]])
    }
}

/// Rows of texts, whose columns have these names.
fn texts(names: &[&str], columns_of_texts: Vec<Vec<&str>>) -> Result<Cursor, Refusal> {
    let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Utf8, false)).collect();
    let arrays = columns_of_texts.into_iter().map(|texts| Arc::new(StringArray::from(texts)) as ArrayRef);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays.collect());
    let batch = batch.map_err(|error| Refusal::internal(error.to_string()))?;
    let columns = Arc::new(columns(&batch.schema()));
    Ok(Cursor::new(columns, futures::stream::once(async { Ok(batch) }).boxed()))
}
