// SPDX-License-Identifier: Apache-2.0
// See demo_stage.h. Actors are spawned with pipes and an environment that points into the stage's
// folder. turn() polls signals and all pipes once, collects lines and reaps children; wait() and
// ask() repeat it until their condition holds. close() ends the actors, the daemon and the
// simulated cards in this order, then kills what is left and removes the folder.
#include "cli/demo_stage.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "launch/process_tree.h"
#include "net/unix_socket.h"
#include "node/proc.h"
#include "seam/clock.h"

namespace mete::cli {

namespace {

constexpr int kTickMs = 100;
constexpr std::chrono::seconds kPatience{60};  // far longer than anything should take
constexpr int kEndPatienceS = 10;
constexpr std::size_t kMaxLines = 1000;  // per actor; ours print a handful
// A socket's path has 107 bytes at most.
constexpr std::size_t kLongestParent = 60;

std::chrono::nanoseconds now() { return seam::system_clock().monotonic(); }

std::string temporary_parent() {
  const char* named = std::getenv("TMPDIR");
  const bool usable = named != nullptr && *named == '/' &&
                      std::string_view(named).size() <= kLongestParent && access(named, W_OK) == 0;
  return usable ? named : "/tmp";
}

bool names(std::string_view line, std::string_view name) {
  return line.starts_with(name) && line.substr(name.size()).starts_with("=");
}

// Simulated cards ignore all settings for real ones; on real cards the user's configuration and the
// claims of other daemons apply.
bool is_dropped(std::string_view line, bool simulated) {
  if (simulated) return line.starts_with("METE_") || names(line, "CUDA_VISIBLE_DEVICES");
  for (const std::string_view name :
       {"METE_STATE_DIR", "METE_SOCKET", "METE_SIM", "METE_GRANT", "METE_JOB_ID"})
    if (names(line, name)) return true;
  return false;
}

// Complete lines go to `lines`; `part` keeps the rest.
void take_text(int fd, std::string& part, std::vector<std::string>& lines) {
  char buffer[4096];
  for (ssize_t bytes = 0; (bytes = read(fd, buffer, sizeof buffer)) > 0;) {
    part.append(buffer, static_cast<std::size_t>(bytes));
    for (std::size_t end = part.find('\n'); end != std::string::npos; end = part.find('\n')) {
      if (lines.size() < kMaxLines) lines.push_back(part.substr(0, end));
      part.erase(0, end + 1);
    }
  }
}

void take_all(Actor& actor) {
  take_text(actor.output.get(), actor.part_of_line, actor.lines);
  take_text(actor.errors.get(), actor.part_of_talk, actor.talk);
}

// Attributes and file actions for posix_spawn, freed at the end.
class SpawnWishes {
 public:
  SpawnWishes(int in, int out, int err, const sigset_t& mask) {
    posix_spawn_file_actions_init(&actions_);
    if (in < 0)
      posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    else
      posix_spawn_file_actions_adddup2(&actions_, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, err, STDERR_FILENO);
    posix_spawnattr_init(&attributes_);
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setsigmask(&attributes_, &mask);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnWishes() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnWishes(const SpawnWishes&) = delete;
  SpawnWishes& operator=(const SpawnWishes&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Stage::Stage(const launch::Parts& parts, const std::string& sim, Progress progress)
    : parts_(parts), sim_(sim), progress_(std::move(progress)) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&set, number);
  (void)sigprocmask(SIG_BLOCK, &set, &mask_before_);
  signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  // The readers of our output or of an actor's input may be gone: we must clean up all the same.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  (void)sigaction(SIGPIPE, &ignore, &pipe_before_);
}

Stage::~Stage() {
  (void)close();
  (void)sigaction(SIGPIPE, &pipe_before_, nullptr);
  (void)sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

Result<std::unique_ptr<Stage>> Stage::open(const launch::Parts& parts, const std::string& sim,
                                           Progress progress) {
  std::unique_ptr<Stage> stage(new Stage(parts, sim, std::move(progress)));
  if (Result<void> r = stage->prepare(); !r) return std::move(r).error();
  return stage;
}

Result<void> Stage::prepare() {
  if (!signals_) return Error::from_errno("make a signalfd", errno);
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length < 0) return Error::from_errno("read /proc/self/exe", errno);
  self_.assign(self, static_cast<std::size_t>(length));
  std::string folder = base::join_path(temporary_parent(), "mete-demo.XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) return Error::from_errno("make " + folder, errno);
  folder_ = folder;
  for (std::string& line : base::own_environment())
    if (!is_dropped(line, !sim_.empty())) environment_.push_back(std::move(line));
  environment_.push_back("METE_STATE_DIR=" + folder_ + "/state");
  environment_.push_back("METE_SOCKET=" + folder_ + "/socket");
  if (sim_.empty()) return {};
  environment_.push_back("METE_SIM=" + sim_);
  environment_.push_back("METE_SIM_DIR=" + folder_ + "/sim");
  environment_.push_back("METE_CONFIG=" + folder_ + "/config.toml");
  return base::write_atomic(folder_ + "/config.toml", "");
}

Result<Actor*> Stage::start(const std::vector<std::string>& words, bool listens) {
  return spawn(self_, words, listens);
}

Result<Actor*> Stage::spawn(const std::string& program, const std::vector<std::string>& words,
                            bool listens) {
  Result<base::Pipe> in = base::make_pipe();
  Result<base::Pipe> out = base::make_pipe();
  Result<base::Pipe> err = base::make_pipe();
  for (const Result<base::Pipe>* pipe : {&in, &out, &err})
    if (!*pipe) return pipe->error();
  std::vector<std::string> argv{program};
  argv.insert(argv.end(), words.begin(), words.end());
  const SpawnWishes wishes(listens ? in->read.get() : -1, out->write.get(), err->write.get(),
                           mask_before_);
  auto actor = std::make_unique<Actor>();
  const int error = posix_spawn(&actor->pid, program.c_str(), wishes.actions(), wishes.attributes(),
                                base::pointers(argv).data(), base::pointers(environment_).data());
  if (error != 0) return Error::from_errno("start " + program, error);
  if (listens) actor->input = std::move(in->write);
  actor->output = std::move(out->read);
  actor->errors = std::move(err->read);
  for (const Fd* fd : {&actor->output, &actor->errors}) (void)fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  actors_.push_back(std::move(actor));
  return actors_.back().get();
}

void Stage::nudge(Actor& actor) {
  // An actor that has ended is noticed by its missing lines.
  if (actor.input && write(actor.input.get(), "\n", 1) != 1) actor.input.reset();
}

// Polls once and handles everything that has happened.
void Stage::turn(int timeout_ms) {
  std::vector<pollfd> ready{{signals_.get(), POLLIN, 0}};
  for (const std::unique_ptr<Actor>& actor : actors_) {
    if (actor->ended()) continue;
    ready.push_back({actor->output.get(), POLLIN, 0});
    ready.push_back({actor->errors.get(), POLLIN, 0});
  }
  if (poll(ready.data(), ready.size(), timeout_ms) <= 0) return;
  for (const std::unique_ptr<Actor>& actor : actors_)
    if (!actor->ended()) take_all(*actor);
  hear_signals();
}

void Stage::hear_signals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGCHLD)
      reap();
    else if (signal_ == 0)
      signal_ = static_cast<int>(info.ssi_signo);
  }
}

void Stage::reap() {
  for (const std::unique_ptr<Actor>& actor : actors_) {
    int status = 0;
    if (actor->ended() || waitpid(actor->pid, &status, WNOHANG) != actor->pid) continue;
    take_all(*actor);
    for (auto [part, lines] : {std::pair(&actor->part_of_line, &actor->lines),
                               std::pair(&actor->part_of_talk, &actor->talk)})
      if (!part->empty()) lines->push_back(std::exchange(*part, ""));
    actor->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    actor->input.reset();
    actor->output.reset();
    actor->errors.reset();
  }
}

Result<void> Stage::wait(std::string_view what, const std::function<bool()>& done) {
  const std::chrono::nanoseconds began = now();
  while (!done()) {
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now() - began);
    if (signal_ != 0) return Error::io("interrupted");
    if (waited > kPatience)
      return Error::busy("this takes too long: " + std::string(what))
          .with_evidence("waited for " + std::to_string(waited.count()) + " s");
    if (std::all_of(actors_.begin(), actors_.end(), [](const auto& a) { return a->ended(); }))
      return {};
    progress_(what, static_cast<int>(waited.count()));
    turn(kTickMs);
  }
  return {};
}

Result<std::string> Stage::ask(std::string_view what, const std::vector<std::string>& words) {
  const Result<Actor*> actor = start(words);
  if (!actor) return actor.error();
  if (Result<void> r = wait(what, [&] { return (*actor)->ended(); }); !r)
    return std::move(r).error();
  if ((*actor)->exit_code != 0)
    return Error::io("mete " + base::join(words, " ") + " failed")
        .with_evidence(base::join((*actor)->talk, "\n"));
  return base::join((*actor)->lines, "\n");
}

bool Stage::wait_for_actors(int seconds) {
  const std::chrono::nanoseconds until = now() + std::chrono::seconds(seconds);
  const auto all_ended = [&] {
    return std::all_of(actors_.begin(), actors_.end(), [](const auto& a) { return a->ended(); });
  };
  while (!all_ended() && now() < until) turn(kTickMs);
  return all_ended();
}

void Stage::run_to_end(const std::string& program, const std::vector<std::string>& words) {
  if (spawn(program, words, false)) (void)wait_for_actors(kEndPatienceS);
}

// Every process that was started here has our folder in its environment.
std::vector<std::string> Stage::end_leftovers() {
  const Result<node::ProcessStat> self = node::read_stat(getpid());
  const std::uint64_t began = self ? self->start_ticks : 0;
  const net::Deadline deadline = net::Deadline::in(net::Milliseconds(kEndPatienceS * 1000));
  std::vector<std::string> killed;
  for (const pid_t pid : launch::all_processes()) {
    const Result<node::ProcessStat> stat = node::read_stat(pid);
    // Reading the environment of a process that hangs in the driver could block us: only younger
    // processes are looked at.
    if (!stat || stat->is_dead() || stat->start_ticks < began) continue;
    if (node::read_variable(pid, "METE_STATE_DIR") != folder_ + "/state") continue;
    const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!process) continue;
    const Result<net::Waited> gone = net::wait_for(process.get(), POLLIN, -1, deadline);
    if (gone && *gone == net::Waited::kReady) continue;
    (void)syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
    killed.push_back(stat->comm + " (pid " + std::to_string(pid) + ")");
  }
  return killed;
}

std::vector<std::string> Stage::close() {
  if (std::exchange(closed_, true) || folder_.empty()) return {};
  for (const std::unique_ptr<Actor>& actor : actors_) {
    actor->input.reset();
    if (!actor->ended()) (void)kill(actor->pid, SIGTERM);
  }
  if (!wait_for_actors(kEndPatienceS))
    for (const std::unique_ptr<Actor>& actor : actors_)
      if (!actor->ended()) (void)kill(actor->pid, SIGKILL);
  (void)wait_for_actors(kEndPatienceS);
  run_to_end(self_, {"daemon", "stop"});
  // Contacting a server of simulated cards that does not run would start it.
  if (!sim_.empty() && access((folder_ + "/sim/gpu.sock").c_str(), F_OK) == 0)
    run_to_end(base::join_path(parts_.simgpu, "mete-simgpu"), {"--ctl", "stop"});
  std::vector<std::string> left = end_leftovers();
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
  if (error) left.push_back(folder_ + " (" + error.message() + ")");
  return left;
}

}  // namespace mete::cli
