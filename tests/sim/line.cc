// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/line.h"

#include <algorithm>
#include <tuple>

namespace mete::sim {

using core::JobId;

namespace {

// A share on any one card, and nothing else said: for these the arithmetic is easy to trust.
std::optional<std::int64_t> plain_share(const Entry& entry) {
  const core::Request request = entry.request();
  core::Request plain;
  plain.gpu = request.gpu;
  plain.cpus = request.cpus;
  if (request != plain || !request.gpu) return std::nullopt;
  const auto* size = std::get_if<core::Size>(&request.gpu->memory);
  if (size == nullptr || request.gpu->cards.kind != core::CardCount::Kind::kOne)
    return std::nullopt;
  return static_cast<std::int64_t>(size->bytes.count());
}

std::int64_t count(Bytes bytes) { return static_cast<std::int64_t>(bytes.count()); }

}  // namespace

void Line::check(const Turn& turn) {
  look(turn);
  if (!fresh_.empty()) same_ask(turn);
  if (const Entry* ahead = first(); ahead != nullptr && books_.reservations().empty())
    first_is_not_delayed(turn, *ahead);
}

void Line::look(const Turn& turn) {
  now_ = turn.now;
  waiting_.clear();
  for (const JobId id : books_.pending())
    if (const Entry* entry = books_.find(id); entry->in_line(now_)) waiting_.push_back(entry);
  judge_.saw("waiting in line", waiting_.size());
  fresh_ = {turn.fresh.begin(), turn.fresh.end()};
  find_starving();
  add_up_usage(turn);
  cards_.clear();
  for (const core::PoolCard& card : turn.machine.cards) {
    Loaded on{
        &card, count(card.card.capacity), count(sum(card.claimed)) + count(sum(card.foreign)), {}};
    cards_.push_back(std::move(on));
  }
  for (const JobId id : books_.active()) {
    const Entry& entry = *books_.find(id);
    const core::Job* job = turn.state.find(id);
    if (job == nullptr || entry.grant.empty()) continue;
    const std::optional<WallTime> ends = turn.state.ends_of(*job, now_).first;
    for (const core::GrantedCard& card : entry.grant)
      for (Loaded& on : cards_)
        if (on.card->card.uuid == card.uuid) on.shares.push_back({id, count(card.bytes), ends});
  }
}

// Of each user the oldest who has waited too long goes before everybody.
void Line::find_starving() {
  std::vector<const Entry*> all = waiting_;
  for (const JobId id : fresh_)
    if (const Entry* entry = books_.find(id); entry != nullptr) all.push_back(entry);
  std::sort(all.begin(), all.end(), [](const Entry* a, const Entry* b) { return a->id < b->id; });
  const std::int64_t before =
      now_.ms - static_cast<std::int64_t>(books_.rules().starve_after_s * 1000);
  std::set<std::pair<std::string, std::int32_t>> looked_at;
  std::map<std::string, JobId> oldest;
  for (const Entry* entry : all) {
    if (!looked_at.emplace(entry->spec->user, entry->priority).second) continue;
    if (entry->submitted.ms > before) continue;
    oldest.try_emplace(entry->spec->user, entry->id);
  }
  starving_.clear();
  for (const auto& [user, id] : oldest) starving_.insert(id);
}

// MiB of cards times seconds, a GiB for each CPU of a job without: what is over, faded, and what
// runs.
void Line::add_up_usage(const Turn& turn) {
  served_.clear();
  for (const JobId id : fresh_) served_.insert(books_.find(id)->spec->user);
  usage_.clear();
  const auto begin = [&](const std::string& user) {
    usage_.try_emplace(user, turn.state.fair_share().usage(user, now_));
  };
  for (const Entry* entry : waiting_) begin(entry->spec->user);
  for (const std::string& user : served_) begin(user);
  for (const JobId id : books_.active()) {
    const core::Job* job = turn.state.find(id);
    if (job == nullptr || !job->started || *job->started >= now_) continue;
    const auto user = usage_.find(job->spec->user);
    if (user == usage_.end()) continue;
    std::uint64_t bytes = 0;
    for (const core::GrantedCard& card : job->grant) bytes += card.bytes.count();
    const std::uint64_t cpus =
        job->spec->detached ? std::max(1u, job->spec->request.cpus.value_or(1)) : 1;
    const std::uint64_t mib = bytes == 0 ? 1024 * cpus : bytes >> 20;
    user->second += mib * static_cast<std::uint64_t>((now_.ms - job->started->ms) / 1000);
  }
}

bool Line::is_behind(const Entry& later, const Entry& earlier) const {
  const bool starves = starving_.contains(earlier.id);
  if (starving_.contains(later.id))
    return starves && std::tie(earlier.submitted, earlier.id) < std::tie(later.submitted, later.id);
  if (starves || later.priority < earlier.priority) return true;
  if (later.priority != earlier.priority) return false;
  const std::string& user = earlier.spec->user;
  if (later.spec->user == user) return later.id > earlier.id;
  return !served_.contains(user) && usage_.at(user) < usage_.at(later.spec->user);
}

// Neither a quota nor a count of CPUs can be in its way.
bool Line::is_clear(const Entry& entry) const {
  const core::Quota quota = books_.quota_of(entry.spec->user);
  if (quota.running || quota.cards || quota.bytes) return false;
  if (entry.spec->array && entry.spec->array->at_once) return false;
  return !books_.rules().cpus || !entry.spec->detached || !entry.spec->request.cpus;
}

const Entry* Line::first() const {
  const Entry* first = nullptr;
  for (const Entry* entry : waiting_)
    if (first == nullptr || is_behind(*first, *entry)) first = entry;
  if (first == nullptr || !is_clear(*first)) return nullptr;
  for (const Entry* entry : waiting_)
    if (entry != first && !is_behind(*entry, *first)) return nullptr;
  return first;
}

// ---- the same ask ------------------------------------------------------------------------------

bool Line::could_have_had(const Entry& entry, const Entry& got, const Turn& turn) const {
  const core::JobSpec& spec = *entry.spec;
  const core::JobSpec& other = *got.spec;
  if (spec.detached.has_value() != other.detached.has_value()) return false;
  if (spec.user != other.user && !books_.reservations().empty()) return false;
  const bool no_longer =
      (spec.time_s && other.time_s && *spec.time_s <= *other.time_s) ||
      (!other.time_s && !turn.state.estimates().ends_by(other, 0, 95)) ||
      (spec.user == other.user && spec.time_s == other.time_s && spec.name == other.name);
  if (!no_longer || entry.request() != got.request()) return false;
  // A share in percent is another number of bytes on another card.
  const core::Quota quota = books_.quota_of(spec.user);
  if (quota.bytes && !plain_share(entry)) return false;
  return books_.within_limits(entry, got.grant);
}

void Line::same_ask(const Turn& turn) const {
  for (const JobId id : fresh_) {
    const Entry* got = books_.find(id);
    if (got == nullptr || !got->active()) continue;
    for (const Entry* entry : waiting_) {
      if (!is_behind(*got, *entry) || !could_have_had(*entry, *got, turn)) continue;
      judge_.fail("job " + to_string(id) + " started on room that job " + to_string(entry->id) +
                  ", which is ahead of it and asks for the same, could have had");
    }
  }
}

// ---- the first in line -------------------------------------------------------------------------

std::optional<WallTime> Line::fits_at(std::int64_t share, const std::set<JobId>& without,
                                      WallTime now) const {
  std::optional<WallTime> soonest;
  for (const Loaded& on : cards_) {
    const core::PoolCard& card = *on.card;
    if (card.lost || card.stale || !card.unusable.empty() || share > on.capacity ||
        books_.drained().contains(card.card.uuid))
      continue;
    std::int64_t used = on.others;
    std::vector<Share> shares;
    for (const Share& held : on.shares) {
      if (without.contains(held.job)) continue;
      used += held.bytes;
      shares.push_back(held);
    }
    // The driver lets one process use it: all must be gone.
    const bool alone = card.one_process;
    if (alone && on.others > 0) continue;
    std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
      return a.ends.value_or(WallTime{INT64_MAX}) < b.ends.value_or(WallTime{INT64_MAX});
    });
    std::optional<WallTime> here = now;
    std::size_t gone = 0;
    while (here && (alone ? gone < shares.size() : used + share > on.capacity)) {
      here = gone < shares.size() ? shares[gone].ends : std::nullopt;
      if (gone < shares.size()) used -= shares[gone++].bytes;
    }
    if (here && (!soonest || *here < *soonest)) soonest = here;
  }
  return soonest;
}

std::optional<std::int64_t> Line::missing(std::int64_t share,
                                          const std::set<JobId>& without) const {
  std::optional<std::int64_t> least;
  for (const Loaded& on : cards_) {
    const core::PoolCard& card = *on.card;
    if (card.lost || card.stale || !card.unusable.empty() || share > on.capacity ||
        books_.drained().contains(card.card.uuid))
      continue;
    std::int64_t used = on.others;
    for (const Share& held : on.shares)
      if (!without.contains(held.job)) used += held.bytes;
    std::int64_t here = std::max<std::int64_t>(0, used + share - on.capacity);
    if (card.one_process && used != 0) here = used;  // all must go
    least = std::min(least.value_or(here), here);
  }
  return least;
}

void Line::first_is_not_delayed(const Turn& turn, const Entry& first) {
  const std::optional<std::int64_t> share = plain_share(first);
  if (!share) return;
  judge_.saw("first in line");
  const std::string name = "job " + to_string(first.id);
  const std::optional<WallTime> with = fits_at(*share, {}, now_);
  // Who is ahead by what others had, or because he has waited too long, may be so since a moment:
  // the line is walked when something happens, not when time passes.
  const bool since_long =
      !starving_.contains(first.id) &&
      std::none_of(waiting_.begin(), waiting_.end(), [&](const Entry* entry) {
        return entry->priority == first.priority && entry->spec->user != first.spec->user;
      });
  if (turn.all_were_asked && since_long && with && *with <= now_ && missing(*share, {}) == 0)
    judge_.fail(name + " is first in line, there is room for it, and it waits");
  std::set<JobId> later;
  for (const JobId id : fresh_)
    if (const Entry* entry = books_.find(id); is_behind(*entry, first)) later.insert(id);
  if (later.empty()) return;
  judge_.saw("overtaken");
  const std::optional<WallTime> without = fits_at(*share, later, now_);
  if (without) {
    judge_.saw("overtaken in time");
    if (!with || *with > *without)
      judge_.fail(name + " is first in line, could start at " + to_string(*without) +
                  ", and was overtaken by a job that will still run then");
  } else if (missing(*share, {}) > missing(*share, later)) {
    judge_.fail(name + " is first in line, and was put further back");
  }
}

}  // namespace mete::sim
