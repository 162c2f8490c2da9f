//! The connections of a server, by what a cancel request names them with.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// All open connections. A process id is only a number here; the secret lets only the client cancel.
#[derive(Debug, Default)]
pub struct Backends {
    open: Mutex<HashMap<i32, Backend>>,
    n_opened: AtomicI32,
    /// Keyed from the system's randomness: nobody who does not know it can guess a secret.
    secrets: RandomState,
}

#[derive(Debug)]
struct Backend {
    secret: i32,
    /// How often cancelling was asked for.
    cancels: watch::Sender<u64>,
}

/// One open connection.
#[derive(Debug)]
pub struct Registered {
    backends: Arc<Backends>,
    pub pid: i32,
    pub secret: i32,
    pub cancels: watch::Receiver<u64>,
}

impl Backends {
    pub fn register(self: &Arc<Self>) -> Registered {
        // Never below one, and never one that is open.
        let mut open = self.lock();
        let pid = loop {
            let n = self.n_opened.fetch_add(1, Ordering::Relaxed);
            let pid = n.rem_euclid(i32::MAX) + 1;
            if !open.contains_key(&pid) {
                break pid;
            }
        };
        let secret = self.secrets.hash_one(pid) as i32;
        let (cancels, cancelled) = watch::channel(0);
        open.insert(pid, Backend { secret, cancels });
        Registered {
            backends: self.clone(),
            pid,
            secret,
            cancels: cancelled,
        }
    }

    /// Cancels what the connection is doing, if the secret is its own.
    pub fn cancel(&self, pid: i32, secret: &[u8]) {
        if let Some(backend) = self.lock().get(&pid)
            && backend.secret.to_be_bytes() == secret
        {
            backend.cancels.send_modify(|n| *n += 1);
        }
    }

    #[cfg(test)]
    fn n_open(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Backend>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.backends.lock().remove(&self.pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_cancels() {
        let backends = Arc::new(Backends::default());
        let one = backends.register();
        let other = backends.register();
        assert_ne!(one.pid, other.pid);
        backends.cancel(one.pid, &other.secret.to_be_bytes());
        backends.cancel(one.pid, b"");
        backends.cancel(-1, &one.secret.to_be_bytes());
        assert_eq!(*one.cancels.borrow(), 0);
        backends.cancel(one.pid, &one.secret.to_be_bytes());
        assert_eq!((*one.cancels.borrow(), *other.cancels.borrow()), (1, 0));
        drop(one);
        assert_eq!(backends.n_open(), 1);
    }
}
