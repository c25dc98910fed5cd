//! The simple form of the protocol: text of statements, whose rows come as text.

use pgwire::messages::response::EmptyQueryResponse;

use crate::connection::run::Form;
use crate::connection::session::Session;
use crate::error::Refusal;
use crate::statement::{classify, split};

impl Session {
    /// Answers the statements of a text, up to the first that is refused. Returns why the session ends with them.
    pub(super) async fn simple(&mut self, text: &str) -> Result<(), Refusal> {
        // A query ends the portal without a name.
        self.portals.remove("");
        let statements = split(text);
        if statements.is_empty() {
            return self.outgoing.put(&EmptyQueryResponse::new());
        }

        for statement in statements {
            self.watch.begin(self.limit());
            let done = match classify(statement) {
                Ok(kind) => self.run(statement, &kind, Form::Simple).await,
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = done {
                return self.refuse(&refusal, statement);
            }
        }
        Ok(())
    }
}
