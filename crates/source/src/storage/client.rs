//! Clients of object stores, for sources and for the root of a store, by the URL, the settings and the environment.

use std::sync::Arc;

use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::client::ClientConfigKey;
use object_store::gcp::GoogleConfigKey;
use object_store::path::Path as Key;
use object_store::{ObjectStore, parse_url_opts};
use tokio::runtime::Handle;
use url::Url;

use crate::bucket_error::{BucketAddress, Credential, Endpoint};
use crate::error::SourceError;
use crate::location::{Location, redacted};
use crate::panics::catch;
use crate::storage::secret::Secret;

/// Parts of the names of credential options.
const CREDENTIALS: [&str; 5] = ["key", "token", "secret", "sas", "service_account"];

/// The client of a bucket, opened by its URL.
#[derive(Debug)]
pub struct OpenedBucket {
    /// The client of the whole bucket.
    pub store: Arc<dyn ObjectStore>,
    /// The key of the URL's path, below which the place is.
    pub prefix: Key,
    /// What messages say of the bucket: its URL, endpoint and credential.
    pub address: BucketAddress,
}

/// Opens the object store of `url` (`s3://`, `gs://`, `az://` and their other spellings). `settings` are options of `object_store`; the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`) sets the others,
/// but no credentials if `settings` has one. Requests run on the runtime of `handle`. Nothing is asked of the store.
///
/// # Errors
/// [`SourceError::Location`], [`SourceError::Endpoint`], [`SourceError::StoreSettings`]; none shows a setting but the address
/// of a service.
pub fn open_object_store(
    url: &str,
    settings: &[(String, Secret)],
    handle: &Handle,
) -> Result<OpenedBucket, SourceError> {
    let Location::Bucket(_) = Location::parse(url)? else {
        return Err(SourceError::UnsupportedUrl { url: url.to_owned() });
    };
    let parsed = Url::parse(url).map_err(|_| SourceError::UnsupportedUrl { url: redacted(url) })?;

    // Halves of two credentials make none.
    let has_credential = settings.iter().any(|(name, _)| is_credential(name));
    let mut options: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !has_credential || !is_credential(&name.to_ascii_lowercase()))
        .collect();
    let of_environment = options.len();
    options.extend(settings.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())));
    check_addresses(parsed.scheme(), &options)?;
    let address = address_of(url, parsed.scheme(), &options, of_environment);

    // Clients of a store look for the runtime that drives them.
    let _inside = handle.enter();
    let opened = catch(|| parse_url_opts(&parsed, options));
    let opened = opened.map_err(|panicked| SourceError::Panicked { path: url.to_owned(), panicked })?;
    let (store, prefix) = opened.map_err(|source| SourceError::StoreSettings { url: url.to_owned(), source })?;
    Ok(OpenedBucket { store: Arc::from(store), prefix, address })
}

fn is_credential(option: &str) -> bool {
    CREDENTIALS.iter().any(|word| option.contains(word))
}

/// What messages say of a bucket that is opened with `options`, of which the first `of_environment` are variables. Of options for
/// one thing, the last counts.
fn address_of(url: &str, scheme: &str, options: &[(String, String)], of_environment: usize) -> BucketAddress {
    let mut address = BucketAddress::of_url(url);
    for (index, (name, value)) in options.iter().enumerate() {
        let Some(meaning) = meaning(scheme, &name.to_ascii_lowercase()) else { continue };
        let place = match index < of_environment {
            true => format!("{name} of the environment"),
            false => format!("`{}` of `storage`", if meaning == Meaning::Endpoint { "endpoint" } else { name }),
        };
        match meaning {
            Meaning::Endpoint => address.endpoint = Some(Endpoint { url: redacted(value), set_by: place }),
            Meaning::Anonymous if value == "true" => address.credential = Credential::Anonymous,
            Meaning::Credential if address.credential != Credential::Anonymous => {
                address.credential = Credential::Named(place);
            }
            Meaning::Credential | Meaning::Anonymous => {}
        }
    }
    address
}

/// What an option of a store is for, as far as messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Endpoint,
    /// The name of the key, or the key where it has no name.
    Credential,
    /// Whether requests are not signed.
    Anonymous,
}

/// What the option `name` of a store with this scheme is for.
fn meaning(scheme: &str, name: &str) -> Option<Meaning> {
    match scheme {
        "s3" | "s3a" => match name.parse().ok()? {
            AmazonS3ConfigKey::Endpoint | AmazonS3ConfigKey::S3Endpoint => Some(Meaning::Endpoint),
            AmazonS3ConfigKey::AccessKeyId => Some(Meaning::Credential),
            AmazonS3ConfigKey::SkipSignature => Some(Meaning::Anonymous),
            _ => None,
        },

        "gs" => match name.parse().ok()? {
            GoogleConfigKey::BaseUrl => Some(Meaning::Endpoint),
            GoogleConfigKey::ServiceAccount
            | GoogleConfigKey::ServiceAccountKey
            | GoogleConfigKey::ApplicationCredentials => Some(Meaning::Credential),
            GoogleConfigKey::SkipSignature => Some(Meaning::Anonymous),
            _ => None,
        },

        _ => match name.parse().ok()? {
            AzureConfigKey::Endpoint => Some(Meaning::Endpoint),
            AzureConfigKey::AccessKey
            | AzureConfigKey::SasKey
            | AzureConfigKey::Token
            | AzureConfigKey::ClientSecret => Some(Meaning::Credential),
            AzureConfigKey::SkipSignature => Some(Meaning::Anonymous),
            _ => None,
        },
    }
}

/// Refuses an address of a service that is not a URL of HTTP, since `object_store` panics when it first uses it. Of options
/// for one thing, the last counts.
fn check_addresses(scheme: &str, options: &[(String, String)]) -> Result<(), SourceError> {
    let mut addresses: Vec<(String, &str, &str)> = Vec::new();
    for (name, value) in options {
        let Some(meaning) = address(scheme, &name.to_ascii_lowercase()) else { continue };
        addresses.retain(|(known, ..)| *known != meaning);
        addresses.push((meaning, name, value));
    }

    for (_, name, value) in addresses {
        let problem = match value {
            "" => "is empty: unset it, or write http://HOST:PORT or https://HOST".to_owned(),
            value if is_http(value) => continue,
            value => {
                format!("is {:?}, which is not a URL of HTTP: write http://HOST:PORT or https://HOST", redacted(value))
            }
        };
        return Err(SourceError::Endpoint { name: name.to_owned(), problem });
    }
    Ok(())
}

/// What the option `name` of a store with this scheme is the address of; `None` if it is no address.
fn address(scheme: &str, name: &str) -> Option<String> {
    match scheme {
        "s3" | "s3a" => match name.parse().ok()? {
            AmazonS3ConfigKey::Client(key) => proxy(key),
            key @ (AmazonS3ConfigKey::Endpoint
            | AmazonS3ConfigKey::S3Endpoint
            | AmazonS3ConfigKey::MetadataEndpoint
            | AmazonS3ConfigKey::StsEndpoint
            | AmazonS3ConfigKey::ContainerCredentialsFullUri) => Some(key.as_ref().to_owned()),
            _ => None,
        },

        "gs" => match name.parse().ok()? {
            GoogleConfigKey::Client(key) => proxy(key),
            key @ GoogleConfigKey::BaseUrl => Some(key.as_ref().to_owned()),
            _ => None,
        },

        _ => match name.parse().ok()? {
            AzureConfigKey::Client(key) => proxy(key),
            key @ (AzureConfigKey::Endpoint
            | AzureConfigKey::MsiEndpoint
            | AzureConfigKey::AuthorityHost
            | AzureConfigKey::FabricTokenServiceUrl) => Some(key.as_ref().to_owned()),
            _ => None,
        },
    }
}

fn proxy(key: ClientConfigKey) -> Option<String> {
    matches!(key, ClientConfigKey::ProxyUrl).then(|| "proxy".to_owned())
}

/// Whether an address of a service, a monitor or a proxy is a URL of HTTP with a host.
pub fn is_http(url: &str) -> bool {
    let is_parsed = Url::parse(url).is_ok_and(|url| url.host_str().is_some_and(|host| !host.is_empty()));
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    is_parsed && matches!(scheme.as_deref(), Some("http" | "https"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(scheme: &str, options: &[(&str, &str)]) -> Result<(), String> {
        let options: Vec<_> = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        check_addresses(scheme, &options).map_err(|error| error.to_string())
    }

    #[test]
    fn messages_name_the_endpoint_and_the_setting_of_the_key() {
        let options = [
            ("AWS_ACCESS_KEY_ID", "from the environment"),
            ("AWS_ENDPOINT", "http://other"),
            ("GOOGLE_SERVICE_ACCOUNT", "x"),
            ("endpoint", "http://h:1"),
        ];
        let options: Vec<_> = options.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let address = address_of("s3://b/p", "s3", &options, 3);
        let endpoint = Endpoint { url: "http://h:1".to_owned(), set_by: "`endpoint` of `storage`".to_owned() };
        assert_eq!(address.endpoint, Some(endpoint));
        assert_eq!(address.credential, Credential::Named("AWS_ACCESS_KEY_ID of the environment".to_owned()));
        let anonymous = [("skip_signature".to_owned(), "true".to_owned())];
        let address = address_of("gs://b", "gs", &anonymous, 0);
        assert_eq!((address.endpoint, address.credential), (None, Credential::Anonymous));
    }

    #[test]
    fn an_address_that_is_no_url_is_refused_before_it_is_used() {
        for (scheme, name, value) in [
            ("s3", "endpoint", "127.0.0.1:9000"),
            ("s3", "AWS_ENDPOINT", ""),
            ("s3a", "AWS_ENDPOINT_URL_S3", "localhost"),
            ("s3", "AWS_METADATA_ENDPOINT", "x"),
            ("s3", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "//x"),
            ("s3", "endpoint", "ftp://h"),
            ("s3", "endpoint", "http://"),
            ("s3", "endpoint", "http:/h"),
            ("gs", "base_url", "h:1"),
            ("az", "endpoint", "h:1"),
            ("abfss", "azure_msi_endpoint", "h"),
            ("s3", "proxy_url", "h"),
        ] {
            let error = checked(scheme, &[(name, value)]).unwrap_err();
            assert!(error.contains(name) && error.contains("http://HOST:PORT"), "{error}");
        }
        for (scheme, name) in [("s3", "AWS_REGION"), ("gs", "AWS_ENDPOINT"), ("az", "AWS_ENDPOINT"), ("s3", "HOME")] {
            assert_eq!(checked(scheme, &[(name, "")]), Ok(()), "{scheme} {name}");
        }
        assert_eq!(checked("s3", &[("AWS_ENDPOINT", "http://[::1]:9000")]), Ok(()));
        // A setting replaces what the environment says of the same.
        assert_eq!(checked("s3", &[("AWS_ENDPOINT", ""), ("endpoint", "https://h")]), Ok(()));
        let hidden = checked("s3", &[("endpoint", "htp://user:hush@h/x?sig=hush")]).unwrap_err();
        assert!(!hidden.contains("hush"), "{hidden}");
    }
}
