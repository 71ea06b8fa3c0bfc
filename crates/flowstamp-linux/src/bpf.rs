//! The compiled BPF programs' types, as libbpf-cargo writes them: what laws are put into and what they are read from.

/// `bpf/router.bpf.c`.
#[allow(clippy::all, clippy::pedantic, reason = "generated")]
pub mod router {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}

/// A plain value's bytes, as maps take them.
pub fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: the skeleton's types are plain integers in C's layout, with padding spelled out.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The value that a map holds as `bytes`; none if it is not as long, as another version's may be.
pub fn value_of<T: Copy>(bytes: &[u8]) -> Option<T> {
    (bytes.len() >= size_of::<T>()).then(|| {
        // SAFETY: long enough, and any bits are a value of the skeleton's types.
        unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
    })
}
