// SPDX-License-Identifier: Apache-2.0
// What a keeper leaves on disk about one attempt of one job: one file of 4 KiB that is claimed,
// exclusively and synced, before anything of the job runs. All its space is allocated then, so that
// a full disk cannot lose the exit of the job later. The keeper writes, the daemon reads, even
// after either was killed. Every byte is in docs/formats/keeper.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "seam/clock.h"
#include "seam/driver.h"
#include "seam/launcher.h"

namespace mete::launch {

inline constexpr std::size_t kRecordBytes = 4096;
inline constexpr std::size_t kMaxExitText = 2048 - 32;  // of the Exit, as text
inline constexpr std::size_t kMaxGroups = 3;
inline constexpr std::size_t kMaxGroupPath = 300;

struct Claim {
  core::JobId job;
  std::uint32_t attempt = 1;
  seam::UuidBytes boot{};  // pids are valid in this boot only
  core::ProcessRef keeper;
  bool operator==(const Claim&) const = default;
};

struct RunningProgram {
  core::ProcessRef program;
  seam::Nanoseconds since{};  // monotonic, of that boot
  bool operator==(const RunningProgram&) const = default;
};

struct Record {
  Claim claim;
  // From here on a process of the job may have run. (After a crash of the machine this is unknown:
  // only the claim and the exit are synced.)
  bool launched = false;
  std::vector<std::string> groups = {};  // the control groups that only this job has
  std::optional<RunningProgram> program = {};
  std::optional<std::string> exit =
      {};  // every process of the job is gone; the text that wire/ made of the Exit
  bool operator==(const Record&) const = default;
};

// "12_3.1", and back; nullopt for any other name.
struct RecordName {
  core::JobId job;
  std::uint32_t attempt = 1;
  bool operator==(const RecordName&) const = default;
};
std::string to_string(const RecordName& name);
std::optional<RecordName> parse_record_name(std::string_view name);

// corrupt: no whole claim in it. Another part that is torn counts as absent; `launched` is then
// true.
Result<Record> parse_record(std::string_view bytes);
// not_found: there is none.
Result<Record> read_record(const std::string& path);

// The keeper's side. The descriptor stays open, so that a record claimed with root's rights can be
// written after they are given up.
class KeeperRecord {
 public:
  // busy: another keeper has this attempt. Of two concurrent calls exactly one gets the claim; a
  // kill in between leaves no claim, or a whole one.
  static Result<KeeperRecord> claim(const std::string& folder, const Claim& claim);

  // Nothing ran, and no daemon waits for it: takes the claim back.
  Result<void> withdraw();
  // To be written before the first process of the job is made.
  Result<void> launching(const std::vector<std::string>& groups);
  Result<void> running(const RunningProgram& program);
  // The final entry, synced. invalid: longer than kMaxExitText, or more than one line.
  Result<void> ended(std::string_view exit);

 private:
  KeeperRecord(std::string path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}
  Result<void> write_area(std::size_t begin, std::size_t end, const std::string& text);

  std::string path_;
  Fd file_;
};

}  // namespace mete::launch
