//! Several small files at a time, where each waits for a reply.

use crate::blobs::Blobs;

/// Requests that are sent at a time.
const AT_ONCE: usize = 16;

/// The answers of `ask` about each name, in their order: several at a time where a request is a round trip, elsewhere one
/// after the other. A panic of `ask` goes on in the caller.
pub fn each<T: Send>(blobs: &dyn Blobs, names: &[String], ask: impl Fn(&String) -> T + Sync) -> Vec<T> {
    if !blobs.capabilities().round_trips || names.len() < 2 {
        return names.iter().map(ask).collect();
    }

    let ask = &ask;
    std::thread::scope(|scope| {
        let mut asked = Vec::with_capacity(AT_ONCE);
        for share in names.chunks(names.len().div_ceil(AT_ONCE)) {
            asked.push(scope.spawn(move || share.iter().map(ask).collect::<Vec<T>>()));
        }

        let mut answers = Vec::with_capacity(names.len());
        for share in asked {
            answers.extend(share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        answers
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::bucket::BucketBlobs;

    #[test]
    fn answers_keep_the_order_of_names() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let handle = runtime.handle().clone();
        let blobs = BucketBlobs::new(Arc::new(InMemory::new()), "root".into(), handle, "memory".to_owned());
        for count in [0, 1, 2, 15, 16, 17, 100] {
            let names: Vec<String> = (0..count).map(|at| at.to_string()).collect();
            assert_eq!(each(&blobs, &names, String::clone), names);
        }
    }
}
