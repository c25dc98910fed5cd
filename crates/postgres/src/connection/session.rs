//! A session: what it has, and its loop over the messages of the client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pgwire::messages::response::{ReadyForQuery, TransactionStatus};
use tidetable_serving::{ServingError, caught};
use tidetable_sql::ScalarValue;
use tokio::sync::OwnedSemaphorePermit;

use crate::connection::rows::Cursor;
use crate::connection::watch::{Watch, shutdown};
use crate::encode::Format;
use crate::engine::{Engine, Viewpoint};
use crate::error::{Refusal, code};
use crate::statement::{Settings, Statement};
use crate::types::{Column, PgType};
use crate::wire::{Incoming, Outgoing, Request, request_of};

/// Bytes of a message at most: a statement with its values.
const MOST_MESSAGE: usize = 64 << 20;
/// How long a client may take to receive the end of a statement that was stopped.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Prepared statements of a session at most.
pub(super) const MOST_STATEMENTS: usize = 1_000;
/// Bytes of the texts of these at most.
pub(super) const MOST_TEXT: usize = 64 << 20;
/// Portals and cursors of a session at most: each may hold a query that runs.
pub(super) const MOST_PORTALS: usize = 16;

/// What makes a session panic in tests: nothing is known that does so otherwise.
#[cfg(test)]
pub(crate) const PANICS: &str = "panic in a session";

/// A statement that was prepared.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) text: String,
    pub(super) statement: Statement,
    pub(super) parameters: Vec<PgType>,
    /// The columns of a query; those of other statements are known when they are described.
    pub(super) columns: Option<Arc<Vec<Column>>>,
}

/// A statement with its values.
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) values: Vec<ScalarValue>,
    pub(super) formats: Vec<Format>,
    /// The rows that are left; `None` before the first are asked for.
    pub(super) rows: Option<Cursor>,
    /// Whether all rows were sent.
    pub(super) is_done: bool,
    /// Whether it outlives the block of statements.
    pub(super) is_held: bool,
}

/// How long a session may wait for its client.
struct Idle {
    limit: Option<Duration>,
    code: &'static str,
    setting: &'static str,
}

impl Idle {
    fn of(settings: &Settings, transaction: TransactionStatus) -> Self {
        let (code, setting) = match transaction {
            TransactionStatus::Idle => (code::IDLE_SESSION, "idle_session_timeout"),
            _ => (code::IDLE_TRANSACTION, "idle_in_transaction_session_timeout"),
        };
        Self { limit: settings.time(setting), code, setting }
    }

    /// Ends when that has passed, with why the session ends.
    async fn over(self) -> Refusal {
        let Some(limit) = self.limit else { return std::future::pending().await };
        tokio::time::sleep(limit).await;
        Refusal::fatal(self.code, format!("the client sent nothing for {limit:?}, which is its {}", self.setting))
    }
}

/// A session of a client.
pub(super) struct Session {
    pub(super) engine: Arc<Engine>,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    pub(super) settings: Settings,
    pub(super) user: String,
    pub(super) watch: Watch,
    pub(super) transaction: TransactionStatus,
    pub(super) statements: HashMap<String, Arc<Prepared>>,
    pub(super) portals: HashMap<String, Portal>,
    /// Whether messages are skipped up to the end of a series, one of which was refused.
    pub(super) skips: bool,
    _place: OwnedSemaphorePermit,
}

impl Session {
    pub(super) fn new(
        engine: Arc<Engine>,
        incoming: Incoming,
        outgoing: Outgoing,
        settings: Settings,
        user: String,
        watch: Watch,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            engine,
            incoming,
            outgoing,
            settings,
            user,
            watch,
            transaction: TransactionStatus::Idle,
            statements: HashMap::new(),
            portals: HashMap::new(),
            skips: false,
            _place: place,
        }
    }

    /// Whether the client is gone already.
    pub(super) fn has_ended(&self) -> bool {
        self.incoming.has_ended()
    }

    /// Answers messages until the client or the server ends.
    pub(super) async fn serve(mut self) {
        let answered = match caught(self.answer()).await {
            Ok(answered) => answered,
            Err(panicked) => {
                // What it was about to send has no end.
                self.outgoing.drop_unfinished();
                Err(ServingError::from(panicked).into())
            }
        };
        if let Err(refusal) = answered {
            // Whoever is gone does not hear it.
            let _ = self.outgoing.put(&Refusal { is_fatal: true, ..refusal }.response(""));
            let _ = tokio::time::timeout(LAST_WORDS, self.outgoing.flush()).await;
        }
        self.outgoing.shut().await;
    }

    /// Answers messages. Returns why the session ends, if the client has not ended it.
    async fn answer(&mut self) -> Result<(), Refusal> {
        loop {
            let idle = Idle::of(&self.settings, self.transaction);
            let message = tokio::select! {
                biased;
                message = self.incoming.message(MOST_MESSAGE) => message,
                () = self.watch.draining() => return Err(shutdown()),
                refusal = idle.over() => return Err(refusal),
            };
            let Ok(Some(message)) = message else { return Ok(()) };
            let (kind, body) = message?;
            match request_of(kind, body)? {
                Request::Terminate => return Ok(()),
                request => self.answer_one(request).await?,
            }
        }
    }

    /// Answers a message. Returns why the session ends with it.
    async fn answer_one(&mut self, request: Request) -> Result<(), Refusal> {
        match request {
            Request::Query(text) => {
                #[cfg(test)]
                assert!(!text.contains(PANICS), "asked to {PANICS}");
                self.skips = false;
                self.simple(&text).await?;
                self.ready().await
            }
            Request::Sync => {
                self.skips = false;
                if self.transaction == TransactionStatus::Idle {
                    self.forget_portals();
                }
                self.ready().await
            }
            _ if self.skips => Ok(()),
            Request::Flush => self.flush().await,
            Request::Password(_) => Err(Refusal::protocol("no password was asked for")),
            // The rest of a COPY that was refused.
            Request::CopyData | Request::Terminate => Ok(()),
            request => match self.extended(request).await {
                Ok(()) => Ok(()),
                Err((refusal, text)) => {
                    self.skips = true;
                    self.refuse(&refusal, &text)
                }
            },
        }
    }

    /// Tells the client why a statement was refused. Returns the refusal if the session ends with it.
    pub(super) fn refuse(&mut self, refusal: &Refusal, text: &str) -> Result<(), Refusal> {
        if refusal.is_fatal {
            return Err(refusal.clone());
        }
        if self.transaction == TransactionStatus::Transaction {
            self.transaction = TransactionStatus::Error;
        }
        self.outgoing.put(&refusal.response(text))
    }

    /// Tells the client that it may send the next statement.
    async fn ready(&mut self) -> Result<(), Refusal> {
        self.outgoing.put(&ReadyForQuery::new(self.transaction))?;
        self.flush().await?;
        // A client that always has another statement would go on for ever.
        if self.watch.is_draining() { Err(shutdown()) } else { Ok(()) }
    }

    /// Sends what waits. A client that does not take it keeps no place for ever.
    async fn flush(&mut self) -> Result<(), Refusal> {
        let limit = self.limit().unwrap_or(Duration::MAX).max(LAST_WORDS);
        let sent = tokio::time::timeout(limit, self.outgoing.flush()).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Refusal::protocol("the client does not take its answers")),
        }
    }

    /// How long a statement may run: as the server or the client says, whichever is shorter.
    pub(super) fn limit(&self) -> Option<Duration> {
        let limits = [self.engine.timeout, self.settings.time("statement_timeout")];
        limits.into_iter().flatten().min()
    }

    /// What queries of this session depend on.
    pub(super) fn viewpoint(&self) -> Viewpoint {
        Viewpoint { settings: self.settings.clone(), user: self.user.clone(), process: self.watch.process() }
    }

    /// Forgets portals and cursors at the end of a block.
    pub(super) fn forget_portals(&mut self) {
        self.portals.retain(|_, portal| portal.is_held);
    }

    /// Checks that a statement may run in a block that has failed.
    pub(super) fn check_block(&self, statement: &Statement) -> Result<(), Refusal> {
        let ends = matches!(statement, Statement::Commit | Statement::Rollback | Statement::RollbackTo);
        if self.transaction != TransactionStatus::Error || ends {
            return Ok(());
        }
        Err(Refusal::new(
            code::FAILED_TRANSACTION,
            "current transaction is aborted, commands ignored until end of transaction block: send ROLLBACK first",
        ))
    }
}
