// SPDX-License-Identifier: Apache-2.0
// The door of meted: HTTP requests become inputs of the engine, its answers become responses. All
// requests that arrive while the loop is at other things are one turn, with one sync. Who asks is
// what the socket says (uid), never what the request says.
//
//   GET    /v1/version            POST /v1/jobs               POST /v1/jobs/ID/started
//   GET    /v1/jobs[?all=1]       GET  /v1/jobs/ID[?tag=T]    POST /v1/jobs/ID/ended
//   GET    /v1/cards              DELETE /v1/jobs/ID          GET /v1/daemon  POST /v1/daemon/stop
//
// GET /v1/jobs/ID?tag=T waits until the job is no longer what it was at tag T.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "wire/cards.h"
#include "wire/job.h"

namespace mete::serve {

inline constexpr int kApiVersion = 1;

// The machine as last read.
struct Machine {
  core::Pool pool;                    // without our own grants
  std::vector<wire::CardView> cards;  // what was read; grants are added here
  // What each job holds, by card UUID.
  std::map<core::JobId, std::map<std::string, Bytes>> used;
  std::optional<seam::Nanoseconds> read_at;  // CLOCK_MONOTONIC
  std::string trouble;
  std::optional<Error> unread;  // why no card was ever read
  std::string driver;           // its version
};

struct Identity {
  std::string version;
  std::string grant_abi;  // "1.0"
  int store = 0;          // version of its schema
  std::string mode;       // "user", "system"
  std::string socket;
  std::string state_dir;
  std::uint32_t uid = 0;
  std::optional<std::uint64_t> idle_end_s;
  std::string readings;   // path, for runners
  std::string simulated;  // METE_SIM
};

class Service {
 public:
  Service(net::Loop& loop, seam::Clock& clock, engine::Engine& engine, Identity identity);

  void handle(net::Request request, net::Responder responder);

  // Inputs that are nobody's request: a runner's end, a job's end.
  void tell(core::Input input);
  void see(Machine machine);

  // The engine failed for good (its store did): meted ends.
  std::function<void(const Error&)> on_fatal = [](const Error&) {};
  std::function<void()> on_stop = [] {};
  // After each turn; true arguments when some job holds a grant.
  std::function<void(bool busy)> on_turn = [](bool) {};

  // Nothing waits, runs or is asked for.
  bool idle() const;

 private:
  using Answered = std::function<void(Result<core::JobId>)>;
  // Somebody waits until a job changes.
  struct Waiter {
    std::uint64_t number = 0;
    core::JobId job;
    std::string tag;
    net::Responder responder;
  };

  void ask(core::Input input, Answered answered);
  void schedule_turn();
  void turn();
  void answer_waiters();

  void route(const net::Request& request, net::Responder responder);
  void post_job(const net::Request& request, net::Responder responder);
  void get_job(core::JobId id, const net::Request& request, net::Responder responder);
  void post_about_job(core::JobId id, std::string_view what, const net::Request& request,
                      net::Responder responder);
  void list_jobs(const net::Request& request, net::Responder responder);
  void reply_with_job(core::JobId id, int status, const net::Responder& responder);

  Error explained(Error error) const;
  bool may_see(const core::Job& job, const net::Peer& peer) const;
  wire::JobView view_of(const core::Job& job) const;
  wire::RunReply reply_for(const core::Job& job) const;
  wire::CardsDocument cards() const;
  wire::DaemonView daemon() const;

  net::Loop& loop_;
  seam::Clock& clock_;
  engine::Engine& engine_;
  Identity identity_;
  Machine machine_;
  seam::Nanoseconds started_;
  std::vector<engine::Asked> asked_;
  std::map<std::uint64_t, Answered> unanswered_;
  std::list<Waiter> waiters_;
  // Requests that came before the cards were first read: nobody can be answered by then.
  std::vector<std::pair<net::Request, net::Responder>> early_;
  bool seen_ = false;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t answered_version_ = 0;
  bool turn_scheduled_ = false;
};

}  // namespace mete::serve
