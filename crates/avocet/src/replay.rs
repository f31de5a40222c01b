//! `avocet replay`: recorded queries on the source and on the Avocet that follows it, and whether they answer the same.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use avocet_replay::{Control, Log, Options, Report, Rules};
use indicatif::{ProgressBar, ProgressStyle};
use mysql::Opts;
use tokio::runtime::Builder;

use crate::Failure;

#[derive(clap::Args)]
pub struct Args {
    /// A general or slow query log of MySQL or MariaDB, the file of mysql.general_log or mysql.slow_log, or SQL statements; - for the
    /// standard input, such as tail -F writes it
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The server that was recorded, or one with the same rows, as mysql://user:password@host:port/
    #[arg(long, value_name = "URL")]
    source: String,
    /// The Avocet that follows it
    #[arg(long, value_name = "URL", default_value = "mysql://root@127.0.0.1:3307/")]
    avocet: String,
    /// Sessions that are replayed at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: usize,
    /// How often each statement runs on either side: answers and times are of the first run, and the best is reported beside it
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: u32,
    /// Events of the log
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// Keep the log's times, so many times as fast; as fast as can be if not given
    #[arg(long, value_name = "X", value_parser = speed)]
    speed: Option<f64>,
    /// Kill statements that take longer, on either side
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// For how long Avocet may take to get to the source's position
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    wait: f64,
    /// Avocet need not follow the source: both have the same rows, and nobody writes
    #[arg(long)]
    no_wait: bool,
    /// What approximate numbers may differ by, relative
    #[arg(long, value_name = "X", default_value_t = Rules::default().tolerance)]
    tolerance: f64,
    /// Columns may be of other types
    #[arg(long)]
    ignore_types: bool,
    /// Statements may have other numbers of warnings
    #[arg(long)]
    ignore_warnings: bool,
    /// Write the whole report here, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| format!("'{text}' is not a number"))?;
    (speed > 0.0 && speed.is_finite()).then_some(speed).ok_or_else(|| "it has to be above 0".into())
}

fn seconds(seconds: f64, option: &str) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{option}: {error}").into())
}

fn server(url: &str) -> Result<Opts, Failure> {
    Opts::from_url(url).map_err(|error| format!("{url}: {error}").into())
}

pub fn run(args: Args) -> Result<(), Failure> {
    let options = Options {
        source: server(&args.source)?,
        avocet: server(&args.avocet)?,
        waits: !args.no_wait,
        patience: seconds(args.wait, "--wait")?,
        runs: args.runs,
        threads: args.threads.clamp(1, 1000),
        limit: args.limit,
        duration: args.duration.map(|limit| seconds(limit, "--duration")).transpose()?,
        speed: args.speed,
        rules: Rules {
            tolerance: args.tolerance,
            compares_types: !args.ignore_types,
            compares_warnings: !args.ignore_warnings,
        },
    };
    let timeout = args.timeout.map(|limit| seconds(limit, "--timeout")).transpose()?;
    let path = if args.log.as_os_str() == "-" { PathBuf::from("/dev/stdin") } else { args.log };
    let mut log = Log::open(&path)?;
    let control = Control::new(timeout);
    stop_at_interrupt(control.clone())?;
    let bar = progress_bar();
    let progress = |report: &Report| {
        let total = report.total();
        bar.set_message(format!(
            "{} events, {} replayed, {} same, {} different",
            report.events,
            total.count(),
            total.same,
            total.different
        ));
        bar.tick();
    };
    let report = avocet_replay::replay(&mut log, &options, &control, &progress)?;
    bar.finish_and_clear();
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report.json(args.tolerance))?;
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    print!("{report}");
    let total = report.total();
    match (total.different, &report.cut_short) {
        (1.., _) => Err(format!("{} answers differ", total.different).into()),
        (0, Some(why)) if args.duration.is_none() => {
            Err(format!("the log was not replayed to its end: {why}").into())
        }
        (0, _) => Ok(()),
    }
}

/// Nothing where nobody looks.
fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}").expect("the template is valid");
    ProgressBar::new_spinner().with_style(style)
}

/// The first SIGINT ends the replay, with a report of what was found; the second one the process.
fn stop_at_interrupt(control: Arc<Control>) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("replay-signals".into()).spawn(move || {
        runtime.block_on(async {
            let mut signals = 0;
            while tokio::signal::ctrl_c().await.is_ok() {
                signals += 1;
                if signals > 1 {
                    std::process::exit(130);
                }
                control.stop();
            }
        });
    })?;
    Ok(())
}
