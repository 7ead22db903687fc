// SPDX-License-Identifier: Apache-2.0
// See sweep_follow.h. The daemon is asked for one short row, at first four times a second and then
// once a second, over restarts of the daemon. All trials are asked for at the end alone, and for
// --csv after new results, but never for more than a tenth of the time: a sweep may have 100,000.
#include "cli/sweep_follow.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "cli/status_line.h"
#include "cli/sweep_document.h"
#include "cli/sweep_text.h"
#include "cli/table.h"
#include "cli/wait_signals.h"
#include "runner/lasting_client.h"
#include "seam/clock.h"
#include "sweep/results_csv.h"

namespace mete::cli {

using core::sweep::SweepState;
using wire::SweepDocument;
using wire::SweepRow;

namespace {

constexpr int kFirstTickMs = 250;
constexpr int kTickMs = 1'000;
constexpr int kFirstTicks = 20;
constexpr std::size_t kBest = 10;  // rows of the table at the end
constexpr int kExitSomeFailed = 1;
constexpr int kExitStopped = 128 + SIGTERM;  // as mete wait for a cancelled job

bool is_over(const SweepRow& row) {
  return row.state == SweepState::kDone || (row.state == SweepState::kStopped && row.running == 0);
}

std::uint64_t results_of(const SweepRow& row) { return row.ok + row.failed + row.stopped; }

class Follower {
 public:
  Follower(runner::DaemonClient client, SweepRef ref, std::string csv, const Output& output)
      : ref_(std::move(ref)),
        csv_(std::move(csv)),
        output_(output),
        client_(std::move(client), [this](std::string_view text) { say(text); }) {}

  int follow() {
    for (int tick = 0;; ++tick) {
      const Result<SweepRow> row = row_in(ask("brief=1"));
      if (const int signal = signals_.take(); signal != 0) return leave(signal);
      if (!row) return fail(row.error());
      if (Result<void> r = show(*row); !r) return fail(r.error());
      if (is_over(*row)) return finish(*row);
      pollfd interrupt{signals_.descriptor(), POLLIN, 0};
      (void)poll(&interrupt, 1, tick < kFirstTicks ? kFirstTickMs : kTickMs);
      if (const int signal = signals_.take(); signal != 0) return leave(signal);
    }
  }

 private:
  Result<std::string> ask(std::string_view query) {
    return client_.call("GET", sweep_target(ref_, {}, query), {},
                        {runner::DaemonClient::kPatience.timeout, signals_.descriptor()});
  }

  void say(std::string_view text) {
    line_.clear();
    output_.say(text);
  }

  int fail(const Error& error) {
    line_.clear();
    return output_.fail(error);
  }

  Result<void> show(const SweepRow& row) {
    const WallTime now = seam::system_clock().wall();
    if (line_.terminal()) {
      line_.draw("mete: " + progress_line(row, now));
    } else if (row.best && best_ != row.best && !is_over(row)) {
      say(best_text(*row.best) + ", the best so far; " + counts_text(row));
    }
    best_ = row.best;
    if (row.failed > 0 && !std::exchange(failed_, true) && !is_over(row))
      say("a trial has failed; mete sweep show " + words_of(ref_) + " says why");
    if (csv_.empty() || results_of(row) == written_ || is_over(row)) return {};
    if (asked_ && now.ms < asked_->ms + 10 * took_ms_) return {};
    const Result<SweepDocument> document = document_in(ask({}));
    if (client_.interrupted()) return {};
    if (!document) return document.error();
    asked_ = seam::system_clock().wall();
    took_ms_ = std::max<std::int64_t>(100, asked_->ms - now.ms);
    written_ = results_of(row);
    return write_csv(*document);
  }

  Result<void> write_csv(const SweepDocument& document) const {
    Result<void> written = base::write_atomic(csv_, sweep::to_csv(document), 0644);
    if (written) return {};
    return std::move(written).error().within("--csv").with_hint(
        "the sweep goes on: mete sweep follow " + words_of(ref_));
  }

  int leave(int signal) {
    line_.clear();
    output_.say("sweep " + ref_.name + " goes on without this command");
    output_.say("mete sweep follow " + words_of(ref_) + " comes back to it, mete sweep stop " +
                words_of(ref_) + " ends it");
    return 128 + signal;
  }

  int finish(const SweepRow& row) {
    Result<SweepDocument> document = document_in(ask({}));
    if (const int signal = signals_.take(); signal != 0) return leave(signal);
    line_.clear();
    if (!document) return output_.fail(document.error());
    signals_.restore();
    int code = kExitOk;
    if (!csv_.empty())
      if (const Result<void> r = write_csv(*document); !r) code = output_.fail(r.error());
    if (output_.json()) {
      add_importance(*document);
      output_.data(wire::encode(*document));
    } else if (const TrialList best = best_and_running(*document, kBest, 0); !best.empty()) {
      output_.data(trials_table(*document, best, stdout_width()));
    }
    output_.say(end_text(row, seam::system_clock().wall()));
    if (const std::string failures = failures_text(*document); !failures.empty())
      output_.say(failures);
    if (!document->metric.empty() && !row.best && row.ok > 0)
      output_.say("no trial has reported a finite number for " + document->metric +
                  "; mete sweep logs " + words_of(ref_) + " shows what a trial printed");
    if (code != kExitOk) return code;
    if (row.state == SweepState::kStopped) return kExitStopped;
    return row.failed > 0 ? kExitSomeFailed : kExitOk;
  }

  SweepRef ref_;
  std::string csv_;
  const Output& output_;
  StatusLine line_;
  WaitSignals signals_;
  runner::LastingClient client_;
  std::optional<SweepDocument::Best> best_;
  bool failed_ = false;            // the first failure was told
  std::uint64_t written_ = 0;      // results that are in the file
  std::optional<WallTime> asked_;  // when all trials were last asked for
  std::int64_t took_ms_ = 0;
};

}  // namespace

Result<void> check_csv(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return Error::invalid("--csv " + base::quote(path) + " is a folder")
        .with_hint("name a file: --csv results.csv");
  const std::string folder = base::parent_path(path);
  if (access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return Error::invalid("--csv " + base::quote(path) + " cannot be written")
      .with_evidence(folder + ": " + std::generic_category().message(errno));
}

int follow_sweep(runner::DaemonClient client, const SweepRef& ref, const std::string& csv,
                 const Output& output) {
  return Follower(std::move(client), ref, csv, output).follow();
}

}  // namespace mete::cli
