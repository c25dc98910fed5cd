//! SCRAM-SHA-256 (RFC 5802, RFC 7677) as PostgreSQL speaks it, without channel binding.
//!
//! ```text
//! client  n,,n=,r=NONCE                         first
//! server  r=NONCE+OURS,s=SALT,i=ROUNDS
//! client  c=biws,r=NONCE+OURS,p=PROOF           final
//! server  v=SIGNATURE
//! ```

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest;
use ring::hmac;
use ring::rand::SecureRandom;

use crate::access::password::{Password, sign};
use crate::error::{Refusal, code};

/// The name of the mechanism.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";
/// Random bytes of the server's part of a nonce.
const NONCE: usize = 18;

/// An exchange of which the first message was answered.
pub(crate) struct Scram {
    password: Password,
    /// Whether the user is the one that has the password.
    is_known: bool,
    /// What the client says of channel binding, which its last message repeats.
    header: String,
    first: String,
    answer: String,
    nonce: String,
}

impl Scram {
    /// Reads the first message of a client. An unknown user is told only at the end.
    ///
    /// # Errors
    /// If the message is none, or asks for channel binding.
    pub(crate) fn begin(
        message: &[u8],
        password: &Password,
        is_known: bool,
        random: &dyn SecureRandom,
    ) -> Result<Self, Refusal> {
        let message = std::str::from_utf8(message).map_err(|_| invalid())?;
        let mut parts = message.splitn(3, ',');
        let (binding, identity) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let first = parts.next().ok_or_else(invalid)?;
        if !matches!(binding, "n" | "y") {
            return Err(Refusal::fatal(
                code::UNSUPPORTED,
                "channel binding is not served: connect with channel_binding=prefer",
            ));
        }
        let theirs = first.split(',').find_map(|part| part.strip_prefix("r=")).filter(|nonce| !nonce.is_empty());
        let theirs = theirs.ok_or_else(invalid)?;

        let mut ours = [0; NONCE];
        random.fill(&mut ours).map_err(|_| Refusal::fatal(code::INTERNAL, "the system has no random numbers"))?;
        let nonce = format!("{theirs}{}", STANDARD.encode(ours));
        let answer = format!("r={nonce},s={},i={}", STANDARD.encode(&password.salt), password.rounds);
        let header = format!("{binding},{identity},");
        Ok(Self { password: password.clone(), is_known, header, first: first.to_owned(), answer, nonce })
    }

    /// The answer to the first message.
    pub(crate) fn answer(&self) -> &str {
        &self.answer
    }

    /// Checks the last message of a client, and returns the answer to it.
    ///
    /// # Errors
    /// If the password is wrong, which `user` is told, or the message is none.
    pub(crate) fn end(&self, message: &[u8], user: &str) -> Result<String, Refusal> {
        let message = std::str::from_utf8(message).map_err(|_| invalid())?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or_else(invalid)?;
        let mut parts = without_proof.split(',');
        let binding = parts.next().and_then(|part| part.strip_prefix("c=")).ok_or_else(invalid)?;
        let nonce = parts.next().and_then(|part| part.strip_prefix("r=")).ok_or_else(invalid)?;
        if STANDARD.decode(binding).ok().as_deref() != Some(self.header.as_bytes()) || nonce != self.nonce {
            return Err(invalid());
        }

        let signed = format!("{},{},{without_proof}", self.first, self.answer);
        let signature = sign(&self.password.stored_key, signed.as_bytes());
        let proof = STANDARD.decode(proof).map_err(|_| invalid())?;
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(left, right)| left ^ right).collect();
        let stored_key = digest::digest(&digest::SHA256, &client_key);

        let is_right = proof.len() == signature.len() && are_equal(stored_key.as_ref(), &self.password.stored_key);
        if !is_right || !self.is_known {
            return Err(Refusal::fatal(code::PASSWORD, format!("password authentication failed for user \"{user}\"")));
        }
        Ok(format!("v={}", STANDARD.encode(sign(&self.password.server_key, signed.as_bytes()))))
    }
}

/// Whether two keys are equal, in a time that does not tell where they differ.
fn are_equal(left: &[u8], right: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, left);
    hmac::verify(&key, b"", &sign(right, b"")).is_ok()
}

fn invalid() -> Refusal {
    Refusal::protocol("a message of SCRAM-SHA-256 is not of its form")
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;

    use super::*;

    /// The last message of a client that knows a password, as the RFC computes it.
    fn last_message(password: &str, exchange: &Scram) -> String {
        let mut salted = [0; 32];
        let rounds = std::num::NonZeroU32::new(exchange.password.rounds).unwrap();
        let algorithm = ring::pbkdf2::PBKDF2_HMAC_SHA256;
        ring::pbkdf2::derive(algorithm, rounds, &exchange.password.salt, password.as_bytes(), &mut salted);
        let client_key = sign(&salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, &client_key);
        let without_proof = format!("c=biws,r={}", exchange.nonce);
        let signed = format!("{},{},{without_proof}", exchange.first, exchange.answer);
        let signature = sign(stored_key.as_ref(), signed.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(left, right)| left ^ right).collect();
        format!("{without_proof},p={}", STANDARD.encode(proof))
    }

    #[test]
    fn only_the_right_password_of_the_user_is_accepted() {
        let password = Password::of("secret", [1; 16]);
        let begin = |is_known| Scram::begin(b"n,,n=,r=abc", &password, is_known, &SystemRandom::new()).unwrap();
        let exchange = begin(true);
        assert!(exchange.end(last_message("secret", &exchange).as_bytes(), "ada").unwrap().starts_with("v="));
        let wrong = exchange.end(last_message("Secret", &exchange).as_bytes(), "ada").unwrap_err();
        assert_eq!((wrong.code, wrong.is_fatal), ("28P01", true));
        let unknown = begin(false);
        assert_eq!(unknown.end(last_message("secret", &unknown).as_bytes(), "eve").unwrap_err().code, "28P01");
        // A message of another exchange proves nothing.
        assert_eq!(begin(true).end(last_message("secret", &exchange).as_bytes(), "ada").unwrap_err().code, "08P01");
        for garbage in [&b""[..], b"n", b"n,,", b"\xff", b"p=tls-server-end-point,,n=,r=a"] {
            assert!(Scram::begin(garbage, &password, true, &SystemRandom::new()).is_err());
            assert!(exchange.end(garbage, "ada").is_err());
        }
    }
}
