// SPDX-License-Identifier: Apache-2.0
// For libraries that are loaded into programs of users, also in images with an old glibc: they must
// need nothing newer than glibc 2.17. Functions that moved into libc.so.6 with glibc 2.32 to 2.34
// are bound to their first version, which every glibc since 2.17 has (before 2.34 in libdl.so.2 and
// libpthread.so.0, which such a library lists as needed). Functions that glibc got later are made
// from the system call. tests/checks/exports.py reads what the libraries need.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// In each file that calls one of them: METE_OLD_SYMBOL(dlsym). Without effect in programs, which
// are linked statically where they must run with any glibc.
#if defined(__PIE__)
#define METE_OLD_SYMBOL(name) static_assert(true)
#define METE_OLD_SYMBOL_2_3_3(name) static_assert(true)
#elif defined(__x86_64__)
#define METE_OLD_SYMBOL(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#define METE_OLD_SYMBOL_2_3_3(name) __asm__(".symver " #name "," #name "@GLIBC_2.3.3")
#elif defined(__aarch64__)
#define METE_OLD_SYMBOL(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#define METE_OLD_SYMBOL_2_3_3(name) METE_OLD_SYMBOL(name)
#endif

namespace mete::abi {

// statx() of glibc 2.28. Returns 0, or -1 with errno.
inline int look_at(int folder, const char* path, int flags, unsigned mask, struct statx* out) {
  return static_cast<int>(syscall(SYS_statx, folder, path, flags, mask, out));
}

// getrandom() of glibc 2.25.
inline ssize_t random_bytes(void* out, size_t size) { return syscall(SYS_getrandom, out, size, 0); }

// memfd_create() of glibc 2.27; closed on exec.
inline int memory_file(const char* name) {
  constexpr unsigned kCloseOnExec = 1;  // MFD_CLOEXEC
  return static_cast<int>(syscall(SYS_memfd_create, name, kCloseOnExec));
}

// gettid() of glibc 2.30.
inline int thread_id() { return static_cast<int>(syscall(SYS_gettid)); }

}  // namespace mete::abi
