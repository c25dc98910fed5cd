//! Reads `root` of a tidetable.toml: the place of the store, as a string or a table with its settings.

use std::time::Duration;

use tidetable_source::Location;

use crate::file::fields::{Fields, Reader, Text};
use crate::file::keys::{CACHE, CLUSTER, ROOT};
use crate::file::problem::Mistake;
use crate::file::sections::reporting::hooks::seconds;
use crate::file::sections::storage::{StorageSetting, read_settings, service};
use crate::size::parse_size;

/// Shortest lease: renewals of a shorter one could not keep it.
const SHORTEST_LEASE: Duration = Duration::from_secs(6);
/// Longest lease: a killed run keeps others waiting for so long.
const LONGEST_LEASE: Duration = Duration::from_secs(3600);

/// The root of a project, as its tidetable.toml has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Root {
    /// Where the store lies, a folder or a bucket; `None` for the default.
    pub place: Option<Location>,
    /// Settings of the bucket, such as its region; empty for a folder.
    pub storage: Vec<StorageSetting>,
    /// How long the lock of a job in a bucket holds without being renewed.
    pub lease: Option<Duration>,
    /// The cache of a bucket on the local disk.
    pub cache: CacheSettings,
}

/// The cache of a bucket: blocks of its files on the local disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheSettings {
    /// Directory of the cache, relative to the project; `None` for the default.
    pub dir: Option<String>,
    /// Most bytes that the cache takes of the disk; `None` for the default.
    pub size: Option<u64>,
}

/// The schemes of addresses of schedulers: in clear, and with TLS.
const SCHEMES: [&str; 2] = ["ballista://", "ballista+tls://"];

/// Other machines that do the work of runs, as a tidetable.toml names them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The scheduler that runs send their work to; `None` for runs in their own process.
    pub url: Option<String>,
    /// File with the authority of its certificates, relative to the project; `None` for those of the system.
    pub ca: Option<String>,
    /// File with the certificate that this machine shows to the others; `None` without one.
    pub cert: Option<String>,
    /// File with the private key of this certificate, relative to the project.
    pub key: Option<String>,
    /// How long the next answer is waited for; `None` for the default.
    pub timeout: Option<Duration>,
}

/// Reads `root` of tidetable.toml: a path or URL, or a table with the settings of a bucket, its cache and its lease.
pub(crate) fn read(reader: &mut Reader<'_>, project: &Fields<'_>) -> Root {
    let mut root = Root::default();
    let Some(value) = project.value("root") else { return root };
    let at = project.key_at("root");
    if let Some(text) = project.text(reader, "root") {
        root.place = place(reader, "root", &text);
        return root;
    }

    let Some(fields) = Fields::of_value(reader, &ROOT, value, at) else { return root };
    let url = fields.text(reader, "url");
    root.place = url.as_ref().and_then(|text| place(reader, "url", text));
    // Without a bucket here, the settings are for that of `--root`.
    let services: Vec<_> = url.as_ref().and_then(|text| service(text.value)).into_iter().collect();
    root.storage = read_settings(reader, &fields, &services);

    if let Some(cache) = fields.value("cache")
        && let Some(cache) = Fields::of_value(reader, &CACHE, cache, fields.key_at("cache"))
    {
        root.cache.dir = cache.text(reader, "dir").and_then(|text| reader.path("dir", &text, "a cache"));
        if let Some(text) = cache.text(reader, "size") {
            match parse_size(text.value) {
                Ok(size) => root.cache.size = Some(size),
                Err(problem) => {
                    let value = text.value.to_owned();
                    reader.refuse(text.at, Mistake::NotASize { key: "size", value, problem });
                }
            }
        }
    }

    if let Some(text) = fields.text(reader, "lease") {
        match seconds(text.value).filter(|lease| (SHORTEST_LEASE..=LONGEST_LEASE).contains(lease)) {
            Some(lease) => root.lease = Some(lease),
            None => reader.refuse(text.at.clone(), Mistake::Lease { value: text.owned() }),
        }
    }

    root
}

/// Reads a place that may be in a bucket.
fn place(reader: &mut Reader<'_>, key: &'static str, text: &Text<'_>) -> Option<Location> {
    if text.value.is_empty() {
        reader.refuse(text.at.clone(), Mistake::Empty { key });
        return None;
    }
    match Location::parse(text.value) {
        Ok(place) => Some(place),
        Err(error) => {
            reader.refuse(text.at.clone(), Mistake::Place { key, error });
            None
        }
    }
}

/// Reads `cluster` of tidetable.toml: the scheduler's URL, the files of TLS, which go in pairs, and the timeout.
pub(crate) fn read_cluster(reader: &mut Reader<'_>, project: &Fields<'_>) -> Cluster {
    let mut cluster = Cluster::default();
    let Some(value) = project.value("cluster") else { return cluster };
    let Some(fields) = Fields::of_value(reader, &CLUSTER, value, project.key_at("cluster")) else { return cluster };

    if let Some(url) = fields.text(reader, "url") {
        let named = SCHEMES.iter().find_map(|scheme| url.value.strip_prefix(scheme));
        match named.filter(|place| !place.is_empty()) {
            Some(_) => cluster.url = Some(url.owned()),
            None => reader.refuse(url.at.clone(), Mistake::SchedulerUrl { value: url.owned() }),
        }
    }

    cluster.ca = certificate_file(reader, &fields, "ca");
    cluster.cert = certificate_file(reader, &fields, "cert");
    cluster.key = certificate_file(reader, &fields, "key");
    for (key, other, alone) in [
        ("cert", "key", cluster.cert.is_some() && cluster.key.is_none()),
        ("key", "cert", cluster.key.is_some() && cluster.cert.is_none()),
    ] {
        if alone {
            reader.refuse(fields.key_at(key), Mistake::WithoutOther { key, other });
        }
    }

    if let Some(text) = fields.text(reader, "timeout") {
        match seconds(text.value) {
            Some(timeout) => cluster.timeout = Some(timeout),
            None => reader.refuse(text.at.clone(), Mistake::Timeout { value: text.owned() }),
        }
    }
    cluster
}

/// The path of a certificate or a private key.
fn certificate_file(reader: &mut Reader<'_>, cluster: &Fields<'_>, key: &'static str) -> Option<String> {
    let text = cluster.text(reader, key)?;
    if text.value.is_empty() {
        reader.refuse(text.at.clone(), Mistake::Empty { key });
    }
    reader.path(key, &text, "a file of certificates")
}
