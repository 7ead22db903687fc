// SPDX-License-Identifier: Apache-2.0
// See keeper.h. The order matters: claim the attempt, check that the daemon lives, make the control
// groups (needs root), record the launch, become the user, and only then touch the user's files.
// run() goes through these steps; hooks() joins the running job to the daemon (Parker, RunnerLine,
// and TrialWatch for a trial of a sweep), and prepare() to its log and terminal. Failures become
// notes in the recorded exit.
#include "runner/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "abi/process.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "launch/container_watch.h"
#include "launch/grant_file.h"
#include "launch/identity.h"
#include "launch/job_groups.h"
#include "launch/job_output.h"
#include "launch/keeper_record.h"
#include "launch/keeper_spawn.h"
#include "launch/meter_check.h"
#include "launch/process_tree.h"
#include "runner/job_runner.h"
#include "runner/parker.h"
#include "runner/runner_line.h"
#include "runner/slurm_environment.h"
#include "runner/trial_watch.h"
#include "runner/ungranted.h"
#include "seam/clock.h"
#include "wire/job.h"

namespace mete::runner {

namespace {

using launch::RecordName;
using wire::KeeperPlan;

constexpr std::size_t kMaxNote = 600;
constexpr std::size_t kMostLooked = 512;  // processes, once a second

core::ProcessRef self() {
  abi::ProcessStat stat;
  (void)abi::read_stat(static_cast<std::uint32_t>(getpid()), &stat);
  return {getpid(), stat.start};
}

core::ProcessRef process(pid_t pid) {
  abi::ProcessStat stat;
  (void)abi::read_stat(static_cast<std::uint32_t>(pid), &stat);
  return {pid, stat.start};
}

bool is_pending(int signal_number) {
  sigset_t set;
  return sigpending(&set) == 0 && sigismember(&set, signal_number) == 1;
}

// One line, of bounded length, whatever is in a path or a name.
std::string one_line(std::string_view text) {
  const std::string line = base::printable(text.substr(0, kMaxNote));
  return line.size() <= kMaxNote ? line : base::printable(line.substr(0, kMaxNote));
}

std::string in_words(const Error& error) {
  return error.message + (error.evidence.empty() ? "" : ": " + error.evidence);
}

std::string encode_bounded(core::Exit exit) {
  std::string text = wire::encode(exit);
  while (text.size() > launch::kMaxExitText && !(exit.note.empty() && exit.metrics.empty())) {
    if (!exit.note.empty())
      exit.note.resize(exit.note.size() / 2);
    else
      exit.metrics.pop_back();
    text = wire::encode(exit);
  }
  return text;
}

// Root's part of the user's state folder: STATE/users and the user's folder in it.
Result<void> make_users_folder(const KeeperPlan& plan) {
  if (Result<void> r = base::make_directories(base::parent_path(plan.state), 0711); !r) return r;
  (void)chmod(base::parent_path(plan.state).c_str(), 0711);
  if (mkdir(plan.state.c_str(), 0700) == 0 &&
      chown(plan.state.c_str(), plan.spec.uid, plan.spec.detached->gid) != 0)
    return Error::from_errno("give " + plan.state + " to its user", errno);
  struct stat info {};
  if (lstat(plan.state.c_str(), &info) != 0)
    return Error::from_errno("look at " + plan.state, errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != plan.spec.uid)
    return Error::io(plan.state + " is not a folder of the job's user");
  return {};
}

bool is_of_slurm(const std::string& script, const std::vector<std::string>& environment) {
  return has_slurm_lines(script) ||
         std::any_of(environment.begin(), environment.end(), [](const std::string& line) {
           return line.starts_with(std::string(kSlurmTasks) + "=");
         });
}

// Replaces our environment by that of the job, as if its user had started us.
void take_on_environment(const KeeperPlan& plan) {
  static std::vector<std::string> lines;
  static std::vector<char*> pointers;
  lines = wire::environment_lines(plan.environment);
  const bool slurm = is_of_slurm(plan.script, lines);
  std::erase_if(lines, [&](const std::string& line) {
    return line.starts_with("METE_ARRAY_") || (slurm && is_slurm_variable(line)) ||
           (plan.spec.trial && line.starts_with("METE_PARAM_")) ||
           (!plan.simulated.empty() && line.starts_with("METE_SIM="));
  });
  if (!plan.simulated.empty()) lines.push_back("METE_SIM=" + plan.simulated);
  for (std::string& line : lines) pointers.push_back(line.data());
  pointers.push_back(nullptr);
  environ = pointers.data();
}

// "/no/such/bash" of "#!/no/such/bash -x".
std::string interpreter_of(std::string_view script) {
  if (!script.starts_with("#!")) return "";
  const std::string_view line = base::trim(script.substr(2, script.find('\n') - 2));
  return std::string(line.substr(0, line.find_first_of(" \t")));
}

std::string start_failure(const launch::ProgramEnd& ended, const KeeperPlan& plan) {
  const std::string why = std::generic_category().message(ended.start_error);
  switch (ended.start_step) {
    case launch::StartStep::kEnter:
      return "cannot enter " + plan.spec.folder + ": " + why;
    case launch::StartStep::kJoin:
      return "cannot join the job's control group: " + why;
    case launch::StartStep::kPrepare:
      return "cannot prepare the program: " + why;
    case launch::StartStep::kRun:
      break;
  }
  const std::string what = "cannot run " + base::quote(plan.spec.command.front());
  if (plan.script.empty()) return what + ": " + why;
  // The script file itself exists and is executable: the keeper has written it.
  const std::string interpreter = interpreter_of(plan.script);
  if (interpreter.empty()) return what + ": its first line names no program after #!";
  return what + ": its interpreter " + base::quote(interpreter) + ": " + why;
}

// The text of a script as an executable file; the destructor removes it.
class ScriptFile {
 public:
  ScriptFile() = default;
  ScriptFile(const ScriptFile&) = delete;
  ScriptFile& operator=(const ScriptFile&) = delete;
  ~ScriptFile() {
    if (!path_.empty()) (void)unlink(path_.c_str());
  }
  Result<std::string> make(const KeeperPlan& plan) {
    const std::string folder = base::join_path(plan.state, "scripts");
    if (Result<void> r = base::make_directories(folder); !r) return std::move(r).error();
    path_ = base::join_path(folder, to_string(RecordName{plan.job, plan.attempt}));
    if (Result<void> r = base::write_atomic(path_, plan.script, 0700); !r)
      return std::move(r).error();
    return path_;
  }

 private:
  std::string path_;
};

class Keeper {
 public:
  Keeper(const KeeperPlan& plan, Fd words, launch::KeeperRecord record)
      : plan_(plan), words_(std::move(words)), record_(std::move(record)) {}

  // Runs the job to its end and records that.
  Result<void> keep() {
    core::Exit exit;
    if (is_pending(SIGTERM)) {
      exit.signal = SIGTERM;  // cancelled before it began
    } else {
      groups_ = launch::JobGroups::make({to_string(RecordName{plan_.job, plan_.attempt}),
                                         plan_.spec.request.ram, plan_.spec.request.cpus, true});
      if (Result<void> r = record_.launching(groups_.folders()); !r) return r;
      exit = run();
    }
    exit.note = one_line(base::join(notes_, "; "));
    return record_.ended(encode_bounded(std::move(exit)));
  }

 private:
  core::Exit run() {
    if (Result<void> r = take_on_owner(); !r) return not_started(r.error());
    take_on_environment(plan_);
    // Before the log exists: each retry would write into it.
    if (Result<void> r = check_meter_if_needed(); !r) return not_started(r.error());
    if (Result<void> r = open_output(); !r) return not_started(r.error());
    if (plan_.attempt > 1) output_->say("attempt " + std::to_string(plan_.attempt));
    if (Result<void> r = begin_trial(); !r) return not_started(r.error());
    Result<JobPlan> job = job_plan();
    if (!job) return not_started(job.error());
    const Talk talk = [this](std::string_view text) { output_->say(text); };
    const Result<JobEnd> end = run_job(*job, hooks(*job), talk);
    if (!end) return not_started(end.error());
    if (!end->ended.started) {
      core::Exit exit = not_started(start_failure(end->ended, plan_));
      exit.code = end->ended.exit_code;
      return exit;
    }
    return ended(*end);
  }

  Result<void> check_meter_if_needed() const {
    return plan_.grant.empty() ? Result<void>() : launch::check_meter(plan_.preload);
  }

  Result<void> take_on_owner() {
    const core::Detached& detached = *plan_.spec.detached;
    if (plan_.as_owner) {
      if (Result<void> r = make_users_folder(plan_); !r) return r;
      launch::raise_hard_limits(detached.limits);
      if (Result<void> r = launch::become({plan_.spec.uid, detached.gid, detached.groups}); !r)
        return r;
      groups_.drop_closed();
    }
    (void)umask(077);
    return base::make_directories(plan_.state);
  }

  Result<void> open_output() {
    const core::Detached& detached = *plan_.spec.detached;
    const std::string logs = base::join_path(plan_.state, "logs");
    const std::string terminals = base::join_path(plan_.state, "terminals");
    const bool ours = base::parent_path(plan_.log) == logs;
    if (ours)
      if (Result<void> r = base::make_directories(logs); !r) return r;
    if (detached.tty)
      if (Result<void> r = base::make_directories(terminals); !r) return r;
    // A log that the user named gets the mode of a file that the user would have made.
    const mode_t theirs = 0666 & ~static_cast<mode_t>(detached.umask);
    launch::JobOutput::Places places;
    places.log = {plan_.log, plan_.log_limit, ours ? 0600 : theirs};
    if (!plan_.err.empty()) places.error_log = {plan_.err, plan_.log_limit, theirs};
    if (detached.tty) places.terminal = wire::terminal_path(plan_.state, plan_.job, plan_.attempt);
    Result<launch::JobOutput> output = launch::JobOutput::open(places);
    if (!output) return std::move(output).error();
    output_.emplace(*std::move(output));
    return {};
  }

  Result<void> begin_trial() {
    if (!plan_.spec.trial) return {};
    TrialWatch::Tell tell;
    if (!plan_.socket.empty())
      tell = [this](const std::string& body) -> Result<void> {
        const auto reply = tell_daemon({plan_.socket, plan_.state}, plan_.job, "metrics", body);
        return reply ? Result<void>() : Result<void>(reply.error());
      };
    Result<TrialWatch> watch =
        TrialWatch::begin(*plan_.spec.trial, plan_.state, std::move(tell), seam::system_clock());
    if (!watch) return std::move(watch).error();
    trial_.emplace(*std::move(watch));
    output_->watch([this](launch::JobOutput::Stream stream, std::string_view bytes) {
      trial_->seen(bytes, stream == launch::JobOutput::Stream::kError);
    });
    return {};
  }

  Result<JobPlan> job_plan() {
    JobPlan job;
    job.job = core::to_string(plan_.job);
    job.attempt = plan_.attempt;
    job.spec = plan_.spec;
    Result<std::vector<core::CardShare>> cards = shares_of(plan_.grant, plan_.cards);
    if (!cards) return std::move(cards).error();
    job.cards = *std::move(cards);
    job.park = plan_.park;
    job.driver = plan_.driver;
    job.readings = plan_.readings;
    job.parts.preload = plan_.preload;
    job.parts.simgpu = plan_.simgpu;
    job.parts.probe = plan_.probe;
    job.parts.checkpoint = plan_.checkpoint;
    job.simulated = !plan_.simulated.empty();
    job.visible_by_index = plan_.spec.detached->visible_by_index;
    if (plan_.job.element)
      job.extra_environment = {{"METE_ARRAY_INDEX", std::to_string(*plan_.job.element)},
                               {"METE_ARRAY_JOB_ID", std::to_string(plan_.job.number)}};
    if (is_of_slurm(plan_.script, base::own_environment())) {
      const Result<std::uint64_t> tasks = base::parse_uint(base::variable(kSlurmTasks));
      for (auto& variable :
           slurm_environment({plan_.job, plan_.attempt, plan_.grant.size(), base::short_host_name(),
                              tasks ? static_cast<std::uint32_t>(*tasks) : 1},
                             plan_.spec))
        job.extra_environment.push_back(std::move(variable));
    }
    if (trial_)
      for (auto& variable : trial_->environment())
        job.extra_environment.push_back(std::move(variable));
    if (!plan_.spec.detached->script.empty()) {
      Result<std::string> script = script_.make(plan_);
      if (!script) return std::move(script).error();
      job.spec.command.front() = *std::move(script);
    }
    job.state = plan_.state;
    job.groups = &groups_;
    return job;
  }

  JobHooks hooks(const JobPlan& job) {
    JobHooks hooks;
    hooks.started = [this](pid_t pid) { started(pid); };
    hooks.prepare = [this](launch::Supervision& asked) { prepare(asked); };
    hooks.tick_ms = [this] { return tick_ms(); };
    hooks.tick = [this] {
      tick();
      return false;
    };
    if (plan_.socket.empty() || plan_.grant.empty()) return hooks;
    hooks.who_holds = [this, &job] {
      return who_holds_ungranted({plan_.socket, plan_.state}, uuids_of(job), to_string(plan_.job));
    };
    hooks.made = [this, &job](const launch::GrantFile* grant) { begin_parking(job, grant); };
    hooks.ended = [this] { parker_.reset(); };
    hooks.stands_still = [this] { return parker_ && parker_->is_away(); };
    hooks.watch_fd = [this] { return line_ ? line_->descriptor() : -1; };
    hooks.watched = [this] {
      if (const std::optional<wire::RunReply> reply = line_->hear()) parker_->hear(*reply);
      return false;  // the daemon ends a job by a signal
    };
    return hooks;
  }

  int tick_ms() const {
    const int park = parker_ ? parker_->tick_ms() : -1;
    const int trial = trial_ ? trial_->tick_ms() : -1;
    return park < 0 || trial < 0 ? std::max(park, trial) : std::min(park, trial);
  }

  void tick() {
    if (parker_) parker_->step();
    if (line_) line_->mend();
    if (trial_) trial_->step();
  }

  void begin_parking(const JobPlan& job, const launch::GrantFile* grant) {
    if (grant == nullptr) return;
    parker_.emplace(*grant, Parker::Settings::of(job, plan_.socket, plan_.job));
    line_.emplace(DaemonAt{plan_.socket, plan_.state}, plan_.job);
  }

  void prepare(launch::Supervision& asked) {
    const core::Detached& spec = *plan_.spec.detached;
    launch::OwnSession& session = asked.session.emplace();
    session.input = output_->input();
    session.output = output_->output();
    session.error = output_->error();
    session.terminal = output_->has_terminal();
    session.umask = static_cast<mode_t>(spec.umask);
    session.limits = spec.limits;
    session.grace = std::chrono::milliseconds(plan_.grace_ms);
    session.listen = [this](std::vector<pollfd>& list) {
      list.push_back({seconds_.get(), POLLIN, 0});
      output_->listen(list);
    };
    session.heard = [this](std::span<const pollfd> list) {
      if (list[0].revents != 0) look_at_processes();
      output_->heard(list.subspan(1));
    };
    // The server of the simulated cards may be in this group, and other jobs use it.
    if (const launch::Cgroup* group = groups_.container(); group != nullptr && !is_simulated())
      session.kill_all = [group] { group->kill_all(); };
  }

  bool is_simulated() const { return !plan_.simulated.empty(); }

  void started(pid_t pid) {
    output_->started();
    since_ = seam::system_clock().monotonic();
    (void)record_.running({process(pid), since_});
    say(launch::kSaysStarted);
    words_.reset();
    seconds_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    const itimerspec each{{1, 0}, {1, 0}};
    if (seconds_) (void)timerfd_settime(seconds_.get(), 0, &each, nullptr);
  }

  void look_at_processes() {
    std::uint64_t times = 0;
    (void)!read(seconds_.get(), &times, sizeof times);
    const launch::Cgroup* group = groups_.container();
    const std::optional<std::string> found = containers_.look(
        group != nullptr ? group->members() : launch::some_descendants(getpid(), kMostLooked));
    if (found) note(*found);
  }

  core::Exit ended(const JobEnd& end) {
    output_->finish();
    core::Exit exit;
    if (end.ended.signal != 0)
      exit.signal = end.ended.signal;
    else
      exit.code = end.ended.exit_code;
    exit.timed_out = end.ended.timed_out;
    exit.gpu_oom = end.refused && end.ended.exit_code != 0;
    exit.ram_oom = end.ram_oom && end.ended.exit_code != 0;
    exit.peaks = end.peaks;
    exit.ran_ms = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                 seam::system_clock().monotonic() - since_)
                                                 .count());
    if (exit.timed_out)
      output_->say("the time limit of " +
                   base::duration_in_words(static_cast<std::int64_t>(*plan_.spec.time_s)) +
                   " is over");
    if (!end.escapes.empty()) notes_.push_back(end.escapes);
    if (!end.card_full.empty()) notes_.push_back(end.card_full);
    if (output_->lost() > 0)
      notes_.push_back(std::to_string(output_->lost()) + " bytes of output could not be written");
    if (trial_) {
      TrialWatch::End last = trial_->finish();
      exit.metrics = std::move(last.metrics);
      exit.step = last.step;
      if (!last.note.empty()) note(last.note);
    }
    exit.log_bytes = output_->size();
    return exit;
  }

  // A shortage passes, so the job goes back to the queue.
  core::Exit not_started(const Error& error) {
    if (!error.is_shortage()) return not_started(in_words(error));
    core::Exit exit;
    exit.not_started = exit.not_now = true;
    notes_.push_back(in_words(error));
    return exit;
  }

  core::Exit not_started(const std::string& why) {
    core::Exit exit;
    exit.not_started = true;
    note(why);
    if (output_) exit.log_bytes = output_->size();
    return exit;
  }

  void note(const std::string& text) {
    notes_.push_back(text);
    if (output_) output_->say(text);
  }

  void say(const char* word) {
    const std::string line = std::string(word) + "\n";
    (void)!write(words_.get(), line.data(), line.size());
  }

  const KeeperPlan& plan_;
  Fd words_;
  launch::KeeperRecord record_;
  launch::JobGroups groups_;
  std::optional<launch::JobOutput> output_;
  ScriptFile script_;
  Fd seconds_;  // timer for look_at_processes()
  launch::ContainerWatch containers_;
  seam::Nanoseconds since_{};
  std::optional<Parker> parker_;
  std::optional<RunnerLine> line_;
  std::optional<TrialWatch> trial_;
  std::vector<std::string> notes_;
};

bool somebody_reads(int pipe) {
  pollfd end{pipe, 0, 0};
  return poll(&end, 1, 0) >= 0 && (end.revents & (POLLERR | POLLNVAL)) == 0;
}

int say_no(const Error& error, int words) {
  const bool taken = error.code == ErrorCode::kBusy;
  const std::string line =
      taken ? std::string(launch::kSaysTaken) + "\n" : launch::kSaysNotNow + error.message + "\n";
  (void)!write(words, line.data(), line.size());
  return base::kExitFailed;
}

}  // namespace

int keep(const KeeperPlan& plan, Fd words) {
  (void)umask(077);
  Result<launch::KeeperRecord> record =
      launch::KeeperRecord::claim(plan.keep, {plan.job, plan.attempt, launch::boot_id(), self()});
  if (!record) return say_no(record.error(), words.get());
  // The successor of a daemon that is gone may have started, ended and forgotten this job before we
  // came this far. A daemon that lives knows of our claim, and so will its successors.
  if (!somebody_reads(words.get())) {
    (void)record->withdraw();
    return base::kExitFailed;
  }
  Keeper keeper(plan, std::move(words), *std::move(record));
  if (const Result<void> kept = keeper.keep(); !kept) {
    const std::string line = "mete-keeper: " + kept.error().message + "\n";
    (void)!write(STDERR_FILENO, line.data(), line.size());
    return base::kExitFailed;
  }
  return 0;
}

}  // namespace mete::runner
