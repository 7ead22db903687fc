// SPDX-License-Identifier: Apache-2.0
// The accounts of the job, read from its grant file: the charge is compared with what the driver
// took. Read-only, and without the meter, so that a check of one entry point does not depend on
// another one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "abi/grant.h"

namespace mete::selftest {

class Ledger {
 public:
  // Ends the process with a failed row when METE_GRANT cannot be read.
  static const Ledger& of_this_job();

  std::uint64_t limit() const;
  // What the job is charged on its first card. Includes what was given back of reserves, which
  // happens when a process is at rest: the charge of a call is the difference between before and
  // after.
  std::uint64_t charged() const;
  // What is used of the cap there, with what NVML saw beyond the charges, and what is free.
  std::uint64_t used() const;
  std::uint64_t free() const;
  // How often the meter has refused memory on it.
  std::uint64_t refusals() const;
  // What one process is charged there; 0 when it has no slot.
  std::uint64_t charged_to(pid_t pid) const;
  // NVML's figure for a process there, as the sampler of `mete cap` recorded it.
  std::optional<std::uint64_t> nvml_of(pid_t pid) const;
  // The charge for the first context of a process, its reserve included, and for each further one.
  std::uint64_t first_context() const;
  std::uint64_t next_context() const;
  std::uint32_t cards() const;
  // "GPU-..." of the first card.
  std::string uuid() const;

 private:
  explicit Ledger(abi::Grant& grant) : grant_(grant) {}
  std::optional<std::uint32_t> slot_of(pid_t pid) const;

  abi::Grant& grant_;
};

}  // namespace mete::selftest
