//! A stage: a chain of operators and what stands at its end, shared by source tasks and inner tasks.

use thalweg_dataflow::ChangeBatch;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::chain::Chain;
use crate::clock;
use crate::error::RuntimeError;
use crate::exchange::{Arrival, Inputs, Router, Sent};
use crate::operator::Barrier;
use crate::reject::{Rejected, dead_letters};
use crate::state::{SplitPosition, StateWrites};

use super::coordinator::Ack;
use super::sink::SinkStage;

pub enum End {
    Routers(Vec<Router>),
    Sink(Box<SinkStage>),
}

pub struct Stage {
    pub chain: Chain,
    pub end: End,
    /// What the operators of the chain have rejected, and where it goes.
    pub rejected: Rejected,
    pub dead_letters: Vec<Router>,
    pub acks: mpsc::UnboundedSender<Ack>,
}

impl Stage {
    /// Runs a batch of the current epoch through the chain and sends what comes out.
    pub async fn process(&mut self, port: usize, batch: ChangeBatch) -> Result<Sent, RuntimeError> {
        self.chain.push(port, batch)?;
        self.drain().await
    }

    async fn drain(&mut self) -> Result<Sent, RuntimeError> {
        while let Some(batch) = self.chain.next()? {
            let began = Instant::now();
            let sent = self.end.send(batch).await?;
            self.chain.was_blocked(began.elapsed());
            if sent == Sent::Closed {
                return Ok(Sent::Closed);
            }
        }
        self.send_rejected().await
    }

    async fn send_rejected(&mut self) -> Result<Sent, RuntimeError> {
        let rejected = self.rejected.take();
        if rejected.is_empty() {
            return Ok(Sent::Delivered);
        }
        let letters = dead_letters(&rejected, clock::now_nanos())?;
        send_to_all(&self.dead_letters, &letters).await
    }

    /// Ends the epoch at every operator in turn, passes the barrier on and reports to the coordinator.
    pub async fn end_epoch(
        &mut self,
        barrier: Barrier,
        splits: Vec<SplitPosition>,
    ) -> Result<Sent, RuntimeError> {
        for index in 0..self.chain.n_operators() {
            self.chain.barrier(index, &barrier)?;
            if self.drain().await? == Sent::Closed {
                return Ok(Sent::Closed);
            }
        }
        for router in &self.dead_letters {
            if router.barrier(barrier).await == Sent::Closed {
                return Ok(Sent::Closed);
            }
        }
        if self.end.barrier(barrier).await? == Sent::Closed {
            return Ok(Sent::Closed);
        }
        let ack = self.acknowledge(&barrier, splits)?;
        // The coordinator outlives its tasks, unless the job is being torn down.
        Ok(self
            .acks
            .send(ack)
            .map_or(Sent::Closed, |()| Sent::Delivered))
    }

    fn acknowledge(
        &mut self,
        barrier: &Barrier,
        splits: Vec<SplitPosition>,
    ) -> Result<Ack, RuntimeError> {
        let mut writes = barrier.commit.then(StateWrites::default);
        let (mut dirty_bytes, mut state_bytes) = (0, 0);
        for operator in self.chain.operators_mut() {
            let Some(state) = operator.state() else {
                continue;
            };
            if let Some(writes) = &mut writes {
                state.write_changes(writes)?;
            }
            dirty_bytes += state.dirty_bytes();
            state_bytes += state.memory_bytes();
        }
        Ok(Ack {
            epoch: barrier.epoch,
            writes,
            splits,
            dirty_bytes,
            state_bytes,
        })
    }
}

impl End {
    async fn send(&mut self, batch: ChangeBatch) -> Result<Sent, RuntimeError> {
        match self {
            Self::Sink(sink) => sink.write(batch).await.map(|()| Sent::Delivered),
            Self::Routers(routers) => send_to_all(routers, &batch).await,
        }
    }

    async fn barrier(&mut self, barrier: Barrier) -> Result<Sent, RuntimeError> {
        match self {
            Self::Sink(sink) => sink.end_epoch(&barrier).await.map(|()| Sent::Delivered),
            Self::Routers(routers) => {
                for router in routers {
                    if router.barrier(barrier).await == Sent::Closed {
                        return Ok(Sent::Closed);
                    }
                }
                Ok(Sent::Delivered)
            }
        }
    }
}

/// Sends a batch along several edges.
pub async fn send_to_all(routers: &[Router], batch: &ChangeBatch) -> Result<Sent, RuntimeError> {
    for router in routers {
        if router.send(batch).await? == Sent::Closed {
            return Ok(Sent::Closed);
        }
    }
    Ok(Sent::Delivered)
}

/// Runs a stage that is fed by other stages, until the last barrier.
pub async fn run_inner(mut stage: Stage, mut inputs: Inputs) -> Result<(), RuntimeError> {
    loop {
        let sent = match inputs.next().await {
            Arrival::Closed => return Ok(()),
            Arrival::Batch { port, batch } => stage.process(port, batch).await?,
            Arrival::Aligned(barrier) => {
                let sent = stage.end_epoch(barrier, Vec::new()).await?;
                if barrier.last {
                    return Ok(());
                }
                sent
            }
        };
        if sent == Sent::Closed {
            return Ok(());
        }
        // A stage that always has input must still let others run.
        tokio::task::consume_budget().await;
    }
}
