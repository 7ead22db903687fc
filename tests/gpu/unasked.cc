// SPDX-License-Identifier: Apache-2.0
// What the driver takes without being asked for memory is charged too: contexts and stack limits
// before they are made, module globals within a second.
//   mete cap --gpu 8G -- unasked            contexts, stack limit, a 512 MiB global
//   mete cap --gpu 256M -- unasked no-room  a context that does not fit is refused with code 2
#include <poll.h>

#include "tests/gpu/gpu.h"

using namespace gpu;

namespace {

void second_context() {
  const size_t before = memory().free;
  CUcontext extra = nullptr;
  must(cu.cuCtxCreate_v2(&extra, 0, device), "cuCtxCreate");
  const size_t cost = before - memory().free;
  check(cost >= 256 * kMiB && cost <= kGiB, "a second context is charged at once", mib(cost));
  must(cu.cuCtxDestroy_v2(extra), "cuCtxDestroy");
  must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const size_t after = memory().free;
  check(after + 16 * kMiB >= before, "  and given back with it",
        mib(before - after) + " still charged");
}

// The first context of a process brings a reserve; it stays until the last one ends, in whatever
// order they do. What lived in a context ends with it.
void contexts_end_in_any_order() {
  CUcontext extra = nullptr;
  must(cu.cuCtxCreate_v2(&extra, 0, device), "cuCtxCreate");
  const size_t total = memory().total, both = total - memory().free;
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR desc{};
  desc.Width = desc.Height = 1024;
  desc.Format = CU_AD_FORMAT_FLOAT;
  desc.NumChannels = 4;
  CUdeviceptr large = 0, small = 0;
  must(cu.cuArrayCreate_v2(&array, &desc), "cuArrayCreate");
  must(cu.cuMemAlloc_v2(&large, 64 * kMiB), "cuMemAlloc");
  must(cu.cuMemAlloc_v2(&small, 512), "cuMemAlloc");
  must(cu.cuDevicePrimaryCtxRelease_v2(device), "cuDevicePrimaryCtxRelease");
  must(cu.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const size_t again = total - memory().free;
  // A further context may cost a few MiB more than the first did.
  check(again >= both + 82 * kMiB && again <= both + 98 * kMiB,
        "the first of two contexts ends and comes back: the books are the same",
        text("%s, before %s and 82 MiB of blocks", mib(again).c_str(), mib(both).c_str()));
  must(cu.cuCtxDestroy_v2(extra), "cuCtxDestroy");
  must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const size_t alone = total - memory().free;
  check(both > alone && both - alone >= 256 * kMiB && both - alone <= kGiB,
        "a context ends with its blocks and arrays", mib(alone));
}

void contexts_end_at_the_grant() {
  std::vector<CUcontext> all;
  CUresult r = CUDA_SUCCESS;
  while (all.size() < 64 && r == CUDA_SUCCESS) {
    CUcontext extra = nullptr;
    r = cu.cuCtxCreate_v2(&extra, 0, device);
    if (r == CUDA_SUCCESS) all.push_back(extra);
  }
  check(r == CUDA_ERROR_OUT_OF_MEMORY, "contexts end at the grant",
        text("%zu more, then %s", all.size(), error_name(r).c_str()));
  for (const CUcontext c : all) must(cu.cuCtxDestroy_v2(c), "cuCtxDestroy");
  must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

void global() {
  const char* ptx =
      ".version 6.0\n.target sm_50\n.address_size 64\n"
      ".visible .global .align 4 .b8 big[536870912];\n.visible .entry k() { ret; }\n";
  const size_t before = memory().free;
  CUmodule module = nullptr;
  must(cu.cuModuleLoadData(&module, ptx), "cuModuleLoadData");
  const double begin = now_s();
  pollfd nothing{-1, 0, 0};
  while (before - memory().free < 448 * kMiB && now_s() < begin + 10) poll(&nothing, 0, 5);
  const double waited = now_s() - begin;
  const size_t cost = before - memory().free;
  // 60 MiB of it fit into the reserve that each process holds back.
  check(cost >= 448 * kMiB && waited < 1.5, "a 512 MiB module global is charged within 1 s",
        text("%s after %.2f s", mib(cost).c_str(), waited));
  must(cu.cuModuleUnload(module), "cuModuleUnload");
}

void stacks() {
  const size_t before = memory().free;
  const CUresult small = cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16 * kKiB);
  const size_t cost = before - memory().free;
  check(small == CUDA_SUCCESS && cost >= 2 * kGiB, "a stack limit of 16 KiB is charged at once",
        mib(cost) + ", " + error_name(small));
  const CUresult large = cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 256 * kKiB);
  check(large == CUDA_ERROR_OUT_OF_MEMORY, "a stack limit that does not fit is refused",
        error_name(large));
}

}  // namespace

int main(int argc, char** argv) {
  if (grant() == kNothing) die("run me inside a cap: mete cap --gpu 8G -- unasked");
  if (argc == 2 && !strcmp(argv[1], "no-room")) {
    const CUresult r = try_start();
    check(r == CUDA_ERROR_OUT_OF_MEMORY, "a context that does not fit is refused", error_name(r));
    return failures ? 1 : 0;
  }
  start();
  second_context();
  contexts_end_in_any_order();
  contexts_end_at_the_grant();
  global();
  stacks();
  return failures ? 1 : 0;
}
