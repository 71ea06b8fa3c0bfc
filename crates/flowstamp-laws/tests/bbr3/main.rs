//! BBR's version 3 against draft-ietf-ccwg-bbr: the arithmetic of its sections, and the test cases of its appendix on a path.

mod arithmetic;
mod cases;
mod path;
