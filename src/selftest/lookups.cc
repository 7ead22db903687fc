// SPDX-License-Identifier: Apache-2.0
// Every way in which programs find the driver's functions: the function that they get must charge.
#include <dlfcn.h>

#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

constexpr int kCuda12 = 12000;

// Allocates and frees through functions that were found in some way.
void try_pair(Check& check, void* allocate, void* release) {
  if (!check.that(allocate != nullptr && release != nullptr, "both found")) return;
  const Ledger& books = Ledger::of_this_job();
  const std::uint64_t before = books.charged();
  CUdeviceptr block = 0;
  if (!check.did(as_function<decltype(::cuMemAlloc_v2)>(allocate)(&block, kGranule),
                 "cuMemAlloc through it"))
    return;
  check.equal("2 MiB asked, charged", books.charged() - before, kGranule);
  (void)as_function<decltype(::cuMemFree_v2)>(release)(block);
  check.equal("after the free", books.charged() - before, 0);
}

void by_name(const char* file) {
  Check check(kRoads, std::string("dlopen ") + file);
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!check.that(library != nullptr, std::string(file) + " opened")) return;
  try_pair(check, dlsym(library, "cuMemAlloc_v2"), dlsym(library, "cuMemFree_v2"));
}

void by_default() {
  Check check(kRoads, "dlsym RTLD_DEFAULT");
  try_pair(check, dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), dlsym(RTLD_DEFAULT, "cuMemFree_v2"));
}

void already_loaded() {
  Check check(kRoads, "dlopen RTLD_NOLOAD");
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!check.that(library != nullptr, "libcuda.so.1 is loaded")) return;
  try_pair(check, dlsym(library, "cuMemAlloc_v2"), dlsym(library, "cuMemFree_v2"));
}

// Flags: 0 default, 1 legacy streams, 2 per-thread streams.
void by_proc_address_v1(cuuint64_t flags) {
  Check check(kRoads, "cuGetProcAddress");
  check.note("flags " + std::to_string(flags));
  void* allocate = nullptr;
  void* release = nullptr;
  const auto find = CU(cuGetProcAddress);
  if (check.did(find("cuMemAlloc", &allocate, kCuda12, flags)) &&
      check.did(find("cuMemFree", &release, kCuda12, flags)))
    try_pair(check, allocate, release);
}

void by_proc_address_v2(decltype(::cuGetProcAddress_v2)* find, int version, cuuint64_t flags,
                        const char* note) {
  Check check(kRoads, "cuGetProcAddress_v2");
  check.note("version " + std::to_string(version) + ", flags " + std::to_string(flags) + note);
  void* allocate = nullptr;
  void* release = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (check.did(find("cuMemAlloc", &allocate, version, flags, &status)) &&
      check.did(find("cuMemFree", &release, version, flags, nullptr)) &&
      check.equal("status", static_cast<std::uint64_t>(status), CU_GET_PROC_ADDRESS_SUCCESS))
    try_pair(check, allocate, release);
}

// A per-thread variant must stay one: flag 2 must return the exported cuMemAllocAsync_ptsz.
void per_thread() {
  Check check(kRoads, "cuGetProcAddress_v2");
  void* plain = nullptr;
  void* thread = nullptr;
  const auto find = CU(cuGetProcAddress_v2);
  if (!check.did(find("cuMemAllocAsync", &plain, kCuda12, 1, nullptr)) ||
      !check.did(find("cuMemAllocAsync", &thread, kCuda12, 2, nullptr)))
    return;
  check.that(plain != nullptr && thread != nullptr && plain != thread,
             "cuMemAllocAsync of flags 1 and 2 are two functions");
}

}  // namespace

void check_lookups(const Task&) {
  (void)start();
  by_name("libcuda.so.1");
  by_name("libcuda.so");
  by_default();
  already_loaded();
  for (const cuuint64_t flags : {0, 1, 2}) by_proc_address_v1(flags);
  const auto find = CU(cuGetProcAddress_v2);
  for (const cuuint64_t flags : {0, 1, 2}) by_proc_address_v2(find, kCuda12, flags, "");
  by_proc_address_v2(find, 3020, 0, "");
  // The look-up function looked up through itself, as runtimes do.
  void* again = nullptr;
  if (find("cuGetProcAddress", &again, kCuda12, 0, nullptr) == CUDA_SUCCESS && again != nullptr)
    by_proc_address_v2(as_function<decltype(::cuGetProcAddress_v2)>(again), kCuda12, 0,
                       ", found through itself");
  per_thread();
}

}  // namespace mete::selftest
