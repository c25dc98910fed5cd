//! How fast requests are sent: a rate that the user gives, and what the service asks for.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::proto::data::RateLimitInfo;

/// Requests a second at which the service's control begins.
const FIRST_RATE: f64 = 10.0;
/// Bounds of one step, and what an overload counts as.
const STEPS: (f64, f64) = (0.7, 1.3);
/// Bounds of the rate.
const RATES: (f64, f64) = (0.1, 100_000.0);
/// The least time between two steps, unless the service names another.
const PERIOD: Duration = Duration::from_secs(10);

/// Paces requests: by a bound of the user in rows, and by what the service asks for in requests.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Rows a second; `None` for no bound.
    rows: Option<f64>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next_row: Instant,
    next_request: Instant,
    /// Requests a second, once the service has asked.
    rate: Option<f64>,
    changed: Instant,
    period: Duration,
}

/// The rate after a step by `factor`.
fn stepped(rate: f64, factor: f64) -> f64 {
    let factor = if factor.is_finite() { factor.clamp(STEPS.0, STEPS.1) } else { 1.0 };
    (rate * factor).clamp(RATES.0, RATES.1)
}

impl Pace {
    /// At most `rows` a second.
    pub(crate) fn new(rows: Option<f64>) -> Self {
        let now = Instant::now();
        let state = State { next_row: now, next_request: now, rate: None, changed: now, period: PERIOD };
        Self { rows, state: Mutex::new(state) }
    }

    /// Waits until a request of `rows` may be sent.
    pub(crate) async fn wait(&self, rows: usize) {
        let at = self.reserve(rows, Instant::now());
        tokio::time::sleep_until(at).await;
    }

    /// The instant at which a request may be sent, which takes its place.
    fn reserve(&self, rows: usize, now: Instant) -> Instant {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = now;
        if let Some(rate) = self.rows {
            let own = state.next_row.max(now);
            state.next_row = own + Duration::from_secs_f64(rows as f64 / rate);
            at = at.max(own);
        }
        if let Some(rate) = state.rate {
            let own = state.next_request.max(now);
            state.next_request = own + Duration::from_secs_f64(1.0 / rate);
            at = at.max(own);
        }
        at
    }

    /// Notes what the service said in an answer, and whether it was overloaded.
    pub(crate) fn note(&self, said: Option<&RateLimitInfo>, overloaded: bool) {
        self.note_at(said, overloaded, Instant::now());
    }

    fn note_at(&self, said: Option<&RateLimitInfo>, overloaded: bool, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(rate) = state.rate else {
            if said.is_some() {
                state.rate = Some(FIRST_RATE);
                state.changed = now;
            }
            return;
        };

        let factor = match said {
            Some(info) => {
                let period = info.period.as_ref().and_then(|period| u64::try_from(period.seconds).ok());
                state.period = period.filter(|seconds| *seconds > 0).map_or(PERIOD, Duration::from_secs);
                if info.factor > 0.0 { info.factor } else { 1.0 }
            }
            None if overloaded => STEPS.0,
            None => return,
        };
        if now.duration_since(state.changed) >= state.period {
            state.rate = Some(stepped(rate, factor));
            state.changed = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_at_the_rate_of_the_user() {
        let pace = Pace::new(Some(1_000.0));
        let now = Instant::now() + Duration::from_secs(1);
        assert_eq!(pace.reserve(500, now), now);
        assert_eq!(pace.reserve(1, now), now + Duration::from_millis(500));
        assert_eq!(pace.reserve(1, now + Duration::from_secs(9)), now + Duration::from_secs(9));
    }

    #[test]
    fn the_service_steers_in_steps() {
        let pace = Pace::new(None);
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(pace.reserve(1, now), pace.reserve(1, now));
        let info = |factor| RateLimitInfo { period: None, factor };
        pace.note_at(Some(&info(1.2)), false, now);
        let rate = || pace.state.lock().unwrap().rate.unwrap();
        assert!((rate() - 10.0).abs() < 1e-9);
        pace.note_at(Some(&info(9.0)), false, after(1));
        assert!((rate() - 10.0).abs() < 1e-9, "one step a period");
        pace.note_at(Some(&info(9.0)), false, after(11));
        assert!((rate() - 13.0).abs() < 1e-9);
        pace.note_at(None, true, after(22));
        assert!((rate() - 9.1).abs() < 1e-9);
        pace.note_at(Some(&info(f64::NAN)), false, after(33));
        assert!((rate() - 9.1).abs() < 1e-9);
        let first = pace.reserve(1, after(40));
        assert!(pace.reserve(1, after(40)) > first);
    }
}
