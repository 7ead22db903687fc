// SPDX-License-Identifier: Apache-2.0
// See sight.h. A text is kept with the numbers of the reading and of the engine's version that it
// shows, and made again when one of them has changed or the text is too old. The order of the queue
// is kept in the same way, since it costs as much as there are jobs.
#include "serve/sight.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "serve/reply.h"

namespace mete::serve {

namespace {

using core::JobState;

constexpr double kShortestEveryS = 0.25;  // readings are not more frequent
constexpr double kLongestEveryS = 3600;
// The ages in a text are as of the moment when it was made.
constexpr std::chrono::milliseconds kOldestSnapshot{250};
constexpr std::chrono::seconds kOldestMetrics{1};
constexpr std::chrono::seconds kStuck{60};
// A reading this old says nothing of now, as placement has it.
constexpr double kStaleS = 5;

// "0.5"; nullopt: no number of seconds within bounds.
std::optional<std::chrono::milliseconds> parse_every(const std::string& text) {
  double seconds = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() ||
      !(seconds >= kShortestEveryS && seconds <= kLongestEveryS))
    return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

double seconds_between(WallTime from, WallTime to) {
  return static_cast<double>(std::max<std::int64_t>(0, to.ms - from.ms)) / 1000;
}

}  // namespace

// ---- what documents are made from ---------------------------------------------------------------

// On the busiest of its cards; a card where one of its processes cannot be told does not count.
std::optional<unsigned> Sight::utilisation_of(core::JobId id) const {
  const auto found = machine_.processes.find(id);
  if (found == machine_.processes.end()) return std::nullopt;
  std::map<std::uint32_t, std::optional<unsigned>> cards;
  for (const JobProcess& process : found->second) {
    const auto [card, first] = cards.emplace(process.card, 0u);
    if (card->second && process.utilisation_pct)
      *card->second = std::min(100u, *card->second + *process.utilisation_pct);
    else
      card->second.reset();
  }
  std::optional<unsigned> most;
  for (const auto& [card, load] : cards)
    if (load) most = std::max(most.value_or(0), *load);
  return most;
}

void Sight::see() {
  ++reading_;
  if (!machine_.read_at) return;
  std::map<core::JobId, History::JobFigures> jobs;
  for (const core::JobId id : engine_.state().active()) {
    History::JobFigures& job = jobs[id];
    job.attempt = engine_.state().find(id)->attempt;
    job.utilisation_pct = utilisation_of(id);
    if (const auto used = machine_.used.find(id); used != machine_.used.end())
      job.used = used->second;
    if (const auto peaks = machine_.peaks.find(id); peaks != machine_.peaks.end())
      job.peaks = peaks->second;
  }
  const auto age =
      std::chrono::duration_cast<seam::Milliseconds>(clock_.monotonic() - *machine_.read_at);
  history_.see(*machine_.read_at, WallTime{clock_.wall().ms - age.count()}, machine_.cards, jobs);
}

// ---- snapshots ---------------------------------------------------------------------------------

wire::Snapshot::Job Sight::snapshot_job(const core::Job& job) {
  wire::Snapshot::Job shown;
  shown.view = views_.view_of(job);
  for (const core::GrantedCard& card : job.grant)
    shown.peaks.push_back(history_.peak(job.id, job.attempt, card.uuid));
  if (const auto found = machine_.processes.find(job.id); found != machine_.processes.end())
    for (const JobProcess& process : found->second)
      shown.processes.push_back({process.pid, process.start_ticks, process.parent, process.card,
                                 process.name, process.used, process.utilisation_pct});
  shown.utilisation_pct = utilisation_of(job.id);
  shown.runner = job.runner;
  return shown;
}

wire::Snapshot::Job Sight::snapshot_row(const core::Job& job) {
  wire::Snapshot::Job shown;
  shown.view = views_.row_of(job);
  return shown;
}

// The jobs that wait: those that the client may see come first, in the order of the queue if they
// are too many; the rest of the room is for the rows of other users.
void Sight::add_pending(const net::Peer& peer, bool others, wire::Snapshot& all) {
  const core::State& state = engine_.state();
  const JobViews::QueueSummary& queue = views_.queue();
  all.queue.depth = queue.depth;
  std::vector<std::pair<const core::Job*, bool>> shown;  // of each entry: the job, and as a row
  shown.reserve(queue.order.size());
  std::size_t own = 0;
  for (const wire::Snapshot::Queue::Entry& entry : queue.order) {
    const core::Job* job = state.find(entry.id);
    const bool whole = job != nullptr && may_see(identity_, *job, peer);
    own += whole ? 1 : 0;
    const bool row = job != nullptr && !whole && others && may_see_row(identity_, *job, peer);
    shown.emplace_back(whole || row ? job : nullptr, row);
  }
  std::size_t left_own = wire::kSnapshotPending;
  std::size_t left_rows = wire::kSnapshotPending - std::min(own, wire::kSnapshotPending);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto [job, row] = shown[i];
    if (job == nullptr) continue;
    std::size_t& left = row ? left_rows : left_own;
    if (left == 0) {
      ++all.queue.left_off;
      continue;
    }
    --left;
    all.queue.order.push_back(queue.order[i]);
    all.jobs.push_back(row ? snapshot_row(*job) : snapshot_job(*job));
    all.jobs.back().view.place = queue.order[i].place;
  }
}

wire::Snapshot Sight::snapshot(const net::Peer& peer, const Wish& wish) {
  const core::State& state = engine_.state();
  wire::CardsDocument cards = cards_.document(&peer);
  wire::Snapshot all;
  all.at = cards.at;
  all.seq = state.last_seq();
  all.trouble = std::move(cards.trouble);
  all.driver = machine_.driver;
  all.daemon = status_.view();
  all.cards = std::move(cards.cards);
  for (const core::JobId id : state.active()) {
    const core::Job& job = *state.find(id);
    if (may_see(identity_, job, peer))
      all.jobs.push_back(snapshot_job(job));
    else if (wish.others && may_see_row(identity_, job, peer))
      all.jobs.push_back(snapshot_row(job));
  }
  forecasts_.look();
  add_pending(peer, wish.others, all);
  std::sort(all.jobs.begin(), all.jobs.end(),
            [](const auto& a, const auto& b) { return a.view.job.id < b.view.job.id; });
  if (wish.history)
    all.history = history_.shown([&](core::JobId id) {
      const core::Job* job = state.find(id);
      return job != nullptr && may_see(identity_, *job, peer);
    });
  return all;
}

std::shared_ptr<const std::string> Sight::snapshot_text(const net::Peer& peer, const Wish& wish) {
  const seam::Nanoseconds now = clock_.monotonic();
  const std::int64_t rights = is_admin(identity_, peer) ? -1 : std::int64_t{peer.uid};
  CachedText& kept = snapshots_[{rights, wish}];
  if (kept.text == nullptr || kept.reading != reading_ || kept.version != engine_.version() ||
      now - kept.made > kOldestSnapshot) {
    kept = {reading_, engine_.version(), now,
            std::make_shared<const std::string>(wire::encode(snapshot(peer, wish)))};
    // Texts that no client has asked for lately.
    std::erase_if(snapshots_, [now](const auto& each) {
      return now - each.second.made > 20 * kOldestSnapshot;
    });
  }
  return kept.text;
}

void Sight::get_snapshot(Call& call) {
  const net::Request& request = call.request;
  const std::string* every = request.parameter("every");
  const std::optional<std::chrono::milliseconds> period =
      every == nullptr ? std::chrono::milliseconds(1000) : parse_every(*every);
  if (!period)
    return call.reply(refuse(Error::invalid("every is a number of seconds between 0.25 and 3600")
                                 .with_evidence(base::quote(*every))));
  const std::string* history = request.parameter("history");
  const bool with_history = history == nullptr || *history != "0";
  const bool others = request.parameter("others") != nullptr;
  if (!call.accepts("text/event-stream")) {
    if (!engine_.settled()) return call.reply(refuse(not_on_disk()));
    net::Response response = respond(200, *snapshot_text(request.peer, {others, with_history}));
    response.held = dispatcher_.place();
    return call.reply(response);
  }
  const std::uint64_t number = ++last_number_;
  Viewer viewer{number, request.peer, call.responder, {}, others, {}, {}, false};
  if (!with_history) viewer.history = UINT64_MAX;
  net::Response head;
  head.content_type = "text/event-stream";
  head.headers = {{"Cache-Control", "no-store"}};
  viewer.responder.start_stream(head);
  viewer.responder.on_gone([this, number] {
    viewers_.remove_if([number](const Viewer& known) { return known.number == number; });
  });
  viewer.timer = loop_.every(*period, [this, number] { show_soon(number); });
  viewers_.push_back(std::move(viewer));
  show_to(number);
}

std::list<Sight::Viewer>::iterator Sight::find(std::uint64_t number) {
  return std::find_if(viewers_.begin(), viewers_.end(),
                      [number](const Viewer& known) { return known.number == number; });
}

void Sight::show_soon(std::uint64_t number) {
  const auto viewer = find(number);
  if (viewer == viewers_.end() || std::exchange(viewer->queued, true)) return;
  dispatcher_.add(viewer->peer.uid, AnswerSize::kSmall, [this, number] { show_to(number); });
}

// A client that has not read the last snapshot is passed over: its next one is then the newest.
void Sight::show_to(std::uint64_t number) {
  const auto viewer = find(number);
  if (viewer == viewers_.end()) return;
  viewer->queued = false;
  const seam::Nanoseconds now = clock_.monotonic();
  if (viewer->responder.unread() > 0) {
    if (!viewer->stuck_since) viewer->stuck_since = now;
    if (now - *viewer->stuck_since <= kStuck) return;
    viewer->responder.close();  // it reads nothing, and keeps the daemon from ending
    viewers_.erase(viewer);
    return;
  }
  viewer->stuck_since.reset();
  if (!engine_.settled()) return;  // what may yet be undone is not shown
  const bool with_history = viewer->history != UINT64_MAX && viewer->history != history_.version();
  if (with_history) viewer->history = history_.version();
  const std::shared_ptr<const std::string> text =
      snapshot_text(viewer->peer, {viewer->others, with_history});
  if (!viewer->responder.send("event: snapshot\ndata: " + *text + "\n\n")) viewers_.erase(viewer);
}

// ---- metrics -----------------------------------------------------------------------------------

Figures Sight::daemon_figures() const {
  const auto since = [this](seam::Nanoseconds moment) {
    return std::chrono::duration<double>(clock_.monotonic() - moment).count();
  };
  Figures figures;
  figures.version = identity_.version;
  figures.mode = identity_.mode;
  figures.driver = machine_.driver;
  figures.readable = machine_.read_at && since(*machine_.read_at) < kStaleS;
  figures.settled = engine_.settled();
  figures.events = engine_.state().last_seq();
  figures.health = engine_.health();
  figures.uptime_s = std::chrono::duration<double>(status_.uptime()).count();
  figures.disk_full = engine_.disk_full();
  const Around around = identity_.around();
  figures.helper_restarts = around.helper_restarts;
  figures.connections = around.connections;
  figures.viewers = viewers_.size();
  figures.turns = dispatcher_.times();
  figures.waiting = dispatcher_.waiting();
  return figures;
}

Figures::Job Sight::job_figures(const core::Job& job, WallTime now) const {
  const core::JobId id = job.id;
  Figures::Job shown;
  shown.id = to_string(id);
  shown.user = job.spec->user;
  const auto add = [](std::optional<Bytes>& sum, std::optional<Bytes> more) {
    if (more) sum = sum.value_or(Bytes()) + *more;
  };
  const auto used = machine_.used.find(id);
  for (const core::GrantedCard& card : job.grant) {
    add(shown.cap, card.bytes);
    add(shown.peak, history_.peak(id, job.attempt, card.uuid));
    if (used == machine_.used.end()) continue;
    if (const auto on_card = used->second.find(card.uuid); on_card != used->second.end())
      add(shown.used, on_card->second);
  }
  shown.wait_s = seconds_between(job.submitted, job.started.value_or(now));
  if (const auto idle = machine_.idle_since.find(id);
      idle != machine_.idle_since.end() && job.state == JobState::kRunning)
    shown.idle_s = seconds_between(idle->second, now);
  shown.ooms = static_cast<std::uint64_t>(std::count_if(
      job.attempts.begin(), job.attempts.end(),
      [](const core::Attempt& attempt) { return attempt.outcome == core::Outcome::kGpuOom; }));
  return shown;
}

Figures Sight::figures() {
  const core::State& state = engine_.state();
  Figures figures = daemon_figures();
  // What may yet be undone is not shown.
  if (!figures.settled) return figures;
  const wire::CardsDocument cards = cards_.document(nullptr);
  figures.cards = cards.cards;
  for (const core::JobId id : state.active()) {
    const core::Job& job = *state.find(id);
    ++figures.states[std::string(to_string(job.state))];
    if (!job.escapes.empty()) ++figures.escaped;
    figures.jobs.push_back(job_figures(job, cards.at));
  }
  figures.most_jobs = identity_.metric_jobs;
  const JobViews::QueueSummary& queue = views_.queue();
  figures.depth = queue.depth;
  figures.states["pending"] = queue.order.size();
  if (queue.oldest) figures.oldest_wait_s = seconds_between(*queue.oldest, cards.at);
  return figures;
}

std::shared_ptr<const std::string> Sight::metrics_text_now() {
  const seam::Nanoseconds now = clock_.monotonic();
  if (metrics_.text == nullptr || metrics_.reading != reading_ ||
      now - metrics_.made > kOldestMetrics)
    metrics_ = {reading_, 0, now, std::make_shared<const std::string>(metrics_text(figures()))};
  return metrics_.text;
}

void Sight::get_metrics(Call& call) {
  net::Response response;
  response.content_type = kMetricsType;
  response.body = *metrics_text_now();
  response.held = dispatcher_.place();
  call.reply(response);
}

}  // namespace mete::serve
