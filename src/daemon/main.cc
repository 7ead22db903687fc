// SPDX-License-Identifier: Apache-2.0
// The daemon's command line: meted [--state-dir DIR] [--system], and what is done without a daemon:
// --repair, --backup, --restore. The rest is in daemon.cc.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "daemon/backup.h"
#include "daemon/daemon.h"
#include "daemon/repair.h"
#include "launch/state_dir.h"
#include "net/daemon_start.h"

namespace mete::daemon {

namespace {

constexpr const char* kUsage =
    "usage: meted [--state-dir FOLDER] [--system]\n"
    "       meted [--state-dir FOLDER] [--json] --repair | --backup FILE | --restore FILE\n"
    "  --state-dir FOLDER  where state is kept (default: $METE_STATE_DIR, else as mete does)\n"
    "  --system            for all users of this machine, as root: /run/mete/meted.sock\n"
    "  --repair            saves what is whole of a damaged state, and ends (mete daemon repair)\n"
    "  --backup FILE       copies the state into a file, and ends (mete daemon backup)\n"
    "  --restore FILE      puts such a copy in place of the state, and ends (mete daemon "
    "restore);\n"
    "                      --force replaces a state with jobs, --dry-run only says what would be\n"
    "mete starts a private meted by itself when none answers; this is for service managers.\n";

// A private daemon is started from a shell, but serves others: the shell's soft limit on file sizes
// (ulimit -S -f) must not apply to its files. With a low hard limit it would fail sooner or later.
Result<void> lift_file_size_limit() {
  constexpr rlim_t kLeast = 64 << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return {};
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= kLeast) return {};
  return Error::exhausted("the limit on the size of files is too low for the daemon's state")
      .with_evidence("ulimit -H -f: " + to_string(Bytes::from_bytes(limit.rlim_max)))
      .with_hint("start the daemon from a shell without that limit: mete cards");
}

int failed(const Error& error, net::ReadyPipe& ready, int exit_code) {
  (void)std::fprintf(stderr, "meted: %s\n", error.message.c_str());
  ready.notify_failed(error);
  return exit_code;
}

// The new program goes on where we ended: everything is on disk, and clients that find no socket
// start or wait for a daemon as usual. Returns only if it cannot be executed.
int become(const DaemonEnd& end, const std::string& state_dir) {
  sigset_t none;
  sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
  if (end.descriptors) {
    const rlimit before{end.descriptors->soft, end.descriptors->hard};
    (void)setrlimit(RLIMIT_NOFILE, &before);
  }
  (void)execl(end.successor.c_str(), "meted", "--state-dir", state_dir.c_str(), nullptr);
  (void)std::fprintf(stderr, "meted: execute %s: %s\n", end.successor.c_str(),
                     std::strerror(errno));
  return base::kExitFailed;
}

int usage_error(const std::string& what) {
  (void)std::fprintf(stderr, "meted: %s\n%s", what.c_str(), kUsage);
  return 64;
}

}  // namespace

int daemon_main(int argc, char** argv) {
  base::fill_standard_descriptors();
  base::outlive_file_size_limit();
  net::ReadyPipe ready = net::ReadyPipe::from_environment();
  DaemonOptions options;
  options.version = METE_VERSION;
  bool repair = false, json = false;
  std::string backup;
  RestoreOptions restore;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--system") {
      options.system = true;
    } else if (word == "--repair") {
      repair = true;
    } else if (word == "--json") {
      json = true;
    } else if (word == "--backup" && i + 1 < argc) {
      backup = argv[++i];
    } else if (word == "--restore" && i + 1 < argc) {
      restore.file = argv[++i];
    } else if (word == "--force") {
      restore.force = true;
    } else if (word == "--dry-run") {
      restore.dry_run = true;
    } else if (word == "--state-dir" && i + 1 < argc) {
      options.state_dir = argv[++i];
    } else if (word == "--version") {
      (void)std::printf("meted %s\n", METE_VERSION);
      return 0;
    } else if (word == "--help" || word == "-h") {
      (void)std::fputs(kUsage, stdout);
      return 0;
    } else {
      return usage_error("there is no option " + std::string(word));
    }
  }
  if (options.state_dir.empty()) {
    Result<std::string> state = options.system && std::getenv("METE_STATE_DIR") == nullptr
                                    ? Result<std::string>(std::string(net::kSystemState))
                                    : launch::state_dir();
    if (!state) return usage_error(state.error().message);
    options.state_dir = *std::move(state);
  }
  if (repair) return run_repair(options.state_dir, json);
  if (!backup.empty()) return run_backup(options.state_dir, backup, json);
  if (!restore.file.empty()) {
    restore.state_dir = options.state_dir;
    restore.json = json;
    return run_restore(restore);
  }
  const auto places = net::DaemonPlaces::from_environment(options.state_dir);
  const Result<std::string> socket = options.system && places.socket.empty()
                                         ? Result<std::string>(std::string(net::kSystemSocket))
                                         : net::private_socket(places);
  if (!socket) return usage_error(socket.error().message);
  options.socket = *socket;
  Result<config::Config> config =
      config::load_config(config::ConfigPlaces::from_environment(!options.system));
  if (!config) {
    Error error = config.error();
    if (error.evidence.empty()) error.evidence = "the daemon reads it when it starts";
    return failed(error, ready, base::kExitBadFile);
  }
  options.config = *std::move(config);
  if (const Result<void> r = lift_file_size_limit(); !r)
    return failed(r.error(), ready, base::exit_code_of_failure(r.error().code));
  const DaemonEnd end = run_daemon(options, std::move(ready));
  if (end.exit_code != 0 || end.successor.empty()) return end.exit_code;
  return become(end, options.state_dir);
}

}  // namespace mete::daemon
