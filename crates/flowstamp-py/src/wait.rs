//! Waits for work with the interpreter released.
//!
//! Other threads do the work while the calling thread waits. Ten times a second it wakes to check for signals and to report progress, and
//! it tells a run to stop if Python raised. Therefore a callback costs the engine nothing. Ctrl-C is seen whatever the callback does,
//! because the calling thread checks for it: Python handles signals in the main thread only.

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

/// How often the calling thread wakes.
const LOOK_UP: Duration = Duration::from_millis(100);

fn failed() -> PyErr {
    // The thread panicked, and the panic message is on standard error.
    PyRuntimeError::new_err("the simulator failed: this is a defect in Flowstamp")
}

/// Waits for at most [`LOOK_UP`] without the interpreter.
fn wait<T: Send>(py: Python<'_>, receive: &Mutex<Receiver<T>>) -> Result<T, RecvTimeoutError> {
    py.detach(|| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK_UP))
}

/// Runs `work` in a thread of its own, which sees no signal, and abandons it if Python raises meanwhile.
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

/// Progress of one run, written by its thread and read by the calling thread.
#[derive(Default)]
struct Seen {
    simulated_ps: AtomicU64,
    duration_ps: AtomicU64,
    events: AtomicU64,
}

/// State that the engine's threads and the calling thread share.
pub struct Board {
    stop: AtomicBool,
    runs: Vec<Seen>,
}

impl Board {
    pub fn new(runs: usize) -> Self {
        Self { stop: AtomicBool::new(false), runs: (0..runs).map(|_| Seen::default()).collect() }
    }

    /// Records the progress of a run; called by the engine. Breaks if the run is to stop.
    pub fn tick(&self, run: usize, progress: &Progress) -> ControlFlow<()> {
        let seen = &self.runs[run];
        // Relaxed order will do: the values are only displayed.
        seen.simulated_ps.store(progress.simulated.as_ps(), Ordering::Relaxed);
        seen.duration_ps.store(progress.duration.as_ps(), Ordering::Relaxed);
        seen.events.store(progress.events, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Reports to Python the runs with more events than `shown`.
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

/// Runs `work` in a thread of its own and waits for it as the module header describes. `work` returns `None` if it was stopped.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    board: &Board,
    work: impl FnOnce() -> PyResult<Option<T>> + Send,
) -> PyResult<T> {
    heard(py, progress, board, |_: &(dyn Fn(Infallible) + Sync)| work(), |never| match never {})
}

/// Message from the working thread.
enum Said<M, T> {
    Part(M),
    End(PyResult<Option<T>>),
}

/// As [`watched`], for `work` that delivers parts of its results as they are ready; `take` gets them in the calling thread. If `take` fails no
/// more are taken. If Ctrl-C or `progress` stops the work, parts delivered until then are still taken.
pub fn heard<M: Send, T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    board: &Board,
    work: impl FnOnce(&(dyn Fn(M) + Sync)) -> PyResult<Option<T>> + Send,
    mut take: impl FnMut(M) -> PyResult<()>,
) -> PyResult<T> {
    let (send, receive) = mpsc::channel();
    let receive = Mutex::new(receive); // lets `wait` use it without the interpreter
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            // Sending fails if the calling thread has left, which is fine.
            let end = work(&|part| drop(send.send(Said::Part(part))));
            drop(send.send(Said::End(end)));
        });
        let mut shown = vec![0; board.runs.len()];
        let mut raised = None;
        let mut taking = true;
        loop {
            let said = wait(py, &receive);
            // Also at each part: parts may come so often that the wait never times out.
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
