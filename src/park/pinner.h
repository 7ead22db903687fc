// SPDX-License-Identifier: Apache-2.0
// Pins and unpins host memory in a thread of its own: a GiB takes a third of a second, and copies
// go on meanwhile. One request at a time.
#pragma once

#include <cstdint>
#include <thread>

#include "park/cuda_library.h"
#include "park/mailbox.h"

namespace mete::park {

class Pinner {
 public:
  struct Errand {
    uint64_t pin_bytes = 0;  // 0: unpin
    void* unpin = nullptr;
  };
  struct Done {
    void* memory = nullptr;  // what was pinned; null after an error or after unpinning
    uint64_t bytes = 0;
    CUresult result = CUDA_SUCCESS;
  };

  // Runs until the process ends.
  Pinner(const Card& card, Bell bell);

  void send(const Errand& errand) { errands_.put(errand); }
  std::optional<Done> done() { return done_.try_take(); }

 private:
  void run();
  Done pin(uint64_t bytes) const;

  const Card& card_;
  Bell bell_;
  Mailbox<Errand> errands_;
  Mailbox<Done> done_;
  std::thread thread_;
};

// Whether the machine can spare this much: the kernel cannot reclaim pinned memory, and would kill
// a process instead. A sixteenth of the machine stays free, by the figures in /proc/meminfo
// (`meminfo` is its text; without the two figures nothing is spared).
bool can_spare(const std::string& meminfo, uint64_t bytes);

}  // namespace mete::park
