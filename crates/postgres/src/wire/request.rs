//! Messages from clients.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::encode::Format;
use crate::error::Refusal;
use crate::wire::read::Body;

/// Codes in the place of a version of the protocol.
const CANCEL: i32 = 80_877_102;
const TLS: i32 = 80_877_103;
const GSS: i32 = 80_877_104;
/// Names and values of a first message at most.
const MOST_OPTIONS: usize = 100;

/// The first message of a connection, which has no type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// Asks for TLS.
    Tls,
    /// Asks for encryption by GSSAPI.
    Gss,
    /// Asks to cancel the statement of another connection.
    Cancel { process: i32, key: i32 },
    /// Begins a session: minor version of the protocol, options by name.
    Startup { minor: i32, options: BTreeMap<String, String> },
}

/// What a `Describe` or `Close` is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A prepared statement.
    Statement,
    /// A portal, which is a statement with values.
    Portal,
}

/// A message of a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Statements in text, whose rows come as text.
    Query(String),
    /// Prepares a statement; types of parameters, 0 where the client does not say.
    Parse { name: String, query: String, types: Vec<u32> },
    /// Gives values to a prepared statement.
    Bind {
        portal: String,
        statement: String,
        parameter_formats: Vec<Format>,
        parameters: Vec<Option<Bytes>>,
        result_formats: Vec<Format>,
    },
    /// Asks for parameters and columns.
    Describe { target: Target, name: String },
    /// Asks for rows of a portal, at most so many; 0 for all.
    Execute { portal: String, most: usize },
    /// Forgets a statement or a portal.
    Close { target: Target, name: String },
    /// Ends a series of the messages above.
    Sync,
    /// Asks for what is ready.
    Flush,
    /// Ends the connection.
    Terminate,
    /// A password, or a step of SASL.
    Password(Bytes),
    /// Data of a COPY that the server did not ask for.
    CopyData,
}

/// Reads the body of a first message.
///
/// # Errors
/// If it is none of the protocol.
pub(crate) fn first_of(body: Bytes) -> Result<First, Refusal> {
    let mut body = Body(body);
    match body.integer()? {
        TLS => Ok(First::Tls),
        GSS => Ok(First::Gss),
        CANCEL => Ok(First::Cancel { process: body.integer()?, key: body.integer()? }),
        version if version >> 16 == 3 => {
            let mut options = BTreeMap::new();
            while !body.is_empty() {
                let name = body.text()?;
                if name.is_empty() {
                    break;
                }
                if options.len() == MOST_OPTIONS {
                    return Err(Refusal::protocol("the first message has too many options"));
                }
                options.insert(name, body.text()?);
            }
            Ok(First::Startup { minor: version & 0xffff, options })
        }
        version => Err(Refusal::protocol(format!(
            "version {}.{} of the protocol is not served; 3.0 is",
            (version >> 16).cast_unsigned() & 0xffff,
            version & 0xffff
        ))),
    }
}

/// Reads a message of a session by its type.
///
/// # Errors
/// If it is none of the protocol.
pub(crate) fn request_of(kind: u8, body: Bytes) -> Result<Request, Refusal> {
    let mut body = Body(body);
    Ok(match kind {
        b'Q' => Request::Query(body.text()?),
        b'P' => {
            let (name, query) = (body.text()?, body.text()?);
            let count = body.count(4)?;
            let types = (0..count).map(|_| Ok(body.integer()?.cast_unsigned())).collect::<Result<_, Refusal>>()?;
            Request::Parse { name, query, types }
        }
        b'B' => bind(&mut body)?,
        b'D' => Request::Describe { target: target(&mut body)?, name: body.text()? },
        b'E' => {
            let portal = body.text()?;
            // What is negative stands for all, as in PostgreSQL.
            Request::Execute { portal, most: usize::try_from(body.integer()?).unwrap_or_default() }
        }
        b'C' => Request::Close { target: target(&mut body)?, name: body.text()? },
        b'S' => Request::Sync,
        b'H' => Request::Flush,
        b'X' => Request::Terminate,
        b'p' => Request::Password(body.0),
        b'd' | b'c' | b'f' => Request::CopyData,
        kind => return Err(Refusal::protocol(format!("there is no message of type 0x{kind:02x}"))),
    })
}

fn bind(body: &mut Body) -> Result<Request, Refusal> {
    let (portal, statement) = (body.text()?, body.text()?);
    let parameter_formats = formats(body)?;
    let count = body.count(4)?;
    let parameters = (0..count).map(|_| body.value()).collect::<Result<_, _>>()?;
    Ok(Request::Bind { portal, statement, parameter_formats, parameters, result_formats: formats(body)? })
}

fn formats(body: &mut Body) -> Result<Vec<Format>, Refusal> {
    let count = body.count(2)?;
    let format = |code: i16| match code {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        code => Err(Refusal::protocol(format!("there is no format {code} of values"))),
    };
    (0..count).map(|_| format(body.short()?)).collect()
}

fn target(body: &mut Body) -> Result<Target, Refusal> {
    match body.byte()? {
        b'S' => Ok(Target::Statement),
        b'P' => Ok(Target::Portal),
        _ => Err(Refusal::protocol("a message is about neither a statement nor a portal")),
    }
}

#[cfg(test)]
mod tests {
    use bytes::{BufMut, BytesMut};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_are_read() {
        let read = |kind, body: &[u8]| request_of(kind, Bytes::copy_from_slice(body));
        assert_eq!(read(b'Q', b"SELECT 1\0"), Ok(Request::Query("SELECT 1".to_owned())));
        let parse = Request::Parse { name: "s".to_owned(), query: "q".to_owned(), types: vec![20] };
        assert_eq!(read(b'P', b"s\0q\0\0\x01\0\0\0\x14"), Ok(parse));
        let bind = Request::Bind {
            portal: String::new(),
            statement: "s".to_owned(),
            parameter_formats: vec![Format::Binary],
            parameters: vec![None, Some(Bytes::from_static(b"ab"))],
            result_formats: Vec::new(),
        };
        assert_eq!(read(b'B', b"\0s\0\0\x01\0\x01\0\x02\xff\xff\xff\xff\0\0\0\x02ab\0\0"), Ok(bind));
        assert_eq!(read(b'E', b"\0\xff\xff\xff\xff"), Ok(Request::Execute { portal: String::new(), most: 0 }));
        for (kind, body) in [(b'Q', &b"no end"[..]), (b'B', b"\0\0\0\x09"), (b'D', b"Xa\0"), (b'z', b"")] {
            assert!(read(kind, body).unwrap_err().is_fatal);
        }
        assert_eq!(read(b'Q', b"\xff\0").unwrap_err().code, "22021");
    }

    #[test]
    fn first_messages_are_read() {
        let mut body = BytesMut::new();
        body.put_i32(3 << 16);
        body.put_slice(b"user\0ada\0\0");
        let options = BTreeMap::from([("user".to_owned(), "ada".to_owned())]);
        assert_eq!(first_of(body.freeze()), Ok(First::Startup { minor: 0, options }));
        assert_eq!(first_of(Bytes::from_static(b"\x04\xd2\x16\x2f")), Ok(First::Tls));
        assert!(first_of(Bytes::from_static(b"GET / HTTP/1.1\r\n")).is_err());
        assert!(first_of(Bytes::new()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_panic(kind in any::<u8>(), body in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = request_of(kind, Bytes::from(body.clone()));
            let _ = first_of(Bytes::from(body));
        }
    }
}
