//! Edges between tasks: bounded channels, hash partitioning on the sending side, alignment of
//! barriers on the receiving side.

use std::task::Poll;

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::datatypes::Int8Type;
use futures::future::poll_fn;
use tokio::sync::mpsc;

use thalweg_dataflow::marks::ChangeOp;
use thalweg_dataflow::{ChangeBatch, Watermark};

use crate::error::RuntimeError;
use crate::operator::Barrier;
use crate::state::{N_VNODES, vnodes};

/// Batches that a channel holds before its sender waits: enough to keep both ends busy, few enough
/// that a slow sink slows its sources before memory fills.
const CHANNEL_BATCHES: usize = 4;

#[derive(Debug)]
pub enum Message {
    Batch(ChangeBatch),
    Barrier(Barrier),
}

pub type Sender = mpsc::Sender<Message>;
pub type Receiver = mpsc::Receiver<Message>;

pub fn channel() -> (Sender, Receiver) {
    mpsc::channel(CHANNEL_BATCHES)
}

/// The subtask, of `parallelism`, that owns a virtual partition.
pub fn owner(vnode: u8, parallelism: usize) -> usize {
    usize::from(vnode) * parallelism / N_VNODES
}

/// The virtual partitions that a subtask owns.
pub fn owned(subtask: usize, parallelism: usize) -> impl Iterator<Item = u8> + use<> {
    (0..=u8::MAX).filter(move |vnode| owner(*vnode, parallelism) == subtask)
}

/// The sending end of an edge: one channel per receiving subtask that this subtask reaches.
pub struct Router {
    targets: Vec<Sender>,
    /// Positions of the key columns, where rows are partitioned by key.
    key: Option<Vec<usize>>,
    /// Position of the mark that says which rows every receiver must have.
    op: Option<usize>,
}

impl Router {
    /// Every row goes to one receiver.
    pub fn forward(target: Sender) -> Self {
        Self {
            targets: vec![target],
            key: None,
            op: None,
        }
    }

    /// A row goes to the receiver that owns the virtual partition of its key.
    pub fn hash(targets: Vec<Sender>, key: Vec<usize>) -> Self {
        Self {
            targets,
            key: Some(key),
            op: None,
        }
    }

    /// As [`hash`](Self::hash), but a row that concerns all keys, as its mark at `op` says, goes to every
    /// receiver, in its place among the others.
    pub fn changelog(targets: Vec<Sender>, key: Vec<usize>, op: usize) -> Self {
        Self {
            op: Some(op),
            ..Self::hash(targets, key)
        }
    }

    /// Sends a batch, waiting for room. `Err(())` means that a receiver is gone: its task failed and
    /// has said so, and this one ends quietly.
    pub async fn send(&self, batch: &ChangeBatch) -> Result<Sent, RuntimeError> {
        let Some(key) = self.key.as_ref().filter(|_| self.targets.len() > 1) else {
            return Ok(send_one(&self.targets[0], Message::Batch(batch.clone())).await);
        };
        for (target, part) in
            self.targets
                .iter()
                .zip(partition(batch, key, self.op, self.targets.len())?)
        {
            if !part.is_empty() && send_one(target, Message::Batch(part)).await == Sent::Closed {
                return Ok(Sent::Closed);
            }
        }
        Ok(Sent::Delivered)
    }

    pub async fn barrier(&self, barrier: Barrier) -> Sent {
        for target in &self.targets {
            if send_one(target, Message::Barrier(barrier)).await == Sent::Closed {
                return Sent::Closed;
            }
        }
        Sent::Delivered
    }
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
#[must_use]
pub enum Sent {
    Delivered,
    /// The receiving task is gone; whatever ended it is reported by the job.
    Closed,
}

async fn send_one(target: &Sender, message: Message) -> Sent {
    match target.send(message).await {
        Ok(()) => Sent::Delivered,
        Err(_) => Sent::Closed,
    }
}

/// Splits a batch by the owner of each row's key; order is kept within a part. Rows whose mark at `op` says
/// that they concern all keys are in every part.
pub fn partition(
    batch: &ChangeBatch,
    key: &[usize],
    op: Option<usize>,
    n_parts: usize,
) -> Result<Vec<ChangeBatch>, RuntimeError> {
    let columns: Vec<ArrayRef> = key
        .iter()
        .map(|&i| batch.rows().column(i).clone())
        .collect();
    let vnodes = vnodes(&columns, batch.n_rows())?;
    let owners: [u8; N_VNODES] = std::array::from_fn(|v| owner(v as u8, n_parts) as u8);
    let mut indices: Vec<Vec<u32>> =
        vec![Vec::with_capacity(batch.n_rows() / n_parts + 64); n_parts];
    let ops = op.map(|op| batch.rows().column(op).as_primitive::<Int8Type>().values());
    for (row, vnode) in vnodes.iter().enumerate() {
        if ops.is_some_and(|ops| ops[row] == ChangeOp::Truncate as i8) {
            indices.iter_mut().for_each(|part| part.push(row as u32));
            continue;
        }
        indices[usize::from(owners[usize::from(*vnode)])].push(row as u32);
    }
    indices
        .into_iter()
        .map(|part| {
            if part.len() == batch.n_rows() {
                return Ok(batch.clone());
            }
            Ok(batch.take(&UInt32Array::from(part))?)
        })
        .collect()
}

/// The receiving end: all channels into one task, with barriers aligned.
pub struct Inputs {
    channels: Vec<Channel>,
    /// Where the next poll begins, so that no channel starves.
    next: usize,
    watermark: Watermark,
}

struct Channel {
    /// Which input of the operator it feeds.
    port: usize,
    receiver: Receiver,
    /// The barrier that arrived; nothing more is read until the others are there too.
    barrier: Option<Barrier>,
}

#[derive(Debug)]
pub enum Arrival {
    Batch {
        port: usize,
        batch: ChangeBatch,
    },
    /// The barrier has arrived on every channel.
    Aligned(Barrier),
    /// A sender is gone without a last barrier: its task failed.
    Closed,
}

impl Inputs {
    pub fn new(channels: Vec<(usize, Receiver)>) -> Self {
        let channels = channels
            .into_iter()
            .map(|(port, receiver)| Channel {
                port,
                receiver,
                barrier: None,
            })
            .collect();
        Self {
            channels,
            next: 0,
            watermark: Watermark::NONE,
        }
    }

    pub async fn next(&mut self) -> Arrival {
        loop {
            if self.channels.iter().all(|c| c.barrier.is_some()) {
                return Arrival::Aligned(self.align());
            }
            match self.receive().await {
                (_, None) => return Arrival::Closed,
                (i, Some(Message::Batch(batch))) => {
                    return Arrival::Batch {
                        port: self.channels[i].port,
                        batch,
                    };
                }
                (i, Some(Message::Barrier(barrier))) => self.channels[i].barrier = Some(barrier),
            }
        }
    }

    async fn receive(&mut self) -> (usize, Option<Message>) {
        let n = self.channels.len();
        poll_fn(|cx| {
            for step in 0..n {
                let i = (self.next + step) % n;
                let channel = &mut self.channels[i];
                if channel.barrier.is_some() {
                    continue;
                }
                if let Poll::Ready(message) = channel.receiver.poll_recv(cx) {
                    // Stay on a channel while it has messages: rows of one sender keep their order anyway,
                    // and the next poll goes on behind it.
                    self.next = (i + 1) % n;
                    return Poll::Ready((i, message));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Takes the barrier of every channel and makes one of them.
    fn align(&mut self) -> Barrier {
        let barriers: Vec<Barrier> = self
            .channels
            .iter_mut()
            .filter_map(|c| c.barrier.take())
            .collect();
        let merged = merge_watermarks(barriers.iter().map(|b| (b.watermark, b.idle)));
        self.watermark = self.watermark.max(merged.0);
        Barrier {
            watermark: self.watermark,
            idle: merged.1,
            ..barriers[0]
        }
    }
}

/// The minimum over the inputs that are not idle (semantics 2.2), and whether nothing moves it. Inputs that
/// have ended hold nothing back, but do not by themselves end the time of those that are only idle.
pub fn merge_watermarks(inputs: impl Iterator<Item = (Watermark, bool)>) -> (Watermark, bool) {
    let mut min: Option<Watermark> = None;
    let mut any_idle = false;
    for (watermark, idle) in inputs {
        if idle {
            any_idle = true;
        } else {
            min = Some(min.map_or(watermark, |m| m.min(watermark)));
        }
    }
    match min {
        Some(Watermark::END) if any_idle => (Watermark::NONE, true),
        Some(watermark) => (watermark, false),
        None => (Watermark::NONE, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn barrier(epoch: u64, at: i64, idle: bool) -> Message {
        Message::Barrier(Barrier {
            epoch,
            watermark: Watermark::at(at),
            idle,
            commit: false,
            last: false,
        })
    }

    #[tokio::test]
    async fn barriers_align_at_the_minimum_watermark_and_idle_inputs_hold_nothing_back() {
        let ((a, ra), (b, rb)) = (channel(), channel());
        let mut inputs = Inputs::new(vec![(0, ra), (0, rb)]);
        a.send(barrier(1, 10, false)).await.unwrap();
        b.send(barrier(1, 7, false)).await.unwrap();
        let Arrival::Aligned(first) = inputs.next().await else {
            panic!("not aligned")
        };
        assert_eq!(
            (first.epoch, first.watermark, first.idle),
            (1, Watermark::at(7), false)
        );

        a.send(barrier(2, 20, false)).await.unwrap();
        b.send(barrier(2, 7, true)).await.unwrap();
        let Arrival::Aligned(second) = inputs.next().await else {
            panic!("not aligned")
        };
        assert_eq!(second.watermark, Watermark::at(20));

        a.send(barrier(3, 30, true)).await.unwrap();
        b.send(barrier(3, 7, true)).await.unwrap();
        let Arrival::Aligned(third) = inputs.next().await else {
            panic!("not aligned")
        };
        assert_eq!(
            (third.watermark, third.idle),
            (Watermark::at(20), true),
            "time stands still, never moves back"
        );
    }

    #[test]
    fn an_ended_input_beside_an_idle_one_does_not_end_time() {
        let (_, idle) =
            merge_watermarks([(Watermark::END, false), (Watermark::at(3), true)].into_iter());
        assert!(idle);
        assert_eq!(
            merge_watermarks([(Watermark::END, false), (Watermark::at(3), false)].into_iter()),
            (Watermark::at(3), false)
        );
        assert_eq!(
            merge_watermarks([(Watermark::END, false), (Watermark::END, false)].into_iter()),
            (Watermark::END, false)
        );
    }

    #[test]
    fn every_vnode_has_one_owner_and_owners_are_even() {
        for p in 1..=7 {
            let mut n = vec![0; p];
            for v in 0..N_VNODES {
                n[owner(v as u8, p)] += 1;
            }
            assert!(
                n.iter().max().unwrap() - n.iter().min().unwrap() <= 1,
                "{n:?}"
            );
        }
    }
}
