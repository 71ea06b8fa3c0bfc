//! Sender and receiver of every recovery mode over a pipe of fixed rate and delay, with chosen losses, marks and
//! reordering.

mod ends;
mod law;
mod losses;
mod marks;
mod pipe;
mod properties;
mod repair;
mod timer;
