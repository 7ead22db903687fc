// SPDX-License-Identifier: Apache-2.0
// See job_runner.h. run_job() builds the grant file (with the measured cost of a context per card),
// starts the sampler and hands programs, control groups and hooks to launch::supervise(), which
// returns when the last process has ended; then the accounts in the grant file say why the program
// may have failed. exec_job() does the first half and becomes the program.
#include "runner/job_runner.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/exit_code.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "core/job/job.h"
#include "launch/environment.h"
#include "launch/grant_file.h"
#include "launch/job_groups.h"
#include "launch/leftovers.h"
#include "launch/meter_check.h"
#include "launch/state_dir.h"
#include "node/probe.h"
#include "node/proc.h"
#include "runner/cap_sampler.h"

namespace mete::runner {

namespace {

// The cost of a context as measured on an H200; used where it cannot be measured.
constexpr Bytes kContextFirst = Bytes::from_mib(518);
constexpr Bytes kContextMore = Bytes::from_mib(524);

std::string library(const JobPlan& plan, const char* name) {
  return driver_library(plan.parts, plan.simulated, name);
}

node::ContextCost context_cost(const JobPlan& plan, const core::Card& card,
                               const std::string& state, const Talk& talk) {
  const node::ContextCost assumed{kContextFirst, kContextMore};
  if (plan.parts.probe.empty() || plan.driver.empty()) return assumed;
  node::ProbeRequest request;
  request.key.uuid = card.uuid;
  request.key.type = card.type;
  request.key.driver = plan.driver;
  request.key.mps = node::mps_is_active(base::variable("CUDA_MPS_PIPE_DIRECTORY"));
  request.program = plan.parts.probe;
  request.cuda = library(plan, "libcuda.so.1");
  request.nvml = library(plan, "libnvidia-ml.so.1");
  // Real cards must not get the costs of simulated cards that share their UUID by chance.
  request.cache = base::join_path(state, plan.simulated ? "context-cost-sim" : "context-cost");
  request.environment = base::own_environment();
  const Result<node::ContextCost> cost = node::context_cost(request, seam::system_clock());
  if (cost) return *cost;
  talk("what a context costs could not be measured (" + cost.error().message + "); assuming " +
       to_string(assumed.first));
  return assumed;
}

// Ranks are dealt to the cards round robin; see JobPlan::spec.
std::uint32_t ranks_per_card(const JobPlan& plan) {
  const auto cards = static_cast<std::uint32_t>(plan.cards.size());
  return cards == 0 ? 1 : std::max(1u, (plan.spec.request.procs + cards - 1) / cards);
}

bool grows(const JobPlan& plan) {
  return std::any_of(plan.cards.begin(), plan.cards.end(),
                     [](const core::CardShare& card) { return card.limit > card.from; });
}

// 32 hexadecimal digits.
std::optional<seam::UuidBytes> token_from(const std::string& text) {
  seam::UuidBytes token{};
  return base::take_hex(text, token) ? std::optional(token) : std::nullopt;
}

Result<launch::GrantFile> make_grant(const JobPlan& plan, const Talk& talk) {
  const Result<std::string> state =
      plan.state.empty() ? launch::state_dir() : Result<std::string>(plan.state);
  if (!state) return state.error();
  const Result<std::string> folder = launch::make_grants_dir(*state);
  if (!folder) return folder.error();
  (void)launch::remove_leftovers(*folder);
  std::vector<abi::GrantCard> cards(plan.cards.size());
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const core::CardShare& share = plan.cards[i];
    const node::ContextCost cost = context_cost(plan, share.card, *state, talk);
    if (Result<void> r = launch::set_uuid(cards[i], share.card.uuid); !r) return r.error();
    cards[i].guarantee_bytes = share.from.count();
    cards[i].ceiling_bytes = share.limit.count();
    cards[i].total_bytes = share.card.total.count();
    cards[i].context_first_bytes = cost.first.count();
    cards[i].context_more_bytes = cost.more.count();
  }
  launch::GrantName name{plan.job, plan.attempt};
  name.growing = grows(plan);
  if (plan.park) {
    const std::optional<seam::UuidBytes> token = token_from(plan.park->token);
    if (!token) return Error::corrupt("the daemon's token for movers is not understood");
    name.park = launch::GrantPark{plan.park->movers, *token};
  }
  return launch::GrantFile::make(*folder, name, cards, ranks_per_card(plan));
}

launch::JobEnvironment job_environment_of(const JobPlan& plan, const launch::GrantFile* grant) {
  launch::JobEnvironment job;
  job.job = grant != nullptr   ? grant->job()
            : plan.job.empty() ? "cap-" + std::to_string(getpid())
                               : plan.job;
  job.attempt = plan.attempt;
  if (!plan.job.empty())
    if (const Result<node::ProcessStat> self = node::read_stat(getpid()))
      job.token = core::to_string(core::ProcessRef{getpid(), self->start_ticks});
  if (grant != nullptr) job.grant_path = grant->path();
  for (const core::CardShare& share : plan.cards) {
    const std::uint64_t part = share.limit.count() / ranks_per_card(plan);
    const Bytes each = ranks_per_card(plan) == 1
                           ? share.limit
                           : Bytes::from_bytes(part).round_down(core::kGranule);
    job.limit = job.uuids.empty() ? each : std::min(job.limit, each);
    job.uuids.push_back(share.card.uuid);
    job.visible.push_back(plan.visible_by_index ? std::to_string(share.card.index)
                                                : share.card.uuid);
  }
  job.preload = plan.parts.preload;
  if (plan.simulated) job.simgpu = plan.parts.simgpu;
  job.extra = plan.extra_environment;
  job.parkable = plan.park.has_value();
  return job;
}

// The job's own user can write the grant file: bound its values.
Bytes peak_of(const abi::Account& account) {
  const std::uint64_t units = std::min(account.peak_units.load(), abi::kMaxUnits);
  return Bytes::from_bytes(units * abi::kUnitBytes);
}

// A refusal by the cap is an ordinary error inside the program; this names it as the likely cause.
void explain_failure(const JobPlan& plan, abi::Grant& grant, const Talk& talk) {
  for (std::uint32_t c = 0; c < plan.cards.size() && c < abi::kMaxCards; ++c) {
    for (std::uint32_t p = 0; p < ranks_per_card(plan) && p < abi::kMaxParts; ++p) {
      const abi::Account& account = grant.accounts[p][c];
      const std::uint64_t refusals = account.refusals.load();
      if (refusals == 0) continue;
      const core::CardShare& card = plan.cards[c];
      std::string cap = to_string(Bytes::from_bytes(account.limit_bytes.load())) +
                        (plan.spec.request.procs > 1 ? " for each process" : "");
      if (card.limit > card.from)
        cap += " of the " + to_string(card.limit) + " to which it may grow while there is room";
      talk("hint: the program was refused GPU memory " + std::to_string(refusals) +
           (refusals == 1 ? " time" : " times") + ": its cap on card " +
           std::to_string(card.card.index) + " is " + cap + ", its peak was " +
           to_string(peak_of(account)) + "; a larger --gpu may help");
    }
  }
}

// The driver refused memory within the cap: other processes hold more of the card than they were
// granted.
std::string full_card_of(const JobPlan& plan, const abi::Grant& grant, const JobHooks& hooks) {
  const std::uint64_t refusals = grant.header.driver_refusals.load();
  if (refusals == 0) return "";
  std::vector<std::string> cards;
  for (const core::CardShare& card : plan.cards) cards.push_back(std::to_string(card.card.index));
  const std::string who = hooks.who_holds();
  return "the driver had no GPU memory for the program " + std::to_string(refusals) +
         (refusals == 1 ? " time" : " times") + ", although its cap had room: " +
         (who.empty() ? (cards.size() == 1 ? "card " : "one of cards ") + base::join(cards, ", ") +
                            " was full; mete cards shows what is held there"
                      : who);
}

void add_books(const JobPlan& plan, abi::Grant& grant, JobEnd& end) {
  for (std::uint32_t c = 0; c < plan.cards.size() && c < abi::kMaxCards; ++c) {
    Bytes peak;
    for (std::uint32_t p = 0; p < ranks_per_card(plan) && p < abi::kMaxParts; ++p) {
      const abi::Account& account = grant.accounts[p][c];
      peak += peak_of(account);
      end.refused = end.refused || account.refusals.load() > 0;
    }
    end.peaks.push_back(peak);
  }
}

// Memory that was taken without the meter: it counts against the cap, but could not be refused. "":
// there was none.
std::string escapes_of(const abi::Grant& grant) {
  const std::uint64_t escapes = grant.header.escapes.load();
  if (escapes == 0) return "";
  return std::to_string(escapes) + (escapes == 1 ? " process" : " processes") +
         " of the job held GPU memory outside the cap (pid " +
         std::to_string(grant.header.escape_pid.load()) + ", up to " +
         to_string(Bytes::from_bytes(grant.header.escape_bytes.load())) +
         "): was LD_PRELOAD dropped, or the program linked statically?";
}

// The sampler of a job, restarted a few times when it dies: the cap holds without it, but memory
// that the driver takes by itself then stays unseen.
class Sampler {
 public:
  Sampler(const JobPlan& plan, const launch::GrantFile& grant)
      : grant_(grant), nvml_(library(plan, "libnvidia-ml.so.1")), readings_(plan.readings) {}

  Result<pid_t> start() {
    Result<launch::HelperProcess> started =
        start_sampler(grant_.grant(), grant_.path(), nvml_, readings_);
    if (!started) return std::move(started).error();
    process_.reset();
    process_.emplace(*std::move(started));
    return process_->pid();
  }

  pid_t start_again() {
    process_->was_reaped();
    if (++deaths_ > kMaxDeaths) return -1;
    const Result<pid_t> pid = start();
    return pid ? *pid : -1;
  }

 private:
  static constexpr int kMaxDeaths = 5;

  const launch::GrantFile& grant_;
  std::string nvml_;
  std::string readings_;
  std::optional<launch::HelperProcess> process_;
  int deaths_ = 0;
};

std::uint16_t free_port() {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (!fd || bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 29500;  // torchrun's default
  return ntohs(address.sin_port);
}

// One program, or one per rank with torchrun's variables.
std::vector<launch::Program> programs_of(const JobPlan& plan, const launch::GrantFile* grant) {
  launch::JobEnvironment job = job_environment_of(plan, grant);
  if (plan.spec.request.procs == 1)
    return {{plan.spec.command, launch::job_environment(base::own_environment(), job),
             plan.spec.folder}};
  std::vector<launch::Program> programs;
  const std::size_t cards = std::max<std::size_t>(1, plan.cards.size());
  const std::string port = std::to_string(free_port());
  for (std::uint32_t rank = 0; rank < plan.spec.request.procs; ++rank) {
    job.rank = {rank, plan.spec.request.procs, static_cast<std::uint32_t>(rank / cards), port};
    programs.push_back({plan.spec.command, launch::job_environment(base::own_environment(), job),
                        plan.spec.folder});
  }
  return programs;
}

// Limits that this machine cannot enforce are named once, and the program runs without them.
void say_refused(const launch::JobGroups& groups, const Talk& talk) {
  for (const launch::JobGroups::Refused& refused : groups.refused())
    talk(refused.option + " is not enforced here: " + refused.why);
}

launch::JobGroups make_limits(const JobPlan& plan) {
  return launch::JobGroups::make({plan.job.empty() ? "cap" : plan.job, plan.spec.request.ram,
                                  plan.spec.request.cpus, /*contain=*/false});
}

// Returns whether the kernel has ended a process of the job.
bool explain_limits(const JobPlan& plan, const launch::JobGroups& groups, const Talk& talk) {
  const std::uint64_t times = plan.spec.request.ram ? groups.out_of_memory() : 0;
  if (times == 0) return false;
  talk("the limit of --ram " + to_string(*plan.spec.request.ram) +
       " was reached, and the kernel ended " + std::to_string(times) +
       (times == 1 ? " process" : " processes") + " of the job");
  return true;
}

Result<std::optional<launch::GrantFile>> make_grant_if_needed(const JobPlan& plan,
                                                              const Talk& talk) {
  std::optional<launch::GrantFile> grant;
  if (plan.cards.empty()) return grant;
  Result<launch::GrantFile> made = make_grant(plan, talk);
  if (!made) return std::move(made).error();
  grant.emplace(*std::move(made));
  return grant;
}

}  // namespace

Result<JobEnd> run_job(const JobPlan& plan, const JobHooks& hooks, const Talk& talk) {
  Result<std::optional<launch::GrantFile>> made = make_grant_if_needed(plan, talk);
  if (!made) return std::move(made).error();
  const launch::GrantFile* grant = *made ? &**made : nullptr;
  hooks.made(grant);
  launch::Supervision asked;
  std::optional<Sampler> sampler;
  if (grant != nullptr) {
    sampler.emplace(plan, *grant);
    const Result<pid_t> pid = sampler->start();
    if (!pid) return pid.error();
    asked.outsiders.pids.push_back(*pid);
    asked.outsider_ended = [&](pid_t) { return sampler->start_again(); };
    asked.before_start = [&] { return launch::check_meter(plan.parts.preload); };
  }
  if (plan.simulated)
    asked.outsiders.program = base::real_path(base::join_path(plan.parts.simgpu, "mete-simgpu"));
  const launch::JobGroups own = plan.groups == nullptr ? make_limits(plan) : launch::JobGroups();
  const launch::JobGroups& groups = plan.groups == nullptr ? own : *plan.groups;
  say_refused(groups, talk);
  asked.doors = groups.doors();
  asked.programs = programs_of(plan, grant);
  asked.started = [&](const std::vector<pid_t>& pids) { hooks.started(pids.front()); };
  if (plan.spec.time_s) asked.time_limit = std::chrono::seconds(*plan.spec.time_s);
  asked.watch_fd = hooks.watch_fd;
  asked.watched = hooks.watched;
  asked.tick_ms = hooks.tick_ms;
  asked.tick = hooks.tick;
  asked.stands_still = hooks.stands_still;
  hooks.prepare(asked);
  const Result<launch::ProgramEnd> ended = launch::supervise(asked);
  hooks.ended();
  if (!ended && ended.error().is_shortage()) return ended.error();
  if (!ended) return Error::because("the program cannot be started", ended.error());
  JobEnd end{*ended, {}, false, explain_limits(plan, groups, talk), ""};
  if (grant == nullptr || !ended->started) return end;
  add_books(plan, grant->grant(), end);
  if (ended->exit_code != 0) {
    explain_failure(plan, grant->grant(), talk);
    end.card_full = full_card_of(plan, grant->grant(), hooks);
    if (!end.card_full.empty()) talk("hint: " + end.card_full);
  }
  end.escapes = escapes_of(grant->grant());
  if (!end.escapes.empty()) talk("warning: " + end.escapes);
  return end;
}

Error exec_job(const JobPlan& plan, const Talk& talk) {
  Result<std::optional<launch::GrantFile>> made = make_grant_if_needed(plan, talk);
  if (!made) return std::move(made).error();
  const launch::Program program = std::move(programs_of(plan, *made ? &**made : nullptr).front());
  if (!program.folder.empty() && chdir(program.folder.c_str()) != 0)
    return Error::from_errno("enter " + program.folder, errno);
  const std::vector<char*> argv = base::pointers(program.argv);
  std::vector<char*> environment = base::pointers(program.environment);
  launch::JobGroups groups = make_limits(plan);
  say_refused(groups, talk);
  bool inside = true;
  for (const int door : groups.doors()) inside = write(door, "0", 1) == 1 && inside;
  if (inside) groups.keep();
  if (*made)
    if (Result<void> r = launch::check_meter(plan.parts.preload); !r) return std::move(r).error();
  char** const ours = std::exchange(environ, environment.data());
  (void)execvp(argv.front(), argv.data());
  const int error = errno;
  environ = ours;
  return Error::from_errno("run " + base::quote(plan.spec.command.front()), error);
}

int exit_code_of_launch(const Error& error) {
  return error.is_shortage() ? base::kExitFailed : base::exit_code_of_failure(error.code);
}

Error cannot_run(const JobPlan& plan, const launch::ProgramEnd& ended) {
  const std::string what = "cannot run " + base::quote(plan.spec.command.front());
  Error error = ended.exit_code == base::kExitNotFound ? Error::not_found(what + ": not found")
                                                       : Error::io(what);
  error.evidence = std::generic_category().message(ended.start_error);
  return error;
}

Result<bool> is_simulated(const launch::Parts& parts) {
  if (base::variable("METE_SIM").empty()) return false;
  if (!parts.simgpu.empty()) return true;
  return Error::io("METE_SIM is set, and the simulated drivers are missing")
      .with_hint("build or install all of mete, or unset METE_SIM");
}

std::string driver_library(const launch::Parts& parts, bool simulated, const char* name) {
  return simulated ? base::join_path(parts.simgpu, name) : name;
}

Result<void> check_not_nested() {
  const std::string grant = base::variable("METE_GRANT");
  if (grant.empty() || access(grant.c_str(), F_OK) != 0) return {};
  const char* job = std::getenv("METE_JOB_ID");
  return Error::unsupported("this is already inside a mete job, and a cap cannot be divided yet")
      .with_evidence(std::string("job ") + (job == nullptr ? "?" : job) + ", grant file " + grant)
      .with_hint("run the program directly: it shares this job's cap");
}

}  // namespace mete::runner
