//! Scalar expressions and aggregate calls, as trees of SQL templates.
//!
//! They are kept as trees, so that a failing query can be shrunk by putting a part in place of the
//! whole.

use rand::Rng;
use rand::rngs::StdRng;

/// The types that columns and expressions have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Int,
    Text,
    Bool,
    Float,
    Decimal,
    Time,
    /// A list of BIGINT.
    Ints,
    /// Something that is only passed on: a list of text, a floating number whose last digits depend on
    /// the order of the rows.
    Opaque,
}

/// Those that expressions are made of.
pub const SCALARS: [Type; 6] = [
    Type::Int,
    Type::Text,
    Type::Bool,
    Type::Float,
    Type::Decimal,
    Type::Time,
];

#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub ty: Type,
}

impl Column {
    pub fn new(name: impl Into<String>, ty: Type) -> Self {
        Self {
            name: name.into(),
            ty,
        }
    }
}

/// A template whose `{0}`, `{1}`, … stand for the arguments.
#[derive(Debug, Clone)]
pub struct Expr {
    pub ty: Type,
    template: String,
    pub args: Vec<Expr>,
}

impl Expr {
    pub fn leaf(ty: Type, sql: impl Into<String>) -> Self {
        Self {
            ty,
            template: sql.into(),
            args: Vec::new(),
        }
    }

    pub fn column(column: &Column) -> Self {
        Self::leaf(column.ty, column.name.clone())
    }

    pub fn new(ty: Type, template: impl Into<String>, args: Vec<Expr>) -> Self {
        Self {
            ty,
            template: template.into(),
            args,
        }
    }

    pub fn sql(&self) -> String {
        let mut sql = self.template.clone();
        for (i, arg) in self.args.iter().enumerate() {
            sql = sql.replace(&format!("{{{i}}}"), &arg.sql());
        }
        sql
    }

    /// Whether it is the column of that name and nothing else.
    pub fn is_column(&self, name: &str) -> bool {
        self.args.is_empty() && self.template == name
    }

    /// Whether it reads a column: what does not would be taken for an ordinal in GROUP BY.
    pub fn reads(&self, columns: &[Column]) -> bool {
        columns.iter().any(|c| self.is_column(&c.name))
            || self.args.iter().any(|a| a.reads(columns))
    }

    /// The batch engine cannot order by the same expression twice.
    fn repeats_an_argument(&self) -> bool {
        let sql: Vec<String> = self.args.iter().map(Expr::sql).collect();
        (1..sql.len()).any(|i| sql[..i].contains(&sql[i]))
    }

    fn is_ordered(&self) -> bool {
        self.template.contains(" ORDER BY ")
    }

    /// Simpler expressions of the same type that may stand in its place.
    pub fn simpler(&self) -> Vec<Expr> {
        let mut found: Vec<Expr> = self
            .args
            .iter()
            .filter(|a| a.ty == self.ty)
            .cloned()
            .collect();
        for (i, arg) in self.args.iter().enumerate() {
            for simple in arg.simpler() {
                let mut changed = self.clone();
                changed.args[i] = simple;
                found.push(changed);
            }
        }
        found
    }
}

/// What an expression may refer to.
pub struct Scope<'a> {
    pub columns: &'a [Column],
}

impl Scope<'_> {
    /// An expression of type `ty`, at most `depth` operators deep.
    pub fn expr(&self, rng: &mut StdRng, ty: Type, depth: u32) -> Expr {
        if depth == 0 || rng.random_bool(0.35) {
            return self.leaf(rng, ty);
        }
        if !matches!(ty, Type::Ints | Type::Opaque) && rng.random_bool(0.2) {
            return self.conditional(rng, ty, depth - 1);
        }
        let mut sub = |ty: Type| self.expr(rng, ty, depth - 1);
        match ty {
            Type::Int => self.int(rng, depth - 1),
            Type::Text => self.text(rng, depth - 1),
            Type::Bool => self.bool(rng, depth - 1),
            Type::Float => {
                let args = vec![sub(Type::Float), sub(Type::Float), sub(Type::Int)];
                pick_template(
                    rng,
                    ty,
                    &[
                        "({0} + {1})",
                        "({0} - {1})",
                        "({0} * 2.0)",
                        "CAST({2} AS DOUBLE)",
                        "abs({0})",
                    ],
                    args,
                )
            }
            Type::Decimal => {
                let args = vec![sub(Type::Decimal), sub(Type::Decimal)];
                // Each keeps precision and scale, so that no cast hides what the operator does.
                pick_template(
                    rng,
                    ty,
                    &[
                        "CAST({0} + {1} AS DECIMAL(12,2))",
                        "CAST({0} - {1} AS DECIMAL(12,2))",
                        "abs({0})",
                        "-({0})",
                    ],
                    args,
                )
            }
            Type::Time => {
                let args = vec![sub(Type::Time)];
                pick_template(
                    rng,
                    ty,
                    &[
                        "({0} + INTERVAL '3 seconds')",
                        "date_bin(INTERVAL '7 seconds', {0})",
                    ],
                    args,
                )
            }
            Type::Ints | Type::Opaque => self.leaf(rng, ty),
        }
    }

    fn leaf(&self, rng: &mut StdRng, ty: Type) -> Expr {
        let columns: Vec<&Column> = self.columns.iter().filter(|c| c.ty == ty).collect();
        if !columns.is_empty() && (rng.random_bool(0.85) || ty == Type::Opaque) {
            return Expr::column(columns[rng.random_range(0..columns.len())]);
        }
        let literal = match ty {
            Type::Int => rng.random_range(-3..20).to_string(),
            Type::Text => format!("'{}'", ["a", "b", "ab", "Ä", ""][rng.random_range(0..5)]),
            Type::Bool => ["true", "false"][rng.random_range(0..2)].to_string(),
            Type::Float => format!("{:.2}", f64::from(rng.random_range(-8..20)) / 4.0),
            Type::Decimal => format!("CAST('{}.25' AS DECIMAL(12,2))", rng.random_range(0..9)),
            Type::Time => format!(
                "TIMESTAMP '2024-01-01 00:00:{:02}'",
                rng.random_range(0..60)
            ),
            Type::Ints => [
                "make_array(1, 2)",
                "make_array(7)",
                "make_array(3, NULL, 3)",
            ][rng.random_range(0..3)]
            .to_string(),
            Type::Opaque => "make_array('x')".into(),
        };
        Expr::leaf(ty, literal)
    }

    fn conditional(&self, rng: &mut StdRng, ty: Type, depth: u32) -> Expr {
        let args = vec![
            self.expr(rng, Type::Bool, depth),
            self.expr(rng, ty, depth),
            self.expr(rng, ty, depth),
        ];
        let templates = [
            "CASE WHEN {0} THEN {1} ELSE {2} END",
            "CASE WHEN {0} THEN {1} END",
            "coalesce({1}, {2})",
            "nullif({1}, {2})",
        ];
        pick_template(rng, ty, &templates, args)
    }

    fn int(&self, rng: &mut StdRng, depth: u32) -> Expr {
        let args = vec![
            self.expr(rng, Type::Int, depth),
            self.expr(rng, Type::Int, depth),
            self.expr(rng, Type::Text, depth),
            self.expr(rng, Type::Ints, depth),
            self.expr(rng, Type::Bool, depth),
        ];
        let templates = [
            "({0} + {1})",
            "({0} - {1})",
            "({0} * 3)",
            "({0} % 4)",
            "abs({0})",
            "-({0})",
            "CAST(char_length({2}) AS BIGINT)",
            "CAST(array_length({3}) AS BIGINT)",
            "CAST({4} AS BIGINT)",
        ];
        pick_template(rng, Type::Int, &templates, args)
    }

    fn text(&self, rng: &mut StdRng, depth: u32) -> Expr {
        let args = vec![
            self.expr(rng, Type::Text, depth),
            self.expr(rng, Type::Text, depth),
            self.expr(rng, Type::Int, depth),
        ];
        let templates = [
            "upper({0})",
            "lower({0})",
            "({0} || {1})",
            "concat({0}, '-', {1})",
            "substr({0}, 1, 1)",
            "CAST({2} AS TEXT)",
            "reverse({0})",
        ];
        pick_template(rng, Type::Text, &templates, args)
    }

    fn bool(&self, rng: &mut StdRng, depth: u32) -> Expr {
        let ty = SCALARS[rng.random_range(0..SCALARS.len())];
        if rng.random_bool(0.4) {
            let args = vec![
                self.expr(rng, Type::Bool, depth),
                self.expr(rng, Type::Bool, depth),
            ];
            return pick_template(
                rng,
                Type::Bool,
                &[
                    "({0} AND {1})",
                    "({0} OR {1})",
                    "NOT ({0})",
                    "({0} IS TRUE)",
                ],
                args,
            );
        }
        let args = vec![
            self.expr(rng, ty, depth),
            self.expr(rng, ty, depth),
            self.expr(rng, ty, depth),
            self.expr(rng, Type::Text, depth),
        ];
        let templates = [
            "({0} = {1})",
            "({0} <> {1})",
            "({0} < {1})",
            "({0} >= {1})",
            "({0} IS NULL)",
            "({0} IS NOT NULL)",
            "({0} IS DISTINCT FROM {1})",
            "({0} IN ({1}, {2}))",
            "({0} BETWEEN {1} AND {2})",
            "({3} LIKE 'a%')",
        ];
        pick_template(rng, Type::Bool, &templates, args)
    }

    /// Aggregate calls, of which one at most has an order: the batch engine cannot always satisfy two.
    pub fn calls(&self, rng: &mut StdRng, n: usize) -> Vec<Expr> {
        let mut calls: Vec<Expr> = Vec::new();
        while calls.len() < n {
            let call = self.call(rng);
            let twice_ordered = call.is_ordered() && calls.iter().any(Expr::is_ordered);
            if !twice_ordered && !call.repeats_an_argument() {
                calls.push(call);
            }
        }
        calls
    }

    /// An aggregate call. Each has one right answer whatever the order of the rows.
    fn call(&self, rng: &mut StdRng) -> Expr {
        let mut call = self.plain_call(rng);
        if rng.random_bool(0.25) {
            let filter = self.expr(rng, Type::Bool, 1);
            let n = call.args.len();
            call.args.push(filter);
            call.template = format!("{} FILTER (WHERE {{{n}}})", call.template);
        }
        call
    }

    /// An expression that can stand in ORDER BY, where a literal would be an ordinal.
    fn sortable(&self, rng: &mut StdRng, ty: Type) -> Expr {
        let expr = self.expr(rng, ty, 1);
        match ty {
            Type::Int if !expr.reads(self.columns) => Expr::new(ty, "({0} + 0)", vec![expr]),
            Type::Float if !expr.reads(self.columns) => Expr::new(ty, "({0} + 0.0)", vec![expr]),
            Type::Text if !expr.reads(self.columns) => Expr::new(ty, "({0} || '')", vec![expr]),
            _ => expr,
        }
    }

    fn plain_call(&self, rng: &mut StdRng) -> Expr {
        let any = SCALARS[rng.random_range(0..SCALARS.len())];
        let number = [Type::Int, Type::Float, Type::Decimal][rng.random_range(0..3)];
        let (args, calls) = calls(|ty| self.sortable(rng, ty), any, number);
        let (ty, template) = calls[rng.random_range(0..calls.len())];
        pick_template(rng, ty, &[template], args)
    }
}

/// Arguments `{0}` of any type, `{1}` a number, `{2}` an integer, `{3}` text, `{4}` a condition, `{5}` a
/// floating number, and the calls that can be made of them.
fn calls(
    mut arg: impl FnMut(Type) -> Expr,
    any: Type,
    number: Type,
) -> (Vec<Expr>, Vec<(Type, &'static str)>) {
    use Type::*;
    let args = vec![
        arg(any),
        arg(number),
        arg(Int),
        arg(Text),
        arg(Bool),
        arg(Float),
    ];
    // What a sum of decimals is (DECIMAL(22,2)) is not worth a type of its own here.
    let sum = if number == Decimal { Opaque } else { number };
    let calls = vec![
        (Int, "count(*)"),
        (Int, "count({0})"),
        (Int, "count(DISTINCT {0})"),
        (sum, "sum({1})"),
        (Opaque, "avg({1})"),
        (any, "min({0})"),
        (any, "max({0})"),
        (Int, "sum(DISTINCT {2})"),
        (Bool, "bool_and({4})"),
        (Bool, "bool_or({4})"),
        (Opaque, "var_pop({5})"),
        (Opaque, "stddev({5})"),
        (Ints, "array_agg({2} ORDER BY {2} NULLS LAST)"),
        (Opaque, "array_agg(DISTINCT {3} ORDER BY {3} NULLS FIRST)"),
        (Text, "string_agg({3}, ',' ORDER BY {3})"),
        (
            any,
            "first_value({0} ORDER BY {2} DESC NULLS LAST, {0} NULLS FIRST)",
        ),
        (
            any,
            "last_value({0} ORDER BY {3} NULLS FIRST, {0} NULLS FIRST)",
        ),
        (Int, "bit_xor({2})"),
        (Int, "bit_or({2})"),
        (Opaque, "median({2})"),
    ];
    (args, calls)
}

fn pick_template(rng: &mut StdRng, ty: Type, templates: &[&str], args: Vec<Expr>) -> Expr {
    let template = templates[rng.random_range(0..templates.len())];
    // Renumber, so that arguments which the template does not use are not kept.
    let mut kept = Vec::new();
    let mut renumbered = template.to_string();
    for (i, arg) in args.into_iter().enumerate() {
        let placeholder = format!("{{{i}}}");
        if renumbered.contains(&placeholder) {
            renumbered = renumbered.replace(&placeholder, &format!("{{{}}}", kept.len()));
            kept.push(arg);
        }
    }
    Expr::new(ty, renumbered, kept)
}
