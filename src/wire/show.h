// SPDX-License-Identifier: Apache-2.0
// Everything that a user may know of one job: {"schema":"mete.show/1",...}, see
// docs/formats/show.schema.json. It has the job of `mete ps` and more; of its environment the names
// alone.
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

// What the spec says (folder, array, after, limits, retries, begin, ...) and the attempts before
// this one are taken from view.job, and read back into it.
struct ShowDocument {
  WallTime at;
  JobView view;
  std::string log;  // paths with their patterns filled in; "": there is none (`mete run`)
  std::string err;  // "": into the log
  std::vector<std::string> environment;  // names, sorted
  // Of an array: how many of its jobs are in which state, by the state's name.
  std::map<std::string, std::uint64_t> elements;
  struct Process {
    std::int32_t pid = 0;
    std::optional<Bytes> used;
    bool operator==(const Process&) const = default;
  };
  std::vector<Process> processes;
  // What to ask for next time.
  struct Advice {
    std::string gpu;  // "12G"
    std::string why;
    bool operator==(const Advice&) const = default;
  };
  std::optional<Advice> advice;
  std::vector<std::string> notify;  // who is told of it, redacted
  std::vector<std::string> notes;   // each a sentence for its user
};
std::string encode(const ShowDocument& document);
Result<ShowDocument> decode_show(std::string_view json);

// "NAME" of each "NAME=VALUE" in the blob of an environment, sorted.
std::vector<std::string> environment_names(std::string_view blob);

}  // namespace mete::wire
