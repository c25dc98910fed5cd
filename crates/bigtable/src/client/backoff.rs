//! When a failed request is sent again. Pure functions.

use std::time::Duration;

use prost::Message;
use tonic::{Code, Status};

use crate::proto::rpc;

/// The wait before the first repetition.
const FIRST: Duration = Duration::from_millis(20);
/// The longest wait between two attempts, also of those that the server asks for.
const LONGEST: Duration = Duration::from_secs(30);
/// Type of the detail by which a server says how long to wait.
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// The wait before repetition `attempt`, counted from 1: it doubles, up to 30 s, and `random` (0 to 1) spreads it over the
/// upper half. What the server asks for is the least.
pub fn wait_before(attempt: u32, random: f64, asked: Option<Duration>) -> Duration {
    let doubled = FIRST.saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX)).min(LONGEST);
    let spread = doubled.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
    asked.map_or(spread, |asked| spread.max(asked))
}

/// Whether a request that ended so may succeed if it is sent again. A request whose effect matters only once needs more: its
/// effect is unknown.
pub fn is_transient(status: &Status) -> bool {
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Aborted | Code::ResourceExhausted => true,
        // Connections that break have these codes, with an error of the transport below; a proxy adds the texts.
        Code::Internal | Code::Unknown | Code::Cancelled => is_broken_connection(status),
        _ => false,
    }
}

/// Whether the connection broke, rather than the server refused.
fn is_broken_connection(status: &Status) -> bool {
    const TEXTS: [&str; 8] =
        ["rst_stream", "rst stream", "goaway", "eos", "transport error", "h2 protocol", "connection", "stream closed"];
    let text = status.message().to_ascii_lowercase();
    std::error::Error::source(status).is_some() || TEXTS.iter().any(|known| text.contains(known))
}

/// The wait that the server asks for.
pub fn asked_wait(status: &Status) -> Option<Duration> {
    let details = rpc::Status::decode(status.details()).ok()?.details;
    let found = details.iter().find(|detail| detail.type_url == RETRY_INFO)?;
    let delay = rpc::RetryInfo::decode(found.value.as_slice()).ok()?.retry_delay?;
    let (seconds, nanos) = (u64::try_from(delay.seconds).ok()?, u32::try_from(delay.nanos).ok()?);
    Some(Duration::new(seconds, nanos.min(999_999_999)).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let waits: Vec<u128> = (1..=4).map(|attempt| wait_before(attempt, 1.0, None).as_millis()).collect();
        assert_eq!(waits, [20, 40, 80, 160]);
        assert_eq!(wait_before(1, 0.0, None).as_millis(), 10);
        assert_eq!(wait_before(1_000, 1.0, None), LONGEST);
        let asked = Some(Duration::from_secs(2));
        assert_eq!(wait_before(1, 1.0, asked), Duration::from_secs(2));
    }

    #[test]
    fn mistakes_are_not_repeated() {
        for code in [Code::Unavailable, Code::DeadlineExceeded, Code::Aborted, Code::ResourceExhausted] {
            assert!(is_transient(&Status::new(code, "")), "{code:?}");
        }
        for code in [Code::InvalidArgument, Code::NotFound, Code::PermissionDenied, Code::Internal, Code::Unknown] {
            assert!(!is_transient(&Status::new(code, "invalid timestamp 1500")), "{code:?}");
        }
        assert!(is_transient(&Status::internal("Received Rst_Stream with error code 2")));
    }

    #[test]
    fn the_server_says_how_long() {
        let delay = prost_types::Duration { seconds: 3, nanos: 500_000_000 };
        let info = rpc::RetryInfo { retry_delay: Some(delay) }.encode_to_vec();
        let detail = prost_types::Any { type_url: RETRY_INFO.to_owned(), value: info };
        let details = rpc::Status { code: 14, message: String::new(), details: vec![detail] }.encode_to_vec();
        let status = Status::with_details(Code::Unavailable, "", details.into());
        assert_eq!(asked_wait(&status), Some(Duration::from_millis(3_500)));
        assert_eq!(asked_wait(&Status::unavailable("")), None);
    }
}
