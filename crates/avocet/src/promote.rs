//! `avocet promote`: has a running server take the place of the MySQL or MariaDB that it follows, by PROMOTE REPLICA.

use std::io::Write;

use clap::ValueEnum;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};

use crate::Failure;
use crate::connect::said;

#[derive(clap::Args)]
pub struct Args {
    /// The server that is to become the primary, as mysql://root:password@127.0.0.1:3307/
    #[arg(value_name = "URL")]
    server: String,
    /// Say whether it could, and what would stay behind at the source, and end
    #[arg(long, conflicts_with = "undo")]
    check: bool,
    /// Let the source write again, after a promotion that did not come to its end
    #[arg(long)]
    undo: bool,
    /// The longest time for which neither server takes writes
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u32,
    /// When every table is compared with the source's by value
    #[arg(long, value_enum, default_value_t)]
    verify: Verify,
    /// Compare this table alone; * stands for any part of a name; may be given several times
    #[arg(long, value_name = "DB[.TABLE]")]
    verify_table: Vec<String>,
    /// A table of the source that may stay behind; * stands for any part of a name; may be given several times
    #[arg(long, value_name = "DB[.TABLE]")]
    allow_left_out: Vec<String>,
    /// Make the source's accounts here, with their passwords and grants
    #[arg(long)]
    accounts: bool,
    /// Who stops writes at the source, if not the account that follows it
    #[arg(long, value_name = "USER")]
    source_user: Option<String>,
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "AVOCET_SOURCE_PASSWORD",
        hide_env_values = true,
        requires = "source_user"
    )]
    source_password: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Verify {
    /// While the source is written to still: nobody waits for it
    #[default]
    Before,
    /// While writes are stopped
    Stopped,
    /// Before, and while writes are stopped
    Both,
    None,
}

impl Args {
    /// The statement that this command stands for.
    fn statement(&self) -> String {
        let text = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
        let mut options = Vec::new();
        let mut statement = String::from("PROMOTE REPLICA");
        if self.undo {
            statement.push_str(" UNDO");
        } else {
            if self.check {
                statement.push_str(" CHECK");
            }
            let verify = match self.verify {
                Verify::Before => "BEFORE",
                Verify::Stopped => "STOPPED",
                Verify::Both => "BOTH",
                Verify::None => "NONE",
            };
            options.push(format!("TIMEOUT = {}, VERIFY = {verify}", self.timeout));
            if self.accounts {
                options.push("ACCOUNTS = 1".into());
            }
            for (option, names) in
                [("VERIFY_TABLES", &self.verify_table), ("ALLOW_LEFT_OUT", &self.allow_left_out)]
            {
                if !names.is_empty() {
                    let names: Vec<String> = names.iter().map(|name| text(name)).collect();
                    options.push(format!("{option} = ({})", names.join(", ")));
                }
            }
        }
        if let Some(user) = &self.source_user {
            let password = self.source_password.as_deref().unwrap_or_default();
            options.push(format!("SOURCE_USER = {}, SOURCE_PASSWORD = {}", text(user), text(password)));
        }
        format!("{statement} {}", options.join(", "))
    }
}

pub fn run(args: Args) -> Result<(), Failure> {
    let opts = Opts::from_url(&args.server).map_err(|error| format!("{}: {error}", args.server))?;
    let opts = OptsBuilder::from_opts(opts).prefer_socket(false);
    let mut conn = Conn::new(opts).map_err(said)?;
    let mut rows = conn.query_iter(args.statement()).map_err(said)?;
    let mut out = std::io::stdout().lock();
    if let Some(steps) = rows.iter() {
        for row in steps {
            let (step, result, milliseconds, detail): (String, String, u64, String) =
                mysql::from_row(row.map_err(said)?);
            let seconds = milliseconds as f64 / 1e3;
            writeln!(out, "{seconds:9.3} s  {step:<15} {result:<5} {detail}")?;
            out.flush()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn options_become_a_statement() {
        let statement = |words: &str| {
            Command::parse_from(format!("promote mysql://h/ {words}").split_whitespace()).args.statement()
        };
        assert_eq!(statement(""), "PROMOTE REPLICA TIMEOUT = 60, VERIFY = BEFORE");
        assert_eq!(statement("--undo"), "PROMOTE REPLICA UNDO ");
        assert_eq!(
            statement(
                "--check --verify none --verify-table t.* --accounts --allow-left-out a.b --allow-left-out c'd --source-user x"
            ),
            "PROMOTE REPLICA CHECK TIMEOUT = 60, VERIFY = NONE, ACCOUNTS = 1, VERIFY_TABLES = ('t.*'), \
             ALLOW_LEFT_OUT = ('a.b', 'c''d'), SOURCE_USER = 'x', SOURCE_PASSWORD = ''"
        );
    }
}
