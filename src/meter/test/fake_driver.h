// SPDX-License-Identifier: Apache-2.0
// A driver behind the meter's handlers, for unit tests: one card, one context, addresses without
// memory. It rounds as a real driver does, records what it holds and what was charged at each
// request for memory, and fails on demand. Functions that it lacks are nullptr, as with an old
// driver.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "abi/cuda_types.h"
#include "launch/grant_file.h"

namespace mete::meter::test {

struct FakeDriver {
  // Installs itself as `real`, and wipes the meter's state of the process, as a fork does.
  explicit FakeDriver(const launch::GrantFile& file);
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  std::uint64_t charged() const;  // bytes of the only card, as the grant file has it
  std::uint64_t holds() const;    // bytes, as the driver has it

  const launch::GrantFile& file;
  CUresult next = CUDA_SUCCESS;  // the result of the next request for memory, once
  // For each call for memory: what was charged when it reached the driver.
  std::vector<std::uint64_t> charged_at_call;
  std::vector<std::string> calls;
  bool has_context = false;
  std::map<std::uint64_t, std::uint64_t> blocks;   // address → bytes
  std::map<std::uint64_t, std::uint64_t> handles;  // VMM handle → bytes
  std::map<std::uint64_t, int> references;         // VMM handle → references and mappings
  std::map<std::uint64_t, std::uint64_t> mapped;   // address → VMM handle
  std::uint64_t last_address = 0x7f0000000000;
  std::uint64_t last_slab = 0;  // where small blocks go, and how much of it is used
  std::uint64_t slab_used = 0;
  std::uint64_t last_handle = 100;
};

inline constexpr const char* kUuid = "GPU-01020304-0506-0708-090a-0b0c0d0e0f10";

}  // namespace mete::meter::test
