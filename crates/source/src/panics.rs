//! Panics at boundaries. Nothing here panics on purpose, but libraries do, on damaged files and odd settings: a boundary
//! turns that into the error of one input, of a run or of a command.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// The last panic of any thread, to tell where it happened.
static LAST: Mutex<Option<(String, String)>> = Mutex::new(None);

thread_local! {
    /// Boundaries that this thread is inside of.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// A panic that a boundary caught, as an error of what was done there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{message}{}; this is a fault of tidetable or of a library that it uses: please report this line with the output of \
     `tidetable --version`, the command and, if you can, the file that led to it",
    place.as_ref().map(|place| format!(" (panicked at {place})")).unwrap_or_default()
)]
pub struct Panicked {
    /// The message of the panic, or that it had none.
    pub message: String,
    /// The source file and line, if [`watch_panics`] was called before.
    pub place: Option<String>,
}

/// Does `work`, and returns a panic in it as an error. What `work` changes must be sound if it ends anywhere.
///
/// # Errors
/// [`Panicked`].
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    INSIDE.set(INSIDE.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    INSIDE.set(INSIDE.get() - 1);
    done.map_err(|payload| {
        let message = text_of(payload.as_ref());
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
        let place = last.filter(|(said, _)| *said == message).map(|(_, place)| place);
        Panicked { message, place }
    })
}

/// From now on, notes where panics happen instead of printing them; `report` gets those of threads outside of any boundary.
pub fn watch_panics(report: impl Fn(&str) + Send + Sync + 'static) {
    std::panic::set_hook(Box::new(move |panic| {
        let message = text_of(panic.payload());
        let place = panic.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some((message.clone(), place.clone()));
        if INSIDE.get() == 0 {
            report(&format!("a thread panicked at {place}: {message}"));
        }
    }));
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_at_the_boundary() {
        assert_eq!(catch(|| 7), Ok(7));
        let caught = catch(|| -> u8 { panic!("no {}", "way") }).unwrap_err();
        assert_eq!(caught.message, "no way");
        assert!(caught.to_string().contains("please report this line"), "{caught}");
        // Also from a thread whose panic is passed on.
        let passed = catch(|| {
            let joined = std::thread::spawn(|| panic!("below")).join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        assert_eq!(passed.unwrap_err().message, "below");
    }
}
