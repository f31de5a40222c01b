//! What a promotion takes along that no row event has: accounts, and AUTO_INCREMENT values.

use std::collections::BTreeMap;

use avocet_replicate::TableName;
use avocet_replicate::promote::AccountText;
use avocet_replicate::source::quoted;
use avocet_session::{Connection, Database};
use avocet_types::error::SqlError;

/// What became of the source's accounts.
#[derive(Debug, Default)]
pub struct Carried {
    pub made: usize,
    /// What could not be made, or was here already, and why.
    pub left: Vec<String>,
}

/// Makes the source's accounts here, with their passwords, and grants what they had.
pub fn accounts(database: &Database, accounts: &[AccountText]) -> Result<Carried, SqlError> {
    let mut session = database.connect_to_apply()?;
    let mut carried = Carried::default();
    let (mut made, mut waiting) = (Vec::new(), Vec::new());
    for account in accounts {
        match is_here(database, account) {
            Here::No => waiting.push(account),
            // Everybody could become it, and the source's is not so.
            Here::OpenRoot => {
                let change = account.create.replacen("CREATE USER", "ALTER USER", 1);
                match session.query(&change) {
                    Ok(_) => made.push(account),
                    Err(error) => carried.left.push(said(account, &error)),
                }
            }
            Here::Yes => {
                let name = name_of(account);
                carried.left.push(format!("{name} is here already, and stays as it is"));
            }
        }
    }
    // An account may have roles by default, which are accounts.
    loop {
        let before = waiting.len();
        let mut failed = Vec::new();
        waiting.retain(|account| match session.query(&account.create) {
            Ok(_) => {
                made.push(account);
                false
            }
            Err(error) => {
                failed.push(said(account, &error));
                true
            }
        });
        if waiting.is_empty() || waiting.len() == before {
            carried.left.extend(failed);
            break;
        }
    }
    for account in &made {
        for grant in &account.grants {
            give(&mut session, account, grant, &mut carried.left);
        }
    }
    carried.made = made.len();
    Ok(carried)
}

enum Here {
    No,
    /// `root`@`localhost` without a password, as a new data directory has it.
    OpenRoot,
    Yes,
}

fn is_here(database: &Database, account: &AccountText) -> Here {
    let catalog = database.engine().catalog();
    match catalog.user(&account.user, &account.host) {
        None => Here::No,
        Some(here) if here.auth.is_empty() && account.user == "root" && account.host == "localhost" => {
            Here::OpenRoot
        }
        Some(_) => Here::Yes,
    }
}

/// Grants what there is here of a grant: a privilege that there is not must not keep the others back.
fn give(session: &mut Connection, account: &AccountText, grant: &str, left: &mut Vec<String>) {
    let Err(error) = session.query(grant) else { return };
    let privileges = grant.strip_prefix("GRANT ").and_then(|rest| rest.split_once(" ON "));
    let Some((privileges, rest)) = privileges.filter(|(list, _)| list.contains(',') && !list.contains('('))
    else {
        left.push(said(account, &error));
        return;
    };
    // Dynamic ones have no blanks between them.
    let each = privileges.split(',').map(str::trim);
    let refused = each.filter(|one| session.query(&format!("GRANT {one} ON {rest}")).is_err());
    let refused: Vec<&str> = refused.collect();
    if !refused.is_empty() {
        let name = name_of(account);
        left.push(format!("{name} has privileges at the source that are not here: {}", refused.join(", ")));
    }
}

fn name_of(account: &AccountText) -> String {
    format!("'{}'@'{}'", account.user, account.host)
}

fn said(account: &AccountText, error: &SqlError) -> String {
    format!("{}: error {}: {}", name_of(account), error.errno, error.message)
}

/// Raises the next AUTO_INCREMENT values to the source's; how many tables have one.
pub fn counters(database: &Database, counters: &BTreeMap<TableName, u64>) -> Result<usize, SqlError> {
    let catalog = database.engine().catalog();
    let mut session = database.connect_to_apply()?;
    for (name, next) in counters {
        let Some(table) = catalog.table(&name.database, &name.table) else { continue };
        if table.next_auto_increment() < *next {
            let table = format!("{}.{}", quoted(&name.database), quoted(&name.table));
            session.query(&format!("ALTER TABLE {table} AUTO_INCREMENT = {next}"))?;
        }
    }
    Ok(counters.len())
}

/// What is here of a table that stays behind is not the source's, and nobody may take it for that.
pub fn drop_remains(database: &Database, name: &TableName) -> Result<(), SqlError> {
    let engine = database.engine();
    let mut session = database.connect_to_apply()?;
    if engine.catalog().table(&name.database, &name.table).is_some() {
        let table = format!("{}.{}", quoted(&name.database), quoted(&name.table));
        session.query(&format!("DROP TABLE IF EXISTS {table}"))?;
    }
    engine.release(&name.database, &name.table);
    Ok(())
}
