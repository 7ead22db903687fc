// SPDX-License-Identifier: Apache-2.0
// See daemon_client.h. open_at() connects, or starts the daemon, through net/daemon_start; the
// other open functions differ in where they look and whether they may start one. call() sends a
// request and retries while the daemon has too many clients; body_of() records how the call failed
// (went_away_, turned_away_) for callers that ask again.
#include "runner/daemon_client.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "launch/state_dir.h"
#include "node/proc.h"
#include "wire/job.h"

namespace mete::runner {

namespace {

// For a runner beside its program: it must not wait for a daemon, and retries by itself.
constexpr net::ConnectLimits kAtOnce{.patience = net::Milliseconds(0)};

// Tells a stopped daemon from one that is busy or hangs.
Error does_not_answer(const net::HttpClient& http, net::Milliseconds waited) {
  const pid_t pid = http.peer().pid;
  const std::string number = std::to_string(pid);
  const Result<node::ProcessStat> stat = node::read_stat(pid);
  const bool stopped = stat && (stat->state == 'T' || stat->state == 't');
  std::string evidence = "process " + number + " at " + http.path() + " has not answered for " +
                         std::to_string(waited.count() / 1000) + " s";
  if (stopped) evidence += ", and is stopped (SIGSTOP)";
  evidence += "; it may still do what it was asked";
  return Error::io("the daemon does not answer")
      .with_evidence(std::move(evidence))
      .with_hint(stopped ? "kill -CONT " + number + " lets it go on"
                         : "try again; if that does not help: kill " + number +
                               ", its jobs and its log survive that");
}

}  // namespace

const net::Wait DaemonClient::kPatience{net::Milliseconds(30'000), -1};

Result<DaemonPlace> daemon_place() {
  Result<std::string> state = launch::state_dir();
  if (!state) return std::move(state).error();
  const bool simulated = !base::variable("METE_SIM").empty();
  if (simulated) {
    const std::string folder = base::variable("METE_SIM_DIR");
    state = folder.empty() ? base::join_path(*state, "sim") : folder;
  }
  DaemonPlace place{*state, net::DaemonPlaces::from_environment(*state)};
  if (simulated) {
    place.places.system_socket.clear();
    if (place.places.socket.empty())
      place.places.socket = base::join_path(*state, "run/meted.sock");
  }
  return place;
}

Result<DaemonClient> DaemonClient::open(Start start, int interrupt) {
  const Result<DaemonPlace> place = daemon_place();
  if (!place) return place.error();
  return open_at(*place, start, interrupt);
}

Result<DaemonClient> DaemonClient::open_for_jobs() {
  const Result<DaemonPlace> place = daemon_place();
  if (!place) return place.error();
  Result<DaemonClient> client = open_at(*place, Start::kNever, -1);
  if (client || !nobody_listens(client.error())) return client;
  // A private daemon started now would not know the jobs in question.
  if (net::system_is_down(place->places))
    return Error::busy("the daemon of this machine does not answer, so its jobs are not known")
        .with_evidence("nobody listens at " + place->places.system_socket)
        .with_hint("systemctl start meted, or ask the administrator");
  const std::string database = base::join_path(place->state_dir, "meted.db");
  // A mark without its database: the daemon reports what is wrong.
  const std::string mark = base::join_path(place->state_dir, "meted.mark");
  if (access(mark.c_str(), F_OK) == 0 || access(database.c_str(), F_OK) == 0)
    return open_at(*place, Start::kIfNeeded, -1);
  if (errno != ENOENT && errno != ENOTDIR) return Error::from_errno("look for " + database, errno);
  return Error::not_found("no daemon runs, so there are no jobs")
      .with_hint("mete submit or mete run starts one");
}

Result<DaemonClient> DaemonClient::open_again(const DaemonAt& where, Start start, int interrupt) {
  Result<DaemonPlace> place = daemon_place();
  if (!place) return std::move(place).error();
  place->places.socket = where.socket;
  if (!where.state_dir.empty()) place->places.state_dir = place->state_dir = where.state_dir;
  return open_at(*place, start, interrupt, start == Start::kNever ? kAtOnce : net::ConnectLimits());
}

Result<void> check_simulation(const std::string& of_daemon) {
  if (of_daemon == base::variable("METE_SIM")) return {};
  return Error::invalid("the daemon and this command disagree about METE_SIM")
      .with_evidence("the daemon has " + base::quote(of_daemon))
      .with_hint("mete daemon stop, or set METE_SIM as the daemon has it");
}

Result<void> check_told_simulation(const wire::DaemonView& daemon) {
  return daemon.simulated.empty() ? Result<void>() : check_simulation(daemon.simulated);
}

Result<void> DaemonClient::check_simulated() {
  if (base::variable("METE_SIM").empty()) return {};
  const Result<std::string> body = call("GET", "/v1/daemon");
  const Result<wire::DaemonView> view = body ? wire::decode_daemon(*body) : body.error();
  if (!view) return view.error();
  return check_told_simulation(*view);
}

bool DaemonClient::may_start() const {
  return http_.peer().uid == geteuid() && http_.path() != net::kSystemSocket;
}

Result<DaemonClient> DaemonClient::open_at(const DaemonPlace& place, Start start, int interrupt,
                                           const net::ConnectLimits& limits) {
  if (start == Start::kNever) {
    Result<net::HttpClient> http = net::connect_daemon(place.places, limits);
    if (!http) return std::move(http).error();
    return DaemonClient(*std::move(http));
  }
  net::DaemonStart how;
  how.program = net::program_beside_us("meted");
  how.interrupt = interrupt;
  how.connect = limits;
  Result<net::DaemonConnection> connection = net::connect_or_start(place.places, how);
  if (connection) return DaemonClient(std::move(connection->client));
  Error error = std::move(connection).error();
  // A file that the new daemon did not find is none that the user has named.
  if (error.code == ErrorCode::kNotFound) error.code = ErrorCode::kIo;
  return error;
}

Result<std::string> DaemonClient::body_of(Result<net::HttpClient::Reply> reply) {
  turned_away_ = false;
  went_away_ = !reply && http_.stopped() == net::HttpClient::Stopped::kNo;
  if (!reply) return std::move(reply).error();
  turned_away_ = reply && reply->status == 503 && http_.closed_behind() &&
                 wire::decode_error(reply->body).code == ErrorCode::kBusy;
  if (reply->status >= 200 && reply->status < 300) return std::move(reply->body);
  return wire::decode_error(reply->body);
}

Result<std::string> DaemonClient::call(std::string_view method, const std::string& target,
                                       std::string_view body, const net::Wait& wait) {
  const net::Deadline deadline = net::Deadline::in(wait.timeout.value_or(*kPatience.timeout));
  for (int tries = 1;; ++tries) {
    Result<std::string> answer = body_of(http_.request(method, target, body, wait));
    if (!answer && silent())
      return does_not_answer(http_, wait.timeout.value_or(net::Milliseconds(0)));
    if (!turned_away_ || deadline.poll_timeout() == 0) return answer;
    pollfd interrupt{wait.interrupt, POLLIN, 0};
    if (poll(&interrupt, 1, std::min({50 * tries, 1'000, deadline.poll_timeout()})) > 0)
      return answer;
  }
}

Result<std::string> DaemonClient::receive(const net::Wait& wait) {
  return body_of(http_.receive(wait));
}

}  // namespace mete::runner
