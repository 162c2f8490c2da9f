//! Random queries of the SQL that is promised.

use rand::Rng;
use rand::rngs::StdRng;

use crate::expr::{Column, Expr, SCALARS, Scope, Type};
use crate::query::{Group, Rel, SECOND, Select, Spelling, Table, Unnest, Window, WindowGroup};

pub const TABLES: [Table; 3] = [
    Table {
        name: "t",
        updating: false,
    },
    Table {
        name: "u",
        updating: false,
    },
    Table {
        name: "c",
        updating: true,
    },
];

pub fn query(rng: &mut StdRng) -> Rel {
    let mut generator = Generator {
        rng,
        n_names: 0,
        n_windows: 0,
    };
    if generator.chance(0.06) {
        return generator.expiring_group();
    }
    let depth = generator.rng.random_range(1..=3);
    generator.any(depth)
}

struct Generator<'a> {
    rng: &'a mut StdRng,
    n_names: usize,
    n_windows: usize,
}

impl Generator<'_> {
    fn chance(&mut self, p: f64) -> bool {
        self.rng.random_bool(p)
    }

    fn name(&mut self) -> String {
        self.n_names += 1;
        format!("c{}", self.n_names)
    }

    /// Any relation, append-only or updating.
    fn any(&mut self, depth: u32) -> Rel {
        if depth == 0 {
            return Rel::Table(TABLES[self.rng.random_range(0..TABLES.len())]);
        }
        match self.rng.random_range(0..12) {
            0..=4 => {
                let input = self.any(depth - 1);
                self.group(input)
            }
            5 => {
                let input = self.any(depth - 1);
                self.select(input, true)
            }
            6 => {
                let input = self.any(depth - 1);
                self.select(input, false)
            }
            7 => {
                let all = self.chance(0.5);
                let inputs = (0..2).map(|_| self.any(depth - 1)).collect();
                self.union(inputs, all)
            }
            8 => {
                let input = self.any(depth - 1);
                self.unnest(input)
            }
            _ => self.window(depth),
        }
    }

    /// A relation whose rows keep their event time: a window can stand above it.
    fn timely(&mut self, depth: u32) -> Rel {
        if depth == 0 {
            return Rel::Table(TABLES[self.rng.random_range(0..2)]);
        }
        match self.rng.random_range(0..6) {
            0 | 1 => {
                let input = self.timely(depth - 1);
                self.select(input, false)
            }
            2 => {
                let inputs = (0..2).map(|_| self.timely(depth - 1)).collect();
                self.union(inputs, true)
            }
            3 => {
                let input = self.timely(depth - 1);
                self.unnest(input)
            }
            4 => self.window(depth),
            _ => Rel::Table(TABLES[self.rng.random_range(0..2)]),
        }
    }

    /// A changelog that keeps its time as a column (semantics 3.6).
    fn timely_changelog(&mut self) -> Rel {
        let table = Rel::Table(TABLES[2]);
        if self.chance(0.5) {
            return table;
        }
        let Rel::Select(mut select) = self.select(table, false) else {
            unreachable!("made as a selection")
        };
        let name = self.name();
        select.columns.push((name, Expr::leaf(Type::Time, "ts")));
        Rel::Select(select)
    }

    fn window(&mut self, depth: u32) -> Rel {
        let input = if self.chance(0.2) {
            self.timely_changelog()
        } else {
            self.timely(depth - 1)
        };
        let columns = input.columns();
        let window = self.any_window(&input);
        let spelling = if self.chance(0.4) {
            Spelling::TableFunction
        } else {
            Spelling::Function
        };
        let keys = self.keys(&columns, 0);
        let (calls, having) = self.calls(&columns, 1);
        self.n_windows += 1;
        let bounds = [self.name(), self.name()];
        Rel::Window(Box::new(WindowGroup {
            id: self.n_windows,
            input,
            window,
            spelling,
            bounds,
            keys,
            calls,
            having,
        }))
    }

    fn any_window(&mut self, input: &Rel) -> Window {
        // Rows that come and go make no sessions.
        if input.tables().iter().all(|t| !t.updating) && self.chance(0.35) {
            let gap = self.rng.random_range(1..=6) * SECOND;
            return Window::Session { gap };
        }
        let width = self.rng.random_range(1..=8) * SECOND;
        if self.chance(0.5) {
            return Window::Tumble { width };
        }
        // The width need not be a multiple of the slide, nor the larger of the two.
        Window::Hop {
            slide: self.rng.random_range(1..=5) * SECOND,
            width,
        }
    }

    fn group(&mut self, input: Rel) -> Rel {
        let columns = input.columns();
        let keys = self.keys(&columns, 0);
        let (calls, having) = self.calls(&columns, usize::from(keys.is_empty()));
        Rel::Group(Box::new(Group {
            input,
            keys,
            calls,
            having,
            ttl: None,
        }))
    }

    /// A group whose keys expire. Only over append-only rows, and at the top, where expiry has one meaning.
    fn expiring_group(&mut self) -> Rel {
        let input = self.timely_row_by_row();
        let columns = input.columns();
        let keys = self.keys(&columns, 1);
        let (calls, having) = self.calls(&columns, 1);
        self.n_windows += 1;
        // Half a millisecond beside the rows' times, so that none lies exactly on the edge.
        let ttl = Some((
            self.n_windows,
            self.rng.random_range(1..12) * SECOND + 500_000,
        ));
        Rel::Group(Box::new(Group {
            input,
            keys,
            calls,
            having,
            ttl,
        }))
    }

    fn timely_row_by_row(&mut self) -> Rel {
        let table = Rel::Table(TABLES[self.rng.random_range(0..2)]);
        if self.chance(0.5) {
            table
        } else {
            self.select(table, false)
        }
    }

    fn select(&mut self, input: Rel, distinct: bool) -> Rel {
        let columns = input.columns();
        let n = self.rng.random_range(1..=if distinct { 2 } else { 4 });
        let mut chosen = Vec::new();
        for _ in 0..n {
            chosen.push(self.any_expr(&columns, distinct));
        }
        // Now and then what can only be passed on: lists, inexact numbers, the event time.
        if !distinct && self.chance(0.5) {
            let column = &columns[self.rng.random_range(0..columns.len())];
            chosen.push((self.name(), Expr::column(column)));
        }
        let filter = self
            .chance(0.5)
            .then(|| Scope { columns: &columns }.expr(self.rng, Type::Bool, 2));
        let cte = self.chance(0.2);
        Rel::Select(Box::new(Select {
            input,
            columns: chosen,
            filter,
            distinct,
            cte,
        }))
    }

    fn any_expr(&mut self, columns: &[Column], plain: bool) -> (String, Expr) {
        let ty = SCALARS[self.rng.random_range(0..SCALARS.len())];
        let expr = Scope { columns }.expr(self.rng, ty, if plain { 1 } else { 2 });
        (self.name(), expr)
    }

    fn union(&mut self, inputs: Vec<Rel>, all: bool) -> Rel {
        let n = self.rng.random_range(1..=3);
        let outputs: Vec<Column> = (0..n)
            .map(|_| {
                Column::new(
                    self.name(),
                    SCALARS[self.rng.random_range(0..SCALARS.len())],
                )
            })
            .collect();
        let mut branches = Vec::new();
        for input in inputs {
            let columns = input.columns();
            let scope = Scope { columns: &columns };
            let list = outputs
                .iter()
                .map(|o| (o.name.clone(), scope.expr(self.rng, o.ty, 1)))
                .collect();
            let filter = self
                .chance(0.3)
                .then(|| scope.expr(self.rng, Type::Bool, 1));
            branches.push(Rel::Select(Box::new(Select {
                input,
                columns: list,
                filter,
                distinct: false,
                cte: false,
            })));
        }
        Rel::Union {
            inputs: branches,
            all,
        }
    }

    fn unnest(&mut self, input: Rel) -> Rel {
        let columns = input.columns();
        let n = self.rng.random_range(0..=2);
        let mut kept = Vec::new();
        for _ in 0..n {
            kept.push(self.any_expr(&columns, true));
        }
        let list = (
            self.name(),
            Scope { columns: &columns }.expr(self.rng, Type::Ints, 0),
        );
        Rel::Unnest(Box::new(Unnest {
            input,
            columns: kept,
            list,
        }))
    }

    fn keys(&mut self, columns: &[Column], at_least: usize) -> Vec<(String, Expr)> {
        let n = self.rng.random_range(at_least..=2);
        let mut keys = Vec::new();
        while keys.len() < n {
            let (name, expr) = self.any_expr(columns, true);
            if expr.reads(columns) {
                keys.push((name, expr));
            } else if !columns.iter().any(|c| SCALARS.contains(&c.ty)) {
                break;
            }
        }
        keys
    }

    /// Aggregates to select, and now and then a condition on one that need not be among them.
    fn calls(
        &mut self,
        columns: &[Column],
        at_least: usize,
    ) -> (Vec<(String, Expr)>, Option<Expr>) {
        let n = self.rng.random_range(at_least..=3);
        let mut calls = Scope { columns }.calls(self.rng, n + 1);
        let spare = calls.pop().expect("one more than selected");
        let having = self.chance(0.2).then(|| self.having(spare));
        (
            calls.into_iter().map(|call| (self.name(), call)).collect(),
            having,
        )
    }

    fn having(&mut self, call: Expr) -> Expr {
        let template = match call.ty {
            Type::Int => ["({0} > 1)", "({0} % 2 = 0)", "({0} <> 3)"][self.rng.random_range(0..3)],
            Type::Bool => "({0} IS NOT TRUE)",
            Type::Text => "({0} < 'b')",
            _ => "({0} IS NOT NULL)",
        };
        Expr::new(Type::Bool, template, vec![call])
    }
}
