// SPDX-License-Identifier: Apache-2.0
// See service.h: turns of the engine, who may what, and what is about the daemon and its cards.
#include "serve/service.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "serve/reply.h"
#include "serve/submitter.h"

namespace mete::serve {

namespace {

// A timer for a moment that is far away is set again; a clock that is set must not be slept
// through.
constexpr std::int64_t kLongestSleepMs = 60'000;
// What the driver may show of a job beyond its grant without anybody having to know: NVML's figures
// are rounded, and a block that is being freed is counted for a moment longer.
constexpr Bytes kSlack = Bytes::from_mib(64);
// After this long others have their turn: the loop, and with it those who have just come.
constexpr std::chrono::milliseconds kSlice{2};
// What one turn of the engine is asked at most.
constexpr std::size_t kMostAsked = 64;

// Those whose answer grows with the number of jobs or of cards.
bool may_be_large(const net::Request& request) {
  return request.method == "GET" &&
         (request.path == "/v1/jobs" || request.path.ends_with("/wait") ||
          request.path == "/v1/snapshot" || request.path == "/v1/events" ||
          request.path == "/metrics");
}

// What was read of a card, without our own grants.
wire::CardView read_view(const core::PoolCard& read, const CardFigures& figures) {
  wire::CardView view;
  view.index = read.card.index;
  view.uuid = read.card.uuid;
  view.name = read.card.name;
  view.type = read.card.type;
  view.state = read.lost ? "lost" : "ok";
  view.unusable = read.unusable;
  if (!read.card.total.is_zero()) view.total = read.card.total;
  if (figures.sized) view.capacity = read.card.capacity;
  view.used = figures.used;
  Bytes foreign;
  for (const core::Outside& outside : read.foreign) foreign = foreign.plus(outside.bytes);
  view.foreign = foreign;
  view.utilisation_pct = figures.utilisation_pct;
  view.temperature_c = figures.temperature_c;
  if (figures.power_mw) view.power_w = *figures.power_mw / 1000.0;
  if (figures.power_limit_mw) view.power_limit_w = *figures.power_limit_mw / 1000.0;
  view.numa = figures.numa;
  for (const CardFigures::Link& link : figures.links) view.links.push_back({link.to, link.count});
  for (const CardFigures::Stranger& stranger : figures.strangers)
    view.foreign_list.push_back(
        {stranger.pid, stranger.user, stranger.used, stranger.name, stranger.utilisation_pct});
  return view;
}

// What jobs hold beyond their grants. A job may also hold memory of a card that it was not granted.
void add_excess(const core::PoolCard& placed, wire::CardView& card) {
  for (const core::Outside& outside : placed.foreign) {
    if (!outside.job) continue;
    card.over = card.over.plus(outside.bytes);
    const std::string id = to_string(*outside.job);
    auto share = std::find_if(card.jobs.begin(), card.jobs.end(),
                              [&](const auto& job) { return job.id == id; });
    if (share == card.jobs.end()) {
      wire::CardView::JobShare stray;
      stray.id = id;
      stray.user = outside.user;
      stray.used = outside.bytes;
      share = card.jobs.insert(card.jobs.end(), std::move(stray));
    }
    share->over = outside.bytes;
  }
}

}  // namespace

Service::Service(net::Loop& loop, seam::Clock& clock, engine::Engine& engine, Identity identity)
    : loop_(loop),
      clock_(clock),
      engine_(engine),
      identity_(std::move(identity)),
      forecasts_(loop, clock, engine),
      started_(clock.monotonic()),
      queue_([this] { schedule_work(); }) {}

// ---- turns -------------------------------------------------------------------------------------

void Service::ask(core::Input input, Answered answered,
                  std::vector<std::pair<std::string, std::string>> blobs) {
  const std::uint64_t ticket = answered ? ++last_ticket_ : 0;
  if (answered) unanswered_.emplace(ticket, std::move(answered));
  asked_.push_back({ticket, std::move(input), std::move(blobs)});
  schedule_turn();
}

void Service::tell(core::Input input) { ask(std::move(input), nullptr); }

void Service::see(MachineReading machine) {
  machine_ = std::move(machine);
  ++reading_;
  remember();
  doubted_.clear();
  engine_.see(believed());
  asked_.push_back({0, core::Look{}, {}});
  schedule_turn();
  seen_ = true;
  for (auto& [request, responder] : std::exchange(early_, {}))
    serve_request(std::move(request), std::move(responder));
}

// What counts as held by a job on each card: its grant, or what is left of it while it is parked.
// A runner is its user's own process. What it says to have given back is still held until the
// driver says so too.
std::map<std::string, Bytes> Service::counted(const core::Job& job) const {
  std::map<std::string, Bytes> counted;
  const std::vector<core::GrantedCard> held = core::held_now(job);
  const auto said = doubted_.find(job.id);
  for (std::size_t i = 0; i < held.size(); ++i)
    counted[held[i].uuid] = said != doubted_.end() && i < said->second.size()
                                ? std::min(held[i].bytes, said->second[i])
                                : held[i].bytes;
  return counted;
}

// The machine, with what jobs hold beyond their grants: a process without its meter takes what it
// wants, on every card that it can reach. That is not granted to another job.
core::Pool Service::believed() const {
  core::Pool pool = machine_.pool;
  for (const core::JobId id : engine_.state().active()) {
    const auto used = machine_.used.find(id);
    if (used == machine_.used.end()) continue;
    const core::Job& job = *engine_.state().find(id);
    const std::map<std::string, Bytes> counted = this->counted(job);
    for (core::PoolCard& card : pool.cards) {
      const auto on_card = used->second.find(card.card.uuid);
      if (on_card == used->second.end()) continue;
      const auto grant = counted.find(card.card.uuid);
      const Bytes may = grant == counted.end() ? Bytes() : grant->second;
      if (on_card->second <= may + kSlack) continue;
      card.foreign.push_back({"job " + to_string(id) + " of " + job.spec->user,
                              on_card->second - may, id, job.spec->user});
    }
  }
  return pool;
}

void Service::schedule_turn() {
  if (std::exchange(turn_scheduled_, true)) return;
  loop_.post([this] { turn(); });
}

template <class Function>
void Service::measured(Function function) {
  const seam::Nanoseconds begun = clock_.monotonic(), computed = clock_.computed();
  function();
  const seam::Nanoseconds took = clock_.monotonic() - begun;
  turns_.all.add(took);
  turns_.longest = std::max(turns_.longest, took);
  turns_.longest_computed = std::max(turns_.longest_computed, clock_.computed() - computed);
}

// ---- slices of work ----------------------------------------------------------------------------

void Service::serve_request(net::Request request, net::Responder responder) {
  const uid_t uid = request.peer.uid;
  const bool large = may_be_large(request);
  WorkQueue::Work work = [this, request = std::move(request),
                          responder = std::move(responder)](const WorkQueue::Place& place) {
    if (responder.gone()) return;
    place_ = place;
    route(request, responder);
    place_.reset();
  };
  if (large)
    queue_.add_large(uid, std::move(work));
  else
    queue_.add(uid, std::move(work));
  schedule_work();
}

void Service::schedule_work() {
  if (std::exchange(work_scheduled_, true)) return;
  loop_.post([this] { work(); });
}

void Service::work() {
  work_scheduled_ = false;
  measured([this] {
    const seam::Nanoseconds begun = clock_.monotonic();
    while (asked_.size() < kMostAsked) {
      std::optional<std::function<void()>> next = queue_.next();
      if (!next) return;
      (*next)();
      if (clock_.monotonic() - begun >= kSlice) break;
    }
    if (!queue_.empty()) schedule_work();
  });
}

// ---- turns of the engine -----------------------------------------------------------------------

void Service::turn() {
  measured([this] { take_turn(); });
}

void Service::take_turn() {
  turn_scheduled_ = false;
  Result<std::vector<engine::Answer>> answers = engine_.turn(std::exchange(asked_, {}));
  if (!answers) {
    on_fatal(answers.error());
    return;
  }
  for (engine::Answer& answer : *answers) {
    const auto found = unanswered_.find(answer.ticket);
    if (found == unanswered_.end()) continue;
    const Answered answered = std::move(found->second);
    unanswered_.erase(found);
    answered(std::move(answer));
  }
  answer_waiters();
  feed_readers();
  on_turn(!engine_.state().active().empty());
  if (engine_.again()) schedule_turn();
  wake_for_time();
}

void Service::wake_for_time() {
  const std::optional<WallTime> next = engine_.next_change();
  if (next == alarm_at_ && next) return;
  alarm_at_ = next;
  if (!next) return;
  const std::int64_t ms = std::clamp<std::int64_t>(next->ms - clock_.wall().ms, 1, kLongestSleepMs);
  alarm_ = loop_.after(seam::Milliseconds(ms), [this] {
    alarm_at_.reset();
    tell(core::Look{});
  });
}

void Service::answer_waiters() {
  if (answered_version_ == engine_.version() || !engine_.settled()) return;
  answered_version_ = engine_.version();
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    bool done = false;
    if (waiter->tag) {
      const core::Job* job = engine_.state().find(waiter->job);
      done = job == nullptr || tag_of(*job) != *waiter->tag;
    } else {
      done = engine_.state().is_over(waiter->job, waiter->any);
    }
    if (!done) {
      ++waiter;
      continue;
    }
    const uid_t uid = waiter->uid;
    const bool large = !waiter->tag;
    WorkQueue::Work answer = [this, over = std::move(*waiter)](const WorkQueue::Place& place) {
      place_ = place;
      answer_waiter(over);
      place_.reset();
    };
    // Of an array all its jobs are told.
    if (large)
      queue_.add_large(uid, std::move(answer));
    else
      queue_.add(uid, std::move(answer));
    waiter = waiters_.erase(waiter);
    schedule_work();
  }
}

void Service::answer_waiter(const Waiter& over) {
  if (over.responder.gone()) return;
  if (!engine_.settled())
    waiters_.push_back(over);  // what is so now may yet be undone
  else if (over.tag)
    reply_with_job(over.job, 200, over.responder);
  else
    reply_with_ended(over.job, over.any, over.responder);
}

bool Service::idle() const {
  return unanswered_.empty() && asked_.empty() && queue_.empty() && waiters_.empty() &&
         readers_.empty() && early_.empty() && engine_.state().unfinished() == 0 &&
         engine_.state().reservations().empty();
}

// ---- requests ----------------------------------------------------------------------------------

void Service::handle(net::Request request, net::Responder responder) {
  // A list of jobs and what a runner reports need no cards.
  const std::string& path = request.path;
  const bool post = request.method == "POST";
  const bool needs_cards = path == "/v1/cards" || path == "/v1/snapshot" ||
                           path.starts_with("/v1/cards/") || (path == "/v1/jobs" && post) ||
                           path == "/v1/try" || (path == "/v1/reservations" && post) ||
                           (path.starts_with("/v1/jobs/") && request.method == "GET");
  if (!seen_ && needs_cards)
    early_.emplace_back(std::move(request), std::move(responder));
  else
    serve_request(std::move(request), std::move(responder));
}

void Service::route(const net::Request& request, net::Responder responder) {
  const std::vector<std::string_view> parts = base::split(request.path, '/');  // "", "v1", ...
  const bool v1 = parts.size() >= 3 && parts[1] == "v1";
  if (v1 && parts[2] == "jobs")
    route_jobs(request, parts, std::move(responder));
  else if (request.path == "/v1/try" && request.method == "POST")
    try_job(request, std::move(responder));
  else if (route_sight(request, responder))
    return;
  else if (!v1 ||
           (!route_daemon(request, parts, responder) && !route_queue(request, parts, responder)))
    responder.reply(refuse(no_such_path(request)));
}

bool Service::route_daemon(const net::Request& request, const std::vector<std::string_view>& parts,
                           net::Responder& responder) {
  const bool get = request.method == "GET" && parts.size() == 3;
  if (parts[2] == "version" && get) {
    responder.reply(
        respond(200, "{\"api\":" + std::to_string(kApiVersion) + ",\"version\":\"" +
                         identity_.version + "\",\"grant_abi\":\"" + identity_.grant_abi +
                         "\",\"store\":" + std::to_string(identity_.store) + ",\"keys\":true}"));
  } else if (parts[2] == "cards" && get) {
    responder.reply(respond(200, wire::encode(cards(&request.peer))));
  } else if (parts[2] == "daemon" && get) {
    responder.reply(respond(200, wire::encode(daemon(), clock_.wall())));
  } else if (request.path == "/v1/daemon/stop" && request.method == "POST") {
    if (request.peer.uid != 0 && request.peer.uid != identity_.uid) {
      responder.reply(refuse(Error::denied("only root may stop the machine's daemon")));
      return true;
    }
    responder.reply(respond(200, wire::encode(daemon(), clock_.wall())));
    on_stop();
  } else {
    return false;
  }
  return true;
}

bool Service::is_admin(const net::Peer& peer) const {
  return peer.uid == 0 || peer.uid == identity_.uid ||
         (identity_.admin_gid && is_member(peer, *identity_.admin_gid));
}

core::Caller Service::caller(const net::Peer& peer) const {
  return {peer.uid, is_admin(peer), name_of_user(peer.uid)};
}

bool Service::may_see(const core::Job& job, const net::Peer& peer) const {
  return peer.uid == job.spec->uid || is_admin(peer);
}

// Where no card was ever read the reason is the driver's, not the request's.
Error Service::explained(Error error) const {
  if (error.code != ErrorCode::kInfeasible || !machine_.unread) return error;
  const Error& why = *machine_.unread;
  error.evidence = why.message + (why.evidence.empty() ? "" : ": " + why.evidence);
  if (!why.hint.empty()) error.hint = why.hint;
  if (why.code == ErrorCode::kBusy) {  // it may come back
    error.code = ErrorCode::kExhausted;
    error.message = "the cards cannot be read at the moment";
  }
  return error;
}

// ---- views -------------------------------------------------------------------------------------

// Everybody sees who has what of which card; the name of a job is its user's.
wire::CardsDocument Service::cards(const net::Peer* reader) const {
  wire::CardsDocument document{clock_.wall(), machine_.trouble, {}};
  for (const core::PoolCard& read : machine_.pool.cards)
    document.cards.push_back(read_view(read, machine_.cards.at(read.card.uuid)));
  const core::Pool pool = engine_.pool();
  for (wire::CardView& card : document.cards) {
    if (machine_.read_at)
      card.reading_age_s =
          std::chrono::duration<double>(clock_.monotonic() - *machine_.read_at).count();
    if (card.state == "ok" && engine_.state().drained().contains(card.uuid)) card.state = "drained";
    for (const core::PoolCard& placed : pool.cards) {
      if (placed.card.uuid != card.uuid) continue;
      card.grantable = placed.grantable();
      for (const core::Holder& holder : placed.holders) {
        card.granted += holder.bytes;
        wire::CardView::JobShare share{to_string(holder.job), holder.user, holder.bytes,
                                       holder.whole,          {},          {}};
        if (const auto used = machine_.used.find(holder.job); used != machine_.used.end())
          if (const auto on_card = used->second.find(card.uuid); on_card != used->second.end())
            share.used = on_card->second;
        const core::Job* job = engine_.state().find(holder.job);
        if (job != nullptr)
          for (const core::Escape& escape : job->escapes)
            if (escape.card == card.uuid)
              share.outside = share.outside.checked_add(escape.bytes).value_or(share.outside);
        if (job != nullptr && reader != nullptr && may_see(*job, *reader))
          share.name = job->spec->name;
        if (const auto idle = machine_.idle_since.find(holder.job);
            idle != machine_.idle_since.end() && job != nullptr &&
            job->state == core::JobState::kRunning)
          share.idle_since = idle->second;
        card.jobs.push_back(share);
      }
      add_excess(placed, card);
    }
  }
  return document;
}

wire::DaemonView Service::daemon() const {
  wire::DaemonView view;
  view.version = identity_.version;
  view.pid = getpid();
  view.mode = identity_.mode;
  view.state_dir = identity_.state_dir;
  view.simulated = identity_.simulated;
  view.uptime_s = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(clock_.monotonic() - started_).count());
  view.policy = std::string(to_string(engine_.policy()));
  view.trouble = machine_.trouble;
  view.disk_full = engine_.disk_full();
  view.idle_end_s = identity_.idle_end_s;
  const Around around = identity_.around();
  view.socket = around.socket;
  view.metrics = around.metrics;
  view.metrics_trouble = around.metrics_trouble;
  view.escapes = identity_.escape_stop ? "stop" : "warn";
  if (identity_.notify_counts) view.notify = identity_.notify_counts();
  view.running = engine_.state().active().size();
  view.pending = engine_.state().unfinished() - view.running;
  return view;
}

}  // namespace mete::serve
