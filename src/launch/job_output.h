// SPDX-License-Identifier: Apache-2.0
// Where the output of a detached job goes: through pipes, or a terminal with --tty, to its keeper,
// which writes the logs. Makes the programs' ends and reads ours while they run.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "launch/job_log.h"
#include "launch/terminal_door.h"

namespace mete::launch {

class JobOutput {
 public:
  struct Places {
    LogPlace log;
    std::optional<LogPlace> error_log;  // absent: stderr goes to the same log
    std::string terminal;               // the socket of --tty; "": no terminal
  };
  static Result<JobOutput> open(const Places& places);

  // Standard error has a stream of its own only with a log of its own.
  enum class Stream { kOutput, kError };
  // Shows what the programs write as it passes to the logs, in pieces of any size; our own lines
  // are not among it. Must return soon: the programs wait.
  using Seen = std::function<void(Stream stream, std::string_view bytes)>;
  void watch(Seen seen) { seen_ = std::move(seen); }

  // For the programs: standard input, output and error.
  int input() const { return terminal_ ? terminal_->terminal() : null_.get(); }
  int output() const { return terminal_ ? terminal_->terminal() : pipe_.write.get(); }
  int error() const { return error_pipe_.write ? error_pipe_.write.get() : output(); }
  bool has_terminal() const { return terminal_.has_value(); }
  // The programs have their ends: close our copies of them, so that we see when they end.
  void started();

  void listen(std::vector<pollfd>& list);
  void heard(std::span<const pollfd> list);
  // All programs are gone: reads what is still there. Does not wait.
  void finish();

  // A line of our own, in the log of errors if there is one.
  void say(std::string_view text);
  Bytes size() const;
  std::uint64_t lost() const;

 private:
  JobOutput(JobLog log, std::optional<JobLog> error_log)
      : log_(std::move(log)), error_log_(std::move(error_log)) {}
  // False: end of file.
  bool pump(Stream stream);
  void pass(Stream stream, std::string_view bytes);
  base::Pipe& pipe_of(Stream stream) { return stream == Stream::kOutput ? pipe_ : error_pipe_; }
  JobLog& errors() { return error_log_ ? *error_log_ : log_; }

  JobLog log_;
  std::optional<JobLog> error_log_;
  std::optional<TerminalDoor> terminal_;
  Fd null_;
  base::Pipe pipe_;
  base::Pipe error_pipe_;  // only with an error log of its own
  Seen seen_;
  // Not touched, so never paged in, for a job that writes nothing.
  static constexpr std::size_t kBuffer = 64 << 10;
  std::unique_ptr<char[]> buffer_ = std::make_unique_for_overwrite<char[]>(kBuffer);
};

}  // namespace mete::launch
