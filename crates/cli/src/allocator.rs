//! The memory that the allocator keeps.

/// Gives memory that is not in use back to the system. Commands that soon end keep it; for a server the half minute that
/// freed pages are kept is counted in allocations, and an idle one makes none.
#[cfg(feature = "jemalloc")]
#[expect(unsafe_code, reason = "jemalloc is told in no other way")]
pub fn give_back() {
    // 4096 stands for all arenas.
    let purge = c"arena.4096.purge";
    let none = std::ptr::null_mut();
    // SAFETY: the name ends with a zero byte, and the call reads and writes nothing else.
    unsafe { tikv_jemalloc_sys::mallctl(purge.as_ptr(), none, std::ptr::null_mut(), none, 0) };
}

/// The allocator of the system gives it back by itself.
#[cfg(not(feature = "jemalloc"))]
pub fn give_back() {}
