// SPDX-License-Identifier: Apache-2.0
// See cards.h. The engine grants by believed(): the reading, plus what jobs were seen to hold
// beyond their grants, counted as foreign memory. A document begins with the reading of each card
// and adds the grants of the engine's pool.
#include "serve/cards.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "serve/reply.h"

namespace mete::serve {

namespace {

// A job may exceed its grant by this much before the excess counts: NVML's figures are rounded, and
// a block that is being freed is counted for a moment longer.
constexpr Bytes kSlack = Bytes::from_mib(64);

// The reading of a card, without our own grants.
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

// Adds what jobs hold beyond their grants, also on cards that they were not granted.
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

// The most that each job has held of one card.
std::map<core::JobId, Bytes> peaks_of(const MachineReading& machine) {
  std::map<core::JobId, Bytes> peaks;
  for (const auto& [job, cards] : machine.peaks)
    for (const auto& [uuid, bytes] : cards) peaks[job] = std::max(peaks[job], bytes);
  return peaks;
}

}  // namespace

void Cards::see(MachineReading reading) {
  machine_ = std::move(reading);
  doubted_.clear();
  engine_.see(believed(), peaks_of(machine_));
}

void Cards::doubt(core::JobId id, std::vector<Bytes> held) {
  doubted_[id] = std::move(held);
  engine_.see(believed(), peaks_of(machine_));
}

// What counts as held by a job on each card: its grant, or what is left of it while it is parked. A
// runner is its user's own process: memory that it reports as given back counts as held until the
// driver confirms that.
std::map<std::string, Bytes> Cards::counted(const core::Job& job) const {
  std::map<std::string, Bytes> counted;
  const std::vector<core::GrantedCard> held = core::held_now(job);
  const auto said = doubted_.find(job.id);
  for (std::size_t i = 0; i < held.size(); ++i)
    counted[held[i].uuid] = said != doubted_.end() && i < said->second.size()
                                ? std::min(held[i].bytes, said->second[i])
                                : held[i].bytes;
  return counted;
}

// The machine, with what jobs hold beyond their grants: a process without the meter takes memory on
// every card that it can reach, and that memory must not be granted to another job.
core::Pool Cards::believed() const {
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

// ---- documents ---------------------------------------------------------------------------------

wire::CardView::JobShare Cards::share_of(const core::Holder& holder, const std::string& uuid,
                                         const net::Peer* reader) const {
  wire::CardView::JobShare share{to_string(holder.job), holder.user, holder.bytes,
                                 holder.whole,          {},          {}};
  if (const auto used = machine_.used.find(holder.job); used != machine_.used.end())
    if (const auto on_card = used->second.find(uuid); on_card != used->second.end())
      share.used = on_card->second;
  const core::Job* job = engine_.state().find(holder.job);
  if (job == nullptr) return share;
  for (const core::Escape& escape : job->escapes)
    if (escape.card == uuid)
      share.outside = share.outside.checked_add(escape.bytes).value_or(share.outside);
  if (reader != nullptr &&
      (identity_.others == core::Others::kAll || may_see(identity_, *job, *reader)))
    share.name = job->spec->name;
  if (const auto idle = machine_.idle_since.find(holder.job);
      idle != machine_.idle_since.end() && job->state == core::JobState::kRunning)
    share.idle_since = idle->second;
  return share;
}

wire::CardsDocument Cards::document(const net::Peer* reader) const {
  wire::CardsDocument document{clock_.wall(), machine_.trouble, {}};
  const core::Pool pool = engine_.pool();
  for (const core::PoolCard& read : machine_.pool.cards) {
    wire::CardView card = read_view(read, machine_.cards.at(read.card.uuid));
    if (machine_.read_at)
      card.reading_age_s =
          std::chrono::duration<double>(clock_.monotonic() - *machine_.read_at).count();
    if (card.state == "ok" && engine_.state().drained().contains(card.uuid)) card.state = "drained";
    for (const core::PoolCard& placed : pool.cards) {
      if (placed.card.uuid != card.uuid) continue;
      card.grantable = placed.grantable();
      for (const core::Holder& holder : placed.holders) {
        card.granted += holder.bytes;
        card.jobs.push_back(share_of(holder, card.uuid, reader));
      }
      add_excess(placed, card);
    }
    document.cards.push_back(std::move(card));
  }
  return document;
}

// ---- requests ----------------------------------------------------------------------------------

void Cards::get(Call& call) { call.reply(respond(200, wire::encode(document(&call.peer())))); }

void Cards::set_drained(Call& call, bool drained) {
  dispatcher_.ask(
      core::Drain{std::string(call.name), caller_of(identity_, call.peer()), drained},
      [this, responder = call.responder, peer = call.peer()](engine::Answer done) mutable {
        responder.reply(done.result ? respond(200, wire::encode(document(&peer)))
                                    : refuse(done.result.error()));
      });
}

}  // namespace mete::serve
