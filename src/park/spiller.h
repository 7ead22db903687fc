// SPDX-License-Identifier: Apache-2.0
// Copies pieces of which a part lies in the spill file: through two pinned buffers, so that the
// disk and the bus work at the same time. In a thread of its own, one piece after the other: a slow
// disk delays only pieces on it. The file has no name: no other process can open it, and it ends
// with this process.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "park/copier.h"
#include "park/cuda_library.h"
#include "park/extents.h"
#include "park/mailbox.h"
#include "park/window.h"

namespace mete::park {

// A file without a name in `folder`, mode 0600. unsupported: its file system cannot do this.
Result<Fd> open_spill(const std::string& folder);

class Spiller {
 public:
  // Runs until the process ends. `card` must outlive it.
  Spiller(const Card& card, Bell bell, Fd file);

  void send(CopyTask task) { work_.put({std::move(task), {}}); }
  // These bytes are not needed any more: releases their disk space.
  void forget(const std::vector<Extent>& extents) { work_.put({{}, extents}); }
  std::optional<CopyResult> done() { return done_.try_take(); }

 private:
  static constexpr uint64_t kBuffer = 16 << 20;
  static constexpr int kBuffers = 2;
  struct Work {
    CopyTask task;  // number 0: none
    std::vector<Extent> forget;
  };
  struct Buffer {
    char* memory = nullptr;
    CUevent event = nullptr;
    uint64_t offset = 0;  // in the file, of the data in flight
    uint64_t bytes = 0;   // 0: no data in flight
  };
  struct Outcome {
    CUresult result = CUDA_SUCCESS;
    bool disk_full = false;
    bool good() const { return result == CUDA_SUCCESS && !disk_full; }
  };

  void run();
  CUresult prepare();
  void punch(const std::vector<Extent>& extents) const;
  Outcome copy(CopyTask& task);
  Outcome part_out(CUdeviceptr at, const Part& part);
  Outcome part_in(CUdeviceptr at, const Part& part);
  // Writes the content of the buffer to disk once the card has filled it.
  Outcome write_out(Buffer& buffer) const;
  CUresult settle();

  const Card& card_;
  Bell bell_;
  Fd file_;
  Window window_;
  CUstream stream_ = nullptr;
  Buffer buffers_[kBuffers];
  Mailbox<Work> work_;
  Mailbox<CopyResult> done_;
  std::thread thread_;
};

}  // namespace mete::park
