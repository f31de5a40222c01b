//! What functions ask about the server and the session's variables: LOAD_FILE, PS_THREAD_ID, ROLES_GRAPHML, `$@variable` of XPath.

use std::fmt;
use std::fmt::Write;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use avocet_engine::{AccountId, Engine, MemoryBudget};
use avocet_types::Value;

use super::api::Connections;
use super::held::VariableValues;
use super::permitted_files::open_permitted;

/// The folder that `secure_file_priv` names at this moment.
type FileFolder = Box<dyn Fn() -> Option<PathBuf> + Send + Sync>;

/// What a session's functions may ask of. The session notes what its account may do.
pub(super) struct ServerFunctions {
    engine: Arc<Engine>,
    folder: FileFolder,
    connections: Arc<dyn Connections>,
    variables: VariableValues,
    may_read_files: AtomicBool,
    may_see_roles: AtomicBool,
}

impl fmt::Debug for ServerFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerFunctions").finish_non_exhaustive()
    }
}

impl ServerFunctions {
    pub fn new(
        engine: Arc<Engine>,
        folder: FileFolder,
        connections: Arc<dyn Connections>,
        variables: VariableValues,
    ) -> Self {
        let (may_read_files, may_see_roles) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { engine, folder, connections, variables, may_read_files, may_see_roles }
    }

    /// The server's memory.
    pub fn memory(&self) -> &MemoryBudget {
        self.engine.memory()
    }

    /// What the session's account may do now.
    pub fn set_rights(&self, reads_files: bool, sees_roles: bool) {
        self.may_read_files.store(reads_files, Relaxed);
        self.may_see_roles.store(sees_roles, Relaxed);
    }

    /// The first bytes of a file, if the session may read it.
    pub fn load_file(&self, name: &str, most: u64) -> Option<Vec<u8>> {
        if !self.may_read_files.load(Relaxed) {
            return None;
        }
        let file = open_permitted((self.folder)(), name).ok()?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    pub fn user_variable(&self, name: &str) -> Option<Value> {
        self.variables.lock().get(name).map(|(value, _)| value.clone())
    }

    /// Connections are no threads here: each has the number of its connection.
    pub fn thread_id(&self, connection: u64) -> Option<u64> {
        let is_there = self.connections.list().iter().any(|row| u64::from(row.id) == connection);
        is_there.then_some(connection)
    }

    /// A node for each account, an edge from each to each of its roles; nothing for who may not see them.
    pub fn roles_graph(&self) -> String {
        if !self.may_see_roles.load(Relaxed) {
            return format!("{DECLARATION}<graphml />");
        }
        let catalog = self.engine.catalog();
        let accounts: Vec<AccountId> = catalog.users().map(|user| user.id()).collect();
        let number = |account: &AccountId| accounts.iter().position(|other| other == account);
        let mut graph = format!("{DECLARATION}\n{HEAD}");
        for (at, account) in accounts.iter().enumerate() {
            let name = escaped(&shown(account));
            let _ = write!(
                graph,
                "    <node id=\"n{at}\">\n      <data key=\"key1\">{name}</data>\n    </node>\n"
            );
        }
        let mut edges = 0;
        for (at, user) in catalog.users().enumerate() {
            for (role, admin) in &user.roles {
                let Some(role) = number(role) else { continue };
                let color = u8::from(*admin);
                let _ = write!(
                    graph,
                    "    <edge id=\"e{edges}\" source=\"n{at}\" target=\"n{role}\">\n      \
                     <data key=\"key0\">{color}</data>\n    </edge>\n"
                );
                edges += 1;
            }
        }
        graph + "  </graph>\n</graphml>\n"
    }
}

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

const HEAD: &str = "\
<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
xsi:schemaLocation=\"http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd\">
  <key id=\"key0\" for=\"edge\" attr.name=\"color\" attr.type=\"int\" />
  <key id=\"key1\" for=\"node\" attr.name=\"name\" attr.type=\"string\" />
  <graph id=\"G\" edgedefault=\"directed\" parse.nodeids=\"canonical\" parse.edgeids=\"canonical\" parse.order=\"nodesfirst\">
";

fn shown((name, host): &AccountId) -> String {
    let quote = |text: &str| format!("`{}`", text.replace('`', "``"));
    format!("{}@{}", quote(name), quote(host))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
