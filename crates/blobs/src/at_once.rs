//! Several small files at a time, where each waits for a reply.

use crate::blobs::Blobs;

/// Requests that are sent at a time.
const AT_ONCE: usize = 16;

/// The answers of `ask` about each name, in their order: in a bucket several at a time, elsewhere one after the other.
pub fn each<T: Send>(blobs: &dyn Blobs, names: &[String], ask: impl Fn(&String) -> T + Sync) -> Vec<T> {
    if blobs.bucket().is_none() || names.len() < 2 {
        return names.iter().map(ask).collect();
    }
    let share = names.len().div_ceil(AT_ONCE);
    std::thread::scope(|scope| {
        let shares = names.chunks(share);
        let ask = &ask;
        let asked: Vec<_> =
            shares.map(|names| scope.spawn(move || names.iter().map(ask).collect::<Vec<T>>())).collect();
        let joined = asked.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
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
