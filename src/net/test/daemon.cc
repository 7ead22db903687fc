// SPDX-License-Identifier: Apache-2.0
// A minimal daemon, for daemon_start_test.cc: it listens at METE_SOCKET, writes its pid to
// STATE/pids (a line for each daemon that ever listened), answers GET /self with what the tests ask
// about, and ends at a request for /stop. METE_TEST_DAEMON: "fail" reports an error, "die" reports
// nothing.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "net/http_server.h"
#include "net/listen.h"
#include "net/loop.h"
#include "net/ready_pipe.h"

namespace {

using namespace mete;
using namespace mete::net;

std::string self() {
  std::string text = "pid=" + std::to_string(getpid()) + "\nppid=" + std::to_string(getppid()) +
                     "\nsid=" + std::to_string(getsid(0)) + '\n';
  char folder[4096];
  text += std::string("cwd=") + (getcwd(folder, sizeof folder) != nullptr ? folder : "?") + '\n';
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  for (int number = 1; number < 32; ++number) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) text += "ignored=" + std::to_string(number) + '\n';
    if (sigismember(&mask, number) == 1) text += "blocked=" + std::to_string(number) + '\n';
  }
  for (char** entry = environ; *entry != nullptr; ++entry)
    text += "env " + std::string(*entry) + '\n';
  return text;
}

// The open descriptors when main() began: only 0, 1, 2 and the ready pipe should be there.
std::string open_descriptors() {
  std::string text;
  for (int fd = 0; fd < 1024; ++fd)
    if (fcntl(fd, F_GETFD) >= 0) text += "fd=" + std::to_string(fd) + '\n';
  return text;
}

int fail(ReadyPipe& ready, const Error& error) {
  std::fprintf(stderr, "test daemon: %s\n", error.message.c_str());
  ready.notify_failed(error);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string descriptors = open_descriptors();
  ReadyPipe ready = ReadyPipe::from_environment();
  const char* mode = getenv("METE_TEST_DAEMON");
  if (mode != nullptr && std::strcmp(mode, "die") == 0) {
    std::fprintf(stderr, "test daemon: last words\n");
    return 1;
  }
  if (mode != nullptr && std::strcmp(mode, "fail") == 0)
    return fail(ready, Error::corrupt("the ledger\nis broken").with_evidence("e").with_hint("h"));
  if (argc != 3 || std::strcmp(argv[1], "--state-dir") != 0) return 64;

  Result<Listener> listener = listen_at({getenv("METE_SOCKET"), false, Milliseconds(60'000)});
  if (!listener) return fail(ready, listener.error());
  {
    const Result<Fd> pids =
        base::open_fd(std::string(argv[2]) + "/pids", O_WRONLY | O_APPEND | O_CREAT, 0600);
    const std::string line = std::to_string(getpid()) + '\n';
    if (!pids || write(pids->get(), line.data(), line.size()) < 0) return 1;
  }
  Loop loop;
  std::optional<HttpServer> server;
  Result<HttpServer> started = HttpServer::start(
      loop, listener->take_socket(), [&](const Request& request, Responder responder) {
        if (request.path == "/self") return responder.reply({200, descriptors + self()});
        listener->close_door();
        server->drain([&] { loop.stop(); });
        responder.reply({200, "ends"});
      });
  if (!started) return fail(ready, started.error());
  server.emplace(*std::move(started));
  ready.notify_ready();
  loop.run();
  return 0;
}
