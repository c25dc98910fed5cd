//! All buckets of a server.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::condition::Condition;
use super::content::Content;
use super::list::MOST_KEY;
use super::object::{Attributes, Object};
use super::refusal::Refusal;
use super::upload::{NamedPart, Upload};
use crate::clock::Clock;

/// A bucket: its objects, and the uploads in parts that are not complete.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    pub objects: BTreeMap<String, Object>,
    /// By key and id.
    pub uploads: BTreeMap<(String, String), Upload>,
}

/// Where an object is, or will be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub bucket: &'a str,
    pub key: &'a str,
}

/// Buckets by name, and the clock.
#[derive(Debug)]
pub(crate) struct State {
    buckets: BTreeMap<String, Bucket>,
    clock: Clock,
    /// Writes so far; the generation of the last one.
    written: u64,
}

impl State {
    /// The state of a server with these buckets, all empty.
    pub fn new(buckets: &[String], clock: Clock) -> Self {
        let buckets = buckets.iter().map(|name| (name.clone(), Bucket::default())).collect();
        Self { buckets, clock, written: 0 }
    }

    /// The server's time, which may be a step for each write.
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now(self.written)
    }

    /// Creates a bucket, unless it exists.
    pub fn create(&mut self, bucket: &str) {
        self.buckets.entry(bucket.to_owned()).or_default();
    }

    /// A bucket.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn bucket(&self, name: &str) -> Result<&Bucket, Refusal> {
        self.buckets.get(name).ok_or_else(|| no_such_bucket(name))
    }

    /// A bucket, to change it.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn bucket_mut(&mut self, name: &str) -> Result<&mut Bucket, Refusal> {
        self.buckets.get_mut(name).ok_or_else(|| no_such_bucket(name))
    }

    /// An object.
    ///
    /// # Errors
    /// If it, or its bucket, does not exist.
    pub fn object(&self, bucket: &str, key: &str) -> Result<&Object, Refusal> {
        self.bucket(bucket)?.objects.get(key).ok_or_else(|| Refusal::no_such_key(key))
    }

    /// Writes an object, if the condition holds.
    ///
    /// # Errors
    /// If it does not hold, or there is no such bucket.
    pub fn put(
        &mut self,
        place: Place<'_>,
        content: Content,
        etag: String,
        attributes: Attributes,
        condition: &Condition,
    ) -> Result<&Object, Refusal> {
        let Place { bucket, key } = place;
        if key.len() > MOST_KEY {
            return Err(Refusal::new(400, "KeyTooLongError", format!("a key has at most {MOST_KEY} bytes")));
        }
        condition.write(key, self.bucket(bucket)?.objects.get(key))?;
        self.written += 1;
        let (generation, modified) = (self.written, self.clock.now(self.written));
        let object = Object { content, etag, modified, generation, attributes };
        let objects = &mut self.bucket_mut(bucket)?.objects;
        objects.insert(key.to_owned(), object);
        objects.get(key).ok_or_else(|| Refusal::no_such_key(key))
    }

    /// Begins an upload, and a stale one beside it if `stale`; returns its id.
    ///
    /// # Errors
    /// If there is no such bucket.
    pub fn begin(&mut self, place: Place<'_>, attributes: Attributes, stale: bool) -> Result<String, Refusal> {
        let Place { bucket, key } = place;
        self.written += 1;
        let (number, upload) = (self.written, Upload::new(key.to_owned(), attributes, self.now()));
        let uploads = &mut self.bucket_mut(bucket)?.uploads;
        if stale {
            uploads.insert((key.to_owned(), format!("stale-{number:016x}")), upload.stale());
        }
        let id = format!("upload-{number:016x}");
        uploads.insert((key.to_owned(), id.clone()), upload);
        Ok(id)
    }

    /// Ends an upload as an object, if the condition holds. An upload that is not completed stays. All named parts but the last
    /// must have `least` bytes.
    ///
    /// # Errors
    /// Wrong parts; a condition that does not hold; no such upload.
    pub fn complete(
        &mut self,
        place: Place<'_>,
        id: &str,
        named: &[NamedPart],
        least: u64,
        condition: &Condition,
    ) -> Result<&Object, Refusal> {
        let Place { bucket, key } = place;
        let upload = (key.to_owned(), id.to_owned());
        let found = self.bucket(bucket)?.uploads.get(&upload).ok_or_else(|| Refusal::no_such_upload(id))?;
        let ((content, etag), attributes) = (found.assemble(named, least)?, found.attributes.clone());
        self.put(place, content, etag, attributes, condition)?;
        self.bucket_mut(bucket)?.uploads.remove(&upload);
        self.object(bucket, key)
    }
}

fn no_such_bucket(name: &str) -> Refusal {
    Refusal::new(404, "NoSuchBucket", format!("there is no bucket {name}; PUT /{name} creates it"))
}
