// SPDX-License-Identifier: Apache-2.0
// How programs leave their parent, for processes_test.py:
//   daemonise daemon FILE   fork, exit, setsid, fork, exit; the last process writes FILE a moment
//   later daemonise chain N FILE  forks every 2 ms and exits, N times over; the last one writes
//   FILE daemonise stubborn N    as chain, and ignores TERM
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void leave_parent(void) {
  if (fork() != 0) _exit(0);
}

static void sleep_ms(long ms) {
  struct timespec time = {0, ms * 1000000};
  while (nanosleep(&time, &time) != 0) continue;
}

int main(int argc, char** argv) {
  const char* file = argc > 1 ? argv[argc - 1] : "";
  if (argc == 3 && strcmp(argv[1], "daemon") == 0) {
    leave_parent();
    setsid();
    leave_parent();
    sleep_ms(20);
  } else if (argc == 4 && strcmp(argv[1], "chain") == 0) {
    for (int left = atoi(argv[2]); left > 0; --left) {
      leave_parent();
      sleep_ms(2);
    }
  } else if (argc == 3 && strcmp(argv[1], "stubborn") == 0) {
    signal(SIGTERM, SIG_IGN);
    for (int left = atoi(argv[2]); left > 0; --left) {
      leave_parent();
      sleep_ms(2);
    }
    return 0;
  } else {
    return 64;
  }
  const int fd = open(file, O_WRONLY | O_CREAT, 0600);
  return fd >= 0 && write(fd, "done\n", 5) == 5 ? 0 : 1;
}
