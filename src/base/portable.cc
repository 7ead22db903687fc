// SPDX-License-Identifier: Apache-2.0
// Two functions of glibc 2.35 and 2.36 that the static libgcc and libstdc++ of g++ 12 call, so that
// our programs run with glibc 2.34. Linked into programs alone, ahead of glibc's own; nothing of
// ours calls them by name.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>

namespace {

struct Search {
  std::uintptr_t pc;
  dl_find_object* found;
};

// One loaded object: is `pc` in one of its segments, and where is its table for unwinding?
int look(dl_phdr_info* info, std::size_t, void* argument) {
  const auto* search = static_cast<const Search*>(argument);
  std::uintptr_t first = UINTPTR_MAX, last = 0, table = 0;
  bool inside = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const std::uintptr_t at = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_EH_FRAME) table = at;
    if (header.p_type != PT_LOAD) continue;
    first = at < first ? at : first;
    last = at + header.p_memsz > last ? at + header.p_memsz : last;
    inside = inside || (search->pc >= at && search->pc < at + header.p_memsz);
  }
  if (!inside || table == 0) return 0;
  *search->found = {};
  search->found->dlfo_map_start = reinterpret_cast<void*>(first);
  search->found->dlfo_map_end = reinterpret_cast<void*>(last);
  search->found->dlfo_eh_frame = reinterpret_cast<void*>(table);
  return 1;
}

}  // namespace

// Where the unwinder finds the frames of an exception. 0, or -1 when no object has that address.
extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(
    void* pc, dl_find_object* result) noexcept {
  Search search{reinterpret_cast<std::uintptr_t>(pc), result};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

// For the random numbers of libstdc++, which mete does not use.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
  }
  return value;
}
