//! The server: listens, takes clients up to a limit, and lets what runs finish when it ends.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use tidetable_serving::{GRACE, NOTICE, Tables, caught, listen};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::access::{Password, acceptor, check_address};
use crate::connection::{Cancels, Phase, Shared, serve};
use crate::engine::Engine;
use crate::error::{PostgresError, Result};

/// The port of PostgreSQL.
const PORT: u16 = 5432;
/// The option that names the address.
const OPTION: &str = "--postgres";
/// Connections that have not begun a session yet, beside those that have: requests to cancel come on such.
const MOST_STARTING: usize = 64;
/// How long the server waits after the system gave no connection, as when it has no file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Who may connect.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The user, and the file with the password of it; without them anyone may connect.
    pub user: Option<(String, PathBuf)>,
    /// Files in PEM with the certificate of the server and its private key; without them nothing is encrypted.
    pub tls: Option<(PathBuf, PathBuf)>,
}

/// How a store is served.
#[derive(Debug, Clone)]
pub struct Options {
    /// Host and port to listen on; port 0 takes one that is free.
    pub bind: String,
    /// Who may connect.
    pub access: Access,
    /// Clients at most.
    pub max_clients: usize,
    /// Bytes that a query may hold; sorts, groups and joins that need more spill to temporary files.
    pub memory: u64,
    /// How long a statement may run; `None` for as long as it takes.
    pub timeout: Option<Duration>,
    /// The runtime that queries run in: they take a core for long, and messages should not wait for them.
    pub queries: Handle,
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
    bind: String,
}

impl std::fmt::Debug for Server {
    /// Without passwords and keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("bind", &self.bind).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens, to answer queries over `tables`.
    ///
    /// # Errors
    /// If other machines reach the address and it lacks TLS or a password, if a file of these cannot be used, or if the address
    /// cannot be listened on.
    pub async fn bind(tables: &Arc<Tables>, options: Options) -> Result<Self> {
        let random = SystemRandom::new();
        let tls = options.access.tls.as_ref().map(|(cert, key)| acceptor(cert, key)).transpose()?;
        let mut salt = [0; 16];
        let unsalted = |_| PostgresError::Tls {
            files: "the random numbers of the system".to_owned(),
            reason: "there are none".to_owned(),
        };
        random.fill(&mut salt).map_err(unsalted)?;
        let user = match &options.access.user {
            Some((name, file)) => Some((name.clone(), Password::read(file, salt)?)),
            None => None,
        };

        let listener = listen(&options.bind, OPTION, PORT).await?;
        let address = listener.local_addr();
        let address = address.map_err(|source| PostgresError::Listener { address: options.bind.clone(), source })?;
        check_address(address, tls.is_some(), user.is_some())?;

        let engine = Engine::new(Arc::clone(tables), options.queries.clone(), options.memory, options.timeout);
        let shared = Shared {
            engine: Arc::new(engine),
            user,
            needs_tls: tls.is_some() && !address.ip().is_loopback(),
            tls,
            places: Arc::new(Semaphore::new(options.max_clients.min(Semaphore::MAX_PERMITS))),
            most_clients: options.max_clients,
            cancels: Cancels::default(),
            random,
        };
        Ok(Self { listener, shared: Arc::new(shared), bind: options.bind })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local_address(&self) -> Result<SocketAddr> {
        let address = self.listener.local_addr();
        address.map_err(|source| PostgresError::Listener { address: self.bind.clone(), source })
    }

    /// Answers clients until `end` is ready, then lets statements that run finish for ten seconds.
    pub async fn run(self, end: impl Future<Output = ()> + Send + 'static) {
        let Self { listener, shared, .. } = self;
        let (phase, phases) = watch::channel(Phase::Running);
        let most = shared.most_clients.saturating_add(MOST_STARTING).min(Semaphore::MAX_PERMITS);
        let connections = Arc::new(Semaphore::new(most));
        let mut clients = JoinSet::new();

        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        // More than that wait for nothing: they are closed at once.
                        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else { continue };
                        let client = serve(Arc::clone(&shared), stream, phases.clone());
                        clients.spawn(async move {
                            // A panic has been logged. The others are answered as before.
                            let _ = caught(client).await;
                            drop(permit);
                        });
                    }
                    Err(error) => {
                        tracing::warn!("cannot take a connection: {error}");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                Some(_) = clients.join_next() => {}
            }
        }

        drop(listener);
        phase.send_replace(Phase::Draining);
        if tokio::time::timeout(GRACE, ended(&mut clients)).await.is_ok() {
            return;
        }
        phase.send_replace(Phase::Ended);
        // What does not end now is cut off.
        let _ = tokio::time::timeout(NOTICE, ended(&mut clients)).await;
    }
}

/// Waits until all clients have ended.
async fn ended(clients: &mut JoinSet<()>) {
    while clients.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};
    use std::net::TcpStream;
    use std::sync::{Mutex, PoisonError};

    use tempfile::TempDir;
    use tidetable_blobs::LocalBlobs;
    use tidetable_store::Store;
    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::oneshot;

    use super::*;
    use crate::connection::PANICS;

    /// What the server logs.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Log {
        fn text(&self) -> String {
            String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
        }
    }

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn runtime() -> Runtime {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    }

    /// Begins a session, sends a statement and returns what follows until the session is ready or ends.
    fn ask(address: SocketAddr, statement: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(b"\0\0\0\x10\0\x03\0\0user\0a\0\0").unwrap();
        let length = u32::try_from(statement.len() + 5).unwrap().to_be_bytes();
        stream.write_all(&[b"Q", &length[..], statement.as_bytes(), b"\0", b"X\0\0\0\x04"].concat()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn a_panic_ends_its_session_and_no_other() {
        let folder = TempDir::new().unwrap();
        let store = Store::new(Arc::new(LocalBlobs::new(folder.path().to_owned())));
        let tables = Arc::new(Tables::open(&store, true, "test").unwrap());
        let (requests, queries) = (Builder::new_current_thread().enable_all().build().unwrap(), runtime());
        let options = Options {
            bind: "127.0.0.1:0".to_owned(),
            access: Access::default(),
            max_clients: 4,
            memory: 64 << 20,
            timeout: None,
            queries: queries.handle().clone(),
        };
        let server = requests.block_on(Server::bind(&tables, options)).unwrap();
        let address = server.local_address().unwrap();

        let (log, (end, ended)) = (Log::default(), oneshot::channel::<()>());
        let writer = log.clone();
        let serving = std::thread::spawn(move || {
            let logged = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
            tracing::subscriber::with_default(logged, || requests.block_on(server.run(async { drop(ended.await) })));
        });
        let answer = ask(address, PANICS);
        assert!(answer.contains("XX000") && answer.contains("FATAL") && answer.contains(PANICS), "{answer}");
        let said = log.text();
        assert!(said.contains("ERROR") && said.contains(PANICS) && said.contains("please report this line"), "{said}");
        assert!(ask(address, "SELECT 1 AS a").contains("SELECT 1"));

        end.send(()).unwrap();
        serving.join().unwrap();
    }
}
