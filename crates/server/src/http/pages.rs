//! What there is under which path.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};

use super::prometheus;

pub(super) type Body = Full<Bytes>;

/// A file of the console.
pub(super) struct File {
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

/// What a path stands for.
pub(super) enum Page {
    Static(&'static File),
    /// The rows of a query.
    Rows(&'static str),
    /// Those of `avocet.metrics`.
    Metrics(&'static str),
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The console, which needs nothing from elsewhere.
static FILES: &[File] = &[
    File { path: "/", content_type: HTML, bytes: include_bytes!("console/console.html") },
    File { path: "/console.css", content_type: STYLE, bytes: include_bytes!("console/console.css") },
    File { path: "/console.js", content_type: SCRIPT, bytes: include_bytes!("console/console.js") },
    File {
        path: "/uPlot.css",
        content_type: STYLE,
        bytes: include_bytes!("console/vendor/uPlot/uPlot.min.css"),
    },
    File {
        path: "/uPlot.js",
        content_type: SCRIPT,
        bytes: include_bytes!("console/vendor/uPlot/uPlot.iife.min.js"),
    },
];

/// What the console asks for. Each is bounded, however much there is.
const ROWS: &[(&str, &str)] = &[
    (
        "/api/server",
        "SELECT CURRENT_USER() AS account, @@version AS version, @@hostname AS host, @@port AS port",
    ),
    ("/api/metrics", "SELECT name, labels, value FROM avocet.metrics"),
    (
        "/api/activity",
        "SELECT ID AS id, USER AS user, HOST AS host, DB AS db, COMMAND AS command, TIME AS seconds, STATE AS state, INFO AS statement \
         FROM performance_schema.processlist WHERE ID <> CONNECTION_ID() AND COMMAND <> 'Sleep' ORDER BY TIME DESC, ID LIMIT 50",
    ),
    (
        "/api/statements",
        "SELECT SCHEMA_NAME AS db, DIGEST_TEXT AS statement, COUNT_STAR AS count, SUM_TIMER_WAIT / 1e12 AS seconds, \
         AVG_TIMER_WAIT / 1e9 AS mean_ms, QUANTILE_99 / 1e9 AS p99_ms, MAX_TIMER_WAIT / 1e9 AS max_ms, SUM_ROWS_SENT AS row_count, \
         SUM_ROWS_AFFECTED AS changed, SUM_ERRORS AS errors \
         FROM performance_schema.events_statements_summary_by_digest ORDER BY SUM_TIMER_WAIT DESC LIMIT 30",
    ),
    ("/api/replication", "SELECT * FROM avocet.replication"),
    ("/api/tables", "SELECT * FROM avocet.replica_tables ORDER BY table_schema, table_name LIMIT 200"),
    (
        "/api/routes",
        "SELECT arrived_at, user, default_database AS db, query, ran_on, why, source_cost, freshness, waited_us / 1e3 AS waited_ms, \
         took_us / 1e3 AS took_ms FROM avocet.routed_queries ORDER BY id DESC LIMIT 30",
    ),
];

pub(super) fn page(path: &str) -> Option<Page> {
    if path == "/metrics" {
        return Some(Page::Metrics(prometheus::METRICS));
    }
    let rows = ROWS.iter().find(|(of, _)| *of == path).map(|(_, sql)| Page::Rows(sql));
    rows.or_else(|| FILES.iter().find(|file| file.path == path).map(Page::Static))
}

impl File {
    pub fn response(&self) -> Response<Body> {
        of_type(self.content_type, self.bytes.into())
    }
}

pub(super) fn of_type(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A text with a status.
pub(super) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = of_type("text/plain; charset=utf-8", text.to_owned().into());
    *response.status_mut() = status;
    response
}
