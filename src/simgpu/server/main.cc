// SPDX-License-Identifier: Apache-2.0
// mete-simgpu: the process that owns the simulated cards' memory (--serve, started by the simulated
// libraries themselves) and the command that controls it (--ctl).
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "simgpu/client.h"
#include "simgpu/server/server.h"
#include "simgpu/start_server.h"

namespace {

// Resets what the starting program left open, blocked or ignored.
void shed_inheritance(int keep) {
  const unsigned after = keep >= 3 ? static_cast<unsigned>(keep) + 1 : 3;
  const bool below = keep <= 3 || syscall(SYS_close_range, 3, keep - 1, 0) == 0;
  if (!below || syscall(SYS_close_range, after, ~0u, 0) != 0) {  // Linux before 5.9
    for (int fd = 3; fd < 65536; ++fd) {
      if (fd != keep) close(fd);
    }
  }
  for (int signal = 1; signal < 32; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) ::signal(signal, SIG_DFL);
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void close_standard_streams() {
  FILE* streams[] = {freopen("/dev/null", "r", stdin), freopen("/dev/null", "w", stdout),
                     freopen("/dev/null", "w", stderr)};
  (void)streams;
}

int serve(const char* folder, int ready) {
  shed_inheritance(ready);
  umask(0077);
  const int listener = simgpu::listen_socket(folder);
  if (listener < 0) {
    fprintf(stderr, "mete-simgpu: cannot listen in %s: %s\n", folder, strerror(errno));
    return 1;
  }
  setsid();
  prctl(PR_SET_NAME, "mete-simgpu");
  close_standard_streams();
  if (chdir("/") != 0) return 1;
  if (ready >= 0) {
    const char byte = 'r';
    if (write(ready, &byte, 1) != 1) return 1;
    close(ready);
  }
  simgpu::Server server(listener, folder);
  return server.run();
}

int control(const std::string& line) {
  if (simgpu::connect_server(simgpu::ClientKind::kControl) != 0) {
    fprintf(stderr, "mete-simgpu: no simulator to talk to\n");
    return 1;
  }
  std::vector<char> text(simgpu::kMaxPayload);
  simgpu::Call call;
  call.request.op = static_cast<uint32_t>(simgpu::Op::kControl);
  call.send = line.data();
  call.send_bytes = static_cast<uint32_t>(line.size());
  call.receive = text.data();
  call.receive_max = static_cast<uint32_t>(text.size());
  const int status = simgpu::call_server(&call);
  FILE* to = status == 0 ? stdout : stderr;
  if (status != 0) fprintf(to, "mete-simgpu: ");
  if (call.reply.payload > 0) fwrite(text.data(), 1, call.reply.payload, to);
  if (status != 0) fprintf(to, "\n");
  return status == 0 ? 0 : 1;
}

int usage() {
  fprintf(
      stderr,
      "usage: mete-simgpu --ctl COMMAND   (dump | lose-card N | restore-card N | set-card N KEY=V\n"
      "                                    | teardown-ms N | stop)\n"
      "       mete-simgpu --serve FOLDER [READY-FD]  (the simulated libraries start this "
      "themselves)\n");
  return 64;
}

}  // namespace

int main(int argc, char** argv) {
  if ((argc == 3 || argc == 4) && strcmp(argv[1], "--serve") == 0) {
    return serve(argv[2], argc == 4 ? atoi(argv[3]) : -1);
  }
  if (argc >= 3 && strcmp(argv[1], "--ctl") == 0) {
    std::string line = argv[2];
    for (int i = 3; i < argc; ++i) line += std::string(" ") + argv[i];
    return control(line);
  }
  return usage();
}
