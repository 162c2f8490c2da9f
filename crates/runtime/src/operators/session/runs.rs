//! Rows of a batch that lie in one session whatever else there is: same key, and less than the gap between one
//! and the next.

/// A run of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub key: u32,
    /// Event times of its first and last row, ns.
    pub start: i64,
    pub last: i64,
}

/// The runs of a batch by key and then by time, and per row the run that it is in. `keys` and `times` are a
/// column each; at a distance of `gap` or more a new run begins (semantics 3.3).
pub fn runs(keys: &[u32], times: &[i64], gap: i64) -> (Vec<Run>, Vec<u32>) {
    let mut order: Vec<(u32, i64, u32)> = keys
        .iter()
        .zip(times)
        .zip(0..)
        .map(|((&key, &time), row)| (key, time, row))
        .collect();
    // Streams are often in order already, and of one key: that costs one pass.
    order.sort_unstable();
    let mut runs: Vec<Run> = Vec::new();
    let mut run_of = vec![0; order.len()];
    for (key, time, row) in order {
        match runs.last_mut() {
            Some(run) if run.key == key && time < run.last.saturating_add(gap) => run.last = time,
            _ => runs.push(Run {
                key,
                start: time,
                last: time,
            }),
        }
        run_of[row as usize] = runs.len() as u32 - 1;
    }
    (runs, run_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_3_3_rows_exactly_the_gap_apart_are_in_two_runs() {
        let (found, run_of) = runs(&[7, 3, 7, 7, 3], &[10, 5, 0, 19, 15], 10);
        let run = |key, start, last| Run { key, start, last };
        assert_eq!(
            found,
            [run(3, 5, 5), run(3, 15, 15), run(7, 0, 0), run(7, 10, 19)]
        );
        assert_eq!(run_of, [3, 0, 2, 3, 1]);
    }
}
