//! The windows of Scalable TCP, H-TCP, BIC, CUBIC and FAST against numbers that follow from their papers' own formulas.

mod bic;
mod cubic;
mod fast;
mod htcp;
mod path;
mod properties;
mod scalable;
