// SPDX-License-Identifier: Apache-2.0
// Commands in which threads of this process race against each other. Each returns what it counted;
// the test decides what is right. The threads run for a number of rounds or milliseconds, and
// everything they took is freed at the end.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "actor.h"

namespace actor {
namespace {

CUcontext current_context() {
  CUcontext context = nullptr;
  (void)CU(cuCtxGetCurrent)(&context);
  return context;
}

uint64_t free_bytes() {
  size_t free = 0;
  size_t total = 0;
  (void)CU(cuMemGetInfo_v2)(&free, &total);
  return free;
}

// destroy-while-asked ROUNDS: creates a context and destroys it while another thread, in which it
// is current, queries the free memory in a loop. The first code that is not 0, and the rounds done.
std::string destroy_while_asked(const Words& w) {
  const CUcontext own = current_context();
  const auto ask = CU(cuMemGetInfo_v2);
  uint64_t round = 0;
  CUresult code = CUDA_SUCCESS;
  for (; round < number(w[1]) && code == CUDA_SUCCESS; ++round) {
    CUcontext victim = nullptr;
    code = CU(cuCtxCreate_v2)(&victim, 0, current_device());
    if (code != CUDA_SUCCESS) break;
    std::atomic<int> asked{0};
    std::atomic<bool> stop{false};
    std::thread asker([&] {
      (void)CU(cuCtxSetCurrent)(victim);
      while (!stop.load()) {
        size_t free = 0;
        size_t total = 0;
        (void)ask(&free, &total);
        ++asked;
      }
      (void)CU(cuCtxSetCurrent)(nullptr);
    });
    while (asked.load() < 3) std::this_thread::yield();
    code = CU(cuCtxDestroy_v2)(victim);
    const int then = asked.load();
    while (asked.load() < then + 3) std::this_thread::yield();
    stop = true;
    asker.join();
    (void)CU(cuCtxSetCurrent)(own);
  }
  return answer(code, round);
}

// pool-race MILLISECONDS BYTES: takes a block from the default pool while another thread trims the
// pool, once for each block: the pool is not looked at again after the two, so a wrong charge
// stays. How often less was charged than the pool holds, and how many blocks there were.
std::string pool_race(const Words& w) {
  const CUcontext own = current_context();
  const uint64_t before = free_bytes();
  CUmemoryPool pool = nullptr;
  CUstream stream = nullptr;
  CUresult r = CU(cuDeviceGetDefaultMemPool)(&pool, current_device());
  if (r == CUDA_SUCCESS) r = CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  std::atomic<uint64_t> wanted{0};
  std::atomic<uint64_t> trimmed{0};
  std::atomic<bool> stop{false};
  std::thread trimmer([&] {
    (void)CU(cuCtxSetCurrent)(own);
    while (!stop.load()) {
      if (trimmed.load() == wanted.load()) {
        std::this_thread::yield();
        continue;
      }
      (void)CU(cuMemPoolTrimTo)(pool, 0);
      ++trimmed;
    }
  });
  uint64_t uncharged = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(number(w[1]));
  while (r == CUDA_SUCCESS && std::chrono::steady_clock::now() < end) {
    ++wanted;
    CUdeviceptr block = 0;
    r = CU(cuMemAllocAsync)(&block, number(w[2]), stream);
    while (trimmed.load() != wanted.load()) std::this_thread::yield();
    cuuint64_t reserved = 0;
    if (r == CUDA_SUCCESS)
      r = CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
    if (free_bytes() + reserved > before) ++uncharged;
    if (r == CUDA_SUCCESS) r = CU(cuMemFreeAsync)(block, stream);
    if (r == CUDA_SUCCESS) r = CU(cuStreamSynchronize)(stream);
  }
  stop = true;
  trimmer.join();
  if (r == CUDA_SUCCESS) r = CU(cuMemPoolTrimTo)(pool, 0);
  if (stream != nullptr) (void)CU(cuStreamDestroy_v2)(stream);
  return answer(r, uncharged, wanted.load());
}

struct Hopeless {
  CUcontext context;
  uint64_t bytes;
  std::atomic<int> started{0};
  std::atomic<int> granted{0};
};

void* ask_in_vain(void* argument) {
  auto& job = *static_cast<Hopeless*>(argument);
  const auto alloc = CU(cuMemAlloc_v2);
  (void)CU(cuCtxSetCurrent)(job.context);
  for (;;) {
    CUdeviceptr pointer = 0;
    ++job.started;
    if (alloc(&pointer, job.bytes) == CUDA_SUCCESS) ++job.granted;
    pthread_testcancel();
  }
}

// cancel ROUNDS BYTES: cancels a thread that asks for more than there is, again and again. How many
// of the requests were granted.
std::string cancel_in_vain(const Words& w) {
  Hopeless job{current_context(), number(w[2])};
  for (uint64_t i = 0; i < number(w[1]); ++i) {
    job.started = 0;
    pthread_t thread{};
    if (pthread_create(&thread, nullptr, ask_in_vain, &job) != 0) return "997";
    while (job.started.load() < 3) std::this_thread::yield();
    if (pthread_cancel(thread) != 0 || pthread_join(thread, nullptr) != 0) return "997";
  }
  return answer(0, job.granted.load());
}

// storm THREADS MILLISECONDS BYTES: threads that take a block, or free one of theirs, at random.
// The first code that is neither 0 nor "out of memory", how many blocks there were, and how many
// refusals. Everything is freed at the end.
std::string storm(const Words& w) {
  const CUcontext own = current_context();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(number(w[2]));
  std::atomic<int> wrong{0};
  std::atomic<uint64_t> taken{0};
  std::atomic<uint64_t> refused{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < number(w[1]); ++t) {
    threads.emplace_back([&, t] {
      (void)CU(cuCtxSetCurrent)(own);
      std::vector<CUdeviceptr> blocks;
      std::mt19937 dice(static_cast<unsigned>(t));
      while (std::chrono::steady_clock::now() < end || !blocks.empty()) {
        CUdeviceptr block = 0;
        CUresult r = CUDA_SUCCESS;
        if (std::chrono::steady_clock::now() < end && dice() % 3 != 0) {
          r = CU(cuMemAlloc_v2)(&block, number(w[3]));
          if (r == CUDA_SUCCESS) {
            blocks.push_back(block);
            ++taken;
          }
        } else if (!blocks.empty()) {
          r = CU(cuMemFree_v2)(blocks.back());
          blocks.pop_back();
        }
        if (r == CUDA_ERROR_OUT_OF_MEMORY)
          ++refused;
        else if (r != CUDA_SUCCESS)
          wrong = r;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return answer(wrong.load(), taken.load(), refused.load());
}

}  // namespace

void add_race_commands() {
  auto& c = commands();
  c["destroy-while-asked"] = destroy_while_asked;
  c["pool-race"] = pool_race;
  c["cancel"] = cancel_in_vain;
  c["storm"] = storm;
}

}  // namespace actor
