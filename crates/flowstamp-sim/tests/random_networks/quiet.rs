//! A panic in a case is a finding, not an end: it is kept and not printed.

use super::check::Failure;
use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

/// Does `work`, in which panics are kept for [`last_panic`].
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                return before(info);
            }
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            let payload = info.payload();
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            LAST.set(Some(Failure { kind: format!("panic at {place}"), text: text.unwrap_or_default() }));
        }));
    });
    let outer = QUIET.replace(true);
    let result = work();
    QUIET.set(outer);
    result
}

/// The last panic on this thread.
pub fn last_panic() -> Failure {
    LAST.take().unwrap_or(Failure { kind: "panic".into(), text: String::new() })
}
