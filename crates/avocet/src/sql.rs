//! `avocet sql`: a shell like the mysql client.
//!
//! Interactive on a terminal, with line editing and history; from `-e` or a pipe it prints tab-separated lines and
//! stops at the first error.

mod backend;
mod embedded;
mod output;
mod split;

use std::io::{self, BufRead, IsTerminal, Write};
use std::time::Instant;

use backend::Remote;
pub use backend::{Backend, RunError};
use output::Style;
use split::{Ending, Splitter};

use crate::Failure;
use crate::connect::Target;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Run these statements and leave
    #[arg(short, long, value_name = "SQL")]
    execute: Option<String>,
    /// Draw tables even if the output is not a terminal
    #[arg(short = 't', long)]
    table: bool,
    /// Leave the line of column names out
    #[arg(short = 'N', long)]
    skip_column_names: bool,
    /// Send files of this machine that LOAD DATA LOCAL names
    #[arg(long, conflicts_with = "data")]
    local_infile: bool,
    /// The default database
    database: Option<String>,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let mut backend: Box<dyn Backend> = match &args.target.data {
        Some(data) => Box::new(embedded::Embedded::open(data, args.database.as_deref())?),
        None => Box::new(Remote::new(args.target.connect(args.database.as_deref())?, args.local_infile)),
    };
    let interactive = args.execute.is_none() && io::stdin().is_terminal();
    let style = if interactive {
        Style::Interactive
    } else if args.table {
        Style::Table
    } else {
        Style::Batch { names: !args.skip_column_names }
    };
    let mut shell = Shell { backend: &mut *backend, style };
    match args.execute {
        Some(text) => shell.run_all(text.as_bytes()),
        None if interactive => shell.interact(),
        None => shell.run_all(io::stdin().lock()),
    }
}

struct Shell<'a> {
    backend: &'a mut dyn Backend,
    style: Style,
}

/// What came of a statement.
enum Outcome {
    Done,
    Quit,
    Failed(RunError),
}

impl Shell<'_> {
    /// Runs one statement or client command.
    fn run(&mut self, text: &str, ending: Ending) -> Outcome {
        match text.to_ascii_lowercase().as_str() {
            "" => return Outcome::Done,
            "quit" | "exit" | "\\q" => return Outcome::Quit,
            "help" | "\\h" => {
                println!("Statements end with ; or \\G. \\q leaves.");
                return Outcome::Done;
            }
            _ => {}
        }
        let started = Instant::now();
        let style = self.style;
        let mut printed = Ok(());
        let outcome = self.backend.run(text, &mut |result| {
            let mut out = io::stdout().lock();
            if printed.is_ok() {
                printed = output::print(&mut out, &result, style, ending, started.elapsed());
            }
        });
        match (outcome, printed) {
            (Err(error), _) => Outcome::Failed(error),
            // Whoever read our output has gone.
            (Ok(()), Err(_)) => Outcome::Quit,
            (Ok(()), Ok(())) => Outcome::Done,
        }
    }

    /// Runs all of an input, up to the first error.
    fn run_all(&mut self, mut input: impl BufRead) -> Result<(), Failure> {
        let (mut pending, mut splitter) = (Pending::default(), Splitter::default());
        let mut line = 1;
        loop {
            let ended = !pending.read_line(&mut input)?;
            while let Some(piece) = splitter.next(pending.text()) {
                let at = line + leading_lines(pending.text());
                let taken = piece.taken;
                match self.run(piece.text, piece.ending) {
                    Outcome::Done => {}
                    Outcome::Quit => return Ok(()),
                    Outcome::Failed(error) => return Err(located(&error, at)),
                }
                line += pending.take(taken);
            }
            if ended {
                let last = pending.text();
                return match self.run(last.trim(), Ending::Table) {
                    Outcome::Failed(error) => Err(located(&error, line + leading_lines(last))),
                    _ => Ok(()),
                };
            }
        }
    }

    fn interact(&mut self) -> Result<(), Failure> {
        // Lines are edited by the terminal itself; `rlwrap avocet sql` adds a history.
        let mut lines = io::stdin().lock().lines();
        println!("Avocet {}. Statements end with ; or \\G. \\q leaves.\n", env!("CARGO_PKG_VERSION"));
        let (mut pending, mut splitter) = (String::new(), Splitter::default());
        loop {
            let prompt = if pending.trim().is_empty() { "avocet> " } else { "     -> " };
            print!("{prompt}");
            io::stdout().flush()?;
            let Some(line) = lines.next() else { break };
            pending.push_str(&line?);
            pending.push('\n');
            if self.run_pending(&mut pending, &mut splitter)? {
                break;
            }
        }
        println!("Bye");
        Ok(())
    }

    /// Runs what is complete of the typed text; true to leave.
    fn run_pending(&mut self, pending: &mut String, splitter: &mut Splitter) -> Result<bool, Failure> {
        if matches!(pending.trim().to_ascii_lowercase().as_str(), "quit" | "exit" | "\\q" | "help" | "\\h") {
            pending.insert(pending.trim_end().len(), ';');
        }
        while let Some(piece) = splitter.next(pending) {
            let taken = piece.taken;
            match self.run(piece.text, piece.ending) {
                Outcome::Done => {}
                Outcome::Quit => return Ok(true),
                Outcome::Failed(RunError::Lost(why)) => return Err(why.into()),
                Outcome::Failed(error) => println!("{error}\n"),
            }
            pending.drain(..taken);
        }
        io::stdout().flush()?;
        Ok(false)
    }
}

/// Input that has been read and not been run.
#[derive(Default)]
struct Pending {
    read: String,
    /// What stands before has been run.
    at: usize,
    lines: usize,
}

impl Pending {
    fn text(&self) -> &str {
        &self.read[self.at..]
    }

    /// Reads another line; false at the end of the input.
    fn read_line(&mut self, input: &mut impl BufRead) -> Result<bool, Failure> {
        // What has been run goes when it is most of what is here, so that nothing is moved often.
        if self.at > self.read.len() / 2 {
            self.read.drain(..self.at);
            self.at = 0;
        }
        let mut line = Vec::new();
        input.read_until(b'\n', &mut line)?;
        self.lines += 1;
        let line = std::str::from_utf8(&line).map_err(|_| format!("line {} is no UTF-8", self.lines))?;
        self.read.push_str(line);
        Ok(!line.is_empty())
    }

    /// Passes over what has been run; how many lines it had.
    fn take(&mut self, bytes: usize) -> usize {
        let lines = self.text()[..bytes].matches('\n').count();
        self.at += bytes;
        lines
    }
}

/// Newlines before a statement's first word.
fn leading_lines(text: &str) -> usize {
    let blank = text.len() - text.trim_start().len();
    text[..blank].matches('\n').count()
}

fn located(error: &RunError, line: usize) -> Failure {
    match error {
        RunError::Sql { errno, state, message } => {
            format!("ERROR {errno} ({state}) at line {line}: {message}").into()
        }
        RunError::Lost(why) => why.clone().into(),
    }
}
