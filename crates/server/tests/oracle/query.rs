//! Queries as trees, and their SQL: as Thalweg is given it, and as the batch engine is.
//!
//! Batch SQL knows no windows. There a windowed node reads a table `w<id>` instead, which the model
//! fills with the rows of each window that count (see `model.rs`).

use crate::expr::{Column, Expr, Type};

/// Nanoseconds in a second.
pub const SECOND: i64 = 1_000_000_000;

/// Columns that the batch side has beside those of a table: the row's event time and its diff.
pub const TIME: &str = "__time";
pub const DIFF: &str = "__diff";

#[derive(Debug, Clone)]
pub enum Rel {
    Table(Table),
    Select(Box<Select>),
    /// Branches have the same output columns, by name and type.
    Union {
        inputs: Vec<Rel>,
        all: bool,
    },
    Unnest(Box<Unnest>),
    Group(Box<Group>),
    Window(Box<WindowGroup>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    /// Its rows come and go.
    pub updating: bool,
}

#[derive(Debug, Clone)]
pub struct Select {
    pub input: Rel,
    pub columns: Vec<(String, Expr)>,
    pub filter: Option<Expr>,
    pub distinct: bool,
    /// Written as a common table expression.
    pub cte: bool,
}

#[derive(Debug, Clone)]
pub struct Unnest {
    pub input: Rel,
    pub columns: Vec<(String, Expr)>,
    pub list: (String, Expr),
}

#[derive(Debug, Clone)]
pub struct Group {
    pub input: Rel,
    pub keys: Vec<(String, Expr)>,
    pub calls: Vec<(String, Expr)>,
    pub having: Option<Expr>,
    /// Groups that expire: the number of the table with the live rows, and the TTL in ns.
    pub ttl: Option<(usize, i64)>,
}

#[derive(Debug, Clone)]
pub struct WindowGroup {
    pub id: usize,
    pub input: Rel,
    pub window: Window,
    pub spelling: Spelling,
    /// Names of the columns with the window's bounds.
    pub bounds: [String; 2],
    pub keys: Vec<(String, Expr)>,
    pub calls: Vec<(String, Expr)>,
    pub having: Option<Expr>,
}

/// In nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    Tumble { width: i64 },
    Hop { slide: i64, width: i64 },
    Session { gap: i64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// `GROUP BY tumble(…)`
    Function,
    /// `FROM TUMBLE(TABLE t, DESCRIPTOR(ts), …)`
    TableFunction,
}

impl Rel {
    pub fn columns(&self) -> Vec<Column> {
        let named = |list: &[(String, Expr)]| {
            list.iter()
                .map(|(n, e)| Column::new(n.clone(), e.ty))
                .collect::<Vec<_>>()
        };
        match self {
            Self::Table(_) => TABLE_COLUMNS
                .iter()
                .map(|(n, ty, _)| Column::new(*n, *ty))
                .collect(),
            Self::Select(s) => named(&s.columns),
            Self::Union { inputs, .. } => inputs[0].columns(),
            Self::Unnest(u) => {
                let mut columns = named(&u.columns);
                columns.push(Column::new(u.list.0.clone(), Type::Int));
                columns
            }
            Self::Group(g) => [named(&g.keys), named(&g.calls)].concat(),
            Self::Window(w) => {
                let bounds = w
                    .bounds
                    .iter()
                    .map(|n| Column::new(n.clone(), Type::Time))
                    .collect();
                [bounds, named(&w.keys), named(&w.calls)].concat()
            }
        }
    }

    pub fn inputs(&self) -> Vec<&Rel> {
        match self {
            Self::Table(_) => Vec::new(),
            Self::Select(s) => vec![&s.input],
            Self::Union { inputs, .. } => inputs.iter().collect(),
            Self::Unnest(u) => vec![&u.input],
            Self::Group(g) => vec![&g.input],
            Self::Window(w) => vec![&w.input],
        }
    }

    /// Calls `visit` on every node, inputs first.
    pub fn visit<'a>(&'a self, visit: &mut impl FnMut(&'a Rel)) {
        for input in self.inputs() {
            input.visit(visit);
        }
        visit(self);
    }

    pub fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        self.visit(&mut |rel| match rel {
            Self::Table(t) if !tables.contains(t) => tables.push(*t),
            _ => {}
        });
        tables
    }

    /// The column that holds the event time, where one does: the argument of DESCRIPTOR.
    pub fn time_column(&self) -> Option<String> {
        match self {
            Self::Table(_) => Some("ts".into()),
            Self::Select(s) => passed_time(&s.input, &s.columns),
            Self::Unnest(u) => passed_time(&u.input, &u.columns),
            Self::Union { inputs, .. } => {
                let first = inputs[0].time_column()?;
                inputs
                    .iter()
                    .all(|i| i.time_column().as_ref() == Some(&first))
                    .then_some(first)
            }
            Self::Group(_) | Self::Window(_) => None,
        }
    }
}

fn passed_time(input: &Rel, columns: &[(String, Expr)]) -> Option<String> {
    let time = input.time_column()?;
    columns
        .iter()
        .find(|(_, e)| e.is_column(&time))
        .map(|(n, _)| n.clone())
}

/// Columns of every table, with their SQL types.
pub const TABLE_COLUMNS: [(&str, Type, &str); 9] = [
    ("id", Type::Int, "BIGINT"),
    ("k", Type::Int, "BIGINT"),
    ("s", Type::Text, "TEXT"),
    ("b", Type::Bool, "BOOLEAN"),
    ("i", Type::Int, "BIGINT"),
    ("d", Type::Decimal, "DECIMAL(12,2)"),
    ("f", Type::Float, "DOUBLE"),
    ("xs", Type::Ints, "BIGINT[]"),
    ("ts", Type::Time, "TIMESTAMP"),
];

/// Who reads the SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// Thalweg.
    Stream,
    /// The batch engine, for the answer.
    Batch,
    /// The batch engine, for the rows of one epoch with their event times and diffs.
    History,
}

pub fn stream_sql(rel: &Rel) -> String {
    Printer::new(Dialect::Stream).statement(rel)
}

pub fn batch_sql(rel: &Rel) -> String {
    Printer::new(Dialect::Batch).statement(rel)
}

/// The rows that reach a grouping: its input's columns, the keys as `__key<i>`, event time and diff.
pub fn history_sql(input: &Rel, keys: &[(String, Expr)]) -> String {
    let mut printer = Printer::new(Dialect::History);
    let mut columns: Vec<String> = input.columns().into_iter().map(|c| c.name).collect();
    columns.extend(
        keys.iter()
            .enumerate()
            .map(|(i, (_, e))| format!("{} AS __key{i}", e.sql())),
    );
    columns.extend([TIME.to_string(), DIFF.to_string()]);
    let from = printer.from(input);
    printer.with_ctes(format!("SELECT {} FROM {from}", columns.join(", ")))
}

struct Printer {
    dialect: Dialect,
    ctes: Vec<String>,
    n_aliases: usize,
}

impl Printer {
    fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            ctes: Vec::new(),
            n_aliases: 0,
        }
    }

    fn statement(&mut self, rel: &Rel) -> String {
        let sql = self.sql(rel);
        self.with_ctes(sql)
    }

    fn with_ctes(&self, sql: String) -> String {
        if self.ctes.is_empty() {
            sql
        } else {
            format!("WITH {} {sql}", self.ctes.join(", "))
        }
    }

    fn alias(&mut self) -> String {
        self.n_aliases += 1;
        format!("r{}", self.n_aliases)
    }

    /// What stands after FROM.
    fn from(&mut self, rel: &Rel) -> String {
        match rel {
            Rel::Table(t) => t.name.to_string(),
            Rel::Select(s) if s.cte => self.cte(rel),
            _ => {
                let sql = self.sql(rel);
                format!("({sql}) AS {}", self.alias())
            }
        }
    }

    fn cte(&mut self, rel: &Rel) -> String {
        let sql = self.sql(rel);
        let name = self.alias();
        self.ctes.push(format!("{name} AS ({sql})"));
        name
    }

    fn sql(&mut self, rel: &Rel) -> String {
        match rel {
            Rel::Table(t) => {
                let columns: Vec<_> = rel.columns().into_iter().map(|c| c.name).collect();
                format!(
                    "SELECT {}{} FROM {}",
                    columns.join(", "),
                    self.hidden(),
                    t.name
                )
            }
            Rel::Select(s) => {
                let distinct = if s.distinct { "DISTINCT " } else { "" };
                let from = self.from(&s.input);
                format!(
                    "SELECT {distinct}{}{} FROM {from}{}",
                    list(&s.columns),
                    self.hidden(),
                    clause("WHERE", &s.filter)
                )
            }
            Rel::Union { inputs, all } => {
                let branches: Vec<_> = inputs.iter().map(|i| self.sql(i)).collect();
                branches.join(if *all { " UNION ALL " } else { " UNION " })
            }
            Rel::Unnest(u) => {
                let from = self.from(&u.input);
                let comma = if u.columns.is_empty() { "" } else { ", " };
                let (name, unnested) = &u.list;
                format!(
                    "SELECT {}{comma}unnest({}) AS {name}{} FROM {from}",
                    list(&u.columns),
                    unnested.sql(),
                    self.hidden()
                )
            }
            Rel::Group(g) => self.group(g),
            Rel::Window(w) => match self.dialect {
                Dialect::Stream => self.window(w),
                _ => self.window_from_table(w),
            },
        }
    }

    fn hidden(&self) -> &'static str {
        if self.dialect == Dialect::History {
            ", __time, __diff"
        } else {
            ""
        }
    }

    fn group(&mut self, g: &Group) -> String {
        let from = match (self.dialect, g.ttl) {
            (Dialect::Stream, _) | (_, None) => self.from(&g.input),
            (_, Some((id, _))) => format!("w{id}"),
        };
        let columns = [g.keys.clone(), g.calls.clone()].concat();
        let by = group_by(g.keys.iter().map(|(_, e)| e.sql()).collect());
        format!(
            "SELECT {} FROM {from}{by}{}",
            list(&columns),
            clause("HAVING", &g.having)
        )
    }

    fn window(&mut self, w: &WindowGroup) -> String {
        let [start, end] = &w.bounds;
        let columns = [w.keys.clone(), w.calls.clone()].concat();
        let names: Vec<_> = columns.iter().map(|(n, _)| format!(", {n}")).collect();
        let having = clause("HAVING", &w.having);
        let keys = w.keys.iter().map(|(_, e)| e.sql());
        let table = match (w.spelling, w.input.time_column()) {
            (Spelling::TableFunction, Some(time)) => w
                .partition()
                .map(|by| (self.table_argument(&w.input) + &by, time)),
            _ => None,
        };
        if let Some((table, time)) = table {
            let bounds = ["window_start".to_string(), "window_end".to_string()];
            let by = group_by(bounds.into_iter().chain(keys).collect());
            return format!(
                "SELECT window_start AS {start}, window_end AS {end}{}{} FROM {}{by}{having}",
                if columns.is_empty() { "" } else { ", " },
                list(&columns),
                w.window.table_function(&table, &time),
            );
        }
        let from = self.from(&w.input);
        let by = group_by(std::iter::once("w".to_string()).chain(keys).collect());
        let function = w.window.function();
        let comma = if columns.is_empty() { "" } else { ", " };
        let grouped = format!(
            "SELECT {function} AS w{comma}{} FROM {from}{by}{having}",
            list(&columns)
        );
        format!(
            "SELECT w['start'] AS {start}, w['end'] AS {end}{} FROM ({grouped}) AS {}",
            names.concat(),
            self.alias()
        )
    }

    /// A relation by name, as window functions in FROM take it.
    fn table_argument(&mut self, rel: &Rel) -> String {
        match rel {
            Rel::Table(t) => format!("TABLE {}", t.name),
            _ => format!("TABLE {}", self.cte(rel)),
        }
    }

    fn window_from_table(&mut self, w: &WindowGroup) -> String {
        let [start, end] = &w.bounds;
        let columns = [w.keys.clone(), w.calls.clone()].concat();
        let comma = if columns.is_empty() { "" } else { ", " };
        let hidden = match self.dialect {
            // Semantics 3.4: a window's row stands one nanosecond before its end.
            Dialect::History => {
                ", __end - INTERVAL '1 nanosecond' AS __time, CAST(1 AS BIGINT) AS __diff"
            }
            _ => "",
        };
        let keys = w.keys.iter().map(|(_, e)| e.sql());
        let by = group_by(
            ["__start".to_string(), "__end".to_string()]
                .into_iter()
                .chain(keys)
                .collect(),
        );
        let having = clause("HAVING", &w.having);
        format!(
            "SELECT __start AS {start}, __end AS {end}{comma}{}{hidden} FROM w{}{by}{having}",
            list(&columns),
            w.id
        )
    }
}

impl WindowGroup {
    /// The PARTITION BY that sessions in FROM need, where it can be written: keys that are columns.
    fn partition(&self) -> Option<String> {
        if !matches!(self.window, Window::Session { .. }) || self.keys.is_empty() {
            return Some(String::new());
        }
        let columns = self.input.columns();
        let name = |e: &Expr| Some(columns.iter().find(|c| e.is_column(&c.name))?.name.clone());
        let names: Option<Vec<String>> = self.keys.iter().map(|(_, e)| name(e)).collect();
        Some(format!(" PARTITION BY ({})", names?.join(", ")))
    }
}

impl Window {
    fn interval(nanos: i64) -> String {
        format!("INTERVAL '{} milliseconds'", nanos / 1_000_000)
    }

    fn function(self) -> String {
        match self {
            Self::Tumble { width } => format!("tumble({})", Self::interval(width)),
            Self::Hop { slide, width } => {
                format!("hop({}, {})", Self::interval(slide), Self::interval(width))
            }
            Self::Session { gap } => format!("session({})", Self::interval(gap)),
        }
    }

    fn table_function(self, table: &str, time: &str) -> String {
        match self {
            Self::Tumble { width } => format!(
                "TUMBLE({table}, DESCRIPTOR({time}), {})",
                Self::interval(width)
            ),
            Self::Hop { slide, width } => {
                format!(
                    "HOP({table}, DESCRIPTOR({time}), {}, {})",
                    Self::interval(slide),
                    Self::interval(width)
                )
            }
            Self::Session { gap } => format!(
                "SESSION({table}, DESCRIPTOR({time}), {})",
                Self::interval(gap)
            ),
        }
    }

    /// Start and end of every window that holds `time`, in ns (semantics 3.2). Not for sessions.
    pub fn of(self, time: i64) -> Vec<(i64, i64)> {
        let (slide, width) = match self {
            Self::Tumble { width } => (width, width),
            Self::Hop { slide, width } => (slide, width),
            Self::Session { .. } => return Vec::new(),
        };
        let last = time.div_euclid(slide) * slide;
        let starts =
            std::iter::successors(Some(last), |s| Some(s - slide)).take_while(|s| s + width > time);
        starts.map(|s| (s, s + width)).collect()
    }
}

fn list(columns: &[(String, Expr)]) -> String {
    columns
        .iter()
        .map(|(n, e)| format!("{} AS {n}", e.sql()))
        .collect::<Vec<_>>()
        .join(", ")
}

fn clause(word: &str, condition: &Option<Expr>) -> String {
    condition
        .as_ref()
        .map_or_else(String::new, |c| format!(" {word} {}", c.sql()))
}

/// Constants would be taken for ordinals or refused, so they are wrapped.
fn group_by(keys: Vec<String>) -> String {
    if keys.is_empty() {
        String::new()
    } else {
        format!(" GROUP BY {}", keys.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_in_each_hop_whose_start_is_near_enough() {
        let hop = Window::Hop {
            slide: 4,
            width: 10,
        };
        assert_eq!(hop.of(9), [(8, 18), (4, 14), (0, 10)]);
        assert_eq!(hop.of(10), [(8, 18), (4, 14)]);
        // Windows with gaps between them: a time can lie in none.
        assert!(
            Window::Hop {
                slide: 10,
                width: 4
            }
            .of(7)
            .is_empty()
        );
        assert_eq!(Window::Tumble { width: 10 }.of(-1), [(-10, 0)]);
    }
}
