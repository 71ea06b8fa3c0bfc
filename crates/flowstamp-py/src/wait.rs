//! Waiting with the interpreter released.
//!
//! Work is done in threads of its own while the calling thread waits, wakes ten times a second to look for signals and to
//! report progress, and tells a run to stop if Python raised. So a callback costs the engine nothing, and Ctrl-C is seen
//! whatever the callback does: Python handles signals in the main thread only.

use flowstamp_sim::Progress;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often the calling thread looks up.
const LOOK_UP: Duration = Duration::from_millis(100);

fn failed() -> PyErr {
    // It panicked, and said so on standard error.
    PyRuntimeError::new_err("the simulator failed: this is a defect in Flowstamp")
}

/// Waits for so long without the interpreter.
fn wait<T: Send>(py: Python<'_>, receive: &Mutex<Receiver<T>>) -> Result<T, RecvTimeoutError> {
    py.detach(|| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK_UP))
}

/// Does `work`, which hears of no signal, and leaves it to itself if Python raises meanwhile.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let (send, receive) = mpsc::channel();
    let receive = Mutex::new(receive);
    thread::spawn(move || send.send(work()));
    loop {
        match wait(py, &receive) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(failed()),
        }
    }
}

/// How far one run is, as its own thread left it for the calling thread to see.
#[derive(Default)]
struct Seen {
    simulated_ps: AtomicU64,
    duration_ps: AtomicU64,
    events: AtomicU64,
}

/// What the engine's threads and the calling thread share.
pub struct Board {
    stop: AtomicBool,
    runs: Vec<Seen>,
}

impl Board {
    pub fn new(runs: usize) -> Self {
        Self { stop: AtomicBool::new(false), runs: (0..runs).map(|_| Seen::default()).collect() }
    }

    /// Called by the engine.
    pub fn tick(&self, run: usize, progress: &Progress) -> ControlFlow<()> {
        let seen = &self.runs[run];
        // Nothing follows from the order in which these are seen: they are shown to a person.
        seen.simulated_ps.store(progress.simulated.as_ps(), Ordering::Relaxed);
        seen.duration_ps.store(progress.duration.as_ps(), Ordering::Relaxed);
        seen.events.store(progress.events, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Tells Python of the runs that came further since `shown`, which counts events.
    fn report(&self, py: Python<'_>, shown: &mut [u64], progress: Option<&Py<PyAny>>) -> PyResult<()> {
        py.check_signals()?;
        let Some(progress) = progress else { return Ok(()) };
        for (index, (seen, shown)) in self.runs.iter().zip(shown).enumerate() {
            let events = seen.events.load(Ordering::Relaxed);
            if events != *shown {
                *shown = events;
                let seconds = |ps: &AtomicU64| ps.load(Ordering::Relaxed) as f64 * 1e-12;
                let (simulated_s, duration_s) = (seconds(&seen.simulated_ps), seconds(&seen.duration_ps));
                progress.call1(py, (index, self.runs.len(), simulated_s, duration_s, events))?;
            }
        }
        Ok(())
    }
}

/// Runs `work` in a thread of its own and waits for it as this module's header says. `work` returns `None` if it was
/// stopped.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    board: &Board,
    work: impl FnOnce() -> PyResult<Option<T>> + Send,
) -> PyResult<T> {
    heard(py, progress, board, |_: &(dyn Fn(Infallible) + Sync)| work(), |never| match never {})
}

/// What the thread at work says.
enum Said<M, T> {
    Part(M),
    End(PyResult<Option<T>>),
}

/// The same, where `work` gives parts of its results as they are there; `take` gets them in the calling thread. If that fails no more are
/// taken; if Ctrl-C or `progress` stops the work, what was given until then still is.
pub fn heard<M: Send, T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    board: &Board,
    work: impl FnOnce(&(dyn Fn(M) + Sync)) -> PyResult<Option<T>> + Send,
    mut take: impl FnMut(M) -> PyResult<()>,
) -> PyResult<T> {
    let (send, receive) = mpsc::channel();
    let receive = Mutex::new(receive); // so that it may be waited on without the interpreter
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            // Nobody hears it if the calling thread has left.
            let end = work(&|part| drop(send.send(Said::Part(part))));
            drop(send.send(Said::End(end)));
        });
        let mut shown = vec![0; board.runs.len()];
        let mut raised = None;
        let mut taking = true;
        loop {
            let said = wait(py, &receive);
            // At each part too: they may come so often that there is never a pause.
            if raised.is_none() && !matches!(said, Ok(Said::End(_))) {
                raised = board.report(py, &mut shown, progress).err();
            }
            match said {
                Ok(Said::Part(part)) => {
                    if taking {
                        if let Err(error) = take(part) {
                            taking = error.is_instance_of::<PyKeyboardInterrupt>(py);
                            raised = raised.or(Some(error));
                        }
                    }
                }
                Ok(Said::End(result)) => {
                    return match (raised, result?) {
                        (None, Some(result)) => Ok(result),
                        (Some(error), _) => Err(error),
                        (None, None) => Err(PyKeyboardInterrupt::new_err("interrupted")),
                    };
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let _ = worker.join();
                    return Err(failed());
                }
            }
            board.stop.store(raised.is_some(), Ordering::Relaxed);
        }
    })
}
