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

static int follow_threads(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  int found = 0;
  for (int news = 1; news;) {
    news = 0;
    DIR* const folder = opendir(path);
    if (folder == NULL) return 0;
    for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) {
      const pid_t tid = atoi(entry->d_name);
      if (tid <= 0) continue;
      const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;
      if (ptrace(PTRACE_SEIZE, tid, 0, options) != 0) continue;  // it is followed already
      if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0) news = ++found;
    }
    closedir(folder);
  }
  return found;
}

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  const pid_t pid = atoi(argv[1]);
  const long last = atol(argv[2]);
  signal(SIGTERM, stop);
  int starting = follow_threads(pid);
  if (starting == 0) {
    fprintf(stderr, "die_at: cannot follow %d: %s\n", pid, strerror(errno));
    return 77;
  }
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
    if (event == PTRACE_EVENT_STOP && starting > 0 && --starting == 0) say("ready");
  }
  say("ended");
  return 0;
}
