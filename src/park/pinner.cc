// SPDX-License-Identifier: Apache-2.0
// See pinner.h.
#include "park/pinner.h"

#include <string>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace mete::park {

namespace {

constexpr uint64_t kKeptFree = 16;  // 1/16 of the memory

// "MemTotal:       24576000 kB".
std::optional<uint64_t> figure(const std::string& meminfo, std::string_view name) {
  for (const std::string_view line : base::split(meminfo, '\n')) {
    if (!line.starts_with(name) || !line.ends_with(" kB")) continue;
    const std::string_view number =
        base::trim(line.substr(name.size(), line.size() - name.size() - 3));
    const Result<uint64_t> kib = base::parse_uint(number);
    if (kib && *kib <= (UINT64_MAX >> 10)) return *kib << 10;
  }
  return std::nullopt;
}

}  // namespace

bool can_spare(const std::string& meminfo, uint64_t bytes) {
  const std::optional<uint64_t> total = figure(meminfo, "MemTotal:");
  const std::optional<uint64_t> available = figure(meminfo, "MemAvailable:");
  if (!total || !available) return false;
  const uint64_t kept = *total / kKeptFree;
  return *available > kept && *available - kept >= bytes;
}

Pinner::Pinner(const Card& card, Bell bell) : card_(card), bell_(bell), thread_([this] { run(); }) {
  thread_.detach();
}

Pinner::Done Pinner::pin(uint64_t bytes) const {
  const Result<std::string> meminfo = base::read_all("/proc/meminfo");
  if (!meminfo || !can_spare(*meminfo, bytes)) return {nullptr, bytes, CUDA_ERROR_OUT_OF_MEMORY};
  Done done{nullptr, bytes, CUDA_SUCCESS};
  done.result = card_.cuda.cuMemHostAlloc(&done.memory, bytes, 0);
  if (done.result != CUDA_SUCCESS) done.memory = nullptr;
  return done;
}

void Pinner::run() {
  const CUresult entered = card_.enter();
  for (;;) {
    const Errand errand = errands_.take();
    Done done{nullptr, 0, entered};
    if (entered == CUDA_SUCCESS) {
      if (errand.pin_bytes > 0)
        done = pin(errand.pin_bytes);
      else
        done.result = card_.cuda.cuMemFreeHost(errand.unpin);
    }
    done_.put(done);
    bell_.ring();
  }
}

}  // namespace mete::park
