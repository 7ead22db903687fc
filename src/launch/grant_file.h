// SPDX-License-Identifier: Apache-2.0
// The grant file of one job, made and removed by its launcher. Its bytes are in abi/grant.h.
//
// The file is fully allocated before any process maps it (a disk that fills up later cannot kill
// the job), readable by its owner only, and never replaces or follows an existing file. Its maker
// holds an flock on it for as long as it lives, which distinguishes it from a leftover
// (leftovers.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "abi/grant.h"
#include "base/fd.h"
#include "base/result.h"
#include "seam/driver.h"

namespace mete::launch {

// Of a job that can be parked: where its movers listen, and what it shows to them.
struct GrantPark {
  std::string movers;  // a folder
  seam::UuidBytes token{};
};

// The job that a grant belongs to.
struct GrantName {
  std::string job;  // "": a cap without a daemon, cap-PID
  std::uint32_t attempt = 1;
  std::optional<GrantPark> park = {};
  bool growing = false;  // a runner answers its asks (growth.h); otherwise the limits apply at once
};

class GrantFile {
 public:
  // Makes FOLDER/JOB.ATTEMPT, or JOB-2.ATTEMPT and so on while the name is taken (several daemons
  // count their jobs from 1). `parts`: the number of equal parts into which the limits are divided.
  // io: the disk is full or read-only; unsupported: more cards than a grant file holds, a folder of
  // movers with too long a name, parts of a growing grant. A failure leaves nothing behind.
  static Result<GrantFile> make(const std::string& folder, const GrantName& name,
                                std::span<const abi::GrantCard> cards, std::uint32_t parts = 1);

  GrantFile(GrantFile&& other) noexcept;
  GrantFile& operator=(GrantFile&&) = delete;
  GrantFile(const GrantFile&) = delete;
  // Unmaps and removes the file, only in the process that made it: a forked helper must not.
  ~GrantFile();

  const std::string& path() const { return path_; }
  const std::string& job() const { return job_; }
  abi::Grant& grant() const { return *grant_; }

 private:
  GrantFile() = default;

  std::string path_;
  std::string job_;
  Fd lock_;
  abi::Grant* grant_ = nullptr;
  pid_t owner_ = 0;
};

// Says which card it is. `uuid`: "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"; unsupported: it is
// not.
Result<void> set_uuid(abi::GrantCard& card, const std::string& uuid);

// This boot's id: 16 bytes from /proc/sys/kernel/random/boot_id. All zero where /proc does not say.
seam::UuidBytes boot_id();

}  // namespace mete::launch
