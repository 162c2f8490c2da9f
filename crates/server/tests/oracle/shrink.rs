//! From a failing case to a small one that fails in the same way.

use crate::expr::Expr;
use crate::input::{Change, Cuts, Input};
use crate::query::{Group, Rel, Select, Unnest, WindowGroup};
use crate::run::Case;

/// The smallest case found that still `fails`, trying at most `n_tries`.
pub fn shrink(case: Case, n_tries: usize, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut best = case;
    let mut left = n_tries;
    loop {
        let mut improved = false;
        for candidate in inputs(&best.input)
            .into_iter()
            .map(|input| Case {
                input,
                ..best.clone()
            })
            .chain(rels(&best.rel).into_iter().map(|rel| Case {
                rel,
                ..best.clone()
            }))
        {
            if left == 0 {
                return best;
            }
            left -= 1;
            if fails(&candidate) {
                best = candidate;
                improved = true;
                break;
            }
        }
        if !improved {
            return best;
        }
    }
}

/// Inputs that are a little smaller: large pieces first.
fn inputs(input: &Input) -> Vec<Input> {
    let mut found = Vec::new();
    if input.reading.parallelism > 1 {
        let mut changed = input.clone();
        changed.reading.parallelism = 1;
        for table in changed.tables.values_mut() {
            table.splits = vec![table.splits.concat()];
        }
        found.push(changed);
    }
    if input.reading.parallel_sink {
        let mut changed = input.clone();
        changed.reading.parallel_sink = false;
        found.push(changed);
    }
    if input.reading.state_memory < 1 << 30 {
        let mut changed = input.clone();
        changed.reading.state_memory = 1 << 30;
        found.push(changed);
    }
    if input.reading.cuts != Cuts::Rows(1000) {
        let mut changed = input.clone();
        changed.reading.cuts = Cuts::Rows(1000);
        found.push(changed);
    }
    for (name, table) in &input.tables {
        let mut ids: Vec<i64> = table.splits.concat().iter().map(|c| c.row.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut size = ids.len().div_ceil(2);
        while size > 0 {
            for dropped in ids.chunks(size) {
                let mut changed = input.clone();
                let table = changed.tables.get_mut(name).expect("taken from there");
                for split in &mut table.splits {
                    split.retain(|c: &Change| !dropped.contains(&c.row.id));
                }
                found.push(changed);
            }
            size /= 2;
        }
    }
    found
}

/// Queries that are a little smaller. Not all of them are sound: those fail in another way.
fn rels(rel: &Rel) -> Vec<Rel> {
    let mut found: Vec<Rel> = rel
        .inputs()
        .into_iter()
        .filter(|i| !matches!(i, Rel::Table(_)))
        .cloned()
        .collect();
    match rel {
        Rel::Table(_) => {}
        Rel::Select(s) => {
            let rebuilt = |s: Select| Rel::Select(Box::new(s));
            found.extend(shorter(&s.columns, 1).into_iter().map(|columns| {
                rebuilt(Select {
                    columns,
                    ..(**s).clone()
                })
            }));
            found.extend(conditions(&s.filter).into_iter().map(|filter| {
                rebuilt(Select {
                    filter,
                    ..(**s).clone()
                })
            }));
            found.extend(rels(&s.input).into_iter().map(|input| {
                rebuilt(Select {
                    input,
                    ..(**s).clone()
                })
            }));
        }
        Rel::Union { inputs, all } => {
            for (i, input) in inputs.iter().enumerate() {
                for smaller in rels(input) {
                    let mut inputs = inputs.clone();
                    inputs[i] = smaller;
                    found.push(Rel::Union { inputs, all: *all });
                }
            }
        }
        Rel::Unnest(u) => {
            let rebuilt = |u: Unnest| Rel::Unnest(Box::new(u));
            found.extend(shorter(&u.columns, 0).into_iter().map(|columns| {
                rebuilt(Unnest {
                    columns,
                    ..(**u).clone()
                })
            }));
            found.extend(rels(&u.input).into_iter().map(|input| {
                rebuilt(Unnest {
                    input,
                    ..(**u).clone()
                })
            }));
        }
        Rel::Group(g) => {
            let rebuilt = |g: Group| Rel::Group(Box::new(g));
            found.extend(
                shorter(&g.keys, usize::from(g.ttl.is_some()))
                    .into_iter()
                    .map(|keys| {
                        rebuilt(Group {
                            keys,
                            ..(**g).clone()
                        })
                    }),
            );
            found.extend(shorter(&g.calls, 0).into_iter().map(|calls| {
                rebuilt(Group {
                    calls,
                    ..(**g).clone()
                })
            }));
            found.extend(conditions(&g.having).into_iter().map(|having| {
                rebuilt(Group {
                    having,
                    ..(**g).clone()
                })
            }));
            found.extend(rels(&g.input).into_iter().map(|input| {
                rebuilt(Group {
                    input,
                    ..(**g).clone()
                })
            }));
        }
        Rel::Window(w) => {
            let rebuilt = |w: WindowGroup| Rel::Window(Box::new(w));
            found.extend(shorter(&w.keys, 0).into_iter().map(|keys| {
                rebuilt(WindowGroup {
                    keys,
                    ..(**w).clone()
                })
            }));
            found.extend(shorter(&w.calls, 0).into_iter().map(|calls| {
                rebuilt(WindowGroup {
                    calls,
                    ..(**w).clone()
                })
            }));
            found.extend(conditions(&w.having).into_iter().map(|having| {
                rebuilt(WindowGroup {
                    having,
                    ..(**w).clone()
                })
            }));
            found.extend(rels(&w.input).into_iter().map(|input| {
                rebuilt(WindowGroup {
                    input,
                    ..(**w).clone()
                })
            }));
        }
    }
    found
}

/// The list without one of its members, or with a simpler one.
fn shorter(list: &[(String, Expr)], at_least: usize) -> Vec<Vec<(String, Expr)>> {
    let mut found = Vec::new();
    for i in 0..list.len() {
        if list.len() > at_least {
            let mut changed = list.to_vec();
            changed.remove(i);
            found.push(changed);
        }
        for simpler in list[i].1.simpler() {
            let mut changed = list.to_vec();
            changed[i].1 = simpler;
            found.push(changed);
        }
    }
    found
}

/// No condition, or a simpler one.
fn conditions(condition: &Option<Expr>) -> Vec<Option<Expr>> {
    let Some(condition) = condition else {
        return Vec::new();
    };
    std::iter::once(None)
        .chain(condition.simpler().into_iter().map(Some))
        .collect()
}
