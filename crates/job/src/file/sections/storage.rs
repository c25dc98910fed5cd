//! Reads `storage` of a source or of the root: the settings of an object store. Secrets are references to variables or
//! files.

use tidetable_source::{SourceSpec, Split, is_http, redacted};

use crate::file::fields::{Fields, Reader};
use crate::file::keys::{SECRET, STORAGE};
use crate::file::problem::Mistake;

/// One setting of an object store, under its name in job files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageSetting {
    /// Key of the setting in the job file.
    pub key: &'static str,
    /// The options of `object_store` that it sets, one for each service that knows it.
    pub options: &'static [&'static str],
    /// The value itself, or where it is read when a run begins: secrets are never in a job file.
    pub value: SettingValue,
}

/// The value of a setting, or where it is found: secrets never stand in a file of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingValue {
    /// The value as it stands in the job file.
    Plain(String),
    /// The name of an environment variable, read when a run begins.
    Env(String),
    /// A file, whose final line end is ignored; relative to the project directory.
    File(String),
}

impl StorageSetting {
    /// Whether it is a setting of the service of `url`.
    pub fn is_for(&self, url: &str) -> bool {
        let known = KNOWN.iter().find(|known| known.key == self.key);
        service(url).is_some_and(|service| known.is_some_and(|known| known.services.contains(&service)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    S3,
    Gcs,
    Azure,
}

use Service::{Azure, Gcs, S3};

/// A known key: its services, whether it is secret, its `object_store` options.
struct KnownSetting {
    key: &'static str,
    services: &'static [Service],
    secret: bool,
    options: &'static [&'static str],
}

const fn open(key: &'static str, services: &'static [Service], options: &'static [&'static str]) -> KnownSetting {
    KnownSetting { key, services, secret: false, options }
}

const fn secret(key: &'static str, services: &'static [Service], options: &'static [&'static str]) -> KnownSetting {
    KnownSetting { key, services, secret: true, options }
}

static KNOWN: [KnownSetting; 15] = [
    open("region", &[S3], &["region"]),
    open("endpoint", &[S3, Gcs, Azure], &["endpoint", "base_url"]),
    open("allow_http", &[S3, Gcs, Azure], &["allow_http"]),
    open("anonymous", &[S3, Gcs, Azure], &["skip_signature"]),
    open("virtual_hosted", &[S3], &["virtual_hosted_style_request"]),
    open("access_key_id", &[S3], &["access_key_id"]),
    secret("secret_access_key", &[S3], &["secret_access_key"]),
    secret("session_token", &[S3], &["session_token"]),
    secret("service_account_key", &[Gcs], &["service_account_key"]),
    open("account_name", &[Azure], &["account_name"]),
    secret("account_key", &[Azure], &["account_key"]),
    secret("sas_token", &[Azure], &["sas_token"]),
    open("tenant_id", &[Azure], &["tenant_id"]),
    open("client_id", &[Azure], &["client_id"]),
    secret("client_secret", &[Azure], &["client_secret"]),
];

/// Reads the settings of a source; empty without the key.
pub(crate) fn read(reader: &mut Reader<'_>, source: &Fields<'_>, spec: &SourceSpec) -> Vec<StorageSetting> {
    let services: Vec<Service> = spec.files.iter().filter_map(|file| service(file)).collect();
    if services.is_empty() && source.value("storage").is_some() {
        reader.refuse(source.key_at("storage"), Mistake::NoObjectStore);
        return Vec::new();
    }
    read_settings(reader, source, &services)
}

/// Reads the settings of object stores of `services`, or of any if there are none; empty without the key.
pub(crate) fn read_settings(reader: &mut Reader<'_>, owner: &Fields<'_>, services: &[Service]) -> Vec<StorageSetting> {
    let Some(value) = owner.value("storage") else { return Vec::new() };
    let Some(fields) = Fields::of_value(reader, &STORAGE, value, owner.key_at("storage")) else { return Vec::new() };

    let mut settings = Vec::new();
    for known in &KNOWN {
        let Some(value) = fields.value(known.key) else { continue };
        if !services.is_empty() && !known.services.iter().any(|service| services.contains(service)) {
            let places = known.services.iter().map(|service| service.scheme()).collect();
            reader.refuse(fields.key_at(known.key), Mistake::ElsewhereOnly { key: known.key, places });
            continue;
        }

        let value = match (value.get_ref().as_bool(), fields.text(reader, known.key)) {
            (Some(flag), _) => Some(SettingValue::Plain(flag.to_string())),
            (None, Some(text)) if known.secret => {
                reader.refuse(text.at.clone(), Mistake::PlainSecret { key: known.key });
                None
            }
            (None, Some(text)) if known.key == "endpoint" && !is_http(text.value) => {
                reader.refuse(text.at.clone(), Mistake::Address { key: known.key, value: redacted(text.value) });
                None
            }
            (None, Some(text)) => Some(SettingValue::Plain(text.owned())),
            (None, None) => elsewhere(reader, &fields, known.key),
        };
        settings.extend(value.map(|value| StorageSetting { key: known.key, options: known.options, value }));
    }
    settings
}

/// Reads `{ env = "NAME" }` or `{ file = "PATH" }`.
pub(crate) fn elsewhere(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &'static str) -> Option<SettingValue> {
    let at = fields.key_at(key);
    let secret = Fields::of_value(reader, &SECRET, fields.value(key)?, at.clone())?;
    let variable = secret.text(reader, "env").filter(|text| !text.value.is_empty());
    let file = secret.text(reader, "file").filter(|text| !text.value.is_empty());
    match (variable, file) {
        (Some(name), None) => Some(SettingValue::Env(name.owned())),
        (None, Some(path)) => reader.path("file", &path, "a file with a secret").map(SettingValue::File),
        _ => {
            reader.refuse(at, Mistake::EnvOrFile { key });
            None
        }
    }
}

impl Service {
    fn scheme(self) -> &'static str {
        match self {
            S3 => "s3://",
            Gcs => "gs://",
            Azure => "az://",
        }
    }
}

/// The service of a URL, or of a pattern of `files`.
pub(crate) fn service(file: &str) -> Option<Service> {
    let Ok(Split::Bucket { base, .. }) = Split::of(file) else { return None };
    match base.split_once(':')?.0.to_ascii_lowercase().as_str() {
        "s3" | "s3a" => Some(S3),
        "gs" => Some(Gcs),
        _ => Some(Azure),
    }
}
