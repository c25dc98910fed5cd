//! Where the service is. Pure functions.

/// The environment variable that client libraries look for an emulator in.
pub const EMULATOR: &str = "BIGTABLE_EMULATOR_HOST";
/// The variables in which the Google Cloud CLI keeps other endpoints of the Data API and of the admin API.
pub const DATA_OVERRIDE: &str = "CLOUDSDK_API_ENDPOINT_OVERRIDES_BIGTABLE";
/// As [`DATA_OVERRIDE`].
pub const ADMIN_OVERRIDE: &str = "CLOUDSDK_API_ENDPOINT_OVERRIDES_BIGTABLEADMIN";
/// The variable with the domain of a sovereign cloud.
pub const UNIVERSE: &str = "GOOGLE_CLOUD_UNIVERSE_DOMAIN";

const GOOGLE: &str = "googleapis.com";

/// URLs of the two APIs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// URL of the Data API.
    pub data: String,
    /// URL of the Table Admin API.
    pub admin: String,
    /// Whether requests carry credentials: not to an emulator, nor without TLS.
    pub has_credentials: bool,
}

impl Endpoints {
    /// The endpoints that the environment, read by `get`, asks for: those of the service by default.
    pub fn of_environment(get: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        if let Some(host) = get(EMULATOR) {
            return Self::plaintext(host.trim());
        }
        let domain = get(UNIVERSE).unwrap_or_else(|| GOOGLE.to_owned());
        let of = |variable: &str, service: &str| match get(variable) {
            Some(url) => with_scheme(url.trim(), "https"),
            None => format!("https://{service}.{domain}"),
        };
        let (data, admin) = (of(DATA_OVERRIDE, "bigtable"), of(ADMIN_OVERRIDE, "bigtableadmin"));
        let has_credentials = data.starts_with("https://") && admin.starts_with("https://");
        Self { data, admin, has_credentials }
    }

    /// A server without TLS and credentials, such as an emulator or `tidetable serve`.
    pub fn plaintext(host: &str) -> Self {
        let url = with_scheme(host, "http");
        Self { data: url.clone(), admin: url, has_credentials: false }
    }
}

fn with_scheme(host: &str, scheme: &str) -> String {
    let host = host.trim_end_matches('/');
    if host.contains("://") { host.to_owned() } else { format!("{scheme}://{host}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(set: &[(&str, &str)]) -> Endpoints {
        let found = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Endpoints::of_environment(found)
    }

    #[test]
    fn the_service_is_reached_with_credentials() {
        let service = endpoints(&[(EMULATOR, " ")]);
        assert_eq!(service.data, "https://bigtable.googleapis.com");
        assert_eq!(service.admin, "https://bigtableadmin.googleapis.com");
        assert!(service.has_credentials);
        assert_eq!(endpoints(&[(UNIVERSE, "example.cloud")]).data, "https://bigtable.example.cloud");
    }

    #[test]
    fn an_emulator_gets_none() {
        let emulator = endpoints(&[(EMULATOR, "localhost:8086"), (DATA_OVERRIDE, "https://other")]);
        assert_eq!(emulator, Endpoints::plaintext("http://localhost:8086/"));
        assert!(!emulator.has_credentials);
        // A token is not sent in the clear.
        assert!(!endpoints(&[(DATA_OVERRIDE, "http://proxy:80")]).has_credentials);
    }
}
