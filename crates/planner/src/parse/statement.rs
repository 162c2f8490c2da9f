//! Statements as parsed: names and clauses with their positions, nothing resolved.

use datafusion::sql::sqlparser::ast::{DataType, Expr, Ident, Query};
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::error::Position;

#[derive(Debug, Clone)]
pub enum Statement {
    CreateTable(Box<CreateTable>),
    CreateView(CreateView),
    Insert(Insert),
    Query { query: Box<Query>, subscribe: bool },
    Set { setting: Name, value: SetValue },
    Reset(Option<Name>),
    Show(Show),
    Describe(Name),
    Drop(Drop),
    Explain(Box<Statement>),
    Session(SessionStatement),
}

/// What concerns a connection or the jobs of a server. No script has them.
#[derive(Debug, Clone)]
pub enum SessionStatement {
    Begin,
    Commit,
    Rollback,
    Declare {
        name: Name,
        /// `WITH HOLD`: outlives its transaction.
        hold: bool,
        /// A [`Statement::Query`].
        query: Box<Statement>,
    },
    Fetch {
        cursor: Name,
        count: FetchCount,
    },
    /// `None`: all cursors.
    Close(Option<Name>),
    Copy(CopyOut),
    /// `None`: all prepared statements.
    Deallocate(Option<Name>),
    Discard,
    Unlisten,
    /// `SET TRANSACTION …`, `SET SESSION CHARACTERISTICS AS TRANSACTION …`.
    SetTransaction,
    ShowJobs,
    DropJob {
        name: Name,
        if_exists: bool,
    },
    CreateJob {
        name: Name,
        /// A [`Statement::Insert`], or a [`Statement::CreateTable`] with a query.
        insert: Box<Statement>,
    },
}

impl SessionStatement {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Begin => "BEGIN",
            Self::Commit => "COMMIT",
            Self::Rollback => "ROLLBACK",
            Self::Declare { .. } => "DECLARE",
            Self::Fetch { .. } => "FETCH",
            Self::Close(_) => "CLOSE",
            Self::Copy(_) => "COPY",
            Self::Deallocate(_) => "DEALLOCATE",
            Self::Discard => "DISCARD",
            Self::Unlisten => "UNLISTEN",
            Self::SetTransaction => "SET TRANSACTION",
            Self::ShowJobs => "SHOW JOBS",
            Self::DropJob { .. } => "DROP JOB",
            Self::CreateJob { .. } => "CREATE JOB",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchCount {
    All,
    Rows(u64),
}

/// `COPY (query) TO STDOUT`.
#[derive(Debug, Clone)]
pub struct CopyOut {
    /// A [`Statement::Query`].
    pub query: Box<Statement>,
    pub format: CopyFormat,
    pub header: bool,
    /// Default: a tab in text, a comma in CSV.
    pub delimiter: Option<u8>,
    /// Default: `\N` in text, nothing in CSV.
    pub null: Option<String>,
}

impl CopyOut {
    pub fn new(query: Box<Statement>) -> Self {
        Self {
            query,
            format: CopyFormat::Text,
            header: false,
            delimiter: None,
            null: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyFormat {
    Text,
    Csv,
}

/// An identifier as it is compared: unquoted ones in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub position: Position,
}

impl Name {
    pub fn of(ident: &Ident) -> Self {
        let text = match ident.quote_style {
            Some(_) => ident.value.clone(),
            None => ident.value.to_lowercase(),
        };
        Self {
            text,
            position: ident.span.start.into(),
        }
    }
}

impl From<Location> for Position {
    fn from(location: Location) -> Self {
        Self {
            line: location.line,
            column: location.column,
        }
    }
}

#[derive(Debug, Clone)]
pub struct CreateTable {
    pub name: Name,
    pub or_replace: bool,
    pub if_not_exists: bool,
    /// Which way `CREATE SOURCE` and `CREATE SINK` restrict the table.
    pub role: Option<Role>,
    pub columns: Vec<ColumnClause>,
    pub primary_key: Option<PrimaryKey>,
    pub watermark: Option<WatermarkClause>,
    pub options: Vec<OptionClause>,
    /// `AS query`.
    pub query: Option<Box<Query>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Source,
    Sink,
}

#[derive(Debug, Clone)]
pub struct ColumnClause {
    pub name: Name,
    pub data_type: DataType,
    pub type_position: Position,
    pub not_null: bool,
    pub origin: OriginClause,
}

#[derive(Debug, Clone)]
pub enum OriginClause {
    Physical,
    Metadata { key: String, position: Position },
    Generated(Box<Expr>),
}

#[derive(Debug, Clone)]
pub struct PrimaryKey {
    pub columns: Vec<Name>,
    pub position: Position,
}

#[derive(Debug, Clone)]
pub struct WatermarkClause {
    pub column: Name,
    pub expr: Option<Expr>,
    pub position: Position,
}

/// One `key = value` of a WITH list. The key is as written; the value without its quotes.
#[derive(Debug, Clone)]
pub struct OptionClause {
    pub key: Name,
    pub value: String,
    pub value_position: Position,
}

#[derive(Debug, Clone)]
pub struct CreateView {
    pub name: Name,
    pub columns: Vec<Name>,
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub query: Box<Query>,
}

#[derive(Debug, Clone)]
pub struct Insert {
    pub table: Name,
    /// Empty: by position.
    pub columns: Vec<Name>,
    pub query: Box<Query>,
}

#[derive(Debug, Clone)]
pub enum SetValue {
    To { text: String, position: Position },
    Default,
}

#[derive(Debug, Clone)]
pub enum Show {
    All,
    Tables,
    Setting(Name),
}

#[derive(Debug, Clone)]
pub struct Drop {
    pub kind: DropKind,
    pub if_exists: bool,
    pub names: Vec<Name>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropKind {
    Table,
    View,
}
