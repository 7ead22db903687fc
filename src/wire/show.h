// SPDX-License-Identifier: Apache-2.0
// Everything that a user may know of one job: {"schema":"mete.show/1",...}, see
// docs/formats/show.schema.json. It has the job of `mete ps` and more; of its environment only the
// names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "wire/job.h"

namespace mete::wire {

// The spec (folder, array, after, limits, retries, begin, ...) and the earlier attempts are in
// view.job, and are read back into it.
struct ShowDocument {
  WallTime at;
  JobView view;
  std::string log;                       // paths with patterns filled in; "": none (`mete run`)
  std::string err;                       // "": the log
  std::vector<std::string> environment;  // names, sorted
  // For an array: the number of its jobs in each state, by the state's name.
  std::map<std::string, std::uint64_t> elements;
  struct Process {
    std::int32_t pid = 0;
    std::optional<Bytes> used;
    bool operator==(const Process&) const = default;
  };
  std::vector<Process> processes;
  // What to request the next time.
  struct Advice {
    std::string gpu;  // "12G"
    std::string why;
    bool operator==(const Advice&) const = default;
  };
  std::optional<Advice> advice;
  std::vector<std::string> notify;  // targets of notifications, redacted
  std::vector<std::string> notes;   // one sentence each, for the user
};
std::string encode(const ShowDocument& document);
Result<ShowDocument> decode_show(std::string_view json);

// "NAME" of each "NAME=VALUE" in the blob of an environment, sorted.
std::vector<std::string> environment_names(std::string_view blob);

}  // namespace mete::wire
