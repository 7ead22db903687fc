// SPDX-License-Identifier: Apache-2.0
// Finding and loading the real drivers, and the look-up tables that derive from hooks.def.
//
// Our SONAME is libcuda.so.1, so asking ld.so for that name would return this library. The places
// that ld.so searches are searched in its order instead: LD_LIBRARY_PATH as it was when the process
// started (from dlinfo), the cache, the default directories. The file is then opened by its path,
// RTLD_LOCAL.
#include "meter/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "abi/old_glibc.h"
#include "abi/process.h"
#include "meter/gate.h"
#include "meter/lock.h"
#include "meter/park.h"
#include "meter/state.h"

METE_OLD_SYMBOL(dlopen);
METE_OLD_SYMBOL(dlclose);
METE_OLD_SYMBOL(dlsym);
METE_OLD_SYMBOL(dladdr);
METE_OLD_SYMBOL_2_3_3(dlinfo);

namespace mete::meter {

constinit Real real = {};
constinit RealNvml real_nvml = {};

}  // namespace mete::meter

// The handlers, under the names that hooks.def gives them.
extern "C" {
#define HOOK(name, why) decltype(name) hook_##name;
#define CALL(name)
#define NVML_HOOK(name) decltype(name) hook_##name;
#define NVML_CALL(name)
#include "meter/hooks.def"
#undef HOOK
#undef CALL
#undef NVML_HOOK
#undef NVML_CALL
#define GATE(name)
#define PARK_HOOK(name) decltype(name) hook_##name;
#define PARK_GATED(name) decltype(name) hook_##name;
#define PARK_CALL(name)
#include "meter/gates.def"
#undef GATE
#undef PARK_HOOK
#undef PARK_GATED
#undef PARK_CALL
extern void* mete_cuda_targets[];
extern void* mete_nvml_targets[];
void* mete_resolve(void** slot);
}

namespace mete::meter {
namespace {

constexpr const char* kCudaNames[] = {
#define CUDA_SYMBOL(name) #name,
#include "abi/cuda_symbols.def"
};
constexpr const char* kNvmlNames[] = {
#define NVML_SYMBOL(name) #name,
#include "abi/nvml_symbols.def"
#undef NVML_SYMBOL
};
constexpr size_t kNvmlCount = sizeof(kNvmlNames) / sizeof(kNvmlNames[0]);

struct HookRow {
  const char* name;
  void* hook;
  void** real;     // where the driver's function is stored
  void* parkable;  // instead of the hook, in parkable processes; nullptr: use the hook
};

#ifdef METE_TEST_DISABLE_HOOKS
// Only in the library's variant for tests/e2e/selftest: the one hook that is left out, to see that
// its absence is noticed.
bool is_left_out(const char* name) {
  const char* left_out = getenv("METE_DISABLE_HOOK");
  return left_out != nullptr && strcmp(left_out, name) == 0;
}
#else
constexpr bool is_left_out(const char*) { return false; }
#endif

template <class Function>
void* as_pointer(Function* function) {
  return reinterpret_cast<void*>(function);
}

// A driver call through the gate. The path through an open gate shares nothing with the other
// paths, so that no register has to be saved for them: they are tail calls.
template <auto Function, class... Arguments>
[[gnu::noinline, gnu::cold]] CUresult call_slowly(Arguments... arguments) {
  const Passage passage;
  return Function(arguments...);
}
template <auto Function, class... Arguments>
[[gnu::always_inline]] inline CUresult call_gated(Arguments... arguments) {
  Inside* const inside = at_gate.inside;
  if (!enter_quickly(inside)) [[unlikely]]
    return call_slowly<Function, Arguments...>(arguments...);
  const CUresult result = Function(arguments...);
  leave_quickly(inside);
  return result;
}

#if defined(__x86_64__)
// The variant for arguments on the stack: the caller's return address is stored elsewhere during
// the call, so that the driver finds the arguments where they are (a compiler would copy them all).
// Calls and returns stay paired, as processors predict them; the unwind information says where
// things lie. A signal handler that interrupts this and passes the gate finds that the thread is
// inside, and enters through call_slowly.
static_assert(offsetof(AtGate, inside) == 0 && offsetof(AtGate, caller) == 8 &&
              offsetof(AtGate, kept) == 16 && offsetof(Inside, word) == 0);
template <auto Member, auto Slowly>
[[gnu::naked]] CUresult call_in_place() {
  asm("movq %%fs:0, %%r11\n\t"
      "addq mete_at_gate@gottpoff(%%rip), %%r11\n\t"
      "movq (%%r11), %%r10\n\t"
      "cmpl %[outside], (%%r10)\n\t"
      "jne 2f\n\t"
      "movl %[inside], (%%r10)\n\t"
      "cmpq $0, %P[gate](%%rip)\n\t"
      "jne 1f\n\t"
      "movq %%rbx, 16(%%r11)\n\t"
      "movq %%r11, %%rbx\n\t"
      ".cfi_escape 0x10, 3, 2, 0x73, 16\n\t"  // rbx: at rbx + 16
      "popq 8(%%rbx)\n\t"
      ".cfi_def_cfa_offset 0\n\t"
      ".cfi_escape 0x10, 16, 2, 0x73, 8\n\t"  // the return address: at rbx + 8
      "call *%P[real](%%rip)\n\t"
      "movq (%%rbx), %%r10\n\t"
      "pushq 8(%%rbx)\n\t"
      ".cfi_def_cfa_offset 8\n\t"
      ".cfi_offset %%rip, -8\n\t"
      "movq 16(%%rbx), %%rbx\n\t"
      ".cfi_restore %%rbx\n\t"
      "movl %[outside], (%%r10)\n\t"
      "ret\n"
      "1:\tmovl %[outside], (%%r10)\n"
      "2:\tjmp %P[slowly]"
      :
      : [outside] "i"(static_cast<int32_t>(Inside::kOutside)),
        [inside] "i"(static_cast<int32_t>(Inside::kOutside + 1)), [gate] "i"(&process.gate),
        [real] "i"(&(real.*Member)), [slowly] "i"(Slowly));
}
constexpr bool on_the_stack(size_t arguments) { return arguments > 6; }
#endif

template <auto Function>
struct Gated;
template <class... Arguments, CUresult (*Function)(Arguments...)>
struct Gated<Function> {
  static CUresult call(Arguments... arguments) {
    return call_gated<Function, Arguments...>(arguments...);
  }
};
template <class... Arguments, CUresult (*Real::*Member)(Arguments...)>
struct Gated<Member> {
  static constexpr auto kCall = [](Arguments... passed) { return (real.*Member)(passed...); };
  static CUresult call(Arguments... arguments) {
    return call_gated<kCall, Arguments...>(arguments...);
  }
  static void* entrance() {
#if defined(__x86_64__)
    if constexpr (on_the_stack(sizeof...(Arguments)))
      return as_pointer(&call_in_place<Member, &call_slowly<kCall, Arguments...>>);
#endif
    return as_pointer(&call);
  }
};

// Which hooks are gated: those that touch memory of a card, or take some.
enum Why { allocates, frees, context, sync, launch, query, lookup, share };
constexpr bool is_gated(Why why) { return why != sync && why != query && why != lookup; }
template <auto Function, Why kWhy>
void* parkable_hook() {
  if constexpr (is_gated(kWhy))
    return as_pointer(&Gated<Function>::call);
  else
    return nullptr;
}

const HookRow* cuda_rows(size_t* count) {
  static const HookRow rows[] = {
#define HOOK(name, why)                                                   \
  {#name, as_pointer(&hook_##name), reinterpret_cast<void**>(&real.name), \
   parkable_hook<&hook_##name, why>()},
#define CALL(name) {#name, nullptr, reinterpret_cast<void**>(&real.name), nullptr},
#define NVML_HOOK(name)
#define NVML_CALL(name)
#include "meter/hooks.def"
#undef HOOK
#undef CALL
#undef NVML_HOOK
#undef NVML_CALL
#define GATE(name) \
  {#name, nullptr, reinterpret_cast<void**>(&real.name), Gated<&Real::name>::entrance()},
#define PARK_HOOK(name) \
  {#name, nullptr, reinterpret_cast<void**>(&real.name), as_pointer(&hook_##name)},
#define PARK_GATED(name) \
  {#name, nullptr, reinterpret_cast<void**>(&real.name), as_pointer(&Gated<&hook_##name>::call)},
#define PARK_CALL(name) {#name, nullptr, reinterpret_cast<void**>(&real.name), nullptr},
#include "meter/gates.def"
#undef GATE
#undef PARK_HOOK
#undef PARK_GATED
#undef PARK_CALL
  };
  *count = sizeof(rows) / sizeof(rows[0]);
  return rows;
}

const HookRow* nvml_rows(size_t* count) {
  static const HookRow rows[] = {
#define HOOK(name, why)
#define CALL(name)
#define NVML_HOOK(name) \
  {#name, as_pointer(&hook_##name), reinterpret_cast<void**>(&real_nvml.name), nullptr},
#define NVML_CALL(name) {#name, nullptr, reinterpret_cast<void**>(&real_nvml.name), nullptr},
#include "meter/hooks.def"
#undef HOOK
#undef CALL
#undef NVML_HOOK
#undef NVML_CALL
  };
  *count = sizeof(rows) / sizeof(rows[0]);
  return rows;
}

// Results for names without a function: no driver on this machine, or one that lacks the function.
CUresult no_driver() { return CUDA_ERROR_NO_DEVICE; }
CUresult no_function() { return CUDA_ERROR_NOT_FOUND; }
nvmlReturn_t no_nvml() { return NVML_ERROR_LIBRARY_NOT_FOUND; }
nvmlReturn_t no_nvml_function() { return NVML_ERROR_FUNCTION_NOT_FOUND; }

// ---- finding the file ---------------------------------------------------------------------------

// True if the path names a library other than this one.
bool is_another_library(const char* path) {
  constexpr unsigned kWanted = STATX_TYPE | STATX_INO;
  struct statx theirs {};
  if (abi::look_at(AT_FDCWD, path, 0, kWanted, &theirs) != 0 || !S_ISREG(theirs.stx_mode))
    return false;
  Dl_info info{};
  struct statx ours {};
  if (dladdr(as_pointer(&load_cuda), &info) == 0 ||
      abi::look_at(AT_FDCWD, info.dli_fname, 0, kWanted, &ours) != 0)
    return true;
  return theirs.stx_dev_major != ours.stx_dev_major || theirs.stx_dev_minor != ours.stx_dev_minor ||
         theirs.stx_ino != ours.stx_ino;
}

bool join(char* out, size_t size, const char* folder, const char* name) {
  const size_t a = strlen(folder);
  const size_t b = strlen(name);
  if (a == 0 || a + b + 2 > size) return false;
  memcpy(out, folder, a);
  out[a] = '/';
  memcpy(out + a + 1, name, b + 1);
  return true;
}

// One library of ld.so's cache, format "glibc-ld.so.cache1.1".
struct CacheEntry {
  int32_t flags;
  uint32_t key;
  uint32_t value;
  uint32_t os_version;
  uint64_t hwcap;
};
struct CacheHeader {
  char magic[17];
  char version[3];
  uint32_t count;
  uint32_t string_bytes;
  uint8_t flags;
  uint8_t padding[3];
  uint32_t extension;
  uint32_t unused[3];
};
static_assert(sizeof(CacheHeader) == 48 && sizeof(CacheEntry) == 24);

// Bits of an entry's flags that say "ELF for glibc 2 on this machine".
#if defined(__x86_64__)
constexpr int32_t kCacheFlags = 0x0303;
#elif defined(__aarch64__)
constexpr int32_t kCacheFlags = 0x0a03;
#endif

bool find_in_cache(const char* name, char* out, size_t size) {
  const int fd = abi::open_quietly("/etc/ld.so.cache", O_RDONLY);
  if (fd < 0) return false;
  struct statx info {};
  void* memory = MAP_FAILED;
  if (abi::look_at(fd, "", AT_EMPTY_PATH, STATX_SIZE, &info) == 0 &&
      info.stx_size > sizeof(CacheHeader))
    memory = mmap(nullptr, info.stx_size, PROT_READ, MAP_PRIVATE, fd, 0);
  abi::close_quietly(fd);
  if (memory == MAP_FAILED) return false;
  const size_t bytes = info.stx_size;
  const auto* base = static_cast<const char*>(memory);
  const auto* header = reinterpret_cast<const CacheHeader*>(base);
  bool found = false;
  if (memcmp(header->magic, "glibc-ld.so.cache", 17) == 0 &&
      memcmp(header->version, "1.1", 3) == 0 &&
      header->count < (bytes - sizeof(CacheHeader)) / sizeof(CacheEntry)) {
    const auto* entries = reinterpret_cast<const CacheEntry*>(base + sizeof(CacheHeader));
    for (uint32_t i = 0; i < header->count && !found; ++i) {
      const CacheEntry& entry = entries[i];
      if ((entry.flags & 0xffff) != kCacheFlags || entry.key >= bytes || entry.value >= bytes)
        continue;
      if (strncmp(base + entry.key, name, bytes - entry.key) != 0) continue;
      const size_t length = strnlen(base + entry.value, bytes - entry.value);
      if (length == 0 || length >= size || entry.value + length >= bytes) continue;
      memcpy(out, base + entry.value, length + 1);
      found = is_another_library(out);
    }
  }
  munmap(memory, bytes);
  return found;
}

// The search path of ld.so for this process: the part from LD_LIBRARY_PATH, or with `defaults` the
// built-in part.
bool find_in_search_path(const char* name, bool defaults, char* out, size_t size) {
  Dl_info self{};
  if (dladdr(as_pointer(&load_cuda), &self) == 0) return false;
  void* handle = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  bool found = false;
  Dl_serinfo need{};
  if (dlinfo(handle, RTLD_DI_SERINFOSIZE, &need) == 0) {
    const size_t bytes = (need.dls_size + 4095) & ~size_t{4095};
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
      auto* info = static_cast<Dl_serinfo*>(memory);
      info->dls_size = need.dls_size;
      info->dls_cnt = need.dls_cnt;
      if (dlinfo(handle, RTLD_DI_SERINFO, info) == 0) {
        constexpr unsigned kFromEnvironment = 0x02;  // LA_SER_LIBPATH
        for (unsigned i = 0; i < info->dls_cnt && !found; ++i) {
          const Dl_serpath& entry = info->dls_serpath[i];
          if (((entry.dls_flags & kFromEnvironment) == 0) != defaults) continue;
          found = join(out, size, entry.dls_name, name) && is_another_library(out);
        }
      }
      munmap(memory, bytes);
    }
  }
  dlclose(handle);
  return found;
}

bool find_library(const char* name, char* out, size_t size) {
  return find_in_search_path(name, false, out, size) || find_in_cache(name, out, size) ||
         find_in_search_path(name, true, out, size);
}

// ---- loading ------------------------------------------------------------------------------------

constinit std::atomic<int> cuda_state{0};  // 0 not tried, 1 loaded, 2 not there
constinit std::atomic<int> nvml_state{0};

// The driver's pointers of the hooked functions: open addressing, filled once before cuda_state is
// set.
constexpr size_t kHookSlots = 1024;
struct HookSlot {
  void* driver;
  void* hook;
};
constinit HookSlot hook_slots[kHookSlots] = {};

size_t hook_home(void* driver) {
  return (reinterpret_cast<uintptr_t>(driver) * 0x9e3779b97f4a7c15ull >> 32) % kHookSlots;
}

void remember_hook(void* driver, void* hook) {
  size_t at = hook_home(driver);
  while (hook_slots[at].driver != nullptr && hook_slots[at].driver != driver)
    at = (at + 1) % kHookSlots;
  if (hook_slots[at].driver == nullptr) hook_slots[at] = {driver, hook};
}

// Ascending and without duplicates, as find_name() needs.
template <size_t Count>
constexpr bool is_sorted(const char* const (&names)[Count]) {
  for (size_t i = 1; i < Count; ++i) {
    const char* a = names[i - 1];
    const char* b = names[i];
    for (; *a != 0 && *a == *b; ++a, ++b) {
    }
    if (static_cast<unsigned char>(*a) >= static_cast<unsigned char>(*b)) return false;
  }
  return true;
}
static_assert(is_sorted(kCudaNames) && is_sorted(kNvmlNames));

// The position of a name among sorted names, or `count`.
size_t find_name(const char* const* names, size_t count, const char* name) {
  size_t low = 0;
  size_t high = count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (strcmp(names[middle], name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && strcmp(names[low], name) == 0 ? low : count;
}

// Each target is stored once and final: other threads jump through it as soon as it is there. Every
// process pays for this at its start, so each hook looks for its name, not each name for its hook.
// cudart keeps pointers, so whether a process is parkable is decided here, once.
void* hook_of(const HookRow& row, bool gates) {
  if (is_left_out(row.name)) return nullptr;
  return gates && row.parkable != nullptr ? row.parkable : row.hook;
}

template <size_t Count>
void fill_targets(void** targets, const char* const (&names)[Count], void* library, void* missing,
                  const HookRow* rows, size_t row_count, bool gates) {
  void* hooks[Count] = {};
  for (size_t r = 0; r < row_count; ++r) {
    const size_t at = find_name(names, Count, rows[r].name);
    if (at < Count) hooks[at] = hook_of(rows[r], gates);
  }
  for (size_t i = 0; i < Count; ++i) {
    void* target = library != nullptr ? dlsym(library, names[i]) : nullptr;
    if (target == nullptr)
      target = missing;
    else if (hooks[i] != nullptr)
      target = hooks[i];
    __atomic_store_n(&targets[i], target, __ATOMIC_RELEASE);
  }
}

void* open_library(const char* name) {
  char path[4096];
  if (!find_library(name, path, sizeof(path))) return nullptr;
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

bool load_cuda() {
  const int seen = cuda_state.load(std::memory_order_acquire);
  if (seen != 0) return seen == 1;
  const int saved = errno;
  empty_in_children();
  {
    Locked locked(process.load_lock);
    if (cuda_state.load() == 0) {
      void* library = open_library("libcuda.so.1");
      const bool gates = gates_wanted();
      size_t row_count = 0;
      const HookRow* rows = cuda_rows(&row_count);
      for (size_t r = 0; library != nullptr && r < row_count; ++r) {
        *rows[r].real = dlsym(library, rows[r].name);
        if (*rows[r].real != nullptr && hook_of(rows[r], gates) != nullptr)
          remember_hook(*rows[r].real, hook_of(rows[r], gates));
      }
      fill_targets(mete_cuda_targets, kCudaNames, library,
                   library != nullptr ? as_pointer(&no_function) : as_pointer(&no_driver), rows,
                   row_count, gates);
      cuda_state.store(library != nullptr ? 1 : 2, std::memory_order_release);
    }
  }
  errno = saved;
  return cuda_state.load() == 1;
}

bool load_nvml() {
  const int seen = nvml_state.load(std::memory_order_acquire);
  if (seen != 0) return seen == 1;
  const int saved = errno;
  empty_in_children();
  {
    Locked locked(process.load_lock);
    if (nvml_state.load() == 0) {
      void* library = open_library("libnvidia-ml.so.1");
      size_t row_count = 0;
      const HookRow* rows = nvml_rows(&row_count);
      for (size_t r = 0; library != nullptr && r < row_count; ++r)
        *rows[r].real = dlsym(library, rows[r].name);
      fill_targets(mete_nvml_targets, kNvmlNames, library,
                   library != nullptr ? as_pointer(&no_nvml_function) : as_pointer(&no_nvml), rows,
                   row_count, false);
      nvml_state.store(library != nullptr ? 1 : 2, std::memory_order_release);
    }
  }
  errno = saved;
  return nvml_state.load() == 1;
}

void* find_anywhere(const char* name) { return dlsym(RTLD_DEFAULT, name); }

void* hook_for(void* driver_function) {
  for (size_t at = hook_home(driver_function); hook_slots[at].driver != nullptr;
       at = (at + 1) % kHookSlots)
    if (hook_slots[at].driver == driver_function) return hook_slots[at].hook;
  return nullptr;
}

}  // namespace mete::meter

// Called by forward.S for the first use of an exported name.
void* mete_resolve(void** slot) {
  using namespace mete::meter;
  if (slot >= mete_nvml_targets && slot < mete_nvml_targets + kNvmlCount)
    load_nvml();
  else
    load_cuda();
  return __atomic_load_n(slot, __ATOMIC_ACQUIRE);
}
