// SPDX-License-Identifier: Apache-2.0
// The keepers of detached jobs, for the daemon: starts one for each attempt, finds those again that
// outlived an earlier daemon, and reports how they ended. Their records (keeper_record.h) have the
// facts; pipes and pidfds only say when to read them. Nothing here blocks for longer than it takes
// to start a process, and it reaps its own children by pid.
//
// For each start() exactly one of ended, runner_gone and not_launched is called, from the loop,
// never from within a call; `started` at most once before it. Used by meted's Hands
// (daemon/daemon.cc), for the jobs whose spec is detached, as
//
//   start   keepers.start(...); only `find` for a job that is to be stopped
//   stop    keepers.stop(job): a keeper that lives gets TERM and its end arrives as ended; if it is
//           gone, or dies of it, the processes that it left are ended, and the watcher calls
//           job_gone
//   forget  keepers.forget(job), and the watcher's
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "launch/cgroup.h"
#include "launch/keeper_record.h"
#include "launch/process_watcher.h"
#include "seam/clock.h"
#include "seam/launcher.h"
#include "seam/loop.h"

namespace mete::launch {

struct KeeperSettings {
  std::string program;                   // mete-keeper
  std::string folder;                    // of the records: STATE/keep
  seam::UuidBytes boot{};                // boot_id()
  std::vector<std::string> environment;  // of the keepers: keeper_environment()
  Outsiders outsiders;                   // as the watcher has them
  // How long after a stop a keeper may take to end its job (the grace period that it was given, and
  // more); then it is killed.
  seam::Milliseconds patience{60'000};
  std::size_t most_handles = 65'536;  // for keepers; the others are polled
  std::size_t most_starting = 256;    // at a time; the others wait
};

struct KeptStart {
  core::ProcessRef keeper;
  core::ProcessRef program;
  std::uint64_t ago_ms = 0;
};
struct KeptEnd {
  core::Exit exit;
  std::optional<KeptStart> start;  // absent: nothing was started
};

struct KeeperCallbacks {
  std::function<void(core::JobId, const KeptStart&)> started;
  std::function<void(core::JobId, const KeptEnd&)> ended;
  std::function<void(core::JobId)> runner_gone;
  // "": retry. `later`: the installation or the machine is at fault; not at once.
  std::function<void(core::JobId, const std::string& why, bool later)> not_launched;
  // Decodes the exit in a record (wire::decode_exit); nullopt: not understood.
  std::function<std::optional<core::Exit>(std::string_view)> read_exit;
  // For the daemon's log.
  std::function<void(const std::string&)> trouble = [](const std::string&) {};
};

enum class Start { kIfNeeded, kFindOnly };

class Keepers final {
 public:
  Keepers(KeeperSettings settings, seam::Loop loop, seam::Clock& clock, KeeperCallbacks callbacks,
          ProcessWatcher& watcher);
  ~Keepers();  // the keepers go on
  Keepers(const Keepers&) = delete;
  Keepers& operator=(const Keepers&) = delete;

  // Makes the folder. Once, before the first start, when it is known which attempts are wanted
  // (those that are not over): removes all other records, and drafts of claims.
  Result<void> begin(const std::function<bool(core::JobId, std::uint32_t attempt)>& wanted);

  // `plan` makes the bytes for a new keeper (wire::encode) and is called at most once, at once or
  // when other keepers have been started. Its errors end the job, except busy and io, which are
  // retried. Does nothing for an attempt that is kept already.
  void start(core::JobId job, std::uint32_t attempt, Start how,
             std::function<Result<std::string>()> plan);
  // For a job that was passed to start() first, after a restart too. Idempotent.
  void stop(core::JobId job);
  // Removes the record and everything else that is left. For a job whose end is on disk.
  void forget(core::JobId job);

  // For jobs that are stopped from now on.
  void set_patience(seam::Milliseconds patience) { settings_.patience = patience; }
  // For keepers that are started from now on.
  void use_program(std::string program) { settings_.program = std::move(program); }

  // Also for a keeper that is gone; nullopt: never claimed, or not known here.
  std::optional<core::ProcessRef> keeper_of(core::JobId job) const;

 private:
  static constexpr seam::Milliseconds kPollKeeper{500};  // without a pidfd
  static constexpr seam::Milliseconds kPollStart{100};   // of a keeper that another daemon started
  static constexpr seam::Milliseconds kPollGroup{50};    // while it is being ended
  static constexpr seam::Milliseconds kBeforeNextTry{1'000};  // when the machine lacks a resource
  static constexpr seam::Milliseconds kSayAgain{60'000};      // when nothing can be launched
  static constexpr int kMaxEarlyDeaths = 3;

  struct Kept {
    std::uint32_t attempt = 1;
    std::uint64_t generation = 0;
    pid_t child = -1;         // to be reaped
    pid_t ended = -1;         // the keeper with this pid is gone, and its record is to be read
    core::ProcessRef keeper;  // pid 0: not known yet
    Fd pidfd;
    Fd words;           // what the keeper says
    std::string heard;  // the part that was read
    std::vector<std::string> groups;
    std::function<Result<std::string>()> plan;  // until it is launched, or found
    bool told_start = false;
    bool over = false;   // one of the three callbacks was called, or is about to be
    std::string why;     // of not_launched
    bool later = false;  // of not_launched
    bool gone = false;   // it ended without a report: processes of the job may be left
    bool stopping = false;
    std::optional<seam::Nanoseconds> ending_since = {};  // since when leftover processes are being
                                                         // ended
    std::set<pid_t> termed;                              // which of them got TERM
  };

  Kept* find(core::JobId job, std::uint64_t generation);
  void later(core::JobId job, seam::Milliseconds delay, void (Keepers::*what)(core::JobId));
  std::string path_of(core::JobId job, const Kept& kept) const;

  void look(core::JobId job);
  void launch(core::JobId job);
  void launch_waiting();
  void spawn(core::JobId job, Kept& kept, const std::string& plan);
  void adopt(core::JobId job, Kept& kept, const Record& record);
  void watch(core::JobId job, Kept& kept);
  void unwatch(Kept& kept);
  Fd handle_on(pid_t pid);
  void drop_handle(Kept& kept);
  void drop_words(Kept& kept);
  void poll_keeper(core::JobId job);
  void poll_start(core::JobId job);
  void hear(core::JobId job);
  std::optional<KeptStart> start_of(const Record& record) const;

  // The keeper is gone: reads its record.
  void keeper_ended(core::JobId job);
  void read_last_words(core::JobId job);
  void conclude(core::JobId job, Kept& kept, const Record& record);
  void claimed_nothing(core::JobId job, Kept& kept);
  void died_early(core::JobId job, Kept& kept);
  // The installation or the machine prevents a launch: reports it in the daemon's log, at most once
  // a minute.
  void put_off(core::JobId job, Kept& kept, const std::string& why);
  void tell_not_launched(core::JobId job);
  void tell_gone(core::JobId job);

  static void send(const Kept& kept, int signal_number);
  void insist(core::JobId job);
  void end_leftovers(core::JobId job);
  std::vector<Cgroup> groups_of(core::JobId job, const Kept& kept) const;

  KeeperSettings settings_;
  seam::Loop loop_;
  seam::Clock& clock_;
  KeeperCallbacks callbacks_;
  ProcessWatcher& watcher_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // timers outlive us
  std::map<core::JobId, Kept> jobs_;
  std::map<core::JobId, int> early_deaths_;
  std::string said_;             // by put_off, last time
  seam::Nanoseconds said_at_{};  // and when
  std::uint64_t generations_ = 0;
  std::size_t handles_ = 0;
  std::size_t starting_ = 0;                                   // keepers with an open report pipe
  std::deque<std::pair<core::JobId, std::uint64_t>> waiting_;  // to be started; with the generation
};

}  // namespace mete::launch
