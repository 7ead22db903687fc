// SPDX-License-Identifier: Apache-2.0
// Runs every allocation path (fill.h) with the functions of one way into the driver: one row, and
// one more for each path that failed. Run it inside a small cap, since managed memory and the
// 32-bit interface of CUDA 3.1 are among the paths:   mete cap --gpu 1G -- ways WAY
//   libcuda.so.1, libcuda.so   dlopen of that name, and dlsym
//   default                    dlsym(RTLD_DEFAULT) after dlopen with RTLD_GLOBAL
//   gpa FLAGS, gpa2 FLAGS      cuGetProcAddress and cuGetProcAddress_v2, at every version
//   gpa-self FLAGS             what cuGetProcAddress_v2 answers when asked for itself
// Built with GPU_LINKED (against a stub of libcuda.so.1):
//   linked, next, noload       the linked functions; dlsym(RTLD_NEXT); dlopen with RTLD_NOLOAD
// Built as a library: ways_run(way, lookup), for ctypes (ways.py).
// At most versions cuGetProcAddress answers with the same functions as at others; a set of
// functions that was filled once is not filled again, its verdicts count for each version.
#include "tests/gpu/ways.h"

#include <map>

#include "tests/gpu/fill.h"

using namespace gpu;

namespace {

std::vector<void*> functions() {
  std::vector<void*> all;
#define X(name) all.push_back(reinterpret_cast<void*>(cu.name));
  GPU_FUNCTIONS(X)
#undef X
  return all;
}

struct Tally {
  int passed = 0, all = 0;
  std::string not_offered;
  void refuse(const std::string& name) { not_offered += (not_offered.empty() ? "" : ", ") + name; }
  void add(const Tally& other) {
    passed += other.passed, all += other.all;
    not_offered = other.not_offered;
  }
};

void run_case(const Case& c, const std::string& way, Tally* tally) {
  subject = way + ": " + c.name;
  const Verdict v = fill(c);
  if (c.old && !v.had_some) {
    tally->refuse(c.name);
    return;
  }
  tally->all++;
  if (v.good)
    tally->passed++;
  else
    check(false, subject, v.words);
}

// All paths with the functions that cu holds. The interface of CUDA 3.1 works in contexts of its
// own cuCtxCreate alone, and two contexts are too much for a small grant.
Tally run_paths(const std::string& way) {
  Tally tally;
  subject = way;
  must(begin(), "start");
  if (memory().total != grant()) die("advertises " + mib(memory().total) + " in all");
  for (const Case& c : cases())
    if (!c.old) run_case(c, way, &tally);
  subject = way + ": contexts";
  must(cu.cuDevicePrimaryCtxRelease_v2(device), "cuDevicePrimaryCtxRelease");
  CUcontext old = nullptr;
  unsigned free = 0, all = 0;
  CUresult r = cu.cuCtxCreate(&old, 0, device);
  if (r == CUDA_SUCCESS) r = cu.cuMemGetInfo(&free, &all);
  if (r == CUDA_SUCCESS && all != grant()) die("CUDA 3.1 advertises " + mib(all) + " in all");
  for (const Case& c : cases()) {
    if (!c.old) continue;
    if (r == CUDA_SUCCESS)
      run_case(c, way, &tally);
    else
      tally.refuse(c.name);
  }
  if (old) must(cu.cuCtxDestroy(old), "cuCtxDestroy of CUDA 3.1");
  return tally;
}

int report(const std::string& way, const Tally& tally, const std::string& more) {
  // Drivers let go of CUDA 3.1 by and by; the simulated one offers all of it.
  if (!tally.not_offered.empty() && getenv("METE_SIM"))
    check(false, way, "refuses " + tally.not_offered);
  else if (!tally.not_offered.empty())
    info(way + ": this driver does not offer", tally.not_offered);
  check(tally.passed == tally.all && tally.all > 0, way,
        text("%d of %d paths%s", tally.passed, tally.all, more.c_str()));
  return failures ? 1 : 0;
}

int run_lookup(const std::string& way, const Lookup& lookup) {
  subject = way;
  resolve(lookup);
  return report(way, run_paths(way), "");
}

int run_versions(const std::string& way, const Ask& ask, cuuint64_t flags) {
  std::map<std::vector<void*>, Tally> filled;
  Tally sum;
  const std::vector<int> all = versions(ask, flags);
  for (const int version : all) {
    subject = way + text(", version %d", version);
    resolve(at_version(ask, version, flags));
    const std::vector<void*> set = functions();
    if (!filled.count(set)) filled[set] = run_paths(std::string(subject));
    sum.add(filled[set]);
  }
  return report(way, sum,
                text(" x versions (%zu versions, %d to %d; %zu different sets of functions)",
                     all.size(), all.front(), all.back(), filled.size()));
}

#ifndef GPU_LIBRARY
#ifdef GPU_LINKED
Lookup linked() {
  return [](const char* symbol) -> void* {
#define X(name) \
  if (strcmp(symbol, #name) == 0) return reinterpret_cast<void*>(&::name);
    GPU_FUNCTIONS(X)
#undef X
    return nullptr;
  };
}

int run_way(const std::string& way, cuuint64_t) {
  if (way == "linked") return run_lookup("linked", linked());
  if (way == "next") return run_lookup("dlsym RTLD_NEXT", dlsym_in(RTLD_NEXT));
  if (way != "noload") die("no such way: " + way);
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) die("libcuda.so.1 is linked and not loaded");
  return run_lookup("dlopen RTLD_NOLOAD", dlsym_in(library));
}
#else
int run_way(const std::string& way, cuuint64_t flags) {
  if (way == "libcuda.so.1" || way == "libcuda.so")
    return run_lookup("dlopen " + way, dlsym_in(open_driver(way.c_str())));
  void* library = open_driver("libcuda.so.1");
  if (way == "default") {
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) die("dlopen with RTLD_GLOBAL");
    return run_lookup("dlsym RTLD_DEFAULT", dlsym_in(RTLD_DEFAULT));
  }
  const std::string suffix = text(", flags %d", static_cast<int>(flags));
  void* second = dlsym(library, "cuGetProcAddress_v2");
  if (way == "gpa")
    return run_versions("cuGetProcAddress" + suffix, ask_first(dlsym(library, "cuGetProcAddress")),
                        flags);
  if (way == "gpa2") return run_versions("cuGetProcAddress_v2" + suffix, ask_second(second), flags);
  if (way != "gpa-self") die("no such way: " + way);
  return run_versions("cuGetProcAddress, found by itself" + suffix,
                      ask_second(ask_second(second)("cuGetProcAddress", 12000, flags)), flags);
}
#endif
#endif

void need_small_cap() {
  if (grant() > kGiB) die("run me inside a small cap: mete cap --gpu 1G -- ways WAY");
}

}  // namespace

#ifdef GPU_LIBRARY
extern "C" int ways_run(const char* way, void* (*lookup)(const char* symbol)) {
  need_small_cap();
  return run_lookup(way, lookup);
}
#else
int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) die("usage: ways WAY [FLAGS]");
  need_small_cap();
  return run_way(argv[1], argc == 3 ? strtoull(argv[2], nullptr, 10) : 0);
}
#endif
