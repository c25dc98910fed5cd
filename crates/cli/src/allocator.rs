//! The memory that the allocator keeps.

/// Gives memory that is not in use back to the system: in a server that becomes idle, as jemalloc gives freed pages back only while
/// others are allocated, and before the memory of a statement is measured, which would count them. Other commands end soon.
#[cfg(feature = "jemalloc")]
#[expect(unsafe_code, reason = "jemalloc is told in no other way")]
pub fn give_back() {
    // 4096 stands for all arenas.
    let purge = c"arena.4096.purge";
    let none = std::ptr::null_mut();
    // SAFETY: the name ends with a zero byte, and the call reads and writes nothing else.
    unsafe { tikv_jemalloc_sys::mallctl(purge.as_ptr(), none, std::ptr::null_mut(), none, 0) };
}

/// The same with the allocator of glibc, which keeps what threads have freed.
#[cfg(all(not(feature = "jemalloc"), target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the standard library has no such call")]
pub fn give_back() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // SAFETY: glibc has it with this signature, for any thread at any time.
    unsafe { malloc_trim(0) };
}

/// Other allocators give it back by themselves.
#[cfg(not(any(feature = "jemalloc", all(target_os = "linux", target_env = "gnu"))))]
pub fn give_back() {}
