// SPDX-License-Identifier: Apache-2.0
// Stream-ordered pools: growth, reuse, release, limits, sharing between processes. Each scenario
// prints what the pool and the card hold after every step; pool_test.cc compares the values. A gate
// in a host function keeps a stream pending where a scenario needs that.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "probe.h"

namespace {
using probe::kMiB;
using probe::say;

CUmemoryPool make_pool(size_t max_size = 0,
                       CUmemAllocationHandleType handles = CU_MEM_HANDLE_TYPE_NONE) {
  CUmemPoolProps props = mete::abi::pool_on(0);
  props.handleTypes = handles;
  props.maxSize = max_size;
  CUmemoryPool pool = nullptr;
  OK(CU(cuMemPoolCreate)(&pool, &props));
  return pool;
}

long long attribute(CUmemoryPool pool, CUmemPool_attribute attr) {
  cuuint64_t value = 0;
  OK(CU(cuMemPoolGetAttribute)(pool, attr, &value));
  return static_cast<long long>(value);
}

long long reserved(CUmemoryPool pool) {
  return attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
}

void keep_everything(CUmemoryPool pool) {
  cuuint64_t threshold = ~0ull;
  OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

CUstream make_stream() {
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

// A host function that holds its stream until the gate is opened.
struct Gate {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  bool open = false;
  static void hold(void* self) {
    Gate* const gate = static_cast<Gate*>(self);
    pthread_mutex_lock(&gate->mutex);
    while (!gate->open) pthread_cond_wait(&gate->changed, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
  }
  void let_go() {
    pthread_mutex_lock(&mutex);
    open = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
};

void steps() {
  probe::start();
  CUstream stream = make_stream();
  const size_t sizes[] = {12, kMiB, 16 * kMiB, 33 * kMiB, 100 * kMiB};
  for (const size_t size : sizes) {
    CUmemoryPool pool = make_pool();
    const long long before = probe::used();
    CUdeviceptr pointer = 0;
    OK(CU(cuMemAllocFromPoolAsync)(&pointer, size, pool, stream));
    char key[64];
    snprintf(key, sizeof key, "reserved_%zu", size);
    say(key, reserved(pool));
    snprintf(key, sizeof key, "physical_%zu", size);
    say(key, probe::used() - before);
    OK(CU(cuMemFreeAsync)(pointer, stream));
    OK(CU(cuStreamSynchronize)(stream));
    snprintf(key, sizeof key, "left_%zu", size);
    say(key, probe::used() - before);
    OK(CU(cuMemPoolDestroy)(pool));
  }
}

void reuse() {
  probe::start();
  CUstream stream = make_stream();
  CUmemoryPool pool = make_pool();
  keep_everything(pool);
  const long long before = probe::used();
  CUdeviceptr p[4] = {};
  for (int i = 0; i < 3; i++) {
    OK(CU(cuMemAllocFromPoolAsync)(&p[i], 16 * kMiB, pool, stream));
    char key[32];
    snprintf(key, sizeof key, "reserved_%d", i + 1);
    say(key, reserved(pool));
  }
  say("distinct", p[0] != p[1] && p[1] != p[2] && p[0] != p[2]);
  OK(CU(cuMemFreeAsync)(p[1], stream));
  OK(CU(cuMemAllocFromPoolAsync)(&p[3], 16 * kMiB, pool, stream));
  say("reserved_after_reuse", reserved(pool));
  for (int i : {0, 2, 3}) OK(CU(cuMemFreeAsync)(p[i], stream));
  say("used_after_free", attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  OK(CU(cuStreamSynchronize)(stream));
  say("reserved_after_sync", reserved(pool));
  OK(CU(cuMemPoolTrimTo)(pool, 40 * kMiB));
  say("reserved_after_trim_40", reserved(pool));
  OK(CU(cuMemPoolTrimTo)(pool, 0));
  say("reserved_after_trim", reserved(pool));
  say("physical_after_trim", probe::used() - before);
}

void threshold_zero() {
  probe::start();
  CUstream stream = make_stream();
  CUmemoryPool pool = make_pool();
  CUdeviceptr pointer = 0;
  OK(CU(cuMemAllocFromPoolAsync)(&pointer, 12, pool, stream));
  OK(CU(cuMemFreeAsync)(pointer, stream));
  say("after_free", reserved(pool));
  OK(CU(cuStreamSynchronize)(stream));
  say("after_stream_sync", reserved(pool));
  OK(CU(cuMemAllocFromPoolAsync)(&pointer, 12, pool, stream));
  OK(CU(cuMemFreeAsync)(pointer, stream));
  CUevent event = nullptr;
  OK(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  OK(CU(cuEventRecord)(event, stream));
  OK(CU(cuEventSynchronize)(event));
  say("after_event_sync", reserved(pool));
  OK(CU(cuMemAllocFromPoolAsync)(&pointer, 12, pool, stream));
  OK(CU(cuMemFreeAsync)(pointer, stream));
  OK(CU(cuCtxSynchronize)());
  say("after_context_sync", reserved(pool));
}

void unobserved() {
  probe::start();
  CUstream stream = make_stream();
  CUmemoryPool pool = make_pool();
  keep_everything(pool);
  CUdeviceptr pointer = 0;
  OK(CU(cuMemAllocFromPoolAsync)(&pointer, 12, pool, stream));
  Gate gate;
  OK(CU(cuLaunchHostFunc)(stream, Gate::hold, &gate));
  OK(CU(cuMemFreeAsync)(pointer, stream));
  say("query_busy", CU(cuStreamQuery)(stream));
  OK(CU(cuMemPoolTrimTo)(pool, 0));
  say("after_trim_busy", reserved(pool));
  gate.let_go();
  OK(CU(cuStreamSynchronize)(stream));
  say("after_sync", reserved(pool));
  OK(CU(cuMemPoolTrimTo)(pool, 0));
  say("after_trim", reserved(pool));
}

void high_marks() {
  probe::start();
  CUstream stream = make_stream();
  CUmemoryPool pool = make_pool();
  CUdeviceptr p[2] = {};
  for (CUdeviceptr& pointer : p) OK(CU(cuMemAllocFromPoolAsync)(&pointer, 32 * kMiB, pool, stream));
  for (CUdeviceptr pointer : p) OK(CU(cuMemFreeAsync)(pointer, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("reserved_high", attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));
  say("used_high", attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
  cuuint64_t value = 5;
  say("set_five", CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
  say("set_current", CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  value = 0;
  OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
  OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &value));
  say("reserved_high_reset", attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));
  say("used_high_reset", attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
}

void other_frees() {
  probe::start();
  CUstream stream = make_stream();
  CUmemoryPool pool = make_pool();
  CUdeviceptr pointer = 0;
  OK(CU(cuMemAllocFromPoolAsync)(&pointer, 5 * kMiB, pool, stream));
  say("mem_free", CU(cuMemFree_v2)(pointer));
  say("used_after_mem_free", attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  say("free_twice", CU(cuMemFreeAsync)(pointer, stream));
  say("free_nothing", CU(cuMemFreeAsync)(0, stream));
  OK(CU(cuMemAlloc_v2)(&pointer, 5 * kMiB));
  const long long before = probe::used();
  say("async_free_of_plain", CU(cuMemFreeAsync)(pointer, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("plain_came_back", before - probe::used());
  say("zero_bytes", CU(cuMemAllocFromPoolAsync)(&pointer, 0, pool, stream));
}

void limits() {
  probe::start();
  CUstream stream = make_stream();
  CUmemoryPool pool = make_pool(64 * kMiB);
  CUdeviceptr pointer = 0;
  say("first", CU(cuMemAllocFromPoolAsync)(&pointer, 48 * kMiB, pool, stream));
  CUdeviceptr second = 0;
  say("second", CU(cuMemAllocFromPoolAsync)(&second, 40 * kMiB, pool, stream));
  say("small", CU(cuMemAllocFromPoolAsync)(&second, 8 * kMiB, pool, stream));
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
  say("no_such_card", CU(cuMemPoolCreate)(&pool, &props));
}

void per_thread() {
  probe::start();
  say("distinct_entry_points",
      driver_calls::symbol("cuMemAllocAsync") != driver_calls::symbol("cuMemAllocAsync_ptsz"));
  CUdeviceptr p[3] = {};
  OK(CU(cuMemAllocAsync)(&p[0], 1000, nullptr));
  OK(CU(cuMemAllocAsync_ptsz)(&p[1], 1000, nullptr));
  OK(CU(cuMemAllocAsync)(&p[2], 1000, CU_STREAM_PER_THREAD));
  CUmemoryPool pool = nullptr;
  OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
  say("reserved", reserved(pool));
  OK(CU(cuMemFreeAsync_ptsz)(p[0], nullptr));
  OK(CU(cuMemFreeAsync)(p[1], nullptr));
  OK(CU(cuMemFreeAsync)(p[2], CU_STREAM_LEGACY));
  OK(CU(cuStreamSynchronize)(CU_STREAM_LEGACY));
  OK(CU(cuStreamSynchronize_ptsz)(nullptr));
  say("reserved_after", reserved(pool));
}

void current_pool() {
  probe::start();
  CUmemoryPool standard = nullptr;
  CUmemoryPool now = nullptr;
  OK(CU(cuDeviceGetDefaultMemPool)(&standard, 0));
  OK(CU(cuDeviceGetMemPool)(&now, 0));
  say("default_is_current", standard == now);
  CUmemoryPool mine = make_pool();
  OK(CU(cuDeviceSetMemPool)(0, mine));
  CUstream stream = make_stream();
  CUdeviceptr pointer = 0;
  OK(CU(cuMemAllocAsync)(&pointer, 12, stream));
  say("reserved_mine", reserved(mine));
  say("reserved_standard", reserved(standard));
  CUmemoryPool of_pointer = nullptr;
  OK(CU(cuPointerGetAttribute)(&of_pointer, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer));
  say("pointer_names_pool", of_pointer == mine);
  OK(CU(cuMemFreeAsync)(pointer, stream));
  OK(CU(cuMemPoolDestroy)(mine));
  OK(CU(cuDeviceGetMemPool)(&now, 0));
  say("back_to_default", standard == now);
  say("destroy_default", CU(cuMemPoolDestroy)(standard));
}

void destroyed_with_live_memory() {
  probe::start();
  CUstream stream = make_stream();
  CUmemoryPool pool = make_pool();
  const long long before = probe::used();
  CUdeviceptr pointer = 0;
  OK(CU(cuMemAllocFromPoolAsync)(&pointer, 12, pool, stream));
  OK(CU(cuMemPoolDestroy)(pool));
  say("held_after_destroy", probe::used() - before);
  OK(CU(cuMemFreeAsync)(pointer, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("held_after_free", probe::used() - before);
}

void contents() {
  probe::start();
  CUstream stream = make_stream();
  CUmemoryPool pool = make_pool();
  CUdeviceptr p[2] = {};
  for (CUdeviceptr& pointer : p) OK(CU(cuMemAllocFromPoolAsync)(&pointer, 4096, pool, stream));
  unsigned char in[4096];
  unsigned char out[4096];
  for (size_t i = 0; i < sizeof in; i++) in[i] = static_cast<unsigned char>(i * 7);
  OK(CU(cuMemcpyHtoDAsync_v2)(p[0], in, sizeof in, stream));
  OK(CU(cuMemsetD8Async)(p[1], 0x5a, 4096, stream));
  OK(CU(cuMemcpyDtoHAsync_v2)(out, p[0], sizeof out, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("same", memcmp(in, out, sizeof in) == 0);
  OK(CU(cuMemcpyDtoDAsync_v2)(p[0] + 100, p[1], 50, stream));
  OK(CU(cuMemcpyDtoHAsync_v2)(out, p[0], sizeof out, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("byte_99", out[99] == in[99]);
  say("byte_100", out[100]);
  say("byte_149", out[149]);
  say("byte_150", out[150] == in[150]);
}

void fill() {
  probe::start();
  CUstream stream = make_stream();
  size_t free_bytes = 0;
  size_t total = 0;
  OK(CU(cuMemGetInfo_v2)(&free_bytes, &total));
  long long got = 0;
  CUresult result = CUDA_SUCCESS;
  for (;;) {
    CUdeviceptr pointer = 0;
    result = CU(cuMemAllocAsync)(&pointer, 16 * kMiB, stream);
    if (result != CUDA_SUCCESS) break;
    got += 16 * kMiB;
  }
  say("free", static_cast<long long>(free_bytes));
  say("got", got);
  say("result", result);
  CUdeviceptr pointer = 0;
  say("again", CU(cuMemAllocAsync)(&pointer, 16 * kMiB, stream));
  say("sync", CU(cuStreamSynchronize)(stream));
}

// Blocks may cross growth steps: odd sizes waste nothing, and contents are right there too.
void odd_sizes() {
  probe::start();
  CUstream stream = make_stream();
  CUmemoryPool pool = make_pool();
  CUdeviceptr p[43] = {};
  for (CUdeviceptr& pointer : p) OK(CU(cuMemAllocFromPoolAsync)(&pointer, 3 * kMiB, pool, stream));
  say("reserved", reserved(pool));  // 129 MiB asked for
  long long wrong = 0;
  for (size_t i = 0; i < 43; i++)
    OK(CU(cuMemsetD8Async)(p[i], static_cast<unsigned char>(i), 3 * kMiB, stream));
  for (size_t i = 0; i < 43; i++) {
    unsigned char ends[2] = {};
    OK(CU(cuMemcpyDtoH_v2)(&ends[0], p[i], 1));
    OK(CU(cuMemcpyDtoH_v2)(&ends[1], p[i] + 3 * kMiB - 1, 1));
    wrong += ends[0] != i || ends[1] != i;
  }
  say("wrong", wrong);
  for (size_t i = 1; i < 43; i++) OK(CU(cuMemFreeAsync)(p[i], stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("reserved_one_left", reserved(pool));
  OK(CU(cuMemFreeAsync)(p[0], stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("reserved_none_left", reserved(pool));
}

// How requests of different sizes share the steps.
void packing() {
  probe::start();
  CUstream stream = make_stream();
  CUmemoryPool pool = make_pool();
  CUdeviceptr p[6] = {};
  OK(CU(cuMemAllocFromPoolAsync)(&p[0], 12, pool, stream));
  say("used_12", attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  OK(CU(cuMemAllocFromPoolAsync)(&p[1], 1000, pool, stream));
  say("used_1012", attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  OK(CU(cuMemAllocFromPoolAsync)(&p[2], 16 * kMiB, pool, stream));
  say("reserved_16", reserved(pool));
  OK(CU(cuMemAllocFromPoolAsync)(&p[3], 33 * kMiB, pool, stream));
  say("reserved_16_33", reserved(pool));
  OK(CU(cuMemAllocFromPoolAsync)(&p[4], 100 * kMiB, pool, stream));
  say("reserved_16_33_100", reserved(pool));
  OK(CU(cuMemAllocFromPoolAsync)(&p[5], 20 * kMiB, pool, stream));
  say("reserved_16_33_100_20", reserved(pool));
  OK(CU(cuMemFreeAsync)(p[4], stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("reserved_without_100", reserved(pool));
  cuuint64_t threshold = 10 * kMiB;
  OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  for (int i : {0, 1, 2, 3, 5}) OK(CU(cuMemFreeAsync)(p[i], stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("reserved_threshold_10", reserved(pool));
}

void locations() {
  probe::start();
  CUstream stream = make_stream();
  CUmemLocation card = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
  CUmemoryPool of_card = nullptr;
  CUmemoryPool standard = nullptr;
  OK(CU(cuMemGetDefaultMemPool)(&of_card, &card, CU_MEM_ALLOCATION_TYPE_PINNED));
  OK(CU(cuDeviceGetDefaultMemPool)(&standard, 0));
  say("card_pool_is_default", of_card == standard);
  CUmemoryPool of_host = nullptr;
  OK(CU(cuMemGetDefaultMemPool)(&of_host, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
  const long long before = probe::used();
  CUdeviceptr pointer = 0;
  OK(CU(cuMemAllocFromPoolAsync)(&pointer, 64 * kMiB, of_host, stream));
  say("host_pool_on_card", probe::used() - before);
  say("host_pool_reserved", reserved(of_host));
  OK(CU(cuMemFreeAsync)(pointer, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("managed_pool", CU(cuMemGetDefaultMemPool)(&of_host, &card, CU_MEM_ALLOCATION_TYPE_MANAGED));
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  OK(CU(cuMemPoolGetAccess)(&flags, standard, &card));
  say("own_access", flags);
}

void send_pool(int socket_fd, int pool_fd, const CUmemPoolPtrExportData& data) {
  iovec part = {const_cast<CUmemPoolPtrExportData*>(&data), sizeof data};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &pool_fd, sizeof pool_fd);
  if (sendmsg(socket_fd, &message, 0) < 0) _Exit(72);
}

int receive_pool(int socket_fd, CUmemPoolPtrExportData* data) {
  iovec part = {data, sizeof *data};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket_fd, &message, 0) <= 0) _Exit(73);
  int fd = -1;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

// The owner makes a pool with one block, exports it, and is killed; the importer still reads it.
void owner_dies() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) _Exit(74);
  const pid_t owner = fork();
  if (owner == 0) {
    probe::start();
    CUmemoryPool pool = make_pool(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUdeviceptr pointer = 0;
    OK(CU(cuMemAllocFromPoolAsync)(&pointer, 4096, pool, nullptr));
    OK(CU(cuMemsetD8_v2)(pointer, 0x33, 4096));
    OK(CU(cuStreamSynchronize)(nullptr));
    int fd = -1;
    OK(CU(cuMemPoolExportToShareableHandle)(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                            0));
    CUmemPoolPtrExportData data = {};
    OK(CU(cuMemPoolExportPointer)(&data, pointer));
    send_pool(ends[1], fd, data);
    for (;;) pause();
  }
  CUmemPoolPtrExportData data = {};
  const int fd = receive_pool(ends[0], &data);
  probe::start();
  CUmemoryPool pool = nullptr;
  OK(CU(cuMemPoolImportFromShareableHandle)(&pool,
                                            reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  const long long with_owner = probe::used();
  CUdeviceptr pointer = 0;
  OK(CU(cuMemPoolImportPointer)(&pointer, pool, &data));
  say("import_costs", probe::used() - with_owner);
  CUdeviceptr other = 0;
  say("alloc_from_imported", CU(cuMemAllocFromPoolAsync)(&other, 12, pool, nullptr));
  kill(owner, SIGKILL);
  int status = 0;
  waitpid(owner, &status, 0);
  unsigned char bytes[4096] = {};
  OK(CU(cuMemcpyDtoH_v2)(bytes, pointer, sizeof bytes));
  say("byte_4095", bytes[4095]);
  // The dead owner's context is gone once the server has noticed; only then compare.
  constexpr long long kContext = 500 * static_cast<long long>(kMiB);
  for (int i = 0; i < 1000 && with_owner - probe::used() < kContext; i++) usleep(10'000);
  const long long held = probe::used();
  OK(CU(cuMemFreeAsync)(pointer, nullptr));
  OK(CU(cuStreamSynchronize)(nullptr));
  OK(CU(cuMemPoolDestroy)(pool));
  close(fd);
  say("owner_context_back", with_owner - held >= kContext);
  say("back_after_import_gone", held - probe::used());
}

}  // namespace

int main(int argc, char** argv) {
  const probe::Scenario scenarios[] = {
      {"steps", steps},
      {"reuse", reuse},
      {"threshold_zero", threshold_zero},
      {"unobserved", unobserved},
      {"high_marks", high_marks},
      {"other_frees", other_frees},
      {"limits", limits},
      {"per_thread", per_thread},
      {"current_pool", current_pool},
      {"destroyed_with_live_memory", destroyed_with_live_memory},
      {"contents", contents},
      {"fill", fill},
      {"locations", locations},
      {"packing", packing},
      {"odd_sizes", odd_sizes},
      {"owner_dies", owner_dies},
  };
  return probe::main_of(argc, argv, scenarios);
}
