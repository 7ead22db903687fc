// SPDX-License-Identifier: Apache-2.0
// The readings file (abi/readings.h, docs/formats/readings.md): written by the daemon's NVML helper
// after each reading, read by the runners of jobs.
//
// The reader does not map the file, it reads it: truncating the file would otherwise kill the
// reader by SIGBUS. It checks everything before it uses it, and opens the file each time, because a
// new helper puts a new file in place of its predecessor's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "abi/readings.h"
#include "base/result.h"
#include "node/sampler.h"

namespace mete::node {

class ReadingsWriter {
 public:
  // Makes a file beside the path, complete before it is visible, and renames it; readable by all,
  // since it is meant for every user's runners. A failure leaves the old file.
  static Result<ReadingsWriter> make(const std::string& path);
  ReadingsWriter(ReadingsWriter&& other) noexcept;
  ReadingsWriter& operator=(ReadingsWriter&&) = delete;
  ReadingsWriter(const ReadingsWriter&) = delete;
  ~ReadingsWriter();  // unmaps; the file stays, and ages

  // A kill in the middle leaves the sequence odd: readers then wait for the next helper's file. If
  // there are more cards or processes than there is room for, the card is left out, or its process
  // list counts as unknown.
  void publish(const std::vector<seam::CardReading>& cards, seam::Nanoseconds at);

 private:
  explicit ReadingsWriter(abi::Readings* file) : file_(file) {}
  abi::Readings* file_;
};

// The last reading. not_found: no file; busy: it is being written, or nothing was read yet;
// corrupt: truncated, not such a file, or with impossible numbers; denied: it belongs neither to us
// nor to root; unsupported: another version, boot or pid namespace.
Result<Sample> read_readings(const std::string& path);

// Parses bytes that are not torn. Pure; boot and namespace are not checked here.
Result<Sample> parse_readings(std::string_view bytes);

}  // namespace mete::node
