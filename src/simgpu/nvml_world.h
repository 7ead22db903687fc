// SPDX-License-Identifier: Apache-2.0
// The beginning of every entry point of the simulated NVML: is the library initialised, is the
// handle one of ours, does the card still answer, and the current state of the cards. The cards
// belong to the simulation's server; this side only reads, over a connection of its own, so that a
// program that never calls CUDA holds nothing there. Any thread may call. After fork the child uses
// a new connection. METE_SIM_NVML_US=N: every call takes N microseconds longer. METE_SIM_NVML_HANG:
// 1 blocks every call for ever, a path blocks while that file exists (a wedged driver that may come
// back). docs/formats/simgpu-nvml.md says what is modelled.
#pragma once

#include <stdint.h>

#include "abi/nvml_api.h"
#include "simgpu/nvml_models.h"
#include "simgpu/protocol.h"

namespace simgpu::nvml {

inline bool is_lost(const CardInfo& card) {
  return card.state != static_cast<uint32_t>(CardState::kOk);
}

// total = reserved + used + free.
inline uint64_t free_bytes(const CardInfo& card) { return card.total - card.reserved - card.used; }

// One reading of all cards, and on request of the processes, which it owns.
class Reading {
 public:
  Reading() = default;
  ~Reading();
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  // False when the server does not answer; then nothing is filled in.
  bool take(bool with_processes);

  unsigned card_count = 0;
  CardInfo cards[kMaxCards];
  unsigned process_count = 0;
  ProcessInfo* processes = nullptr;
};

// The opaque handle that programs hold: its address identifies the card.
nvmlDevice_t handle_of(unsigned index);

// Applies latency and hang; UNINITIALIZED or SUCCESS.
nvmlReturn_t enter();

nvmlReturn_t initialise(unsigned flags);
nvmlReturn_t shut_down();

// A call about the whole machine: check error() first, then use reading().
class SystemCall {
 public:
  explicit SystemCall(bool with_processes = false);
  nvmlReturn_t error() const { return error_; }
  const Reading& reading() const { return reading_; }

 protected:
  nvmlReturn_t error_;
  Reading reading_;
};

// A call about one card: also refuses foreign handles and lost cards.
class CardCall : public SystemCall {
 public:
  explicit CardCall(nvmlDevice_t device, bool with_processes = false);
  unsigned index() const { return index_; }
  const CardInfo& card() const { return reading_.cards[index_]; }
  const Model& model() const { return model_of(card().name); }
  // The card behind a second handle; false leaves error() set.
  bool other(nvmlDevice_t device, unsigned* index);

 private:
  nvmlReturn_t resolve(nvmlDevice_t device, unsigned* index) const;
  unsigned index_ = 0;
};

// Copies with the terminator, or INSUFFICIENT_SIZE, or INVALID_ARGUMENT for no buffer.
nvmlReturn_t put_text(const char* text, char* out, unsigned length);

// Stores through a pointer of the caller; a null pointer is INVALID_ARGUMENT.
template <typename T, typename V>
nvmlReturn_t put(T* out, V value) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *out = static_cast<T>(value);
  return NVML_SUCCESS;
}

// "00000000:17:00.0" and the rest of version 3.
void fill_pci(const CardInfo& card, nvmlPciInfo_t* out);

}  // namespace simgpu::nvml

// Every modelled entry point is written METE_NVML nvmlDeviceGetX(...): exported, C linkage.
#define METE_NVML extern "C" __attribute__((visibility("default"))) nvmlReturn_t
