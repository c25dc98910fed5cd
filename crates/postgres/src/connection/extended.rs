//! The extended form of the protocol: statements are prepared, get values, and send rows in pieces.

use std::sync::Arc;

use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse};

use crate::connection::rows::description;
use crate::connection::run::{Form, formats_of, no_cursor, no_statement, tag};
use crate::connection::session::{MOST_STATEMENTS, MOST_TEXT, Portal, Prepared, Session};
use crate::connection::watch::watched;
use crate::encode::Format;
use crate::error::{Refusal, code};
use crate::parameters::value;
use crate::statement::{Statement, classify, split};
use crate::types::PgType;
use crate::wire::{Request, Target};

/// A refusal, with the text of the statement that its place counts in.
type Refused = (Refusal, String);

impl Session {
    /// Answers a message of the extended form.
    pub(super) async fn extended(&mut self, request: Request) -> Result<(), Refused> {
        self.watch.begin(self.limit());
        match request {
            Request::Parse { name, query, types } => {
                self.parse(name, &query, &types).await.map_err(|refusal| (refusal, query))
            }
            Request::Bind { portal, statement, parameter_formats, parameters, result_formats } => {
                let prepared =
                    self.statements.get(&statement).cloned().ok_or_else(|| bare(no_statement(&statement)))?;
                self.check_block(&prepared.statement).map_err(bare)?;
                let values = bound(&prepared, &parameter_formats, &parameters).map_err(bare)?;
                if let Some(columns) = &prepared.columns {
                    formats_of(&result_formats, columns.len()).map_err(bare)?;
                }
                self.bind(&portal, prepared, values, result_formats).map_err(bare)
            }
            Request::Describe { target, name } => self.describe(target, &name).map_err(bare),
            Request::Execute { portal, most } => self.execute(&portal, most).await,
            Request::Close { target, name } => {
                match target {
                    Target::Statement => drop(self.statements.remove(&name)),
                    Target::Portal => drop(self.portals.remove(&name)),
                }
                self.outgoing.put(&CloseComplete::new()).map_err(bare)
            }
            _ => Err(bare(Refusal::protocol("a message came that is none of a statement"))),
        }
    }

    async fn parse(&mut self, name: String, query: &str, types: &[u32]) -> Result<(), Refusal> {
        let mut statements = split(query)?;
        let text = statements.pop().unwrap_or_default().to_owned();
        if !statements.is_empty() {
            return Err(Refusal::new(code::SYNTAX, "cannot insert multiple commands into a prepared statement"));
        }
        if !name.is_empty() && self.statements.contains_key(&name) {
            return Err(Refusal::new(code::PREPARED, format!("prepared statement \"{name}\" already exists")));
        }
        if self.statements.len() >= MOST_STATEMENTS && !self.statements.contains_key(&name) {
            let text = format!("a session has {MOST_STATEMENTS} prepared statements at most: close some");
            return Err(Refusal::new(code::LIMIT, text));
        }

        let kept: usize = self.statements.values().map(|prepared| prepared.text.len()).sum();
        if kept + text.len() > MOST_TEXT {
            let text = format!("the prepared statements of a session have {MOST_TEXT} bytes at most: close some");
            return Err(Refusal::new(code::LIMIT, text));
        }

        let statement = classify(&text)?;
        self.check_block(&statement)?;
        let (parameters, columns) = match &statement {
            Statement::Query => {
                let declared: Vec<Option<PgType>> = types.iter().map(|oid| PgType::of_oid(*oid)).collect();
                let viewpoint = self.viewpoint();
                let described = self.engine.describe(&viewpoint, &text, &declared);
                let described = watched(&mut self.watch, &mut self.incoming, described).await?;
                (described.parameters, Some(Arc::new(described.columns)))
            }
            _ => (Vec::new(), None),
        };
        self.statements.insert(name, Arc::new(Prepared { text, statement, parameters, columns }));
        self.outgoing.put(&ParseComplete::new())
    }

    fn bind(
        &mut self,
        name: &str,
        prepared: Arc<Prepared>,
        values: Vec<tidetable_sql::ScalarValue>,
        formats: Vec<Format>,
    ) -> Result<(), Refusal> {
        if !name.is_empty() && self.portals.contains_key(name) {
            return Err(Refusal::new(code::CURSOR_NAME, format!("cursor \"{name}\" already exists")));
        }
        let portal = Portal { prepared, values, formats, rows: None, is_done: false, is_held: false };
        self.add_portal(name, portal)?;
        self.outgoing.put(&BindComplete::new())
    }

    fn describe(&mut self, target: Target, name: &str) -> Result<(), Refusal> {
        let (prepared, formats) = match target {
            Target::Statement => {
                let prepared = self.statements.get(name).cloned().ok_or_else(|| no_statement(name))?;
                let types = prepared.parameters.iter().map(|kind| kind.oid()).collect();
                self.outgoing.put(&ParameterDescription::new(types))?;
                (prepared, Vec::new())
            }
            Target::Portal => {
                let portal = self.portals.get(name).ok_or_else(|| no_cursor(name))?;
                (Arc::clone(&portal.prepared), portal.formats.clone())
            }
        };
        match self.columns_of(&prepared)? {
            Some(columns) => {
                let formats = formats_of(&formats, columns.len())?;
                self.outgoing.put(&description(&columns, &formats))
            }
            None => self.outgoing.put(&NoData::new()),
        }
    }

    async fn execute(&mut self, name: &str, most: usize) -> Result<(), Refused> {
        let portal = self.portals.get(name).ok_or_else(|| bare(no_cursor(name)))?;
        let (prepared, formats) = (Arc::clone(&portal.prepared), portal.formats.clone());
        let text = prepared.text.clone();

        match &prepared.statement {
            Statement::Empty => self.outgoing.put(&EmptyQueryResponse::new()).map_err(bare),
            Statement::Query => self.rows(name, &prepared, &formats, most).await.map_err(|refusal| (refusal, text)),
            statement => self.run(&text, statement, Form::Extended(&formats)).await.map_err(|refusal| (refusal, text)),
        }
    }

    /// Sends the next rows of a portal.
    async fn rows(&mut self, name: &str, prepared: &Prepared, formats: &[Format], most: usize) -> Result<(), Refusal> {
        self.check_block(&prepared.statement)?;
        let mut portal = self.portals.remove(name).ok_or_else(|| no_cursor(name))?;
        if portal.is_done {
            self.portals.insert(name.to_owned(), portal);
            return self.outgoing.put(&CommandComplete::new(format!("{} 0", tag(&prepared.text))));
        }

        let mut cursor = match portal.rows.take() {
            Some(cursor) => cursor,
            None => {
                let cursor = self.query(&prepared.text, &portal.values).await?;
                // Values may have fewer digits than those that the statement was described with.
                let kinds = |columns: &[crate::types::Column]| -> Vec<PgType> {
                    columns.iter().map(|column| column.kind).collect()
                };
                if prepared.columns.as_ref().is_some_and(|columns| kinds(columns) != kinds(&cursor.columns)) {
                    let text = "cached plan must not change result type: prepare the statement again";
                    return Err(Refusal::new(code::UNSUPPORTED, text));
                }
                cursor
            }
        };

        let formats = formats_of(formats, cursor.columns.len())?;
        let most = Some(most).filter(|most| *most > 0);
        let sent = cursor.send(most, &formats, &mut self.outgoing);
        let sent = watched(&mut self.watch, &mut self.incoming, sent).await?;

        let is_suspended = most == Some(sent);
        if is_suspended {
            portal.rows = Some(cursor);
            self.outgoing.put(&PortalSuspended::new())?;
        } else {
            portal.is_done = true;
            self.outgoing.put(&CommandComplete::new(format!("{} {sent}", tag(&prepared.text))))?;
        }
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }
}

/// The values of the parameters of a statement.
fn bound(
    prepared: &Prepared,
    formats: &[Format],
    parameters: &[Option<bytes::Bytes>],
) -> Result<Vec<tidetable_sql::ScalarValue>, Refusal> {
    let wanted = prepared.parameters.len();
    if parameters.len() != wanted {
        return Err(Refusal::new(
            code::PROTOCOL,
            format!(
                "bind message supplies {} parameters, but the prepared statement requires {wanted}",
                parameters.len()
            ),
        ));
    }
    let formats = formats_of(formats, wanted)?;
    let pairs = prepared.parameters.iter().zip(formats).zip(parameters).enumerate();
    pairs.map(|(place, ((kind, format), bytes))| value(place + 1, *kind, format, bytes.as_ref())).collect()
}

/// A refusal without a place in a statement.
fn bare(refusal: Refusal) -> Refused {
    (refusal, String::new())
}
