// SPDX-License-Identifier: Apache-2.0
// Kills a process at its Nth step from now on. A step is a system call by which another process can
// see that it has done something: it writes, syncs, renames, removes, connects, starts a process,
// or wakes waiters on a word of shared memory. Two moments between two steps cannot be
// distinguished from outside. The process needs to know nothing of it.
//
//   die_at PID N    "ready"; then "died N CALL" before that call was made, or "ended" when it has
//                   ended by itself, or, when SIGTERM comes, "alive COUNT" with the steps so far
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
  long number;
  const char* name;
} kSteps[] = {
#define STEP(name) \
  { SYS_##name, #name }
    STEP(write),    STEP(writev),    STEP(pwrite64),  STEP(sendto),    STEP(sendmsg),
    STEP(fsync),    STEP(fdatasync), STEP(ftruncate), STEP(renameat2), STEP(renameat),
    STEP(unlinkat), STEP(connect),   STEP(clone),     STEP(clone3),    STEP(futex),
#ifdef SYS_rename
    STEP(rename),   STEP(unlink),    STEP(vfork),     STEP(fork),
#endif
#undef STEP
};

static volatile long steps = 0;

static void stop(int signal) {
  (void)signal;
  char line[64];
  const int size = snprintf(line, sizeof line, "alive %ld\n", steps);
  (void)!write(STDOUT_FILENO, line, (size_t)size);
  _exit(0);
}

static void say(const char* line) {
  printf("%s\n", line);
  fflush(stdout);
}

// Its name, or null: this call is no step.
static const char* step_of(const struct __ptrace_syscall_info* info) {
  if (info->op != PTRACE_SYSCALL_INFO_ENTRY) return NULL;
  for (size_t i = 0; i < sizeof kSteps / sizeof *kSteps; ++i) {
    if ((long)info->entry.nr != kSteps[i].number) continue;
    // A wake-up among threads of one process is not visible outside.
    if (kSteps[i].number == SYS_futex && info->entry.args[1] != FUTEX_WAKE) return NULL;
    return kSteps[i].name;
  }
  return NULL;
}

static pid_t held[1024];
static size_t held_count = 0;

static int is_held(pid_t tid) {
  for (size_t i = 0; i < held_count; ++i)
    if (held[i] == tid) return 1;
  return 0;
}

// Follows a thread and waits until it has stopped. 0: it has ended, or may not be followed (errno).
static int hold(pid_t tid) {
  const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;
  // A thread that a followed thread has started is followed already.
  const int error = ptrace(PTRACE_SEIZE, tid, 0, options) == 0 ? 0 : errno;
  for (;;) {
    (void)ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    int status = 0;
    if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status)) break;
    const int event = status >> 16;
    if (event == PTRACE_EVENT_STOP) return 1;
    // It stopped for another reason, after which the interrupt counts as done.
    (void)ptrace(PTRACE_CONT, tid, 0, event == 0 ? WSTOPSIG(status) : 0);
  }
  errno = error;
  return 0;
}

// Stops all threads. No thread goes on before the last has stopped: a thread that went on at once
// could make its step, and be killed, before "ready".
static int hold_threads(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  for (int news = 1; news;) {
    news = 0;
    DIR* const folder = opendir(path);
    if (folder == NULL) break;
    for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) {
      const pid_t tid = atoi(entry->d_name);
      if (tid <= 0 || is_held(tid) || held_count == sizeof held / sizeof *held) continue;
      if (!hold(tid)) continue;
      held[held_count++] = tid;
      news = 1;
    }
    const int error = errno;
    closedir(folder);
    errno = error;
  }
  return held_count > 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  const pid_t pid = atoi(argv[1]);
  const long last = atol(argv[2]);
  signal(SIGTERM, stop);
  if (!hold_threads(pid)) {
    if (kill(pid, 0) != 0 && errno == ESRCH) {
      say("ended");
      return 0;
    }
    fprintf(stderr, "die_at: cannot follow %d: %s\n", pid, strerror(errno));
    return 77;
  }
  say("ready");
  for (size_t i = 0; i < held_count; ++i) (void)ptrace(PTRACE_SYSCALL, held[i], 0, 0);
  for (;;) {
    int status = 0;
    const pid_t tid = waitpid(-1, &status, __WALL);
    if (tid < 0) break;
    if (!WIFSTOPPED(status)) {
      if (tid == pid) break;
      continue;
    }
    const int number = WSTOPSIG(status);
    const int event = status >> 16;
    int deliver = 0;
    if (number == (SIGTRAP | 0x80)) {
      struct __ptrace_syscall_info info;
      const char* name = NULL;
      if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) > 0) name = step_of(&info);
      if (name != NULL && ++steps == last) {
        signal(SIGTERM, SIG_IGN);  // from here on it is not alive
        kill(pid, SIGKILL);
        char line[64];
        snprintf(line, sizeof line, "died %ld %s", steps, name);
        say(line);
        return 0;
      }
    } else if (event == PTRACE_EVENT_STOP && number != SIGTRAP) {
      (void)ptrace(PTRACE_LISTEN, tid, 0, 0);  // stopped by another process
      continue;
    } else if (event == 0) {
      deliver = number;
    }
    (void)ptrace(PTRACE_SYSCALL, tid, 0, deliver);
  }
  say("ended");
  return 0;
}
