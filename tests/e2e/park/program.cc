// SPDX-License-Identifier: Apache-2.0
// An ordinary program of the driver API that knows nothing of parking, and reports anything that is
// not as it was: bytes, addresses, errors.
//
// park_program MODE...:
//   uuid                    prints the first card's
//   work MS THREADS BLOCKS  blocks of many sizes, written and read all the time
//   launch MS THREADS       kernels whose arguments lie on the stack, while it is unwound
//   hold FILE BYTES         holds BYTES until FILE is there, then checks each byte
//   many COUNT BYTES FILE   many equal blocks, likewise
//   capture FILE            a stream is being captured until FILE is there
//   capturelater FILE       begins to capture a stream when FILE is there
//   late FILE               its first call into the driver comes when FILE is there
//   managed FILE            holds managed memory until FILE is there
//   vmm FILE                virtual memory of its own: mapped twice, released, exported
//   vmmwork MS THREADS      makes and gives back virtual memory all the time
//   ipc FOLDER              two of it share blocks, see program_ipc.cc
//   callback FILE           work on the card waits for a host function, and that for a call into
//                           the driver by another thread
#include "tests/e2e/park/program.h"

#include <unwind.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

using namespace park_program;

namespace {

int work(int ms, int threads, int blocks) {
  const CUcontext context = begin();
  static constexpr size_t kSizes[] = {512, 4096, 100'000, 1 << 20, 3 << 20, 20 << 20, 40 << 20};
  std::atomic<long> steps{0};
  std::vector<std::thread> all;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      CALL(cuCtxSetCurrent, context);
      std::vector<Block> mine;
      std::uint32_t value = static_cast<std::uint32_t>(t) << 24;
      for (int i = 0; i < blocks; ++i)
        mine.push_back(make_block(kSizes[static_cast<size_t>(i) % std::size(kSizes)], ++value));
      if (t == 0) say_up();
      for (size_t i = 0; std::chrono::steady_clock::now() < end; ++i) {
        Block& block = mine[i % mine.size()];
        look_at(block);
        block.last = ++value;
        CALL(cuMemsetD32_v2, block.address, block.last, block.bytes / 4);
        if (i % 7 == 0) {
          CALL(cuMemFree_v2, block.address);
          block = make_block(block.bytes, ++value);
        }
        steps.fetch_add(1);
      }
      for (const Block& block : mine) look_at(block);
    });
  for (std::thread& one : all) one.join();
  std::fprintf(stderr, "steps %ld\n", steps.load());
  return 0;
}

// A profiler, debugger or exception that unwinds the stack at any moment finds the caller of the
// driver.
std::atomic<long> looks{0};
std::atomic<long> lost{0};
std::atomic<long> within{0};  // looks inside a call
// A thread that has not begun or has ended its launches has no such caller: on a busy machine a
// signal reaches it that late.
thread_local volatile bool launching = false;

[[gnu::noinline]] long launch_often(CUfunction function, CUdeviceptr word,
                                    std::chrono::steady_clock::time_point end) {
  FOUND(cuLaunchKernel);
  static thread_local volatile long launched = 0;
  launching = true;
  while (std::chrono::steady_clock::now() < end) {
    CUdeviceptr address = word;
    std::uint32_t value = static_cast<std::uint32_t>(launched + 1);
    std::uint64_t count = 1;
    void* arguments[] = {&address, &count, &value};
    if (cuLaunchKernel_(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr) !=
        CUDA_SUCCESS)
      die("cuLaunchKernel", 0);
    launched = launched + 1;
  }
  launching = false;
  return launched;
}

void look_through(int) {
  if (!launching) return;
  struct Seen {
    bool caller = false;
    int frames = 0;
  } seen;
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* argument) {
        auto* const found = static_cast<Seen*>(argument);
        void* const function =
            _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(_Unwind_GetIP(frame)));
        found->caller |= function == reinterpret_cast<void*>(&launch_often);
        if (!found->caller) found->frames += 1;
        return _URC_NO_REASON;
      },
      &seen);
  looks.fetch_add(1);
  if (!seen.caller) lost.fetch_add(1);
  if (seen.caller && seen.frames > 3)
    within.fetch_add(1);  // more than this function and the signal's
}

int launch(int ms, int threads) {
  const CUcontext context = begin();
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CALL(cuModuleLoadData, &module, "simgpu-module 1\nkernel fill\n");
  CALL(cuModuleGetFunction, &function, module, "fill");
  std::atomic<long> launched{0};
  std::signal(SIGUSR1, look_through);
  std::vector<std::thread> all;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      CALL(cuCtxSetCurrent, context);
      Block block = make_block(4, 0);
      const long mine = launch_often(function, block.address, end);
      sigset_t quiet;
      sigfillset(&quiet);
      pthread_sigmask(SIG_BLOCK, &quiet, nullptr);
      CALL(cuCtxSynchronize);
      block.last = static_cast<std::uint32_t>(mine);
      look_at(block);
      launched.fetch_add(mine);
    });
  usleep(100'000);
  say_up();
  while (std::chrono::steady_clock::now() < end - std::chrono::milliseconds(100)) {
    for (std::thread& one : all) pthread_kill(one.native_handle(), SIGUSR1);
    usleep(1000);
  }
  for (std::thread& one : all) one.join();
  std::fprintf(stderr, "launched %ld looks %ld within %ld lost %ld\n", launched.load(),
               looks.load(), within.load(), lost.load());
  expect(launched > 0 && within > 0 && lost == 0, "unwinding the stack");
  return 0;
}

int many(size_t count, size_t bytes, const char* file) {
  begin();
  const auto began = std::chrono::steady_clock::now();
  std::vector<Block> blocks;
  for (size_t i = 0; i < count; ++i)
    blocks.push_back(make_block(bytes, static_cast<std::uint32_t>(i + 1)));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  size_t free = 0;
  size_t total = 0;
  CALL(cuMemGetInfo_v2, &free, &total);
  std::fprintf(stderr, "took %.3f s, %zu of %zu free\n", took.count(), free, total);
  say_up();
  wait_for(file);
  for (const Block& block : blocks) look_at(block);
  CALL(cuMemGetInfo_v2, &free, &total);
  for (const Block& block : blocks) CALL(cuMemFree_v2, block.address);
  size_t after = 0;
  CALL(cuMemGetInfo_v2, &after, &total);
  expect(after >= free + count * bytes / 2, "what was freed is free");
  return 0;
}

// On every card that it sees, with different bytes on each.
int cards(size_t bytes, const char* file) {
  begin();
  int count = 0;
  CALL(cuDeviceGetCount, &count);
  std::vector<CUcontext> contexts(static_cast<size_t>(count));
  std::vector<Block> blocks;
  for (int i = 0; i < count; ++i) {
    CUcontext& context = contexts[static_cast<size_t>(i)];
    CALL(cuDevicePrimaryCtxRetain, &context, i);
    CALL(cuCtxSetCurrent, context);
    blocks.push_back(make_block(bytes, static_cast<std::uint32_t>(i + 1)));
    blocks.push_back(make_block(bytes / 2, static_cast<std::uint32_t>(i + 101)));
  }
  std::fprintf(stderr, "%d cards\n", count);
  say_up();
  wait_for(file);
  for (size_t i = 0; i < blocks.size(); ++i) {
    CALL(cuCtxSetCurrent, contexts[i / 2]);
    look_at(blocks[i]);
  }
  return 0;
}

int capture(const char* file) {
  begin();
  const Block block = make_block(1 << 20, 5);
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CALL(cuStreamCreate, &stream, 0);
  CALL(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  CALL(cuMemsetD32Async, block.address, 6, block.bytes / 4, stream);
  say_up();
  wait_for(file);
  CALL(cuMemsetD32Async, block.address, 7, block.bytes / 4, stream);
  CALL(cuStreamEndCapture, stream, &graph);
  look_at(block);
  say_up();
  usleep(300'000);
  look_at(block);
  return 0;
}

int capture_later(const char* file) {
  begin();
  const Block block = make_block(64 << 20, 5);
  const Block other = make_block(64 << 20, 6);
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CALL(cuStreamCreate, &stream, 0);
  say_up();
  wait_for(file);
  CALL(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  CALL(cuMemsetD32Async, block.address, 7, block.bytes / 4, stream);
  CALL(cuStreamEndCapture, stream, &graph);
  look_at(block);
  look_at(other);
  return 0;
}

int managed(const char* file) {
  begin();
  CUdeviceptr pointer = 0;
  CALL(cuMemAllocManaged, &pointer, 1 << 20, 1);
  say_up();
  wait_for(file);
  return 0;
}

// Its first call into the driver comes late.
int late(const char* file) {
  wait_for(file);
  begin();
  const Block block = make_block(3 << 20, 4);
  say_up();
  look_at(block);
  return 0;
}

int tell_uuid() {
  begin();
  CUuuid uuid{};
  CALL(cuDeviceGetUuid, &uuid, 0);
  std::printf("%s\n", mete::abi::uuid_text(uuid.bytes).text);
  return 0;
}

std::atomic<bool> called{false};
std::atomic<bool> inside{false};

int callback(const char* file) {
  const CUcontext context = begin();
  Block block = make_block(1 << 20, 9);
  CUstream stream = nullptr;
  CALL(cuStreamCreate, &stream, 1);  // does not wait for others
  FOUND(cuLaunchHostFunc);
  const auto wait = +[](void*) {
    inside = true;
    while (!called) usleep(1000);
  };
  if (cuLaunchHostFunc_(stream, wait, nullptr) != CUDA_SUCCESS) die("cuLaunchHostFunc", 0);
  while (!inside) usleep(1000);
  say_up();
  wait_for(file);  // by now the gate is closed
  std::thread other([&] {
    CALL(cuCtxSetCurrent, context);
    CALL(cuMemsetD32Async, block.address, 10, block.bytes / 4, nullptr);
    called = true;
  });
  other.join();
  CALL(cuStreamSynchronize, stream);
  block.last = 10;
  look_at(block);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "late" && argc == 3) return late(argv[2]);
  if (mode == "uuid") return tell_uuid();
  if (mode == "work" && argc == 5) return work(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
  if (mode == "launch" && argc == 4) return launch(atoi(argv[2]), atoi(argv[3]));
  if (mode == "hold" && argc == 4) return many(1, std::strtoull(argv[3], nullptr, 10), argv[2]);
  if (mode == "many" && argc == 5)
    return many(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10), argv[4]);
  if (mode == "cards" && argc == 4) return cards(std::strtoull(argv[2], nullptr, 10), argv[3]);
  if (mode == "capture" && argc == 3) return capture(argv[2]);
  if (mode == "capturelater" && argc == 3) return capture_later(argv[2]);
  if (mode == "managed" && argc == 3) return managed(argv[2]);
  if (mode == "vmmwork" && argc == 4) return vmm_work(atoi(argv[2]), atoi(argv[3]));
  if (mode == "ipc" && argc == 3) return ipc(argv[2]);
  if (mode == "vmm" && argc == 3) return vmm(argv[2]);
  if (mode == "callback" && argc == 3) return callback(argv[2]);
  std::fprintf(stderr, "park_program: look at its source for what it does\n");
  return 64;
}
