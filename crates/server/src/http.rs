//! HTTP beside the MySQL protocol: metrics for Prometheus, and a console for browsers. Off unless an address is given.
//!
//! ```text
//!  GET /metrics      the text format of Prometheus
//!  GET /api/NAME     rows as JSON, for the console
//!  GET /             the console
//! ```
//!
//! Everything is read by SQL, in a session of the account whose name and password come with the request (Basic authentication): who
//! may see what is decided there. A connection is one of the server's: it counts, SHOW PROCESSLIST lists it, KILL ends it. HTTP
//! without TLS is for clients on this machine alone, since passwords come with it.

mod json;
mod pages;
mod prometheus;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use avocet_session::api::{AccountName, SessionFactory, SessionInfo, SqlSession};
use avocet_types::Collation;
use avocet_types::error::{ErrorCode, SqlError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_rustls::TlsAcceptor;

use crate::auth::accounts::ClientHost;
use crate::auth::exchange::Authenticator;
use crate::registry::{Activity, Registration, Registry};
use crate::tls::TlsPeer;

use pages::{Body, Page, page, plain};

/// For a request's head, and between two requests.
const IDLE: Duration = Duration::from_secs(60);
/// For the first byte of a connection, and for TLS.
const BEGIN: Duration = Duration::from_secs(10);
/// Heads that are larger are refused.
const MOST_HEAD: usize = 16 << 10;
/// What the first byte of a TLS connection is: a handshake record.
const TLS_HANDSHAKE: u8 = 22;

/// What of the server it takes.
pub(crate) struct Host<'h, F> {
    pub factory: &'h F,
    pub authenticator: &'h Authenticator,
    pub tls: Option<&'h TlsAcceptor>,
    pub registry: &'h Arc<Registry>,
}

/// Where a client comes from.
pub(crate) struct Origin {
    pub host: ClientHost,
    pub is_this_machine: bool,
}

/// One connection's session.
struct Client<'c, F: SessionFactory> {
    server: &'c Host<'c, F>,
    registration: &'c Registration,
    origin: &'c Origin,
    tls: Option<TlsPeer>,
    /// Of the account that asked last.
    session: Mutex<Option<(AccountName, F::Session)>>,
}

/// Serves a client until it leaves or is ended.
pub(crate) async fn serve<F: SessionFactory>(
    server: Host<'_, F>,
    stream: TcpStream,
    origin: Origin,
    registration: Registration,
) {
    let ended = async {
        while registration.interrupt.raised().await != avocet_channel::Interruption::Connection {
            registration.interrupt.begin_statement();
        }
    };
    tokio::select! {
        biased;
        () = ended => {}
        () = serve_stream(&server, stream, &origin, &registration) => {}
    }
}

async fn serve_stream<F: SessionFactory>(
    server: &Host<'_, F>,
    stream: TcpStream,
    origin: &Origin,
    registration: &Registration,
) {
    let mut first = [0];
    let is_tls = match tokio::time::timeout(BEGIN, stream.peek(&mut first)).await {
        Ok(Ok(1)) => first[0] == TLS_HANDSHAKE,
        _ => return,
    };
    let client = |tls| Client { server, registration, origin, tls, session: Mutex::new(None) };
    match server.tls.filter(|_| is_tls) {
        Some(acceptor) => {
            let Ok(Ok(stream)) = tokio::time::timeout(BEGIN, acceptor.accept(stream)).await else { return };
            let tls = TlsPeer::of(stream.get_ref().1);
            converse(&client(Some(tls)), stream).await;
        }
        None => converse(&client(None), stream).await,
    }
}

async fn converse<F: SessionFactory>(client: &Client<'_, F>, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let service = service_fn(async |request| Ok::<_, Infallible>(client.answer(request).await));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_buf_size(MOST_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(connection = client.registration.id, %error, "HTTP connection ended");
    }
}

/// Name and password of Basic authentication.
fn credentials(headers: &HeaderMap) -> Option<(String, Vec<u8>)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    let decoded = scheme.eq_ignore_ascii_case("Basic").then(|| STANDARD.decode(encoded.trim()))?.ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let user = std::str::from_utf8(&decoded[..colon]).ok()?;
    Some((user.to_owned(), decoded[colon + 1..].to_vec()))
}

impl<F: SessionFactory> Client<'_, F> {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let mut response = match self.page_for(&request).await {
            Ok(response) => response,
            Err(error) => refusal(&error),
        };
        let headers = response.headers_mut();
        let fixed = [
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_FRAME_OPTIONS, "DENY"),
            (
                header::CONTENT_SECURITY_POLICY,
                "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'",
            ),
            (header::CACHE_CONTROL, "no-store"),
        ];
        headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
        self.registration.sleep();
        response
    }

    async fn page_for(&self, request: &Request<Incoming>) -> Result<Response<Body>, SqlError> {
        if self.tls.is_none() && !self.origin.is_this_machine {
            let why = "Passwords do not go over a network in the clear: use https here.\n";
            return Ok(plain(StatusCode::FORBIDDEN, why));
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD are answered.\n");
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return Ok(response);
        }
        let Some((user, password)) = credentials(request.headers()) else { return Ok(unauthorized()) };
        let (authenticator, host) = (self.server.authenticator, &self.origin.host);
        let account = authenticator.check_password(&user, &password, host, self.tls.clone()).await?;
        let mut session = self.session.lock().await;
        if session.as_ref().is_none_or(|(of, _)| *of != account) {
            *session = None;
            *session = Some((account.clone(), self.open(&user, account)?));
        }
        match (page(request.uri().path()), &mut *session) {
            (Some(Page::Static(page)), _) => Ok(page.response()),
            (Some(Page::Rows(sql)), Some((_, session))) => {
                let mut rows = json::Rows::default();
                self.run(session, sql, &mut rows).await?;
                Ok(rows.response())
            }
            (Some(Page::Metrics(sql)), Some((_, session))) => {
                let mut text = prometheus::Exposition::default();
                self.run(session, sql, &mut text).await?;
                Ok(text.response())
            }
            _ => Ok(plain(StatusCode::NOT_FOUND, "There is no such page.\n")),
        }
    }

    fn open(&self, user: &str, account: AccountName) -> Result<F::Session, SqlError> {
        let Self { server, registration, .. } = self;
        if !registration.is_admitted() {
            let more = usize::from(server.factory.is_administrator(&account));
            let max = server.factory.max_connections().saturating_add(more);
            server.registry.admit(registration, max)?;
        }
        registration.signed_in(user, &account, None);
        server.factory.open(SessionInfo {
            connection_id: registration.id,
            account,
            client_host: self.origin.host.name.clone(),
            database: None,
            found_rows: false,
            multi_statements: false,
            interactive: false,
            ignore_space: false,
            collation: Collation::DEFAULT.0,
            cipher: String::new(),
            interrupt: registration.interrupt.clone(),
            connections: server.registry.clone(),
        })
    }

    async fn run(
        &self,
        session: &mut F::Session,
        sql: &str,
        sink: &mut dyn avocet_channel::ResultSink,
    ) -> Result<(), SqlError> {
        self.registration.interrupt.begin_statement();
        self.server.registry.count_statement();
        self.registration.begin(Activity::Query, sql.as_bytes());
        session.execute(sql, sink).await
    }
}

fn unauthorized() -> Response<Body> {
    let mut response = plain(StatusCode::UNAUTHORIZED, "Name and password of an account are needed.\n");
    let challenge = HeaderValue::from_static("Basic realm=\"Avocet\", charset=\"UTF-8\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}

/// What a client is told of an error of SQL.
fn refusal(error: &SqlError) -> Response<Body> {
    let text =
        format!("ERROR {} ({}): {}\n", error.errno, String::from_utf8_lossy(&error.sqlstate), error.message);
    if error.errno == ErrorCode::ACCESS_DENIED_ERROR.errno {
        let mut response = unauthorized();
        *response.body_mut() = text.into();
        return response;
    }
    let status = match error.errno {
        errno if errno == ErrorCode::CON_COUNT_ERROR.errno => StatusCode::SERVICE_UNAVAILABLE,
        errno if errno == ErrorCode::QUERY_INTERRUPTED.errno => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::FORBIDDEN,
    };
    plain(status, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().expect("a header"));
            credentials(&headers)
        };
        let with = |text: &str| of(&format!("basic {}", STANDARD.encode(text)));
        assert_eq!(with("ann:a:b"), Some(("ann".into(), b"a:b".to_vec())));
        assert_eq!(with("ann:"), Some(("ann".into(), Vec::new())));
        assert_eq!(with("ann"), None);
        assert_eq!(of("Bearer x"), None);
        assert_eq!(of("Basic %%%"), None);
        assert_eq!(credentials(&HeaderMap::new()), None);
    }
}
