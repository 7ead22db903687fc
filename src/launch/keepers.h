// SPDX-License-Identifier: Apache-2.0
// The keepers of detached jobs, for the daemon: starts one for each attempt, finds those again that
// outlived an earlier daemon, and tells what became of them. What is true is in their records
// (keeper_record.h); pipes and pidfds only say when to look. Nothing here blocks for longer than it
// takes to start a process, and it reaps its own children by number.
//
// For each start() exactly one of ended, runner_gone and not_launched is called, from the loop,
// never from within a call; `started` at most once before it. Used by meted's Hands
// (daemon/daemon.cc), for the jobs whose spec is detached, as
//
//   start   keepers.start(...); `find` alone for a job that is to be stopped
//   stop    keepers.stop(job): a keeper that lives is told and its end arrives as ended; where it
//           is gone, or dies of it, what it left behind is ended, and the watcher's job_gone comes
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
  // From a stop on: so long a keeper has to end its job (the grace that it was told, and more);
  // then it is killed.
  seam::Milliseconds patience{60'000};
  std::size_t most_handles = 65'536;  // on keepers; the others are looked at now and then
  std::size_t most_starting = 256;    // at a time; the others wait for them
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
  // "": try again. `later`: the installation or the machine is at fault; not at once.
  std::function<void(core::JobId, const std::string& why, bool later)> not_launched;
  // What stands in a record as the exit (wire::decode_exit); nullopt: not understood.
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
  // (those that are not over): records of others are removed, and drafts of claims.
  Result<void> begin(const std::function<bool(core::JobId, std::uint32_t attempt)>& wanted);

  // `plan` makes the bytes for a new keeper (wire::encode) and is called at most once, at
  // once or when others have been started. Its errors end the job, but for busy and io, which are
  // worth another try. Again for an attempt that is kept already: nothing happens.
  void start(core::JobId job, std::uint32_t attempt, Start how,
             std::function<Result<std::string>()> plan);
  // Of a job that was started here first, after a restart too. Asking again does no harm.
  void stop(core::JobId job);
  // Removes the record and what else is left. For a job whose end is on disk.
  void forget(core::JobId job);

  // Of keepers that are started from now on.
  void use_program(std::string program) { settings_.program = std::move(program); }

  // Also of one that is gone; nullopt: never claimed, or not known here.
  std::optional<core::ProcessRef> keeper_of(core::JobId job) const;

 private:
  static constexpr seam::Milliseconds kPollKeeper{500};       // where there is no pidfd
  static constexpr seam::Milliseconds kPollStart{100};        // of one that another daemon started
  static constexpr seam::Milliseconds kPollGroup{50};         // while it is being ended
  static constexpr seam::Milliseconds kBeforeNextTry{1'000};  // when the machine is in need
  static constexpr seam::Milliseconds kSayAgain{60'000};      // that nothing can be launched
  static constexpr int kMaxEarlyDeaths = 3;

  struct Kept {
    std::uint32_t attempt = 1;
    std::uint64_t generation = 0;
    pid_t child = -1;         // to be reaped
    pid_t ended = -1;         // the keeper of this number is gone, and its record is to be read
    core::ProcessRef keeper;  // pid 0: not known yet
    Fd pidfd;
    Fd words;           // what the keeper says
    std::string heard;  // of it
    std::vector<std::string> groups;
    std::function<Result<std::string>()> plan;  // until it is launched, or found
    bool told_start = false;
    bool over = false;   // one of the three was called, or is about to be
    std::string why;     // of not_launched
    bool later = false;  // of not_launched
    bool gone = false;   // without a word: there may be processes of the job
    bool stopping = false;
    std::optional<seam::Nanoseconds> ending_since = {};  // what it left behind
    std::set<pid_t> termed;                              // of that
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

  // The keeper is gone: what does its record say?
  void keeper_ended(core::JobId job);
  void read_last_words(core::JobId job);
  void conclude(core::JobId job, Kept& kept, const Record& record);
  void claimed_nothing(core::JobId job, Kept& kept);
  void died_early(core::JobId job, Kept& kept);
  // By the installation or the machine, which is said in the daemon's log, but not all the time.
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
  std::string said_;             // by put_off, the last time
  seam::Nanoseconds said_at_{};  // and when
  std::uint64_t generations_ = 0;
  std::size_t handles_ = 0;
  std::size_t starting_ = 0;                                   // with an open pipe for its words
  std::deque<std::pair<core::JobId, std::uint64_t>> waiting_;  // to be started; with the generation
};

}  // namespace mete::launch
