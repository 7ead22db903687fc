// SPDX-License-Identifier: Apache-2.0
// State of the simulated NVML: a counter of initialisations, the settings from the environment, and
// handles. No lock is held during a call to the server; the connection in client.cc takes its own.
#include "simgpu/nvml_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "simgpu/client.h"

struct nvmlDevice_st {
  char unused;  // only the address is used
};

namespace simgpu::nvml {
namespace {

constinit std::atomic<unsigned> initialised{0};
constinit nvmlDevice_st handles[kMaxCards] = {};

// Latency and hang are for tests, which set them before the program starts: read each time, since
// that costs less than deciding when to read them once.
void apply_faults() {
  const int saved = errno;
  if (const char* text = getenv("METE_SIM_NVML_HANG"); text != nullptr && *text != '\0') {
    while (strcmp(text, "1") == 0) pause();
    const timespec pause_time{0, 5'000'000};
    while (text[0] == '/' && access(text, F_OK) == 0) nanosleep(&pause_time, nullptr);
  }
  if (const char* text = getenv("METE_SIM_NVML_US"); text != nullptr) {
    const unsigned long microseconds = strtoul(text, nullptr, 10);
    timespec left{static_cast<time_t>(microseconds / 1000000),
                  static_cast<long>(microseconds % 1000000 * 1000)};
    while (microseconds > 0 && nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
  }
  errno = saved;
}

}  // namespace

Reading::~Reading() { free(processes); }

bool Reading::take(bool with_processes) {
  if (connect_server(ClientKind::kNvml) != kStatusOk) return false;
  uint32_t room = with_processes ? 32 : 0;
  for (;;) {
    if (room > 0) {
      free(processes);
      processes = static_cast<ProcessInfo*>(malloc(room * sizeof(ProcessInfo)));
      if (processes == nullptr) return false;
    }
    uint32_t cards_there = 0, processes_there = 0;
    if (take_snapshot(cards, kMaxCards, &cards_there, processes, room, &processes_there) !=
        kStatusOk)
      return false;
    card_count = cards_there < kMaxCards ? cards_there : kMaxCards;
    process_count = with_processes ? processes_there : 0;
    if (process_count <= room) return true;
    room = process_count + 32;  // more may have started before the next look
  }
}

nvmlDevice_t handle_of(unsigned index) { return &handles[index]; }

nvmlReturn_t enter() {
  apply_faults();
  return initialised.load(std::memory_order_acquire) > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

// For nvml_rest.cc, which cannot see the enum.
int enter_plain();
int enter_plain() { return static_cast<int>(enter()); }

nvmlReturn_t initialise(unsigned flags) {
  apply_faults();
  if ((flags & ~(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH)) != 0)
    return NVML_ERROR_INVALID_ARGUMENT;
  Reading reading;
  if (!reading.take(false)) return NVML_ERROR_DRIVER_NOT_LOADED;
  initialised.fetch_add(1, std::memory_order_acq_rel);
  return NVML_SUCCESS;
}

nvmlReturn_t shut_down() {
  apply_faults();
  unsigned count = initialised.load(std::memory_order_acquire);
  while (count > 0)
    if (initialised.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel)) {
      if (count == 1) drop_connection();
      return NVML_SUCCESS;
    }
  return NVML_ERROR_UNINITIALIZED;
}

SystemCall::SystemCall(bool with_processes) : error_(enter()) {
  if (error_ == NVML_SUCCESS && !reading_.take(with_processes)) error_ = NVML_ERROR_UNKNOWN;
}

CardCall::CardCall(nvmlDevice_t device, bool with_processes) : SystemCall(with_processes) {
  if (error_ == NVML_SUCCESS) error_ = resolve(device, &index_);
}

bool CardCall::other(nvmlDevice_t device, unsigned* index) {
  error_ = resolve(device, index);
  return error_ == NVML_SUCCESS;
}

nvmlReturn_t CardCall::resolve(nvmlDevice_t device, unsigned* index) const {
  // Compared as addresses: a foreign pointer must not be dereferenced.
  const uintptr_t first = reinterpret_cast<uintptr_t>(&handles[0]),
                  at = reinterpret_cast<uintptr_t>(device);
  if (at < first || (at - first) % sizeof(handles[0]) != 0) return NVML_ERROR_INVALID_ARGUMENT;
  const uintptr_t number = (at - first) / sizeof(handles[0]);
  if (number >= reading_.card_count) return NVML_ERROR_INVALID_ARGUMENT;
  *index = static_cast<unsigned>(number);
  return is_lost(reading_.cards[number]) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t put_text(const char* text, char* out, unsigned length) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const size_t needed = strlen(text) + 1;
  if (length < needed) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(out, text, needed);
  return NVML_SUCCESS;
}

}  // namespace simgpu::nvml
