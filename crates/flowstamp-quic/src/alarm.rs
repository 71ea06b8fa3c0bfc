//! Wakes tasks at instants, with the precision of the operating system.
//!
//! tokio's timers have steps of a millisecond, in which a pace of 100 Mb/s sends ten packets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::Instant;

/// A thread that sleeps until the next instant that a task waits for. It ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub struct Alarm {
    shared: Arc<Shared>,
    /// Counts handles, apart from the thread's own reference.
    _handle: Arc<Handle>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    heap: BinaryHeap<Reverse<(Instant, u64)>>,
    wakers: std::collections::HashMap<u64, Waker>,
    next: u64,
    over: bool,
}

#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        while !state.over {
            let now = Instant::now();
            match state.heap.peek().copied() {
                Some(Reverse((at, id))) if at <= now => {
                    state.heap.pop();
                    let waker = state.wakers.remove(&id);
                    drop(state);
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                    state = self.lock();
                }
                Some(Reverse((at, _))) => {
                    let waited = self.changed.wait_timeout(state, at - now);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Alarm {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The operating system has no thread left.
    pub fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        thread::Builder::new().name("pace".into()).spawn(move || own.run())?;
        Ok(Self { _handle: Arc::new(Handle(Arc::clone(&shared))), shared })
    }

    /// Wakes a task at `at`, once.
    pub fn wake_at(&self, at: Instant, waker: Waker) {
        let mut state = self.shared.lock();
        let id = state.next;
        state.next += 1;
        state.wakers.insert(id, waker);
        state.heap.push(Reverse((at, id)));
        drop(state);
        self.shared.changed.notify_one();
    }
}
