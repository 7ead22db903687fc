// SPDX-License-Identifier: Apache-2.0
// For the client: which daemon to talk to, and starting a private one if none answers. However many
// clients come at once, one starts it (STATE/start.lock) and the others wait for it and connect.
// The daemon is `meted --state-dir DIR`, detached from our terminal, session and folder, with
// METE_SOCKET set to the chosen path.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/http_client.h"

namespace mete::net {

inline constexpr const char* kSystemSocket = "/run/mete/meted.sock";
inline constexpr const char* kSystemState = "/var/lib/mete";

// Everything that decides where the daemon is. Programs use from_environment().
struct DaemonPlaces {
  std::string socket;         // METE_SOCKET; "": not set
  std::string runtime_dir;    // XDG_RUNTIME_DIR; "": not set
  std::string state_dir;      // absolute; exists or can be made
  std::string system_socket;  // the one of root's daemon
  std::string system_state = {};

  static DaemonPlaces from_environment(std::string state_dir);
};

// METE_SOCKET, else RUNTIME/mete/meted.sock if that folder is ours, else STATE/run/meted.sock:
// where a private daemon of these places begins to listen. invalid: not an absolute path, or too
// long.
Result<std::string> private_socket(const DaemonPlaces& places);

// The private daemon's socket in the state folder, for a daemon that can listen nowhere else.
std::string socket_in_state(const std::string& state_dir);

// If no daemon answered: whether the jobs of this machine belong to root's daemon, which is down.
// It has left its state behind, or its socket; METE_SOCKET does not name another one.
bool system_is_down(const DaemonPlaces& places);

struct ConnectLimits {
  Milliseconds timeout{5'000};  // to be accepted
  // For a daemon that is alive but does not listen at the moment: its socket was removed, and it
  // makes another one; or it is ending.
  Milliseconds patience{5'000};
};

// A socket that answers already: METE_SOCKET if it is set, else the system's, else the private one.
// A private daemon is found by the address in its state folder (address_file.h), wherever it
// listens; with METE_SOCKET only if a daemon of this folder has been at that path. not_found or
// busy: no daemon answers there. denied: the process that answers belongs to neither root nor us.
Result<HttpClient> connect_daemon(const DaemonPlaces& places, const ConnectLimits& limits);

struct DaemonStart {
  std::string program;            // absolute path of meted
  Milliseconds patience{30'000};  // for the daemon to listen, or for another client that starts it
  ConnectLimits connect = {};
  int interrupt = -1;  // readable: stop waiting (io); a daemon that is starting is left alone
};

struct DaemonConnection {
  HttpClient client;
  bool started = false;  // by us
};

// connect_daemon(), or else starts a private daemon and connects to it. The error is what the
// daemon reported; if it just died, the end of its log is the evidence.
Result<DaemonConnection> connect_or_start(const DaemonPlaces& places, const DaemonStart& start);

// Beside the running program: in its folder, or in ../sbin or ../libexec/mete. "": nowhere.
std::string program_beside_us(const std::string& name);

// The variables that the daemon gets: METE_*, XDG_*, PATH, HOME, USER, LANG, LD_LIBRARY_PATH,
// CUDA_VISIBLE_DEVICES. A private daemon outlives this shell, so other variables are not passed on.
std::vector<std::string> daemon_environment(const std::vector<std::string>& current);

inline constexpr std::size_t kMaxLogBytes = 1 << 20;
// Opens DIR/meted.log for appending (0600). A log above the limit is kept as meted.log.1, which
// replaces the previous one: there are never more than two. Also for the daemon, which calls it now
// and then and replaces its stderr by the result.
Result<Fd> open_log(const std::string& state_dir);

}  // namespace mete::net
