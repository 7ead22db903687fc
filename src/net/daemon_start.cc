// SPDX-License-Identifier: Apache-2.0
// See daemon_start.h. connect_private() tries the socket that the environment implies and the one
// that the state folder names, and waits while the daemon of the folder lives but does not listen.
// connect_or_start() takes STATE/start.lock, looks once more for a daemon, starts one, and reads
// the ready pipe until the daemon listens, fails or dies.
#include "net/daemon_start.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/file.h"
#include "base/process.h"
#include "net/address_file.h"
#include "net/life_lock.h"
#include "net/listen.h"
#include "net/ready_pipe.h"
#include "net/spawn_daemon.h"

namespace mete::net {

namespace {

using base::join_path;

constexpr off_t kEvidenceBytes = 400;
constexpr int kLookAgainMs = 50;
constexpr const char* kStateHint =
    "set METE_STATE_DIR to a folder of your own on a local disk with space";

// Only root and we ourselves may be the daemon: requests carry commands that run as us.
Result<HttpClient> connect_trusted(const std::string& path, Milliseconds timeout) {
  Result<HttpClient> client = HttpClient::connect(path, timeout);
  if (!client) return client;
  if (const uid_t uid = client->peer().uid; uid != 0 && uid != geteuid())
    return Error::denied("the daemon at " + path + " belongs to neither root nor you")
        .with_evidence("it runs as user " + std::to_string(uid))
        .with_hint("set METE_SOCKET to a path in a folder of your own");
  return client;
}

bool nobody_answers(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kBusy;
}

// The folder is gone after a logout, or belongs to another user after a change of user.
bool is_usable(const std::string& runtime_dir) {
  struct stat info {};
  return stat(runtime_dir.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

// The address in the state folder, if the daemon that wrote it is alive and is the wanted one.
std::optional<std::string> told_by_state(const DaemonPlaces& places) {
  const Result<Address> address = read_address(places.state_dir);
  if (!address || !address->alive) return std::nullopt;
  if (!places.socket.empty() && !address->was_at(places.socket)) return std::nullopt;
  return address->socket;
}

Result<HttpClient> connect_private(const DaemonPlaces& places, const ConnectLimits& limits) {
  const Deadline deadline = Deadline::in(limits.patience);
  for (;;) {
    const Result<std::string> usual = private_socket(places);
    const std::optional<std::string> told = told_by_state(places);
    if (told && (!usual || *told != *usual)) {
      Result<HttpClient> client = connect_trusted(*told, limits.timeout);
      if (client || !nobody_answers(client.error())) return client;
    }
    Result<HttpClient> client =
        usual ? connect_trusted(*usual, limits.timeout) : Result<HttpClient>(usual.error());
    if (client || (usual && !nobody_answers(client.error()))) return client;
    if (!told || limits.patience.count() == 0) return client;
    if (deadline.poll_timeout() == 0)
      return Error::io("the daemon of " + places.state_dir + " runs, but does not answer")
          .with_evidence("it said that it listens at " + *told)
          .with_hint("see " + join_path(places.state_dir, "meted.log") + ", or kill " +
                     "the process in " + join_path(places.state_dir, "meted.pid"));
    // The daemon checks its socket once a second. Nothing else shows when it has made a new one.
    (void)poll(nullptr, 0, kLookAgainMs);
  }
}

// The last lines, since the daemon reported nothing else.
std::string tail_of_log(int log) {
  struct stat info {};
  char text[kEvidenceBytes];
  if (fstat(log, &info) != 0) return "";
  const ssize_t got =
      pread(log, text, sizeof text, std::max<off_t>(0, info.st_size - kEvidenceBytes));
  return got <= 0 ? "" : std::string(text, static_cast<std::size_t>(got));
}

// Until its message is whole: a daemon that keeps running closes its end of the pipe.
Result<void> await_ready(int pipe, const Deadline& deadline, int interrupt) {
  std::string message;
  char buffer[kMaxReadyBytes];
  while (message.size() < kMaxReadyBytes) {
    const Result<Waited> waited = wait_for(pipe, POLLIN, interrupt, deadline);
    if (!waited) return waited.error();
    if (*waited == Waited::kTimeout) return Error::io("the daemon does not report that it listens");
    if (*waited == Waited::kInterrupted) return Error::io("interrupted while the daemon starts");
    const ssize_t got = read(pipe, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    message.append(buffer, static_cast<std::size_t>(got));
    if (message == "ready\n") break;
  }
  return parse_ready(message);
}

Result<void> start_private(const std::string& path, const DaemonPlaces& places,
                           const DaemonStart& start, const Deadline& deadline) {
  const Result<Fd> log = open_log(places.state_dir);
  if (!log) return Error(log.error()).within("the state folder").with_hint(kStateHint);
  SpawnDaemon what;
  what.arguments = {start.program, "--state-dir", places.state_dir};
  what.environment = daemon_environment(base::own_environment());
  std::erase_if(what.environment,
                [](const std::string& entry) { return entry.starts_with("METE_SOCKET="); });
  what.environment.push_back("METE_SOCKET=" + path);
  what.log = log->get();
  const Result<Fd> pipe = spawn_daemon(what);
  if (!pipe) return pipe.error();
  Result<void> ready = await_ready(pipe->get(), deadline, start.interrupt);
  // The daemon's own report is enough; if it just died, its log is all there is.
  if (ready || !ready.error().evidence.empty() || !ready.error().hint.empty()) return ready;
  return std::move(ready).error().with_evidence(tail_of_log(log->get()));
}

// A second daemon cannot use the state of a running one: says where that one listens.
Error in_use(const DaemonPlaces& places, const Error& error) {
  const Result<Address> address = read_address(places.state_dir);
  if (error.code != ErrorCode::kBusy || !address || !address->alive) return error;
  return Error::busy("another daemon uses the state folder " + places.state_dir)
      .with_evidence("it listens at " + address->socket)
      .with_hint(places.socket.empty() ? "see " + join_path(places.state_dir, "meted.log")
                                       : "unset METE_SOCKET, or set METE_STATE_DIR too");
}

}  // namespace

DaemonPlaces DaemonPlaces::from_environment(std::string state_dir) {
  return {base::variable("METE_SOCKET"), base::variable("XDG_RUNTIME_DIR"), std::move(state_dir),
          kSystemSocket, kSystemState};
}

Result<std::string> private_socket(const DaemonPlaces& places) {
  std::string path = places.socket;
  if (path.empty() && !places.runtime_dir.empty() && is_usable(places.runtime_dir))
    path = join_path(places.runtime_dir, "mete/meted.sock");
  if (path.empty()) path = socket_in_state(places.state_dir);
  if (const Result<sockaddr_un> address = unix_address(path); !address) return address.error();
  return path;
}

bool system_is_down(const DaemonPlaces& places) {
  if (!places.socket.empty() || places.system_socket.empty()) return false;
  return access(places.system_socket.c_str(), F_OK) == 0 ||
         access(join_path(places.system_state, "meted.db").c_str(), F_OK) == 0;
}

std::string socket_in_state(const std::string& state_dir) {
  return join_path(state_dir, "run/meted.sock");
}

Result<HttpClient> connect_daemon(const DaemonPlaces& places, const ConnectLimits& limits) {
  if (places.socket.empty()) {
    // Whatever is wrong with the system's daemon, a private one is still possible.
    Result<HttpClient> client = connect_trusted(places.system_socket, limits.timeout);
    if (client) return client;
  }
  return connect_private(places, limits);
}

Result<DaemonConnection> connect_or_start(const DaemonPlaces& places, const DaemonStart& start) {
  Result<HttpClient> client = connect_daemon(places, start.connect);
  if (client) return DaemonConnection{*std::move(client), false};
  if (!nobody_answers(client.error())) return std::move(client).error();
  const Result<std::string> path = private_socket(places);
  if (!path) return path.error();
  if (start.program.empty())
    return Error::io("the daemon's program is missing")
        .with_evidence("there is no meted beside mete")
        .with_hint("build or install all of mete");
  if (Result<void> made = base::make_directories(places.state_dir); !made)
    return std::move(made).error().within("the state folder").with_hint(kStateHint);
  if (access(places.state_dir.c_str(), W_OK | X_OK) != 0)
    return Error::from_errno("the state folder " + places.state_dir + " cannot be written", errno)
        .with_hint(kStateHint);
  if (Result<void> made = prepare_socket_folder(base::parent_path(*path), false); !made)
    return std::move(made).error();
  const Deadline deadline = Deadline::in(start.patience);
  // One client at a time: the first starts the daemon, the others find it listening.
  Result<Fd> turn = take_lock(join_path(places.state_dir, "start.lock"), deadline, start.interrupt);
  if (!turn) return std::move(turn).error().within("another client starts the daemon");
  client = connect_private(places, start.connect);
  if (client) return DaemonConnection{*std::move(client), false};
  if (!nobody_answers(client.error())) return std::move(client).error();
  const Result<void> ready = start_private(*path, places, start, deadline);
  client = connect_private(places, start.connect);
  // A daemon that was started by hand meanwhile serves as well: ours then failed with "busy".
  if (client) return DaemonConnection{*std::move(client), ready.ok()};
  if (!ready) return in_use(places, ready.error());
  return std::move(client).error();
}

std::string program_beside_us(const std::string& name) {
  char buffer[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer);
  if (length <= 0) return "";
  const std::string folder =
      base::parent_path(std::string_view(buffer, static_cast<std::size_t>(length)));
  const std::string prefix = base::parent_path(folder);
  for (const std::string& path : {join_path(folder, name), join_path(prefix, "sbin/" + name),
                                  join_path(prefix, "libexec/mete/" + name)})
    if (access(path.c_str(), X_OK) == 0) return path;
  return "";
}

std::vector<std::string> daemon_environment(const std::vector<std::string>& current) {
  static constexpr std::string_view kKept[] = {"PATH=",
                                               "HOME=",
                                               "USER=",
                                               "LANG=",
                                               "METE_",
                                               "XDG_",
                                               "LD_LIBRARY_PATH=",
                                               "CUDA_VISIBLE_DEVICES="};
  std::vector<std::string> kept;
  for (const std::string& entry : current)
    for (const std::string_view begin : kKept)
      if (entry.starts_with(begin)) kept.push_back(entry);
  // The variable is meant for us.
  const std::string ready = std::string(kReadyVariable) + '=';
  std::erase_if(kept, [&](const std::string& entry) { return entry.starts_with(ready); });
  return kept;
}

Result<Fd> open_log(const std::string& state_dir) {
  const std::string path = join_path(state_dir, "meted.log");
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0 && info.st_size > static_cast<off_t>(kMaxLogBytes))
    (void)rename(path.c_str(), (path + ".1").c_str());  // ignoring: then it grows until next time
  return base::open_fd(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
}

}  // namespace mete::net
