// SPDX-License-Identifier: Apache-2.0
// The processes of jobs, for the daemon: reports when a runner is gone, and ends all processes of a
// job: those that its runner has left behind, or the runner too if it does not end its job. Nothing
// here blocks: runners are watched by pidfd, and a child process reads /proc, since a process that
// hangs in the driver can block its reader. It reaps its own children by pid: no other code in the
// program may wait for all children.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launch/job_scan.h"
#include "launch/process_tree.h"
#include "seam/clock.h"
#include "seam/launcher.h"
#include "seam/loop.h"

namespace mete::launch {

struct WatcherCallbacks {
  // The user of a job; nullopt: no such job.
  std::function<std::optional<std::uint32_t>(core::JobId)> uid_of;
  std::function<void(core::JobId)> runner_gone;
  std::function<void(core::JobId)> job_gone;
};

// The part of seam::Launcher that is about processes.
class ProcessWatcher final {
 public:
  static constexpr seam::Milliseconds kGrace{5000};         // between TERM and KILL
  static constexpr seam::Milliseconds kScanLimit{2000};     // of silence: then a look hangs
  static constexpr seam::Milliseconds kLongestPause{5000};  // between looks for processes that do
                                                            // not die

  // `outsiders`: processes that carry a job's mark without belonging to it. Callbacks come from the
  // loop, never from within watch(), stop() or forget().
  ProcessWatcher(seam::Loop loop, seam::Clock& clock, WatcherCallbacks callbacks,
                 Outsiders outsiders = {});
  ~ProcessWatcher();
  ProcessWatcher(const ProcessWatcher&) = delete;
  ProcessWatcher& operator=(const ProcessWatcher&) = delete;

  // Idempotent for the same runner.
  void watch(core::JobId job, core::ProcessRef runner);
  // The number of descriptors for runners, from now on; the others are polled.
  void keep_handles(std::size_t most) { most_handles_ = most; }
  // For a job that was watched first, after a restart too: its runner distinguishes its processes
  // from others. A job that was never watched never had a runner, and is gone.
  void stop(core::JobId job);
  void forget(core::JobId job);

 private:
  static constexpr seam::Milliseconds kFirstPause{20};
  static constexpr seam::Milliseconds kPollRunner{500};  // without a pidfd
  static constexpr std::size_t kMaxUnreaped = 8;         // looks that no signal ends

  // A look through /proc under way in a child.
  struct Look {
    pid_t pid = -1;
    Fd socket;
    std::string text;  // output that was not parsed yet
    pid_t at = 0;      // the process that it looks at
    bool complete = false;
    std::uint64_t number = 0;
    seam::Nanoseconds heard{};  // when it last wrote
  };
  struct Stopping {
    seam::Nanoseconds began{};
    std::map<pid_t, std::uint64_t> members;  // pid → start
    std::set<pid_t> termed;                  // have got TERM, from us or from a look
    std::set<pid_t> later;
    int empty_looks = 0;
    bool killing = false;
    seam::Milliseconds pause = kFirstPause;
    std::optional<Look> look;
  };
  struct Watched {
    core::ProcessRef runner;  // pid 0: never had one
    Fd pidfd;
    std::uint64_t generation = 0;
    std::optional<Stopping> stopping;
  };

  Watched* find(core::JobId job, std::uint64_t generation);
  void later(core::JobId job, seam::Milliseconds delay, void (ProcessWatcher::*what)(core::JobId));
  void unwatch_runner(Watched& watched);
  void runner_ended(core::JobId job);
  void poll_runner(core::JobId job);
  // The next step of a stop: wait for known members, signal them, or look for more.
  void step(core::JobId job);
  void start_look(core::JobId job, Watched& watched, std::uint32_t uid);
  void check_look(core::JobId job, std::uint64_t number);
  void hear(core::JobId job);
  void understand(Stopping& stopping);
  void end_look(core::JobId job);
  void drop_look(Stopping& stopping);
  void reap();

  seam::Loop loop_;
  seam::Clock& clock_;
  WatcherCallbacks callbacks_;
  Outsiders outsiders_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // timers outlive us
  std::map<core::JobId, Watched> jobs_;
  std::size_t most_handles_ = SIZE_MAX;
  std::size_t handles_ = 0;
  std::uint64_t generations_ = 0;
  std::uint64_t looks_ = 0;
  std::vector<pid_t> unreaped_;
};

}  // namespace mete::launch
