// SPDX-License-Identifier: Apache-2.0
// The door of meted: HTTP requests become inputs of the engine, its answers become responses.
// Requests, and what follows of them later (an answer to a wait, the next events of a stream), are
// served in slices of a few milliseconds, the users in turn (work_queue.h); what one slice asks of
// the engine is one turn, with one sync. Who asks is what the socket says (uid, groups), never what
// the request says. docs/formats/api.md has every path; service.cc the turns, jobs.cc what is about
// jobs, queue.cc the rest of the queue, sight.cc snapshots and metrics.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "serve/forecasts.h"
#include "serve/history.h"
#include "serve/machine_reading.h"
#include "serve/metrics.h"
#include "serve/work_queue.h"
#include "wire/cards.h"
#include "wire/job.h"
#include "wire/queue.h"
#include "wire/show.h"
#include "wire/snapshot.h"
#include "wire/submit.h"

namespace mete::serve {

inline constexpr int kApiVersion = 1;

// What the daemon knows of itself that is not the service's.
struct Around {
  std::string socket;  // where it listens now
  std::size_t connections = 0;
  std::uint64_t helper_restarts = 0;
  std::string metrics;          // where they are served beside the socket; "": nowhere
  std::string metrics_trouble;  // why not, though the configuration says so
};

struct Identity {
  std::string version;
  std::string grant_abi;  // "1.0"
  int store = 0;          // version of its schema
  std::string mode;       // "user", "system"
  std::string state_dir;
  std::uint32_t uid = 0;
  std::optional<std::uint32_t> admin_gid;  // a group whose members may what root may
  std::optional<std::uint64_t> idle_end_s;
  std::string readings;      // path, for runners
  std::string simulated;     // METE_SIM
  bool preemptible = false;  // jobs that do not say
  bool escape_stop = false;  // [escape] policy = "stop"
  core::NotifySpec notify;   // jobs that do not say
  std::function<wire::DaemonView::Notify()> notify_counts;
  // How a job that can be parked finds its movers.
  std::function<wire::ParkDoor(const core::Job&)> park_door;
  // Where the logs of a detached job are: of its output, and of its errors ("": in the same).
  std::function<std::pair<std::string, std::string>(const core::Job&)> logs_of;
  std::function<Around()> around = [] { return Around(); };
  std::size_t metric_jobs = 0;  // that have series of their own
};

class Service {
 public:
  Service(net::Loop& loop, seam::Clock& clock, engine::Engine& engine, Identity identity);

  void handle(net::Request request, net::Responder responder);

  // Inputs that are nobody's request: a runner's end, a job's end.
  void tell(core::Input input);
  void see(MachineReading machine);
  const MachineReading& machine() const { return machine_; }
  // /metrics, and nothing else: for a door through which anybody comes.
  void handle_metrics(const net::Request& request, net::Responder responder);

  // The engine failed for good (its store did): meted ends.
  std::function<void(const Error&)> on_fatal = [](const Error&) {};
  std::function<void()> on_stop = [] {};
  // After each turn; true arguments when some job holds a grant.
  std::function<void(bool busy)> on_turn = [](bool) {};

  // Nothing waits, runs or is asked for.
  bool idle() const;

 private:
  using Answered = std::function<void(engine::Answer)>;
  // Somebody waits until a job changes (`tag`), or until all jobs of this number have ended.
  struct Waiter {
    std::uint64_t number = 0;
    core::JobId job;
    std::optional<std::string> tag;
    bool any = false;  // one job of an array is enough
    uid_t uid = 0;
    net::Responder responder;
  };
  // Somebody reads the log as it grows; as a stream, or until there is something to answer.
  struct Reader {
    std::uint64_t number = 0;
    std::uint64_t after = 0;
    std::size_t limit = 0;
    net::Peer peer;
    bool stream = false;
    bool wait = false;    // until there is something to tell
    bool queued = false;  // to be fed
    net::Responder responder;
  };
  enum class Fed { kDone, kNothingYet, kMore };

  // Somebody looks at the machine, again and again.
  struct Viewer {
    std::uint64_t number = 0;
    net::Peer peer;
    net::Responder responder;
    net::Timer timer;
    std::optional<std::uint64_t> history;          // the version that it has
    std::optional<seam::Nanoseconds> stuck_since;  // it takes nothing
    bool queued = false;                           // to be shown the newest
  };
  // Who waits, in order, as of one version of the engine.
  struct Line {
    std::uint64_t version = 0;
    std::vector<wire::Snapshot::Queue::Entry> pending;
    std::map<std::string, std::uint64_t> depth;
    std::optional<WallTime> oldest;  // submitted
  };
  // A text that is the same for all who may see the same, as long as nothing has changed.
  struct Kept {
    std::uint64_t reading = 0;
    std::uint64_t version = 0;
    seam::Nanoseconds made{};
    std::shared_ptr<const std::string> text;
  };

  // ---- turns (service.cc)
  void ask(core::Input input, Answered answered,
           std::vector<std::pair<std::string, std::string>> blobs = {});
  void schedule_turn();
  void turn();
  void take_turn();
  void serve_request(net::Request request, net::Responder responder);
  void schedule_work();
  void work();
  // Measures one stretch in which the loop does nothing else.
  template <class Function>
  void measured(Function function);
  void wake_for_time();
  std::map<std::string, Bytes> counted(const core::Job& job) const;
  core::Pool believed() const;
  void answer_waiters();
  void route(const net::Request& request, net::Responder responder);
  bool route_daemon(const net::Request& request, const std::vector<std::string_view>& parts,
                    net::Responder& responder);
  bool is_admin(const net::Peer& peer) const;
  core::Caller caller(const net::Peer& peer) const;
  bool may_see(const core::Job& job, const net::Peer& peer) const;
  bool may_see(const seam::StoredEvent& event, const net::Peer& peer) const;
  Error explained(Error error) const;
  wire::CardsDocument cards(const net::Peer* reader) const;  // nullptr: nobody in particular
  wire::DaemonView daemon() const;

  // ---- jobs (jobs.cc)
  void route_jobs(const net::Request& request, const std::vector<std::string_view>& parts,
                  net::Responder responder);
  void post_job(const net::Request& request, net::Responder responder);
  void post_run(wire::RunRequest wanted, const net::Request& request, net::Responder responder);
  void post_submit(wire::SubmitRequest wanted, const net::Request& request,
                   net::Responder responder);
  core::Submit submit_of(core::JobSpec spec, bool wait, const net::Peer& peer) const;
  void get_job(core::JobId id, const net::Request& request, net::Responder responder);
  void report_on_job(core::JobId id, std::string_view what, const net::Request& request,
                     net::Responder responder);
  bool is_overtaken(core::JobId id, const net::Request& request);
  bool change_job(core::JobId id, std::string_view what, const net::Request& request,
                  net::Responder& responder);
  void list_jobs(const net::Request& request, net::Responder responder);
  void show_job(core::JobId id, const net::Request& request, net::Responder responder);
  void try_job(const net::Request& request, net::Responder responder);
  void explain_job(core::JobId id, const net::Request& request, net::Responder responder);
  void wait_for_job(core::JobId id, const net::Request& request, net::Responder responder);
  void add_waiter(core::JobId id, std::optional<std::string> tag, bool any, uid_t uid,
                  net::Responder responder);
  void answer_waiter(const Waiter& over);
  void reply_with_job(core::JobId id, int status, const net::Responder& responder);
  void reply_with_ended(core::JobId id, bool any, const net::Responder& responder);
  Answered changes_to(net::Responder responder);
  std::string tag_of(const core::Job& job);
  wire::JobView view_of(const core::Job& job, bool with_wait = true);
  wire::RunReply reply_for(const core::Job& job);
  wire::ShowDocument show_of(const core::Job& job);

  // ---- the queue (queue.cc)
  bool route_queue(const net::Request& request, const std::vector<std::string_view>& parts,
                   net::Responder& responder);
  void get_events(const net::Request& request, net::Responder responder);
  Fed feed(Reader& reader);
  void feed_again(std::uint64_t number);
  void feed_soon(Reader& reader);
  std::list<Reader>::iterator find_reader(std::uint64_t number);
  void feed_readers();
  void post_drain(const std::string& card, bool drain, const net::Request& request,
                  net::Responder responder);
  void post_quota(const net::Request& request, net::Responder responder);
  void post_reservation(const net::Request& request, net::Responder responder);
  wire::QuotaDocument quotas(const net::Peer& peer) const;
  wire::ReservationsDocument reservations() const;
  wire::StatsDocument stats() const;

  // ---- snapshots and metrics (sight.cc)
  bool route_sight(const net::Request& request, net::Responder& responder);
  void get_snapshot(const net::Request& request, net::Responder responder);
  void remember();
  const Line& line();
  wire::Snapshot snapshot(const net::Peer& peer, bool with_history);
  wire::Snapshot::Job snapshot_job(const core::Job& job);
  std::optional<unsigned> utilisation_of(core::JobId id) const;
  std::shared_ptr<const std::string> snapshot_text(const net::Peer& peer, bool with_history);
  void show_soon(std::uint64_t number);
  void show_to(std::uint64_t number);
  Figures daemon_figures() const;
  Figures::Job job_figures(const core::Job& job, WallTime now) const;
  Figures figures();
  std::shared_ptr<const std::string> metrics();

  net::Loop& loop_;
  seam::Clock& clock_;
  engine::Engine& engine_;
  Identity identity_;
  MachineReading machine_;
  History history_;
  Forecasts forecasts_;
  Line line_;
  std::list<Viewer> viewers_;
  std::map<std::pair<std::int64_t, bool>, Kept> kept_snapshots_;  // by who may see it, and history
  Kept kept_metrics_;
  std::uint64_t reading_ = 0;  // grows with each look at the machine
  // What jobs have said since the last reading that they hold.
  std::map<core::JobId, std::vector<Bytes>> doubted_;
  // The last thing that each runner said, by its own clock: what is older comes too late.
  std::map<core::JobId, std::uint64_t> last_said_;
  seam::Nanoseconds started_;
  std::vector<engine::Asked> asked_;
  std::map<std::uint64_t, Answered> unanswered_;
  std::list<Waiter> waiters_;
  std::list<Reader> readers_;
  // Requests that came before the cards were first read: nobody can be answered by then.
  std::vector<std::pair<net::Request, net::Responder>> early_;
  net::Timer alarm_;  // the next moment at which time alone changes something
  std::optional<WallTime> alarm_at_;
  bool seen_ = false;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t answered_version_ = 0;
  std::uint64_t fed_seq_ = 0;
  bool turn_scheduled_ = false;
  WorkQueue queue_;
  WorkQueue::Place place_;  // of what is served this moment, if its answer may be large
  bool work_scheduled_ = false;
  // How long the loop was at one thing: all of it, the longest, the longest by what was computed.
  Figures::Turns turns_;
};

}  // namespace mete::serve
