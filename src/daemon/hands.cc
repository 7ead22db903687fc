// SPDX-License-Identifier: Apache-2.0
// See hands.h. Orders of the engine go to one of three parts: promises to ClaimsKeeper, detached
// jobs to Keepers, runs to ProcessWatcher. Their reports come back through callbacks and become
// inputs. The plan of a keeper is made when the keeper is started, which may be later than start():
// from the job and the machine at that time.
#include "daemon/hands.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/process.h"
#include "launch/grant_file.h"
#include "launch/job_scan.h"
#include "launch/keeper_spawn.h"
#include "launch/meter_check.h"
#include "wire/job.h"
#include "wire/keeper.h"
#include "wire/submit.h"

namespace mete::daemon {

namespace {

// Added to the grace period: time for a keeper to react, and for the driver to clean up after a
// job.
constexpr std::uint64_t kPatienceS = 30;

}  // namespace

Hands::Hands(HandsSettings settings, seam::Loop loop, seam::Clock& clock, ClaimsKeeper& claims,
             seam::Store& store, std::function<void(core::Input)> tell,
             std::function<void(const std::string&)> log)
    : settings_(std::move(settings)),
      claims_(claims),
      store_(store),
      tell_(std::move(tell)),
      log_(std::move(log)),
      movers_(mover_settings(), loop, clock, log_),
      processes_(loop, clock, watcher_callbacks(), outsiders()),
      keepers_(keeper_settings(), loop, clock, keeper_callbacks(), processes_) {
  processes_.keep_handles(settings_.descriptors.shares.handles);
}

void Hands::meet(const core::State& state, const serve::MachineReading& machine) {
  state_ = &state;
  machine_ = &machine;
}

Result<void> Hands::begin() {
  return keepers_.begin([this](core::JobId id, std::uint32_t attempt) {
    const core::Job* job = state_->find(id);
    return job != nullptr && job->spec->detached && job->attempt == attempt &&
           job->state != core::JobState::kEnded && job->state != core::JobState::kPending;
  });
}

// ---- reports ------------------------------------------------------------------------------------

launch::WatcherCallbacks Hands::watcher_callbacks() {
  return {[this](core::JobId id) {
            const core::Job* job = state_->find(id);
            return job == nullptr ? std::nullopt : std::optional(job->spec->uid);
          },
          [this](core::JobId id) { tell_(core::RunnerGone{id}); },
          [this](core::JobId id) { tell_(core::JobGone{id}); }};
}

launch::KeeperCallbacks Hands::keeper_callbacks() {
  launch::KeeperCallbacks callbacks;
  callbacks.started = [this](core::JobId id, const launch::KeptStart& start) {
    // If the daemon dies, other daemons see by the keeper whether the job still has its bytes.
    claims_.runs(id, start.keeper);
    tell_(core::Started{id, 0, start.program, start.ago_ms, start.keeper});
  };
  callbacks.ended = [this](core::JobId id, const launch::KeptEnd& end) {
    core::Ended ended{id, 0, end.exit};
    if (end.start) {
      ended.program = end.start->program;
      ended.ago_ms = end.start->ago_ms;
    }
    tell_(std::move(ended));
  };
  callbacks.runner_gone = [this](core::JobId id) { tell_(core::RunnerGone{id}); };
  callbacks.not_launched = [this](core::JobId id, const std::string& why, bool later) {
    tell_(core::NotLaunched{id, why, later});
  };
  callbacks.read_exit = [](std::string_view text) -> std::optional<core::Exit> {
    Result<core::Exit> exit = wire::decode_exit(text);
    return exit ? std::optional(*std::move(exit)) : std::nullopt;
  };
  callbacks.trouble = log_;
  return callbacks;
}

launch::KeeperSettings Hands::keeper_settings() const {
  launch::KeeperSettings settings;
  settings.program = settings_.parts.keeper;
  settings.folder = base::join_path(settings_.state_dir, "keep");
  settings.boot = launch::boot_id();
  settings.environment = launch::keeper_environment(base::own_environment());
  settings.outsiders = outsiders();
  settings.most_handles = settings_.descriptors.shares.handles;
  settings.most_starting = settings_.descriptors.shares.starting;
  settings.patience = patience();
  return settings;
}

seam::Milliseconds Hands::patience() const {
  return seam::Milliseconds((settings_.config.grace_s.value + kPatienceS) * std::uint64_t{1000});
}

void Hands::set_config(const config::Config& config) {
  settings_.config = config;
  keepers_.set_patience(patience());
  movers_.set_arena(config.arena.value);
}

MoverSettings Hands::mover_settings() const {
  MoverSettings settings;
  settings.program = settings_.parts.mover;
  settings.state_dir = settings_.state_dir;
  if (Result<std::string> folder = mover_folder(settings_.state_dir, settings_.system))
    settings.folder = *std::move(folder);
  else
    log_("nothing can be parked: " + folder.error().message);
  settings.cuda = settings_.simulated.empty()
                      ? "libcuda.so.1"
                      : base::join_path(settings_.parts.simgpu, "libcuda.so.1");
  settings.system = settings_.system;
  settings.arena = settings_.config.arena.value;
  settings.spill = settings_.config.spill.value;
  settings.spill_max = settings_.config.spill_max.value;
  return settings;
}

// The first process that needs the server of the simulated cards starts it, with a job's
// environment.
launch::Outsiders Hands::outsiders() const {
  launch::Outsiders outsiders;
  if (!settings_.simulated.empty())
    outsiders.program = base::real_path(base::join_path(settings_.parts.simgpu, "mete-simgpu"));
  return outsiders;
}

// ---- orders of the engine -----------------------------------------------------------------------

bool Hands::reserve(core::JobId job, const std::vector<core::GrantedCard>& cards) {
  // forget() comes later for jobs that ended in this turn, but their bytes are free already.
  claims_.keep_only([this](core::JobId id) {
    const core::Job* held = state_->find(id);
    return held != nullptr && held->state != core::JobState::kEnded;
  });
  const core::Job* known = state_->find(job);
  return claims_.reserve(job, cards, known == nullptr ? std::nullopt : known->runner);
}

void Hands::start(const core::Job& job) {
  // No plan can be made before the cards were read. A job that is to be ended is not started just
  // for that.
  const bool find_only =
      job.state == core::JobState::kStopping || (!job.grant.empty() && machine_->cards.empty());
  keepers_.start(job.id, job.attempt,
                 find_only ? launch::Start::kFindOnly : launch::Start::kIfNeeded,
                 [this, id = job.id]() -> Result<std::string> {
                   const core::Job* now = state_->find(id);
                   if (now == nullptr) return Error::not_found("the job is gone");
                   return plan_for(*now);
                 });
  if (const auto keeper = keepers_.keeper_of(job.id)) claims_.runs(job.id, *keeper);
}

void Hands::watch(core::JobId job, core::ProcessRef runner) { processes_.watch(job, runner); }

void Hands::wake(core::JobId job, core::ProcessRef runner) {
  if (const core::Job* known = state_->find(job))
    (void)launch::signal_process(runner, known->spec->uid, SIGCONT);
}

void Hands::stop(core::JobId job) {
  const core::Job* known = state_->find(job);
  if (known != nullptr && known->spec->detached) {
    keepers_.stop(job);
    return;
  }
  // After a restart this job is not watched yet, and its runner identifies its processes.
  if (known != nullptr && known->runner) processes_.watch(job, *known->runner);
  processes_.stop(job);
}

void Hands::forget(core::JobId job) {
  movers_.forget(job);
  keepers_.forget(job);
  processes_.forget(job);
  claims_.release(job);
}

// Removes only files that we named; a file that the user named belongs to the user. The user may
// own every folder on the way, so no symbolic link is followed.
void Hands::discard(const core::Job& job) {
  if (!job.spec->detached || !job.spec->detached->log.empty()) return;
  constexpr int kFolder = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const Fd own(open(folder_of(job.spec->uid).c_str(), kFolder));
  const Fd logs(own ? openat(own.get(), "logs", kFolder) : -1);
  if (!logs) return;
  const std::string name = to_string(job.id) + ".log";
  for (const std::string& file : {name, name + ".1"}) {
    (void)unlinkat(logs.get(), file.c_str(), 0);
    (void)unlinkat(logs.get(), ("." + file + ".times").c_str(), 0);
  }
}

// ---- the plan of a keeper -----------------------------------------------------------------------

std::string Hands::folder_of(std::uint32_t uid) const {
  if (!settings_.system) return settings_.state_dir;
  return base::join_path(settings_.state_dir, "users/" + std::to_string(uid));
}

std::pair<std::string, std::string> Hands::logs_of(const core::Job& job) const {
  return {wire::log_path(*job.spec, job.id, base::join_path(folder_of(job.spec->uid), "logs")),
          wire::error_log_path(*job.spec, job.id)};
}

// The system daemon has a folder for each user, closed to other users.
Result<void> Hands::make_folder_of(const core::Job& job) const {
  if (!settings_.system) return {};
  const std::string all = base::join_path(settings_.state_dir, "users");
  if (mkdir(all.c_str(), 0711) != 0 && errno != EEXIST)
    return Error::from_errno("make " + all, errno);
  const std::string own = folder_of(job.spec->uid);
  if (mkdir(own.c_str(), 0700) != 0) {
    if (errno != EEXIST) return Error::from_errno("make " + own, errno);
    return {};
  }
  if (chown(own.c_str(), job.spec->uid, job.spec->detached->gid) != 0)
    return Error::from_errno("give " + own + " to its user", errno);
  return {};
}

// Checked at each launch: the installation may have been removed or replaced since the daemon
// started. The keeper checks the meter once more, as the job's user.
Result<void> Hands::check_parts(const core::Job& job) {
  if (settings_.parts.keeper.empty()) {
    if (const Result<launch::Parts> now = launch::find_parts())
      settings_.parts.keeper = now->keeper;
    if (settings_.parts.keeper.empty()) return Error::busy("mete-keeper is missing");
    keepers_.use_program(settings_.parts.keeper);
  }
  return job.grant.empty() ? Result<void>() : launch::check_meter(settings_.parts.preload);
}

// The daemon raised its own limit: a job whose submitter's limits are unknown gets the limit from
// before.
void Hands::give_own_limit(core::Detached& detached) const {
  const std::optional<core::ResourceLimit>& before = settings_.descriptors.before;
  const bool known = std::any_of(detached.limits.begin(), detached.limits.end(),
                                 [](const auto& limit) { return limit.resource == RLIMIT_NOFILE; });
  if (before && !known) detached.limits.push_back(*before);
}

Result<std::string> Hands::plan_for(const core::Job& job) {
  if (Result<void> r = check_parts(job); !r) return std::move(r).error();
  if (Result<void> r = make_folder_of(job); !r) return Error::io(std::move(r).error().message);
  const core::Detached& detached = *job.spec->detached;
  wire::KeeperPlan plan;
  plan.job = job.id;
  plan.attempt = job.attempt;
  plan.spec = *job.spec;
  plan.spec.request = core::request_of(job);
  give_own_limit(*plan.spec.detached);
  plan.grant = job.grant;
  plan.cards = core::cards_of(job.grant, machine_->pool);
  if (plan.cards.size() != job.grant.size()) return Error::io("a granted card has vanished");
  plan.driver = machine_->driver;
  plan.readings = settings_.readings;
  plan.simulated = settings_.simulated;
  plan.keep = base::join_path(settings_.state_dir, "keep");
  plan.state = folder_of(job.spec->uid);
  plan.as_owner = settings_.system;
  std::tie(plan.log, plan.err) = logs_of(job);
  plan.log_limit = settings_.config.log_max.value;
  plan.grace_ms = settings_.config.grace_s.value * 1000;
  plan.preload = settings_.parts.preload;
  plan.probe = settings_.parts.probe;
  if (!settings_.simulated.empty()) plan.simgpu = settings_.parts.simgpu;
  if (!job.grant.empty()) plan.checkpoint = settings_.parts.checkpoint;
  // A job without either has nothing to report.
  if (!job.grant.empty() || job.spec->trial) plan.socket = settings_.socket();
  if (core::is_parkable(*job.spec) && !job.grant.empty()) plan.park = movers_.door(job);
  Result<std::string> environment = store_.load_blob(detached.environment);
  if (!environment) return std::move(environment).error().within("its environment");
  plan.environment = *std::move(environment);
  if (!detached.script.empty()) {
    Result<std::string> script = store_.load_blob(detached.script);
    if (!script) return std::move(script).error().within("its script");
    plan.script = *std::move(script);
  }
  if (!job.spec->command_content.empty()) {
    const Result<std::string> command = store_.load_blob(job.spec->command_content);
    if (!command) return Error(command.error()).within("its command");
    plan.spec.command = wire::words_in(*command);
    plan.spec.command_content.clear();
  }
  return wire::encode(plan);
}

}  // namespace mete::daemon
