//! Arithmetic of time windows (semantics 3.1, 3.2). Instants and widths in nanoseconds.

use arrow::array::{ArrayRef, TimestampNanosecondArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use std::sync::Arc;
use thalweg_dataflow::plan::Window;

use crate::error::RuntimeError;

/// A window or pane: `[start, end)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    pub start: i64,
    pub end: i64,
}

/// In the order in which they close.
impl Ord for Span {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.end, self.start).cmp(&(other.end, other.start))
    }
}

impl PartialOrd for Span {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Span {
    pub fn contains(&self, t: i64) -> bool {
        self.start <= t && t < self.end
    }
}

/// How windows lie, and the panes that they are made of: the widest spans that no window's edge cuts.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    slide: i64,
    width: i64,
    pane: i64,
}

impl Layout {
    /// Errors: a session, whose windows follow from the rows.
    pub fn new(window: Window) -> Result<Self, RuntimeError> {
        Ok(match window {
            Window::Tumble { width } => Self {
                slide: width,
                width,
                pane: width,
            },
            Window::Hop { slide, width } => Self {
                slide,
                width,
                pane: gcd(slide, width),
            },
            Window::Session { .. } => {
                return Err(RuntimeError::Internal(
                    "sessions lie where their rows lie".into(),
                ));
            }
        })
    }

    /// Whether every window is a single pane.
    pub fn is_tumbling(&self) -> bool {
        self.pane == self.width && self.slide == self.width
    }

    pub fn pane_of(&self, t: i64) -> Span {
        let start = t.div_euclid(self.pane).saturating_mul(self.pane);
        Span {
            start,
            end: start.saturating_add(self.pane),
        }
    }

    /// The windows that contain the instant, earliest first; none where the width is below the slide and the
    /// instant falls between two.
    pub fn windows_of(&self, t: i64) -> impl Iterator<Item = Span> + use<> {
        let Self { slide, width, .. } = *self;
        let first = t
            .saturating_sub(width)
            .div_euclid(slide)
            .saturating_add(1)
            .saturating_mul(slide);
        (0..)
            .map(move |i| first.saturating_add(slide.saturating_mul(i)))
            .take_while(move |&start| start <= t)
            .map(move |start| Span {
                start,
                end: start.saturating_add(width),
            })
    }

    /// The last window that contains the pane.
    pub fn last_window_of(&self, pane: Span) -> Option<Span> {
        let start = pane.start.div_euclid(self.slide).saturating_mul(self.slide);
        let window = Span {
            start,
            end: start.saturating_add(self.width),
        };
        window.contains(pane.start).then_some(window)
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A column of `n_rows` equal instants, in the type that the plan gives it.
pub fn instants(values: Vec<i64>, data_type: &DataType) -> Result<ArrayRef, RuntimeError> {
    let array: ArrayRef = Arc::new(TimestampNanosecondArray::from(values));
    if array.data_type() == data_type {
        Ok(array)
    } else {
        Ok(cast(&array, data_type)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(window: Window, t: i64) -> Vec<(i64, i64)> {
        Layout::new(window)
            .unwrap()
            .windows_of(t)
            .map(|w| (w.start, w.end))
            .collect()
    }

    #[test]
    fn rule_3_2_a_hop_window_for_every_multiple_of_the_slide() {
        let hop = Window::Hop {
            slide: 2,
            width: 10,
        };
        assert_eq!(
            windows(hop, 9),
            [(0, 10), (2, 12), (4, 14), (6, 16), (8, 18)]
        );
        assert_eq!(
            windows(hop, 10),
            [(2, 12), (4, 14), (6, 16), (8, 18), (10, 20)]
        );
        assert_eq!(
            windows(hop, -1),
            [(-10, 0), (-8, 2), (-6, 4), (-4, 6), (-2, 8)]
        );
    }

    #[test]
    fn rule_3_1_the_width_need_not_be_a_multiple_of_the_slide() {
        assert_eq!(
            windows(Window::Hop { slide: 4, width: 6 }, 5),
            [(0, 6), (4, 10)]
        );
        assert_eq!(
            windows(
                Window::Hop {
                    slide: 10,
                    width: 4
                },
                5
            ),
            []
        );
        assert_eq!(
            windows(
                Window::Hop {
                    slide: 10,
                    width: 4
                },
                13
            ),
            [(10, 14)]
        );
    }

    #[test]
    fn panes_are_cut_by_no_window() {
        let layout = Layout::new(Window::Hop { slide: 4, width: 6 }).unwrap();
        for t in -20..20 {
            let pane = layout.pane_of(t);
            assert!(pane.contains(t));
            for window in layout.windows_of(t) {
                assert!(window.start <= pane.start && pane.end <= window.end);
            }
            assert_eq!(layout.last_window_of(pane), layout.windows_of(t).last());
        }
    }
}
