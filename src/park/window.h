// SPDX-License-Identifier: Apache-2.0
// A range of the mover's device addresses into which one piece of a job's memory is mapped at a
// time, by its descriptor. The addresses are kept for the next piece. One thread, in the card's
// context.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "park/cuda_library.h"

namespace mete::park {

class Window {
 public:
  explicit Window(const Card& card) : card_(card) {}
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // The descriptor is closed in any case: the mapping keeps the memory. `bytes` must be its exact
  // size, a multiple of 2 MiB; otherwise the driver refuses. After an error nothing is mapped.
  CUresult open(Fd descriptor, uint64_t bytes);
  CUdeviceptr address() const { return address_; }
  // Only when no copy is under way there. The memory then belongs to its owner only.
  CUresult close();

 private:
  CUresult reserve(uint64_t bytes);

  const Card& card_;
  CUdeviceptr address_ = 0;
  uint64_t reserved_ = 0;
  uint64_t mapped_ = 0;
};

}  // namespace mete::park
