//! Repository chores: `cargo xtask tidy` checks what compilers do not, `cargo xtask check` is the fast inner loop, and
//! `cargo xtask functions` prints the table of functions.

mod functions;
mod imports;
mod tidy;

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy::run(),
        Some("check") => check(),
        Some("functions") => {
            functions::table().map(|table| print!("{table}")).map_err(|problem| vec![problem])
        }
        _ => Err(vec!["usage: cargo xtask tidy | check | functions".into()]),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(findings) => {
            findings.iter().for_each(|finding| eprintln!("{finding}"));
            ExitCode::FAILURE
        }
    }
}

/// Formatting, lints, repository rules, and the tests of the crates that build without DataFusion.
fn check() -> Result<(), Vec<String>> {
    cargo(&["fmt", "--all", "--check"])?;
    tidy::run()?;
    cargo(&["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    let fast = ["base", "types", "log", "storage", "engine", "sql", "channel", "point"]
        .map(|name| format!("-pavocet-{name}"));
    let mut args = vec!["test", "--release"];
    args.extend(fast.iter().map(String::as_str));
    cargo(&args)
}

fn cargo(args: &[&str]) -> Result<(), Vec<String>> {
    let status = Command::new(env!("CARGO")).args(args).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(vec![format!("cargo {} failed", args.join(" "))]),
        Err(e) => Err(vec![format!("cargo: {e}")]),
    }
}
