//! Native procedures: Rust functions that run a whole transaction in one call.
//!
//! ```text
//!  Engine::call ─┐                       ┌─ arguments
//!                ├─▶ begin_call ─▶ run ──┤  Call { txn, arguments, reply } ─▶ commit ─▶ ticket
//!  CALL d.p() ───┘                       └─ result sets, OUT values, affected rows
//! ```
//!
//! A procedure runs on the thread that calls it. It is registered before the engine opens ([`EngineOptions::procedures`]),
//! since recovery may have to run it. What it did is logged as rows, or, if it is declared [deterministic](Procedure::deterministic),
//! as the call (`procedure/logical.rs`).
//!
//! [`EngineOptions::procedures`]: crate::EngineOptions::procedures

pub(crate) mod calls;
pub(crate) mod logical;
mod reply;

use std::fmt;
use std::sync::Arc;

use avocet_types::schema::ColumnDef;
use avocet_types::{SqlType, Value};
use hashbrown::HashMap;

use crate::error::{EngineError, Result};
use crate::txn::Txn;
use crate::values::exactly;
pub use reply::{Reply, ResultSet};

/// What a parameter is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterMode {
    In,
    Out,
    InOut,
}

/// A parameter of a procedure.
#[derive(Clone, Debug)]
pub struct Parameter {
    pub mode: ParameterMode,
    /// Its name and type; it may always be NULL.
    pub column: ColumnDef,
}

/// What a procedure works with.
pub struct Call<'c> {
    /// The transaction: of the call alone, or the one that a client had open.
    pub txn: &'c mut Txn,
    /// As many as there are parameters, of their types or NULL; NULL for OUT parameters.
    pub arguments: &'c [Value],
    /// What goes back to the caller, once all of it is durable.
    pub reply: &'c mut Reply,
}

type Body = dyn Fn(&mut Call<'_>) -> Result<()> + Send + Sync;

/// A procedure and what is known of it.
pub struct Procedure {
    database: String,
    name: String,
    parameters: Vec<Parameter>,
    deterministic: bool,
    body: Box<Body>,
}

impl Procedure {
    /// The procedure `database.name`. If `body` fails, nothing of what it did stays, and the caller gets the error;
    /// [`EngineError::signal`] makes one with a text of its own.
    pub fn new(
        database: impl Into<String>,
        name: impl Into<String>,
        body: impl Fn(&mut Call<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            database: database.into(),
            name: name.into(),
            parameters: Vec::new(),
            deterministic: false,
            body: Box::new(body),
        }
    }

    /// Adds a parameter; they are passed in the order in which they are added.
    pub fn parameter(mut self, name: impl Into<String>, ty: SqlType, mode: ParameterMode) -> Self {
        let column = ColumnDef::new(name, ty).nullable();
        self.parameters.push(Parameter { mode, column });
        self
    }

    /// Adds an IN parameter.
    pub fn takes(self, name: impl Into<String>, ty: SqlType) -> Self {
        self.parameter(name, ty, ParameterMode::In)
    }

    /// Declares that what the procedure does follows from its arguments and from the rows that its transaction reads. Its
    /// calls are then logged by name and arguments where that is possible, and run again at recovery. It must
    ///
    /// - take the time from [`Txn::now_us`] and AUTO_INCREMENT values from [`Txn::reserve_auto_increment`];
    /// - not depend on anything else: no other clock, randomness, files, statistics, or state that outlives the call;
    /// - hand on errors of any kind but `User`;
    /// - begin no other transaction, nor call another procedure but by [`Self::run`] in its own;
    /// - do the same in every build that opens a log in which it was called. `Engine::shutdown` leaves no call in the log.
    ///
    /// At recovery, a call that comes to other changes than it did stops the engine with [`EngineError::NotReproduced`].
    pub fn deterministic(mut self) -> Self {
        self.deterministic = true;
        self
    }

    pub fn database(&self) -> &str {
        &self.database
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// `database.name`
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    pub fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    /// Converts arguments to the parameters' types.
    ///
    /// # Errors
    /// [`EngineError::WrongArgumentCount`]; [`EngineError::BadValue`] if a value does not fit its parameter.
    pub fn convert(&self, arguments: &[Value]) -> Result<Vec<Value>> {
        self.check_count(arguments.len())?;
        let convert = |(parameter, argument): (&Parameter, &Value)| {
            if parameter.mode == ParameterMode::Out {
                return Ok(Value::Null);
            }
            exactly(argument.clone(), &parameter.column)
        };
        self.parameters.iter().zip(arguments).map(convert).collect()
    }

    fn check_count(&self, got: usize) -> Result<()> {
        let expected = self.parameters.len();
        if got != expected {
            return Err(EngineError::WrongArgumentCount { procedure: self.full_name(), expected, got });
        }
        Ok(())
    }

    /// Runs the procedure in a transaction, with arguments of its parameters' types.
    pub fn run(&self, txn: &mut Txn, arguments: &[Value], reply: &mut Reply) -> Result<()> {
        self.check_count(arguments.len())?;
        reply.begin(self.parameters.len());
        (self.body)(&mut Call { txn, arguments, reply })
    }
}

impl fmt::Debug for Procedure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Procedure({}.{}/{})", self.database, self.name, self.parameters.len())
    }
}

/// The procedures that an engine knows, by names that are the same in upper and lower case.
#[derive(Clone, Default, Debug)]
pub struct Procedures {
    by_name: Arc<HashMap<(String, String), Arc<Procedure>>>,
}

impl Procedures {
    /// The same and one more, or in the place of the one with its name.
    pub fn with(mut self, procedure: Procedure) -> Self {
        let key = (procedure.database.to_lowercase(), procedure.name.to_lowercase());
        Arc::make_mut(&mut self.by_name).insert(key, Arc::new(procedure));
        self
    }

    pub fn find(&self, database: &str, name: &str) -> Option<&Arc<Procedure>> {
        self.by_name.get(&(database.to_lowercase(), name.to_lowercase()))
    }

    /// Sorted by name.
    pub fn list(&self) -> Vec<&Arc<Procedure>> {
        let mut all: Vec<_> = self.by_name.iter().collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.into_iter().map(|(_, procedure)| procedure).collect()
    }
}
