// SPDX-License-Identifier: Apache-2.0
// Copies pieces of jobs' memory between the card and pinned host memory, in a thread of its own.
// Several pieces are in flight at a time, on two streams, so that the next is imported and mapped,
// and the previous one unmapped, while the card copies: the bus never waits for us. Results come in
// the order of the tasks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "park/cuda_library.h"
#include "park/mailbox.h"
#include "park/window.h"

namespace mete::park {

// A part of a piece: in pinned memory, or (memory is null) in the spill file.
struct Part {
  char* memory = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct CopyTask {
  uint64_t number = 0;
  bool out = false;  // from the card
  Fd descriptor;     // of the card's memory
  uint64_t bytes = 0;
  std::vector<Part> parts;                       // one after the other, `bytes` in all
  std::shared_ptr<const std::atomic<bool>> off;  // its process is gone: the copy is not needed any
                                                 // more
};

struct CopyResult {
  uint64_t number = 0;
  CUresult result = CUDA_SUCCESS;
  bool disk_full = false;
};

class Copier {
 public:
  // Runs until the process ends. `card` must outlive it.
  Copier(const Card& card, Bell bell);

  void send(CopyTask task) { tasks_.put(std::move(task)); }
  std::optional<CopyResult> done() { return done_.try_take(); }

 private:
  static constexpr int kLanes = 8;
  static constexpr int kStreams = 2;
  struct Lane {
    explicit Lane(const Card& card) : window(card) {}
    Window window;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    uint64_t number = 0;
    CUresult result = CUDA_SUCCESS;
    bool copying = false;
  };

  void run();
  CUresult prepare();
  void begin(Lane& lane, CopyTask task) const;
  CUresult enqueue(const Lane& lane, const CopyTask& task) const;
  void finish(Lane& lane);

  const Card& card_;
  Bell bell_;
  Mailbox<CopyTask> tasks_;
  Mailbox<CopyResult> done_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::thread thread_;
};

}  // namespace mete::park
