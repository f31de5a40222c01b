//! A small object store that speaks S3 over loopback: enough of it for a client that puts, gets, lists and deletes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub const BUCKET: &str = "bucket";
pub const ACCESS_KEY: &str = "test-access-key";

#[derive(Clone, Default)]
pub struct S3 {
    objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    /// Answers every request with "access denied".
    denies: Arc<AtomicBool>,
}

struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    range: Option<(usize, usize)>,
    authorized: bool,
    body: Vec<u8>,
}

impl S3 {
    /// Serves until the process ends.
    pub fn start() -> (S3, SocketAddr) {
        let store = S3::default();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let served = store.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let store = served.clone();
                std::thread::spawn(move || store.serve(&stream));
            }
        });
        (store, address)
    }

    pub fn keys(&self) -> Vec<String> {
        self.objects.lock().expect("not poisoned").keys().cloned().collect()
    }

    pub fn deny(&self, denies: bool) {
        self.denies.store(denies, Ordering::SeqCst);
    }

    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut writer = stream;
        while let Some(request) = read(&mut reader) {
            let head = request.method == "HEAD";
            let (status, headers, body) = self.answer(&request);
            let mut text =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n", body.len()).into_bytes();
            if !head {
                text.extend_from_slice(&body);
            }
            if writer.write_all(&text).is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &Request) -> (&'static str, String, Vec<u8>) {
        if self.denies.load(Ordering::SeqCst) || !request.authorized {
            return ("403 Forbidden", String::new(), error("AccessDenied"));
        }
        let mut objects = self.objects.lock().expect("not poisoned");
        let bucket = format!("/{BUCKET}");
        let key = request.path.strip_prefix(&bucket).unwrap_or("").trim_start_matches('/').to_owned();
        match (request.method.as_str(), key.is_empty()) {
            ("PUT", false) => {
                objects.insert(key, request.body.clone());
                ("200 OK", "ETag: \"1\"\r\n".into(), Vec::new())
            }
            ("GET" | "HEAD", false) => match objects.get(&key) {
                None => ("404 Not Found", String::new(), error("NoSuchKey")),
                Some(bytes) => object(bytes, request.range),
            },
            ("DELETE", false) => {
                objects.remove(&key);
                ("204 No Content", String::new(), Vec::new())
            }
            ("POST", true) if request.query.contains_key("delete") => {
                let body = String::from_utf8_lossy(&request.body).into_owned();
                for key in body.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()) {
                    objects.remove(key);
                }
                ("200 OK", String::new(), b"<DeleteResult></DeleteResult>".to_vec())
            }
            ("GET", true) => {
                let prefix = request.query.get("prefix").cloned().unwrap_or_default();
                ("200 OK", String::new(), listing(&objects, &prefix))
            }
            _ => ("400 Bad Request", String::new(), error("InvalidRequest")),
        }
    }
}

const TIME: &str = "2026-01-01T00:00:00.000Z";

fn object(bytes: &[u8], range: Option<(usize, usize)>) -> (&'static str, String, Vec<u8>) {
    let mut headers = "ETag: \"1\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n".to_owned();
    match range {
        None => ("200 OK", headers, bytes.to_vec()),
        Some((from, to)) => {
            let to = (to + 1).min(bytes.len());
            headers.push_str(&format!("Content-Range: bytes {from}-{}/{}\r\n", to - 1, bytes.len()));
            ("206 Partial Content", headers, bytes[from..to].to_vec())
        }
    }
}

fn error(code: &str) -> Vec<u8> {
    format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>").into_bytes()
}

fn listing(objects: &BTreeMap<String, Vec<u8>>, prefix: &str) -> Vec<u8> {
    let mut xml = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
    for (key, bytes) in objects.iter().filter(|(key, _)| key.starts_with(prefix)) {
        let size = bytes.len();
        xml.push_str(&format!(
            "<Contents><Key>{key}</Key><LastModified>{TIME}</LastModified><ETag>\"1\"</ETag><Size>{size}</Size></Contents>"
        ));
    }
    xml.push_str("</ListBucketResult>");
    xml.into_bytes()
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&n| n > 0)?;
    let mut words = line.split_ascii_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut request = Request {
        method,
        path: unescape(path),
        query: query.map(|(name, value)| (name.to_owned(), unescape(value))).collect(),
        range: None,
        authorized: false,
        body: Vec::new(),
    };
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|&n| n > 0)?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => request.authorized = value.contains(ACCESS_KEY),
            "range" => {
                let (from, to) = value.trim().strip_prefix("bytes=")?.split_once('-')?;
                request.range = Some((from.parse().ok()?, to.parse().ok()?));
            }
            _ => {}
        }
    }
    request.body.resize(length, 0);
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

/// `%2F` and the like.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
