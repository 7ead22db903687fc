// SPDX-License-Identifier: Apache-2.0
// What the parts of park_program share: calls into the driver that must succeed, blocks with known
// bytes.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "abi/cuda_card.h"
#include "tests/support/driver_calls.h"

namespace park_program {

// Looked up once: name_(...) is the call itself.
#define FOUND(name) static auto* const name##_ = CU(name)
#define CALL(name, ...)                                                                           \
  do {                                                                                            \
    FOUND(name);                                                                                  \
    if (const CUresult result = name##_(__VA_ARGS__); result != CUDA_SUCCESS) die(#name, result); \
  } while (false)

[[noreturn]] inline void die(const char* what, int result) {
  std::fprintf(stderr, "%s: %d\n", what, result);
  std::exit(4);
}
inline void expect(bool good, const char* what) {
  if (!good) die(what, -1);
}

inline CUcontext begin() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CALL(cuInit, 0);
  CALL(cuDeviceGet, &device, 0);
  CALL(cuDevicePrimaryCtxRetain, &context, device);
  CALL(cuCtxSetCurrent, context);
  return context;
}

inline bool is_there(const char* file) {
  struct stat info {};
  return stat(file, &info) == 0;
}
inline void say_up() { std::fprintf(stderr, "up\n"); }
inline void wait_for(const char* file) {
  while (!is_there(file)) usleep(1000);
}

struct Block {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  std::uint32_t last = 0;
};

inline Block make_block(size_t bytes, std::uint32_t value) {
  Block block{0, bytes, value};
  CALL(cuMemAlloc_v2, &block.address, bytes);
  CALL(cuMemsetD32_v2, block.address, value, bytes / 4);
  CUdeviceptr base = 0;
  size_t size = 0;
  CALL(cuMemGetAddressRange_v2, &base, &size, block.address + bytes / 2);
  expect(base == block.address && size == bytes, "the range of a block");
  return block;
}
inline void look_at(const Block& block) {
  std::vector<std::uint32_t> bytes(block.bytes / 4);
  CALL(cuMemcpyDtoH_v2, bytes.data(), block.address, block.bytes / 4 * 4);
  for (const std::uint32_t word : bytes) expect(word == block.last, "a byte has changed");
}

// The result of a call that may fail.
#define ANSWER(name, ...) (CU(name)(__VA_ARGS__))

int vmm(const char* file);
int vmm_work(int ms, int threads);
int ipc(const char* folder);

}  // namespace park_program
