// SPDX-License-Identifier: Apache-2.0
// Starting the server from inside a program of a user: clone() without an exit signal, so that the
// host's SIGCHLD handlers and waitpid(-1) loops never notice; the intermediate process is reaped
// here by its id; a pipe reports when the server listens.
#include "simgpu/start_server.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/old_glibc.h"
#include "simgpu/client.h"

METE_OLD_SYMBOL(dladdr);
METE_OLD_SYMBOL(pthread_sigmask);

extern char** environ;

namespace simgpu {
namespace {

constexpr char kSocketName[] = "gpu.sock";
constexpr char kLockName[] = "gpu.lock";

// sun_path holds 108 bytes; a folder may be deeper. Through a descriptor of the folder any depth
// fits.
struct SocketAddress {
  sockaddr_un address{};
  socklen_t length = 0;
  int folder_fd = -1;
  ~SocketAddress() {
    if (folder_fd >= 0) close(folder_fd);
  }
  bool set(const char* folder) {
    address.sun_family = AF_UNIX;
    int wrote = snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder, kSocketName);
    if (wrote < 0 || static_cast<size_t>(wrote) >= sizeof address.sun_path) {
      folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
      if (folder_fd < 0) return false;
      wrote = snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder_fd,
                       kSocketName);
    }
    length = static_cast<socklen_t>(sizeof address);
    return wrote > 0;
  }
};

bool make_folders(const char* path) {
  char copy[PATH_MAX];
  if (snprintf(copy, sizeof copy, "%s", path) >= static_cast<int>(sizeof copy)) return false;
  for (char* slash = copy + 1; *slash != '\0'; ++slash) {
    if (*slash != '/') continue;
    *slash = '\0';
    if (mkdir(copy, 0700) != 0 && errno != EEXIST) return false;
    *slash = '/';
  }
  return mkdir(copy, 0700) == 0 || errno == EEXIST;
}

// mete-simgpu is beside the calling library, also when installed.
bool server_program(char* out, size_t size) {
  const char* named = getenv("METE_SIMGPU_SERVER");
  if (named != nullptr && *named != '\0') {
    return snprintf(out, size, "%s", named) < static_cast<int>(size);
  }
  char real[PATH_MAX];
#if defined(__PIE__)  // in the server's own program, which is linked statically
  const char* const us = "/proc/self/exe";
#else
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&open_server), &info) == 0) return false;
  const char* const us = info.dli_fname;
#endif
  if (realpath(us, real) == nullptr) return false;
  char* slash = strrchr(real, '/');
  if (slash == nullptr) return false;
  *slash = '\0';
  return snprintf(out, size, "%s/mete-simgpu", real) < static_cast<int>(size);
}

struct Launch {
  const char* program;
  const char* folder;
  const char* ready;  // the number of the descriptor on which the server reports that it listens
  char** environment;
  char* stack_end;  // of the second child
};

// Both children share our memory until exec, so they only call the kernel.
int become_server(void* argument) {
  const Launch* launch = static_cast<const Launch*>(argument);
  const char* arguments[] = {launch->program, "--serve", launch->folder, launch->ready, nullptr};
  execve(launch->program, const_cast<char**>(arguments), launch->environment);
  _exit(127);
}

// The first child exists so that the server is not a child of this process. It never calls exec,
// because exec would restore the exit signal that clone() left out.
int launch_child(void* argument) {
  const Launch* launch = static_cast<const Launch*>(argument);
  const int made = clone(become_server, launch->stack_end, CLONE_VM | CLONE_VFORK, argument);
  _exit(made > 0 ? 0 : 1);
}

// LD_PRELOAD is removed: the server belongs to no job.
char** environment_without_preload() {
  size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  char** copy = static_cast<char**>(malloc((count + 1) * sizeof(char*)));
  if (copy == nullptr) return nullptr;
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0) copy[kept++] = environ[i];
  }
  copy[kept] = nullptr;
  return copy;
}

// True once the server has reported that it listens. It hangs up without a report when it cannot.
bool wait_ready(int fd) {
  for (;;) {
    pollfd item{fd, POLLIN, 0};
    const int ready = poll(&item, 1, 10000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char byte = 0;
    const ssize_t got = read(fd, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    return got == 1;
  }
}

bool clone_server(const char* folder, const char* program, int ready, char** environment) {
  constexpr size_t kStack = 64 << 10;
  void* stacks =
      mmap(nullptr, 2 * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stacks == MAP_FAILED) return false;
  char number[16];
  snprintf(number, sizeof number, "%d", ready);
  char* middle = static_cast<char*>(stacks) + kStack;
  Launch launch{program, folder, number, environment, middle + kStack};
  // Every signal is blocked while a child shares our memory, so that no handler runs in it.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  const pid_t pid = clone(launch_child, middle, CLONE_VM | CLONE_VFORK, &launch);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  int status = 1;
  if (pid > 0) {
    while (waitpid(pid, &status, __WCLONE) < 0 && errno == EINTR) {
    }
  }
  munmap(stacks, 2 * kStack);
  return pid > 0 && status == 0;
}

// Starts the server and returns when it listens (true) or could not be started (false).
bool start_server(const char* folder) {
  char program[PATH_MAX];
  if (!server_program(program, sizeof program)) return false;
  char** environment = environment_without_preload();
  if (environment == nullptr) return false;
  int ready[2];
  bool listening = false;
  if (pipe2(ready, O_CLOEXEC) == 0) {
    // Only the copy with the high number passes exec.
    const int passed = fcntl(ready[1], F_DUPFD, 100);
    close(ready[1]);
    if (passed >= 0) {
      const bool started = clone_server(folder, program, passed, environment);
      close(passed);
      listening = started && wait_ready(ready[0]);
    }
    close(ready[0]);
  }
  free(environment);
  return listening;
}

}  // namespace

bool simulation_directory(char* out, size_t size) {
  const int limit = static_cast<int>(size);
  const char* named = getenv("METE_SIM_DIR");
  if (named != nullptr && *named != '\0') return snprintf(out, size, "%s", named) < limit;
  const char* state = getenv("METE_STATE_DIR");
  if (state != nullptr && *state != '\0') return snprintf(out, size, "%s/sim", state) < limit;
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (runtime == nullptr || *runtime == '\0') runtime = "/tmp";
  return snprintf(out, size, "%s/mete-sim-%u", runtime, static_cast<unsigned>(geteuid())) < limit;
}

int connect_socket(const char* folder) {
  SocketAddress where;
  if (!where.set(folder)) return -1;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int result;
  do {
    result = connect(fd, reinterpret_cast<sockaddr*>(&where.address), where.length);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

int listen_socket(const char* folder) {
  SocketAddress where;
  if (!where.set(folder)) return -1;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  unlink(where.address.sun_path);
  const sockaddr* address = reinterpret_cast<sockaddr*>(&where.address);
  if (bind(fd, address, where.length) == 0 && listen(fd, 1024) == 0) return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

int take_start_lock(const char* folder, bool wait) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/%s", folder, kLockName) >= static_cast<int>(sizeof path)) {
    return -1;
  }
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return -1;
  int result;
  do {
    result = flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return fd;
  close(fd);
  return -1;
}

int open_server(const char* folder) {
  int fd = connect_socket(folder);
  if (fd >= 0) return fd;
  if (!make_folders(folder)) return -1;
  const int lock = take_start_lock(folder, true);
  if (lock < 0) return -1;
  fd = connect_socket(folder);
  if (fd < 0 && start_server(folder)) fd = connect_socket(folder);
  close(lock);
  return fd;
}

}  // namespace simgpu
