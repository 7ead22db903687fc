// SPDX-License-Identifier: Apache-2.0
// Any bytes as a readings file. Inputs are short, so they are laid over an empty file: the header,
// the body's counts, the first cards and, from the middle of the input on, the first processes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "abi/readings.h"
#include "base/assert.h"
#include "node/readings_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mete;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  METE_ASSERT(!node::parse_readings(bytes));  // shorter than a file
  std::string file(sizeof(abi::Readings), '\0');
  const std::string_view first = bytes.substr(0, size / 2), second = bytes.substr(size / 2);
  constexpr std::size_t kProcesses =
      offsetof(abi::Readings, body) + offsetof(abi::ReadingsBody, processes);
  std::copy_n(first.begin(), std::min(first.size(), kProcesses), file.begin());
  std::copy_n(second.begin(), std::min(second.size(), file.size() - kProcesses),
              file.begin() + kProcesses);
  const Result<node::Sample> sample = node::parse_readings(file);
  if (!sample) return 0;
  METE_ASSERT(sample->cards.size() <= abi::kReadingsCards);
  for (const node::ProcessSample& process : sample->processes)
    METE_ASSERT(process.pid > 0 && process.used.size() == sample->cards.size());
  return 0;
}
