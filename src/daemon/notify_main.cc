// SPDX-License-Identifier: Apache-2.0
// mete-notify: delivers one notification and exits. The daemon starts it with a plan in a
// descriptor (wire::NotifyPlan). It becomes the job's user before it runs anything, gives the
// program a clean environment, and kills it when it takes too long. Exit code 0: delivered;
// otherwise one line says why. That line names no target: it goes to the daemon's log.
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "launch/identity.h"
#include "launch/keeper_spawn.h"
#include "wire/notification.h"

namespace mete::daemon {

namespace {

using wire::NotifyPlan;

int fail(const std::string& why) {
  (void)!write(launch::kWordsFd, (why + "\n").c_str(), why.size() + 1);
  return 1;
}

struct User {
  launch::Identity identity;
  std::string name, home, shell;
};

User find_user(std::uint32_t uid) {
  const passwd* entry = getpwuid(uid);
  if (entry == nullptr) return {{}, std::to_string(uid), "/", "/bin/sh"};
  return {{}, entry->pw_name, entry->pw_dir, entry->pw_shell};
}

Result<void> take_rights(const User& user) {
  if (geteuid() == 0 && user.identity.uid != 0) return launch::become(user.identity);
  if (geteuid() != user.identity.uid)
    return Error::denied("this is not the daemon of the job's user");
  return {};
}

std::vector<std::string> environment_of(const User& user, const NotifyPlan& plan) {
  std::vector<std::string> lines{"PATH=/usr/local/bin:/usr/bin:/bin",
                                 "HOME=" + user.home,
                                 "USER=" + user.name,
                                 "LOGNAME=" + user.name,
                                 "SHELL=" + user.shell,
                                 "LANG=C.UTF-8"};
  lines.insert(lines.end(), plan.variables.begin(), plan.variables.end());
  return lines;
}

Fd memory_with(const std::string& text) {
  Fd memory(memfd_create("mete-notification", MFD_CLOEXEC));
  if (!memory || !base::write_all(memory.get(), text) || lseek(memory.get(), 0, SEEK_SET) != 0)
    return Fd();
  return memory;
}

// In the child. Inherits nothing of ours: all other descriptors close at exec.
[[noreturn]] void run(const NotifyPlan& plan, const std::vector<std::string>& environment,
                      int input) {
  (void)setpgid(0, 0);
  // The mode after a login, whatever the daemon was started with.
  (void)umask(022);
  (void)signal(SIGPIPE, SIG_DFL);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (chdir("/") != 0 || dup2(input, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
      dup2(null, STDERR_FILENO) < 0)
    _exit(126);
  const std::vector<char*> argv = base::pointers(plan.argv);
  const std::vector<char*> lines = base::pointers(environment);
  execvpe(argv[0], argv.data(), lines.data());
  _exit(errno == ENOENT ? 127 : 126);
}

std::string in_words(const NotifyPlan& plan, int code) {
  const std::string& program = plan.argv.front();
  if (code == 127) return "there is no " + program;
  if (program == "curl") {
    if (code == 6) return "its host has no address";
    if (code == 7) return "its host does not listen";
    if (code == 22) return "its host refused it";
    if (code == 28) return "its host does not answer";
  }
  return program.substr(program.rfind('/') + 1) + " ended with code " + std::to_string(code);
}

int deliver(const NotifyPlan& plan, const std::vector<std::string>& environment) {
  const Fd input = memory_with(plan.input);
  if (!input) return fail("no memory");
  const pid_t child = fork();
  if (child < 0) return fail("no process could be made");
  if (child == 0) run(plan, environment, input.get());
  (void)setpgid(child, child);
  const Fd handle(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  pollfd item{handle.get(), POLLIN, 0};
  int ready = -1;
  do {
    ready = poll(&item, 1, static_cast<int>(plan.limit_s) * 1000);
  } while (ready < 0 && errno == EINTR);
  // Includes processes that it left in the background.
  (void)kill(-child, SIGKILL);
  int status = 0;
  (void)waitpid(child, &status, 0);
  if (ready == 0) return fail("it took longer than " + std::to_string(plan.limit_s) + " s");
  if (WIFSIGNALED(status))
    return fail("it was ended by signal " + std::to_string(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? 0 : fail(in_words(plan, WEXITSTATUS(status)));
}

}  // namespace

int notify_main() {
  for (const int fd : {launch::kPlanFd, launch::kWordsFd}) (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
  (void)signal(SIGPIPE, SIG_IGN);
  if (lseek(launch::kPlanFd, 0, SEEK_SET) != 0) return fail("there is no plan");
  const Result<std::string> text =
      base::read_all("/proc/self/fd/" + std::to_string(launch::kPlanFd), 1 << 20);
  if (!text) return fail("there is no plan");
  const Result<wire::NotifyPlan> plan = wire::decode_notify_plan(*text);
  if (!plan) return fail(plan.error().message);
  User user = find_user(plan->uid);
  user.identity = launch::identity_of(plan->uid);
  if (const Result<void> r = take_rights(user); !r) return fail(r.error().message);
  return deliver(*plan, environment_of(user, *plan));
}

}  // namespace mete::daemon
