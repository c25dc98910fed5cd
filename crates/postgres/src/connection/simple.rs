//! The simple form of the protocol: text of statements, whose rows come as text.

use pgwire::messages::response::{EmptyQueryResponse, TransactionStatus};

use crate::connection::run::Form;
use crate::connection::session::Session;
use crate::error::Refusal;
use crate::statement::{classify, split};

impl Session {
    /// Answers the statements of a text, up to the first that is refused. Returns why the session ends with them.
    pub(super) async fn simple(&mut self, text: &str) -> Result<(), Refusal> {
        // A query ends the portal without a name.
        self.portals.remove("");
        let statements = match split(text) {
            Ok(statements) => statements,
            Err(refusal) => return self.refuse(&refusal, text),
        };
        if statements.is_empty() {
            return self.outgoing.put(&EmptyQueryResponse::new());
        }
        // Several statements are a block of their own, unless they are in one.
        if statements.len() > 1 {
            self.settings.begin();
        }

        for statement in statements {
            self.watch.begin(self.limit());
            let done = match classify(statement) {
                Ok(kind) => self.run(statement, &kind, Form::Simple).await,
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = done {
                self.end_own_block(false)?;
                return self.refuse(&refusal, statement);
            }
        }
        self.end_own_block(true)
    }

    /// Ends the block that several statements were, unless one of them has begun another.
    fn end_own_block(&mut self, is_kept: bool) -> Result<(), Refusal> {
        match self.transaction == TransactionStatus::Idle {
            true => self.end_settings(is_kept),
            false => Ok(()),
        }
    }
}
