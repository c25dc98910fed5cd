//! Conditions of reads and writes.

use chrono::{DateTime, Utc};

use super::object::Object;
use super::refusal::Refusal;

/// Conditions of a request; all must hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Condition {
    /// `If-Match`: the object exists, with this ETag.
    pub matches: Option<String>,
    /// `If-None-Match`: no object, if it is `*`; otherwise none with this ETag.
    pub none_matches: Option<String>,
    /// `x-goog-if-generation-match`: of the object; 0 if there is none.
    pub generation: Option<u64>,
    /// `If-Modified-Since`, whole seconds: the object was written after it.
    pub modified_since: Option<DateTime<Utc>>,
    /// `If-Unmodified-Since`, whole seconds: the object was not written after it.
    pub unmodified_since: Option<DateTime<Utc>>,
}

/// Whether one of the comma-separated ETags is `etag`.
fn lists(etags: &str, etag: &str) -> bool {
    etags.split(',').any(|one| one.trim() == "*" || bare(one) == bare(etag))
}

/// An ETag without quotes and the mark of a weak one.
fn bare(etag: &str) -> &str {
    etag.trim().trim_start_matches("W/").trim_matches('"')
}

impl Condition {
    /// Whether there is any.
    pub fn is_any(&self) -> bool {
        self.matches.is_some() || self.none_matches.is_some() || self.generation.is_some()
    }

    /// Whether an object may be written over `old`.
    ///
    /// # Errors
    /// 412; 404 if `If-Match` finds no object, as in S3.
    pub fn write(&self, key: &str, old: Option<&Object>) -> Result<(), Refusal> {
        if let Some(etags) = &self.matches {
            let old = old.ok_or_else(|| Refusal::no_such_key(key))?;
            if !lists(etags, &old.etag) {
                return Err(Refusal::precondition());
            }
        }
        if let (Some(etags), Some(old)) = (&self.none_matches, old)
            && lists(etags, &old.etag)
        {
            return Err(Refusal::precondition());
        }
        if self.generation.is_some_and(|wanted| wanted != old.map_or(0, |old| old.generation)) {
            return Err(Refusal::precondition());
        }
        Ok(())
    }

    /// Whether `object` may be read. ETags go before times (RFC 9110, 13.2.2).
    ///
    /// # Errors
    /// 304 or 412.
    pub fn read(&self, object: &Object) -> Result<(), Refusal> {
        let modified = object.modified.timestamp();
        match (&self.matches, self.unmodified_since) {
            (Some(etags), _) if !lists(etags, &object.etag) => return Err(Refusal::precondition()),
            (None, Some(since)) if modified > since.timestamp() => return Err(Refusal::precondition()),
            _ => {}
        }

        let is_unmodified = match (&self.none_matches, self.modified_since) {
            (Some(etags), _) => lists(etags, &object.etag),
            (None, Some(since)) => modified <= since.timestamp(),
            (None, None) => false,
        };
        if is_unmodified {
            return Err(Refusal::new(304, "NotModified", "the object was not modified"));
        }

        if self.generation.is_some_and(|wanted| wanted != object.generation) {
            return Err(Refusal::precondition());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::{Attributes, Content};

    fn object(generation: u64) -> Object {
        let modified = DateTime::from_timestamp(1_600_000_000, 500_000_000).unwrap();
        Object {
            content: Content::default(),
            etag: "\"e\"".into(),
            modified,
            generation,
            attributes: Attributes::default(),
        }
    }

    fn status(done: Result<(), Refusal>) -> u16 {
        done.map_or_else(|refusal| refusal.status, |()| 200)
    }

    #[test]
    fn writes() {
        let some = |text: &str| Some(text.to_owned());
        let write = |condition: &Condition, old: bool| status(condition.write("k", old.then(|| object(7)).as_ref()));
        let create = Condition { none_matches: some("*"), ..Condition::default() };
        assert_eq!((write(&create, false), write(&create, true)), (200, 412));
        let update = Condition { matches: some("\"e\""), ..Condition::default() };
        assert_eq!((write(&update, false), write(&update, true)), (404, 200));
        let other = Condition { matches: some("\"f\""), ..Condition::default() };
        assert_eq!(write(&other, true), 412);
        for (generation, free, taken) in [(0, 200, 412), (7, 412, 200), (6, 412, 412)] {
            let condition = Condition { generation: Some(generation), ..Condition::default() };
            assert_eq!((write(&condition, false), write(&condition, true)), (free, taken));
        }
    }

    #[test]
    fn reads() {
        let read = |condition: &Condition| status(condition.read(&object(7)));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read(&Condition::default()), 200);
        assert_eq!(read(&Condition { matches: some("\"f\", \"e\""), ..Condition::default() }), 200);
        assert_eq!(read(&Condition { matches: some("\"f\""), ..Condition::default() }), 412);
        assert_eq!(read(&Condition { none_matches: some("e"), ..Condition::default() }), 304);
        for (at, since, until) in [(1_599_999_999, 200, 412), (1_600_000_000, 304, 200)] {
            let at = DateTime::from_timestamp(at, 0);
            assert_eq!(read(&Condition { modified_since: at, ..Condition::default() }), since);
            assert_eq!(read(&Condition { unmodified_since: at, ..Condition::default() }), until);
            let both = Condition { modified_since: at, none_matches: some("f"), ..Condition::default() };
            assert_eq!(read(&both), 200, "times do not count beside ETags");
        }
    }
}
