// SPDX-License-Identifier: Apache-2.0
// Every way in which programs find the driver's functions, each a Lookup: from the exported name of
// a function (cuMemAlloc_v2) to its address.
//
// cuGetProcAddress knows plain names and versions instead (src/abi/cuda_symbols.def). Asked at a
// version, a function is looked up at that version if the plain name means this function there, and
// at the version that first means it otherwise: programs ask for each function with the version
// whose prototype they were compiled with.
#pragma once

#include <algorithm>

#include "tests/gpu/gpu.h"

namespace gpu {

struct Versioned {
  const char* name;
  int version;
  bool per_thread;
  const char* symbol;
};

inline const std::vector<Versioned>& versioned() {
  static const std::vector<Versioned> all = {
#define CUDA_VERSIONED(name, version, per_thread, symbol) \
  {#name, version, per_thread != 0, #symbol},
#include "abi/cuda_symbols.def"
  };
  return all;
}

// From where a plain name means this symbol up to, not including, where it means another one.
struct Meaning {
  const char* name = nullptr;
  int first = 0, end = 0;
  bool per_thread = false;
};
inline Meaning meaning(const std::string& symbol) {
  Meaning m;
  for (const Versioned& v : versioned())
    if (symbol == v.symbol) m = {v.name, v.version, 1 << 30, v.per_thread};
  if (!m.name) die("cuda_symbols.def has no " + symbol);
  for (const Versioned& v : versioned()) {
    if (std::string(m.name) == v.name && v.per_thread == m.per_thread && v.version > m.first)
      m.end = std::min(m.end, v.version);
  }
  return m;
}

// One of the two entry points as one function: null where it says that there is none. The first
// reports that by an error, the second by its status.
using Ask = std::function<void*(const char* name, int version, cuuint64_t flags)>;

inline Ask ask_first(void* entry) {
  const auto get = reinterpret_cast<decltype(&::cuGetProcAddress)>(entry);
  if (!get) die("no cuGetProcAddress");
  return [get](const char* name, int version, cuuint64_t flags) {
    void* found = nullptr;
    const CUresult r = get(name, &found, version, flags);
    if ((r == CUDA_SUCCESS) != (found != nullptr))
      die(text("cuGetProcAddress %s %d: answered %d with %p", name, version, r, found));
    return found;
  };
}
inline Ask ask_second(void* entry) {
  const auto get = reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(entry);
  if (!get) die("no cuGetProcAddress_v2");
  return [get](const char* name, int version, cuuint64_t flags) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    must(get(name, &found, version, flags, &status), name);
    if ((status == CU_GET_PROC_ADDRESS_SUCCESS) != (found != nullptr))
      die(text("cuGetProcAddress_v2 %s %d: status %d with %p", name, version, status, found));
    return found;
  };
}

// All versions at which some name of ours means something new, and the driver's own.
inline std::vector<int> versions(const Ask& ask, cuuint64_t flags) {
  const auto ask_driver =
      reinterpret_cast<decltype(&::cuDriverGetVersion)>(ask("cuDriverGetVersion", 2020, flags));
  int newest = 0;
  must(ask_driver ? ask_driver(&newest) : CUDA_ERROR_NOT_FOUND, "cuDriverGetVersion");
  std::vector<int> all = {newest};
  for (const Versioned& v : versioned()) {
#define X(function) \
  if (std::string(#function) == v.symbol && v.version < newest) all.push_back(v.version);
    GPU_FUNCTIONS(X)
#undef X
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// The version that first has a per-thread variant of this function; `first` when it never got one.
// With flag 2 the driver offers a function that has one from there on only.
inline int first_per_thread(const Meaning& m) {
  int first = 1 << 30;
  for (const Versioned& v : versioned())
    if (v.per_thread && std::string(m.name) == v.name && v.version >= m.first && v.version < m.end)
      first = std::min(first, v.version);
  return first == 1 << 30 ? m.first : first;
}

inline Lookup at_version(const Ask& ask, int version, cuuint64_t flags) {
  return [=](const char* symbol) {
    Meaning m = meaning(symbol);
    if (flags == 2) m.first = first_per_thread(m);
    // The exported per-thread variants have no plain name of their own: flag 2 means them.
    const cuuint64_t asked = m.per_thread ? cuuint64_t{2} : flags;
    return ask(m.name, version >= m.first && version < m.end ? version : m.first, asked);
  };
}

}  // namespace gpu
