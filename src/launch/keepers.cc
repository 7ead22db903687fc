// SPDX-License-Identifier: Apache-2.0
// See keepers.h. A job goes through: spawn a keeper, or find its record → watch the keeper → read
// its record when it reports that the program runs, and when it has ended. A keeper of an earlier
// daemon is polled until its record shows the start. At most `most_starting` keepers are being
// started at a time; the others wait in a queue.
#include "launch/keepers.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "launch/keeper_spawn.h"

namespace mete::launch {

namespace {

constexpr std::size_t kMaxWords = 4096;

// The rest of a line that begins with `words`.
std::optional<std::string> said(const std::string& heard, std::string_view words) {
  for (const std::string_view line : base::split(heard, '\n'))
    if (line.starts_with(words)) return std::string(line.substr(words.size()));
  return std::nullopt;
}

}  // namespace

Keepers::Keepers(KeeperSettings settings, seam::Loop loop, seam::Clock& clock,
                 KeeperCallbacks callbacks, ProcessWatcher& watcher)
    : settings_(std::move(settings)),
      loop_(std::move(loop)),
      clock_(clock),
      callbacks_(std::move(callbacks)),
      watcher_(watcher) {}

Keepers::~Keepers() {
  *alive_ = false;
  for (auto& [job, kept] : jobs_) unwatch(kept);
}

Result<void> Keepers::begin(const std::function<bool(core::JobId, std::uint32_t attempt)>& wanted) {
  if (Result<void> r = base::make_directories(settings_.folder); !r) return r;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(settings_.folder.c_str()), closedir);
  if (!directory) return Error::from_errno("read " + settings_.folder, errno);
  std::vector<std::string> old;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    const std::optional<RecordName> record = parse_record_name(name);
    // A draft whose keeper lives belongs to a daemon that is gone: it cannot become a claim any
    // more.
    const bool draft = name.size() > 1 && name[0] == '.' && name != "..";
    if (draft || (record && !wanted(record->job, record->attempt))) old.emplace_back(name);
  }
  for (const std::string& name : old) (void)unlink(base::join_path(settings_.folder, name).c_str());
  return {};
}

Keepers::Kept* Keepers::find(core::JobId job, std::uint64_t generation) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || found->second.generation != generation) return nullptr;
  return &found->second;
}

void Keepers::later(core::JobId job, seam::Milliseconds delay, void (Keepers::*what)(core::JobId)) {
  const std::uint64_t generation = jobs_.at(job).generation;
  loop_.after(delay, [this, job, generation, what, alive = alive_] {
    if (*alive && find(job, generation) != nullptr) (this->*what)(job);
  });
}

std::string Keepers::path_of(core::JobId job, const Kept& kept) const {
  return base::join_path(settings_.folder, to_string(RecordName{job, kept.attempt}));
}

std::optional<core::ProcessRef> Keepers::keeper_of(core::JobId job) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || found->second.keeper.pid == 0) return std::nullopt;
  return found->second.keeper;
}

// ---- starting and finding ----------------------------------------------------------------------

void Keepers::start(core::JobId job, std::uint32_t attempt, Start how,
                    std::function<Result<std::string>()> plan) {
  if (const auto known = jobs_.find(job); known != jobs_.end()) {
    if (known->second.attempt == attempt && !known->second.over) return;
    unwatch(known->second);
    jobs_.erase(known);
  }
  Kept& kept = jobs_[job];
  kept.attempt = attempt;
  kept.generation = ++generations_;
  if (how == Start::kIfNeeded) kept.plan = std::move(plan);
  look(job);
}

// Looks for a record, of an earlier daemon's keeper or of one that was faster than ours.
void Keepers::look(core::JobId job) {
  Kept& kept = jobs_.at(job);
  const Result<Record> record = read_record(path_of(job, kept));
  if (record) {
    adopt(job, kept, *record);
  } else if (record.error().code == ErrorCode::kBusy) {
    later(job, kBeforeNextTry, &Keepers::look);  // no descriptor left: the job may be running
  } else if (record.error().code != ErrorCode::kNotFound) {
    callbacks_.trouble("job " + core::to_string(job) + ": " + record.error().message);
    later(job, seam::Milliseconds(0), &Keepers::tell_gone);
  } else if (!kept.plan || kept.stopping) {
    later(job, seam::Milliseconds(0), &Keepers::tell_not_launched);
  } else if (starting_ >= settings_.most_starting) {
    waiting_.emplace_back(job, kept.generation);
  } else {
    launch(job);
  }
}

void Keepers::launch(core::JobId job) {
  Kept& kept = jobs_.at(job);
  const Result<std::string> bytes = std::exchange(kept.plan, nullptr)();
  if (bytes) {
    spawn(job, kept, *bytes);
    return;
  }
  const Error& error = bytes.error();
  const std::string why = error.message + (error.evidence.empty() ? "" : ": " + error.evidence);
  if (error.is_shortage() || error.code == ErrorCode::kIo) {
    put_off(job, kept, why);
  } else {
    kept.why = why;
    later(job, seam::Milliseconds(0), &Keepers::tell_not_launched);
  }
}

void Keepers::launch_waiting() {
  while (!waiting_.empty() && starting_ < settings_.most_starting) {
    const auto [job, generation] = waiting_.front();
    waiting_.pop_front();
    if (const Kept* kept = find(job, generation);
        kept != nullptr && kept->plan && !kept->over && !kept->stopping)
      launch(job);
  }
}

void Keepers::spawn(core::JobId job, Kept& kept, const std::string& plan) {
  Result<SpawnedKeeper> keeper = spawn_keeper(
      {settings_.program, to_string(RecordName{job, kept.attempt}), settings_.environment}, plan);
  if (!keeper) {
    put_off(job, kept, keeper.error().message);
    return;
  }
  kept.child = keeper->pid;
  kept.words = std::move(keeper->words);
  ++starting_;
  loop_.watch_fd(kept.words.get(), [this, job] { hear(job); });
  // Our own child: its pid cannot be reused before we reap it.
  kept.pidfd = handle_on(kept.child);
  watch(job, kept);
}

// The keeper belongs to an earlier daemon, or was faster than ours.
void Keepers::adopt(core::JobId job, Kept& kept, const Record& record) {
  kept.keeper = record.claim.keeper;
  kept.groups = record.groups;
  kept.plan = nullptr;
  kept.pidfd = handle_on(kept.keeper.pid);
  // We have a handle on the process that has this pid now; check that it is the right one.
  if (record.claim.boot != settings_.boot || !is_living(kept.keeper)) {
    drop_handle(kept);
    later(job, seam::Milliseconds(0), &Keepers::keeper_ended);
    return;
  }
  watch(job, kept);
  later(job, seam::Milliseconds(0), &Keepers::poll_start);
}

void Keepers::watch(core::JobId job, Kept& kept) {
  if (kept.pidfd)
    loop_.watch_fd(kept.pidfd.get(), [this, job] { keeper_ended(job); });
  else
    later(job, kPollKeeper, &Keepers::poll_keeper);  // no descriptor left for a handle
}

void Keepers::unwatch(Kept& kept) {
  if (kept.pidfd) loop_.unwatch_fd(kept.pidfd.get());
  drop_handle(kept);
  drop_words(kept);
}

// Empty if there is no descriptor for it.
Fd Keepers::handle_on(pid_t pid) {
  Fd handle;
  if (handles_ < settings_.most_handles)
    handle.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (handle) ++handles_;
  return handle;
}

void Keepers::drop_handle(Kept& kept) {
  if (!kept.pidfd) return;
  kept.pidfd.reset();
  --handles_;
}

// The keeper has reported everything: another one may be started.
void Keepers::drop_words(Kept& kept) {
  if (!kept.words) return;
  loop_.unwatch_fd(kept.words.get());
  kept.words.reset();
  --starting_;
  if (waiting_.empty()) return;
  loop_.after(seam::Milliseconds(0), [this, alive = alive_] {
    if (*alive) launch_waiting();
  });
}

void Keepers::poll_keeper(core::JobId job) {
  const Kept& kept = jobs_.at(job);
  siginfo_t ended{};
  const bool lives = kept.child > 0 ? waitid(P_PID, static_cast<id_t>(kept.child), &ended,
                                             WEXITED | WNOHANG | WNOWAIT) == 0 &&
                                          ended.si_pid == 0
                                    : is_living(kept.keeper);
  if (lives)
    later(job, kPollKeeper, &Keepers::poll_keeper);
  else
    keeper_ended(job);
}

// ---- while it runs -----------------------------------------------------------------------------

void Keepers::hear(core::JobId job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || !found->second.words) return;
  Kept& kept = found->second;
  char buffer[1024];
  ssize_t got = 0;
  while ((got = read(kept.words.get(), buffer, sizeof buffer)) > 0)
    if (kept.heard.size() < kMaxWords) kept.heard.append(buffer, static_cast<std::size_t>(got));
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    drop_words(kept);
  }
  if (kept.told_start || !said(kept.heard, kSaysStarted)) return;
  // Its last report. A helper of the keeper may hold the other end for as long as the job runs.
  drop_words(kept);
  poll_start(job);
}

void Keepers::poll_start(core::JobId job) {
  Kept& kept = jobs_.at(job);
  if (kept.over || kept.told_start) return;
  const Result<Record> record = read_record(path_of(job, kept));
  const std::optional<KeptStart> start = record ? start_of(*record) : std::nullopt;
  if (!start) {
    later(job, kPollStart, &Keepers::poll_start);
    return;
  }
  kept.keeper = record->claim.keeper;
  kept.groups = record->groups;
  kept.told_start = true;
  early_deaths_.erase(job);
  callbacks_.started(job, *start);
}

std::optional<KeptStart> Keepers::start_of(const Record& record) const {
  if (!record.program) return std::nullopt;
  KeptStart start{record.claim.keeper, record.program->program, 0};
  // For another boot the time since the start is unknown.
  if (record.claim.boot == settings_.boot)
    start.ago_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(
        0,
        std::chrono::duration_cast<seam::Milliseconds>(clock_.monotonic() - record.program->since)
            .count()));
  return start;
}

// ---- when it has ended -------------------------------------------------------------------------

void Keepers::keeper_ended(core::JobId job) {
  hear(job);
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || found->second.over) return;
  Kept& kept = found->second;
  // A loop may call once more for an earlier event on a descriptor with this number.
  pollfd ended{kept.pidfd.get(), POLLIN, 0};
  if (kept.pidfd && poll(&ended, 1, 0) == 0) return;
  unwatch(kept);
  kept.ended = kept.child > 0 ? kept.child : kept.keeper.pid;
  if (kept.child > 0) (void)waitpid(kept.child, nullptr, WNOHANG);
  kept.child = -1;  // from now on the pid may be reused
  read_last_words(job);
}

void Keepers::read_last_words(core::JobId job) {
  Kept& kept = jobs_.at(job);
  const pid_t keeper = kept.ended;
  const Result<Record> record = read_record(path_of(job, kept));
  if (!record && record.error().code == ErrorCode::kBusy) {
    later(job, kBeforeNextTry, &Keepers::read_last_words);  // the exit is in the record
  } else if (!record && record.error().code == ErrorCode::kNotFound) {
    claimed_nothing(job, kept);
  } else if (!record) {
    callbacks_.trouble("job " + core::to_string(job) + ": " + record.error().message);
    tell_gone(job);
  } else if (record->claim.keeper.pid != keeper) {
    adopt(job, kept, *record);
  } else {
    conclude(job, kept, *record);
  }
}

void Keepers::conclude(core::JobId job, Kept& kept, const Record& record) {
  kept.keeper = record.claim.keeper;
  kept.groups = record.groups;
  const std::optional<core::Exit> exit =
      record.exit ? callbacks_.read_exit(*record.exit) : std::nullopt;
  if (exit) {
    kept.over = true;
    early_deaths_.erase(job);
    callbacks_.ended(job, {*exit, start_of(record)});
    return;
  }
  if (record.launched || record.claim.boot != settings_.boot) {
    tell_gone(job);
    return;
  }
  // The keeper had claimed the attempt and was killed before anything ran: removes the claim,
  // synced, so that it stays free after a crash.
  (void)unlink(path_of(job, kept).c_str());
  (void)base::sync_folder(settings_.folder);
  died_early(job, kept);
}

void Keepers::claimed_nothing(core::JobId job, Kept& kept) {
  if (const std::optional<std::string> why = said(kept.heard, kSaysRefused)) {
    put_off(job, kept, "mete-keeper has another version than the running daemon: " + *why);
  } else if (const std::optional<std::string> need = said(kept.heard, kSaysNotNow)) {
    put_off(job, kept, *need);
  } else {
    died_early(job, kept);
  }
}

// The keeper was killed, or withdrew its claim: retry, but not for ever.
void Keepers::died_early(core::JobId job, Kept& kept) {
  const int times = kept.stopping ? 0 : ++early_deaths_[job];
  if (times > kMaxEarlyDeaths) {
    early_deaths_.erase(job);
    put_off(job, kept,
            "its keeper died " + std::to_string(times) + " times before it could run anything");
  } else
    later(job, times > 1 ? kBeforeNextTry : seam::Milliseconds(0), &Keepers::tell_not_launched);
}

void Keepers::put_off(core::JobId job, Kept& kept, const std::string& why) {
  const seam::Nanoseconds now = clock_.monotonic();
  if (why != said_ || now - said_at_ >= kSayAgain) {
    callbacks_.trouble("job " + core::to_string(job) + " cannot be launched now: " + why);
    said_ = why;
    said_at_ = now;
  }
  kept.why = why;
  kept.later = true;
  later(job, seam::Milliseconds(0), &Keepers::tell_not_launched);
}

void Keepers::tell_not_launched(core::JobId job) {
  Kept& kept = jobs_.at(job);
  if (std::exchange(kept.over, true)) return;
  callbacks_.not_launched(job, kept.why, kept.later);
}

void Keepers::tell_gone(core::JobId job) {
  Kept& kept = jobs_.at(job);
  if (std::exchange(kept.over, true)) return;
  kept.gone = true;
  if (kept.stopping) later(job, seam::Milliseconds(0), &Keepers::end_leftovers);
  callbacks_.runner_gone(job);
}

// ---- ending it ---------------------------------------------------------------------------------

void Keepers::stop(core::JobId job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) {
    watcher_.stop(job);  // never had a keeper: it is gone
    return;
  }
  Kept& kept = found->second;
  if (std::exchange(kept.stopping, true)) return;
  if (kept.gone) {
    later(job, seam::Milliseconds(0), &Keepers::end_leftovers);
  } else if (kept.plan) {
    later(job, seam::Milliseconds(0), &Keepers::look);  // it waits to be started, and never will be
  } else if (!kept.over) {
    send(kept, SIGTERM);
    send(kept, SIGCONT);
    later(job, settings_.patience, &Keepers::insist);
  }
}

void Keepers::send(const Kept& kept, int signal_number) {
  if (kept.pidfd)
    (void)syscall(SYS_pidfd_send_signal, kept.pidfd.get(), signal_number, nullptr, 0);
  else if (kept.child > 0 || (kept.keeper.pid > 0 && is_living(kept.keeper)))
    (void)kill(kept.child > 0 ? kept.child : kept.keeper.pid, signal_number);
}

void Keepers::insist(core::JobId job) {
  const Kept& kept = jobs_.at(job);
  if (kept.over) return;
  callbacks_.trouble("job " + core::to_string(job) + ": its keeper does not end, and is killed");
  send(kept, SIGKILL);
}

// Only groups that this keeper would have made: in system mode the user can write the record.
std::vector<Cgroup> Keepers::groups_of(core::JobId job, const Kept& kept) const {
  std::vector<Cgroup> groups;
  const std::string name =
      Cgroup::name_of(to_string(RecordName{job, kept.attempt}), kept.keeper.pid);
  for (const std::string& folder : kept.groups) {
    if (!folder.ends_with("/" + name)) continue;
    if (Result<Cgroup> group = Cgroup::find(folder)) groups.push_back(*std::move(group));
  }
  return groups;
}

// First the processes in its groups, which no process can leave; then those that are found by their
// marks.
void Keepers::end_leftovers(core::JobId job) {
  Kept& kept = jobs_.at(job);
  if (!kept.ending_since) kept.ending_since = clock_.monotonic();
  const bool kill_now = clock_.monotonic() - *kept.ending_since >= ProcessWatcher::kGrace;
  bool some = false;
  for (const Cgroup& group : groups_of(job, kept)) {
    bool whole = true;
    const std::vector<pid_t> members = group.members(&whole);
    some = some || !whole;  // they cannot be listed now
    for (const pid_t pid : members) {
      if (is_outsider(pid, settings_.outsiders)) continue;
      some = true;
      // Once for each process, including those forked since the last look.
      if (kept.termed.insert(pid).second) {
        (void)kill(pid, SIGTERM);
        (void)kill(pid, SIGCONT);
      }
      if (kill_now) (void)kill(pid, SIGKILL);
    }
    // The server of the simulated cards may be in there, and other jobs use it.
    if (kill_now && settings_.outsiders.program.empty()) group.kill_all();
  }
  if (some) {
    later(job, kPollGroup, &Keepers::end_leftovers);
    return;
  }
  if (kept.keeper.pid > 0) watcher_.watch(job, kept.keeper);
  watcher_.stop(job);
}

void Keepers::forget(core::JobId job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  Kept& kept = found->second;
  unwatch(kept);
  (void)unlink(path_of(job, kept).c_str());
  for (const Cgroup& group : groups_of(job, kept)) (void)group.remove();
  jobs_.erase(found);
}

}  // namespace mete::launch
