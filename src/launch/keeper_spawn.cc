// SPDX-License-Identifier: Apache-2.0
// See keeper_spawn.h. posix_spawn does not copy our memory, whatever its size.
#include "launch/keeper_spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/fd.h"
#include "base/process.h"

namespace mete::launch {

namespace {

constexpr int kOutOfTheWay = 10;  // above the descriptors under which the keeper gets them

Result<Fd> out_of_the_way(Fd fd) {
  Fd moved(fcntl(fd.get(), F_DUPFD_CLOEXEC, kOutOfTheWay));
  if (!moved) return Error::from_errno("prepare the keeper", errno);
  return moved;
}

Result<Fd> plan_in_memory(const std::string& plan) {
  Fd memory(memfd_create("mete-keeper-plan", MFD_CLOEXEC));
  if (!memory) return Error::from_errno("hand over the plan", errno);
  if (!base::write_all(memory.get(), plan)) return Error::from_errno("hand over the plan", errno);
  return out_of_the_way(std::move(memory));
}

class Attributes {
 public:
  Attributes() {
    (void)posix_spawnattr_init(&attributes_);
    (void)posix_spawn_file_actions_init(&actions_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    (void)posix_spawnattr_setsigmask(&attributes_, &none);
    (void)posix_spawnattr_setsigdefault(&attributes_, &all);
    (void)posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() {
    (void)posix_spawn_file_actions_destroy(&actions_);
    (void)posix_spawnattr_destroy(&attributes_);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

Result<SpawnedKeeper> spawn_keeper(const SpawnKeeper& what, const std::string& plan) {
  Result<Fd> memory = plan_in_memory(plan);
  if (!memory) return std::move(memory).error();
  Result<base::Pipe> pipe = base::make_pipe();
  if (!pipe) return std::move(pipe).error();
  if (fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK) != 0)
    return Error::from_errno("prepare the keeper", errno);
  const Result<Fd> words = out_of_the_way(std::move(pipe->write));
  if (!words) return words.error();
  Attributes with;
  (void)posix_spawn_file_actions_addopen(&with.actions_, STDIN_FILENO, "/dev/null", O_RDWR, 0);
  (void)posix_spawn_file_actions_adddup2(&with.actions_, STDIN_FILENO, STDOUT_FILENO);
  (void)posix_spawn_file_actions_adddup2(&with.actions_, memory->get(), kPlanFd);
  (void)posix_spawn_file_actions_adddup2(&with.actions_, words->get(), kWordsFd);
  const std::vector<std::string> arguments{what.program, what.name};
  const std::vector<char*> argv = base::pointers(arguments);
  const std::vector<char*> environment = base::pointers(what.environment);
  SpawnedKeeper keeper;
  const int error = posix_spawn(&keeper.pid, what.program.c_str(), &with.actions_,
                                &with.attributes_, argv.data(), environment.data());
  if (error != 0) return Error::from_errno("run " + what.program, error);
  keeper.words = std::move(pipe->read);
  return keeper;
}

Result<pid_t> spawn_detached(const std::vector<std::string>& argv,
                             const std::vector<std::string>& environment, const std::string& log) {
  Attributes with;
  (void)posix_spawn_file_actions_addopen(&with.actions_, STDIN_FILENO, "/dev/null", O_RDWR, 0);
  (void)posix_spawn_file_actions_adddup2(&with.actions_, STDIN_FILENO, STDOUT_FILENO);
  (void)posix_spawn_file_actions_addopen(&with.actions_, STDERR_FILENO, log.c_str(),
                                         O_WRONLY | O_CREAT | O_APPEND, 0600);
  const std::vector<char*> words = base::pointers(argv);
  const std::vector<char*> lines = base::pointers(environment);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv.front().c_str(), &with.actions_, &with.attributes_,
                                words.data(), lines.data());
  if (error != 0) return Error::from_errno("run " + argv.front(), error);
  return pid;
}

std::vector<std::string> keeper_environment(const std::vector<std::string>& own) {
  constexpr std::string_view kKept[] = {
      "PATH=", "HOME=", "LANG=", "TZ=", "LD_LIBRARY_PATH=", "METE_", "CUDA_", "NVIDIA_",
      "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS=", "LSAN_OPTIONS=",
      // Where the server of the simulated cards is found (simgpu/client.h), and the state folder.
      "XDG_RUNTIME_DIR=", "XDG_STATE_HOME="};
  constexpr std::string_view kOfAJob[] = {"METE_JOB_",
                                          "METE_GRANT=",
                                          "METE_ATTEMPT=",
                                          "METE_PART=",
                                          "METE_ARRAY_",
                                          "METE_GPU_MEM_BYTES=",
                                          "CUDA_VISIBLE_DEVICES=",
                                          "CUDA_DEVICE_ORDER=",
                                          "NVIDIA_VISIBLE_DEVICES="};
  const auto begins_with_one = [](const std::string& line, const auto& list) {
    return std::any_of(std::begin(list), std::end(list),
                       [&](std::string_view prefix) { return line.starts_with(prefix); });
  };
  std::vector<std::string> kept;
  for (const std::string& line : own)
    if (begins_with_one(line, kKept) && !begins_with_one(line, kOfAJob)) kept.push_back(line);
  return kept;
}

}  // namespace mete::launch
