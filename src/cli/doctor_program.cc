// SPDX-License-Identifier: Apache-2.0
// mete doctor: our own parts, whether they load into a program, and what else is preloaded.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/doctor.h"
#include "launch/parts.h"
#include "net/daemon_start.h"

namespace mete::cli {

namespace {

constexpr const char* kReinstall = "install mete again, all of it";

// The stderr of a program that only loads our libraries: the loader reports errors there and
// continues.
Result<std::string> load_into_true(const std::vector<std::string>& preload) {
  Result<base::Pipe> pipe = base::make_pipe();
  if (!pipe) return std::move(pipe).error();
  std::string variable = "LD_PRELOAD=" + base::join(preload, ":");
  std::string program = "/bin/true";
  std::array<char*, 2> argv{program.data(), nullptr};
  std::array<char*, 2> environment{variable.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe->write.get(), STDERR_FILENO);
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Error::from_errno("run /bin/true", error);
  pipe->write.reset();
  std::string said;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = read(pipe->read.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (said.size() < buffer.size()) said.append(buffer.data(), static_cast<std::size_t>(got));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (said.empty() && status != 0) said = "/bin/true ended with status " + std::to_string(status);
  return said;
}

void check_parts(Checks& checks) {
  const Result<launch::Parts> parts = launch::find_parts();
  if (!parts) {
    checks.push_back({Verdict::kFail, "libmete.so", parts.error().message, kReinstall});
    return;
  }
  const Result<std::string> said = load_into_true(parts->preload);
  if (!said)
    checks.push_back({Verdict::kWarn, "libmete.so", said.error().message});
  else if (!said->empty())
    checks.push_back({Verdict::kFail, "libmete.so", *said, kReinstall});
  else
    checks.push_back(
        {Verdict::kOk, "libmete.so", parts->preload.front() + " loads into a program"});
  const bool needed = !base::variable("METE_SIM").empty();
  if (!parts->simgpu.empty())
    checks.push_back({Verdict::kOk, "simulated drivers", parts->simgpu});
  else
    checks.push_back(
        {needed ? Verdict::kFail : Verdict::kInfo, "simulated drivers", "are missing", kReinstall});
  const std::string meted = net::program_beside_us("meted");
  if (meted.empty())
    checks.push_back({Verdict::kFail, "meted", "is missing beside mete", kReinstall});
  else
    checks.push_back({Verdict::kOk, "meted", meted});
}

void check_preload(const std::string& where, std::string_view list, const std::string& fix,
                   Checks& checks) {
  const std::vector<std::string> rivals = rival_preloads(list);
  if (!rivals.empty())
    checks.push_back({Verdict::kWarn, where,
                      base::join(rivals, ", ") + " also stands before the driver: limits of both",
                      fix});
  else if (!base::trim(list).empty())
    checks.push_back(
        {Verdict::kInfo, where, std::string(base::trim(list)) + " stays, after our own libraries"});
}

}  // namespace

std::vector<std::string> rival_preloads(std::string_view list) {
  static constexpr std::array<std::string_view, 8> kRivals{
      "libvgpu",  "libvcuda",    "libcuda-control", "libgemhook",
      "libcuda.", "libnvshare.", "libfgpu",         "libxpu"};
  std::vector<std::string> rivals;
  std::string words(list);
  for (char& c : words)
    if (c == ':' || c == '\n' || c == '\t') c = ' ';
  for (const std::string_view word : base::split(words, ' ')) {
    const std::string_view name = word.substr(word.rfind('/') + 1);
    for (const std::string_view rival : kRivals)
      if (name.starts_with(rival)) rivals.emplace_back(word);
  }
  return rivals;
}

void check_program(Checks& checks) {
  check_parts(checks);
  const char* preload = std::getenv("LD_PRELOAD");
  if (!base::variable("METE_GRANT").empty())
    checks.push_back({Verdict::kInfo, "inside a job",
                      "METE_GRANT is set: cards look as large as the job's share"});
  else if (preload != nullptr)
    check_preload("LD_PRELOAD", preload, "unset LD_PRELOAD", checks);
  if (const Result<std::string> text = base::read_all("/etc/ld.so.preload"))
    check_preload("/etc/ld.so.preload", *text, "take it out of /etc/ld.so.preload", checks);
}

}  // namespace mete::cli
