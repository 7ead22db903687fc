// SPDX-License-Identifier: Apache-2.0
// See process_watcher.h. A stop goes: look for members; TERM each once; wait for the known ones;
// look again; after the grace period KILL and look, with growing pauses, until two looks in a row
// have found no process. The child that looks also signals what it finds: a process that forks and
// exits all the time is gone before its pid reaches us.
#include "launch/process_watcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/forked.h"
#include "base/text.h"

namespace mete::launch {

namespace {

constexpr std::size_t kMaxText = 8 << 20;  // of one look

// A stopped process must run to handle TERM.
bool send_term(const core::ProcessRef& process, std::uint32_t uid) {
  if (!signal_process(process, uid, SIGTERM)) return false;
  (void)signal_process(process, uid, SIGCONT);
  return true;
}

// In the child: one line for each process that it finds.
void say(int socket, const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t sent = send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) {
      pollfd room{socket, POLLOUT, 0};
      (void)poll(&room, 1, -1);
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) _exit(1);
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace

ProcessWatcher::ProcessWatcher(seam::Loop loop, seam::Clock& clock, WatcherCallbacks callbacks,
                               Outsiders outsiders)
    : loop_(std::move(loop)),
      clock_(clock),
      callbacks_(std::move(callbacks)),
      outsiders_(std::move(outsiders)) {
  outsiders_.pids.push_back(getpid());  // we may have been started from within a job
}

ProcessWatcher::~ProcessWatcher() {
  *alive_ = false;
  for (auto& [id, watched] : jobs_) {
    unwatch_runner(watched);
    if (watched.stopping) drop_look(*watched.stopping);
  }
  reap();
}

ProcessWatcher::Watched* ProcessWatcher::find(core::JobId job, std::uint64_t generation) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || found->second.generation != generation) return nullptr;
  return &found->second;
}

void ProcessWatcher::later(core::JobId job, seam::Milliseconds delay,
                           void (ProcessWatcher::*what)(core::JobId)) {
  const std::uint64_t generation = jobs_.at(job).generation;
  loop_.after(delay, [this, job, generation, what, alive = alive_] {
    if (*alive && find(job, generation) != nullptr) (this->*what)(job);
  });
}

void ProcessWatcher::unwatch_runner(Watched& watched) {
  if (!watched.pidfd) return;
  loop_.unwatch_fd(watched.pidfd.get());
  watched.pidfd.reset();
  --handles_;
}

void ProcessWatcher::watch(core::JobId job, core::ProcessRef runner) {
  if (const auto known = jobs_.find(job); known != jobs_.end() && known->second.runner == runner)
    return;
  forget(job);
  Watched& watched = jobs_[job];
  watched.runner = runner;
  watched.generation = ++generations_;
  errno = 0;
  if (runner.pid > 0 && handles_ < most_handles_)
    watched.pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, runner.pid, 0)));
  const int error = errno;
  if (watched.pidfd) ++handles_;
  // We have a handle on the process that has this pid now; check that it is the right one.
  if (!is_living(runner) || (!watched.pidfd && error == ESRCH)) {
    if (watched.pidfd) --handles_;
    watched.pidfd.reset();
    later(job, seam::Milliseconds(0), &ProcessWatcher::runner_ended);
  } else if (watched.pidfd) {
    loop_.watch_fd(watched.pidfd.get(), [this, job] { runner_ended(job); });
  } else {
    later(job, kPollRunner, &ProcessWatcher::poll_runner);  // no descriptor left for a handle
  }
}

void ProcessWatcher::poll_runner(core::JobId job) {
  if (is_living(jobs_.at(job).runner))
    later(job, kPollRunner, &ProcessWatcher::poll_runner);
  else
    runner_ended(job);
}

void ProcessWatcher::runner_ended(core::JobId job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  unwatch_runner(found->second);
  callbacks_.runner_gone(job);
}

void ProcessWatcher::forget(core::JobId job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  unwatch_runner(found->second);
  if (found->second.stopping) drop_look(*found->second.stopping);
  jobs_.erase(found);
}

void ProcessWatcher::stop(core::JobId job) {
  const auto [entry, is_new] = jobs_.try_emplace(job);
  Watched& watched = entry->second;
  if (is_new) watched.generation = ++generations_;
  if (watched.stopping) return;
  watched.stopping = Stopping{};
  watched.stopping->began = clock_.monotonic();
  later(job, seam::Milliseconds(0), &ProcessWatcher::step);
}

void ProcessWatcher::step(core::JobId job) {
  Watched& watched = jobs_.at(job);
  if (!watched.stopping || watched.stopping->look) return;
  Stopping& stopping = *watched.stopping;
  reap();
  const std::optional<std::uint32_t> uid = callbacks_.uid_of(job);
  if (!uid) return;
  if (watched.runner.pid == 0) {
    watched.stopping.reset();
    callbacks_.job_gone(job);
    return;
  }
  std::erase_if(stopping.members, [](const auto& member) {
    return !is_living({member.first, member.second});
  });
  stopping.killing = clock_.monotonic() - stopping.began >= kGrace;
  for (const auto& [pid, start] : stopping.members) {
    if (stopping.killing)
      (void)signal_process({pid, start}, *uid, SIGKILL);
    else if (!stopping.termed.contains(pid) && send_term({pid, start}, *uid))
      stopping.termed.insert(pid);
  }
  if (!stopping.members.empty() && !stopping.killing) {
    later(job, kFirstPause * 5, &ProcessWatcher::step);
    return;
  }
  start_look(job, watched, *uid);
}

void ProcessWatcher::start_look(core::JobId job, Watched& watched, std::uint32_t uid) {
  Stopping& stopping = *watched.stopping;
  const JobScan scan{{job, uid, watched.runner}, outsiders_, stopping.later};
  Result<base::Forked> forked = Error::busy("too many scans of /proc hang");
  if (unreaped_.size() < kMaxUnreaped)
    forked = base::fork_around_socket("mete-look", [&](int socket) {
      const bool whole =
          scan_job(scan, {[&](pid_t pid) { say(socket, "look " + std::to_string(pid) + "\n"); },
                          [&](const core::ProcessRef& found) {
                            if (stopping.killing)
                              (void)signal_process(found, uid, SIGKILL);
                            else if (!stopping.termed.contains(found.pid))
                              (void)send_term(found, uid);
                            say(socket, "found " + std::to_string(found.pid) + " " +
                                            std::to_string(found.start_ticks) + "\n");
                          }});
      if (whole) say(socket, "end\n");
    });
  if (!forked) {
    later(job, kLongestPause, &ProcessWatcher::step);
    return;
  }
  Look& look = (stopping.look = Look{}).value();
  look.pid = forked->pid;
  look.socket = std::move(forked->socket);
  look.number = ++looks_;
  loop_.watch_fd(look.socket.get(), [this, job] { hear(job); });
  look.heard = clock_.monotonic();
  check_look(job, look.number);
}

// Reads pending output first: it may have been us who slept. That may also end the look.
void ProcessWatcher::check_look(core::JobId job, std::uint64_t number) {
  loop_.after(kScanLimit, [this, job, number, alive = alive_] {
    const auto look = [&]() -> const Look* {
      const auto found = jobs_.find(job);
      if (found == jobs_.end() || !found->second.stopping) return nullptr;
      const std::optional<Look>& one = found->second.stopping->look;
      return one && one->number == number ? &*one : nullptr;
    };
    if (!*alive || look() == nullptr) return;
    hear(job);
    if (look() == nullptr) return;
    if (clock_.monotonic() - look()->heard >= kScanLimit)
      end_look(job);
    else
      check_look(job, number);
  });
}

void ProcessWatcher::hear(core::JobId job) {
  // A loop may call once more for an event from before the unwatch.
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || !found->second.stopping || !found->second.stopping->look) return;
  Stopping& stopping = *found->second.stopping;
  Look& look = *stopping.look;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = recv(look.socket.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) break;
    look.heard = clock_.monotonic();
    look.text.append(buffer.data(), static_cast<std::size_t>(got));
    understand(stopping);
    if (look.complete || look.text.size() > kMaxText) break;
  }
  end_look(job);
}

void ProcessWatcher::understand(Stopping& stopping) {
  Look& look = *stopping.look;
  std::size_t at = 0;
  for (std::size_t end = 0; (end = look.text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::vector<std::string_view> words =
        base::split(std::string_view(look.text).substr(at, end - at), ' ');
    const Result<std::uint64_t> pid = words.size() > 1 ? base::parse_uint(words[1]) : 0;
    if (!pid) continue;
    if (words[0] == "look" && words.size() == 2) {
      look.at = static_cast<pid_t>(*pid);
    } else if (words[0] == "found" && words.size() == 3) {
      if (const Result<std::uint64_t> start = base::parse_uint(words[2])) {
        stopping.members[static_cast<pid_t>(*pid)] = *start;
        stopping.termed.insert(static_cast<pid_t>(*pid));
      }
    } else if (words[0] == "end") {
      look.complete = true;
    }
  }
  look.text.erase(0, at);
}

// For a look that did not finish, the process at which it hangs is known: it is looked at last from
// now on, and while it hangs the job cannot be reported as gone.
void ProcessWatcher::end_look(core::JobId job) {
  Stopping& stopping = *jobs_.at(job).stopping;
  const bool complete = stopping.look->complete;
  if (complete)
    stopping.later.clear();
  else if (stopping.look->at > 0)
    stopping.later.insert(stopping.look->at);
  drop_look(stopping);
  stopping.empty_looks = complete && stopping.members.empty() ? stopping.empty_looks + 1 : 0;
  if (stopping.empty_looks >= 2) {
    jobs_.at(job).stopping.reset();
    callbacks_.job_gone(job);
    return;
  }
  later(job, stopping.members.empty() || stopping.killing ? stopping.pause : seam::Milliseconds(0),
        &ProcessWatcher::step);
  if (stopping.killing || !complete) stopping.pause = std::min(stopping.pause * 2, kLongestPause);
}

void ProcessWatcher::drop_look(Stopping& stopping) {
  if (!stopping.look) return;
  loop_.unwatch_fd(stopping.look->socket.get());
  (void)kill(stopping.look->pid, SIGKILL);
  unreaped_.push_back(stopping.look->pid);
  stopping.look.reset();
  reap();
}

void ProcessWatcher::reap() {
  std::erase_if(unreaped_, [](pid_t pid) {
    // A wait for all children may have reaped it: then it is no child any more.
    return waitpid(pid, nullptr, WNOHANG) != 0;
  });
}

}  // namespace mete::launch
