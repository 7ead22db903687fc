// SPDX-License-Identifier: Apache-2.0
// See line.h. For each committed turn: sums up the usage of every user and finds the waiting jobs,
// the starving ones and the parked ones that may return; then compares every granted job with the
// waiting jobs ahead of it, and the first waiting job with the moment at which it could have
// started without the new grants.
#include "tests/sim/line.h"

#include <algorithm>
#include <tuple>

namespace mete::sim {

using core::JobId;

namespace {

// A share on any one card, and no other condition: for these the arithmetic is easy to trust.
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
  if (!books_.reservations().empty()) return;
  if (const Entry* ahead = first(); ahead != nullptr) first_is_not_delayed(turn, *ahead);
  if (const Entry* parked = first_back(); parked != nullptr && !room_is_made_)
    first_back_is_not_delayed(turn, *parked);
}

void Line::look(const Turn& turn) {
  now_ = turn.now;
  waiting_.clear();
  for (const JobId id : books_.pending())
    if (const Entry* entry = books_.find(id); entry->in_line(now_)) waiting_.push_back(entry);
  judge_.saw("waiting in the queue", waiting_.size());
  fresh_ = {turn.fresh.begin(), turn.fresh.end()};
  find_starving();
  add_up_usage(turn);
  cards_.clear();
  for (const core::PoolCard& card : turn.machine.cards) {
    Loaded on{
        &card, count(card.card.capacity), count(sum(card.claimed)) + count(sum(card.foreign)), {}};
    cards_.push_back(std::move(on));
  }
  back_.clear();
  room_is_made_ = false;
  for (const JobId id : books_.active()) {
    const Entry& entry = *books_.find(id);
    const core::Job* job = turn.state.find(id);
    if (job == nullptr || entry.grant.empty()) continue;
    if (stands_in_line(entry)) back_.push_back(&entry);
    const bool leaves = entry.state == core::JobState::kParking &&
                        now_.ms - entry.parked_since.ms <
                            static_cast<std::int64_t>(books_.rules().park_patience_s) * 1000;
    room_is_made_ = room_is_made_ || leaves || entry.asked_to_shrink;
    const std::optional<WallTime> ends = turn.state.ends_of(*job, now_).first;
    for (const core::GrantedCard& card : entry.held_now())
      for (Loaded& on : cards_)
        if (on.card->card.uuid == card.uuid)
          on.shares.push_back({id, count(card.bytes), ends, entry.away()});
  }
}

// The oldest job of each user that has waited too long goes to the front.
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

// MiB of cards times seconds, a GiB for each CPU of a job without cards: past use, decayed, and
// running jobs.
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
    std::uint64_t left = 0;  // held there while it was parked
    for (const core::GrantedCard& card : job->grant) bytes += card.bytes.count();
    for (const Bytes stayed : job->park && !job->park->held.empty() ? job->park->held : job->stayed)
      left += stayed.count();
    const std::uint64_t cpus =
        job->spec->detached ? std::max(1u, job->spec->request.cpus.value_or(1)) : 1;
    const std::uint64_t mib = bytes == 0 ? 1024 * cpus : bytes >> 20;
    const std::uint64_t ran = static_cast<std::uint64_t>(now_.ms - job->started->ms);
    const std::uint64_t parked = std::min(ran, core::parked_ms(*job, now_));
    user->second += mib * ((ran - parked) / 1000) + std::min(mib, left >> 20) * (parked / 1000);
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

// Neither a quota nor the number of CPUs can prevent it.
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
  for (const Entry* parked : back_)
    if (is_behind_parked(*first, *parked)) return nullptr;
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
      (!other.time_s && !turn.state.estimates().ends_by(other.user, other.name, 0, 95)) ||
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

// ---- the first in the queue --------------------------------------------------------------------

std::optional<WallTime> Line::fits_on(const Loaded& on, std::int64_t share,
                                      const std::set<JobId>& without, WallTime now) const {
  const core::PoolCard& card = *on.card;
  std::int64_t used = on.others;
  std::vector<Share> shares;
  for (const Share& held : on.shares) {
    if (without.contains(held.job)) continue;
    used += held.bytes;
    shares.push_back(held);
  }
  // The driver lets only one process use it: all others must be gone.
  const bool alone = card.one_process;
  if (alone && on.others > 0) return std::nullopt;
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return a.ends.value_or(WallTime{INT64_MAX}) < b.ends.value_or(WallTime{INT64_MAX});
  });
  std::optional<WallTime> here = now;
  std::size_t gone = 0;
  while (here && (alone ? gone < shares.size() : used + share > on.capacity)) {
    here = gone < shares.size() ? shares[gone].ends : std::nullopt;
    if (gone < shares.size()) used -= shares[gone++].bytes;
  }
  return here;
}

std::optional<WallTime> Line::fits_at(std::int64_t share, const std::set<JobId>& without,
                                      WallTime now) const {
  std::optional<WallTime> soonest;
  for (const Loaded& on : cards_) {
    const core::PoolCard& card = *on.card;
    if (card.lost || card.stale || !card.unusable.empty() || share > on.capacity ||
        books_.drained().contains(card.card.uuid))
      continue;
    const std::optional<WallTime> here = fits_on(on, share, without, now);
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
    std::int64_t parked = 0;
    for (const Share& held : on.shares) {
      if (!without.contains(held.job)) used += held.bytes;
      if (held.parked) parked += held.bytes;
    }
    // If it cannot start before a parked job has returned and ended, nothing is held for it.
    if (parked + share > on.capacity) continue;
    std::int64_t here = std::max<std::int64_t>(0, used + share - on.capacity);
    if (card.one_process && used != 0) here = used;  // all must go
    least = std::min(least.value_or(here), here);
  }
  return least;
}

void Line::first_is_not_delayed(const Turn& turn, const Entry& first) {
  const std::optional<std::int64_t> share = plain_share(first);
  if (!share) return;
  judge_.saw("first in the queue");
  const std::string name = "job " + to_string(first.id);
  const std::optional<WallTime> with = fits_at(*share, {}, now_);
  // A job may be ahead by the usage of others, or because it has waited too long, only since a
  // moment ago: the queue is walked when something happens, not when time passes.
  const bool since_long =
      !starving_.contains(first.id) &&
      std::none_of(waiting_.begin(), waiting_.end(), [&](const Entry* entry) {
        return entry->priority == first.priority && entry->spec->user != first.spec->user;
      });
  if (turn.all_were_asked && since_long && with && *with <= now_ && missing(*share, {}) == 0)
    judge_.fail(name + " is first in the queue, there is room for it, and it waits");
  std::set<JobId> later;
  for (const JobId id : fresh_)
    if (const Entry* entry = books_.find(id); is_behind(*entry, first)) later.insert(id);
  for (const JobId id : turn.returned)
    if (const Entry* entry = books_.find(id);
        entry->priority < first.priority && !has_waited_too_long(*entry))
      later.insert(id);
  if (later.empty() || room_is_made_ || !fits_beside_parked(*share, turn)) return;
  // The ends of jobs that returned in this turn were not known in it.
  if (!turn.returned.empty() && fits_at(*share, later, now_)) return;
  judge_.saw("overtaken");
  const std::optional<WallTime> without = fits_at(*share, later, now_);
  if (without) {
    judge_.saw("overtaken in time");
    if (!with || *with > *without)
      judge_.fail(name + " is first in the queue, could start at " + to_string(*without) +
                  ", and was overtaken by a job that will still run then");
  } else if (missing(*share, {}) > missing(*share, later)) {
    judge_.fail(name + " is first in the queue, and was put further back");
  }
}

// ---- parked jobs -------------------------------------------------------------------------------

// Nothing is held for a job that cannot start before parked jobs have returned; some may just have.
bool Line::fits_beside_parked(std::int64_t share, const Turn& turn) const {
  return std::any_of(cards_.begin(), cards_.end(), [&](const Loaded& on) {
    std::int64_t parked = 0;
    for (const Share& held : on.shares) parked += held.parked ? held.bytes : 0;
    for (const JobId id : turn.returned) {
      const Entry& entry = *books_.find(id);
      for (std::size_t i = 0; i < entry.grant.size(); ++i)
        if (entry.grant[i].uuid == on.card->card.uuid) parked += count(entry.stayed[i]);
    }
    return parked + share <= on.capacity && !(on.card->one_process && parked > 0);
  });
}

bool Line::stands_in_line(const Entry& parked) const {
  if (parked.state != core::JobState::kParked || !parked.wants_back) return false;
  if (parked.tried_in_vain && now_.ms - parked.parked_since.ms <
                                  static_cast<std::int64_t>(books_.rules().park_retry_s) * 1000)
    return false;
  const Entry* other = parked.for_job ? books_.find(*parked.for_job) : nullptr;
  return other == nullptr || other->state != core::JobState::kPending;
}

bool Line::has_waited_too_long(const Entry& parked) const {
  return parked.parked_since.ms <=
         now_.ms - static_cast<std::int64_t>(books_.rules().starve_after_s * 1000);
}

bool Line::is_behind_parked(const Entry& later, const Entry& parked) const {
  if (parked.for_job == later.id) return false;
  if (has_waited_too_long(parked)) return true;
  return !starving_.contains(later.id) && later.priority <= parked.priority;
}

const Entry* Line::first_back() const {
  if (back_.size() != 1) return nullptr;
  const Entry* parked = back_.front();
  for (const Entry* entry : waiting_)
    if (!is_behind_parked(*entry, *parked)) return nullptr;
  if (books_.rules().cpus && parked->spec->detached && parked->spec->request.cpus) return nullptr;
  // For these the arithmetic is easy to trust.
  for (const core::GrantedCard& card : parked->grant)
    for (const Loaded& on : cards_)
      if (on.card->card.uuid == card.uuid &&
          (card.whole || on.card->one_process || on.card->lost || on.card->stale ||
           !on.card->unusable.empty() ||
           std::any_of(on.shares.begin(), on.shares.end(),
                       [&](const Share& held) { return held.parked && held.job != parked->id; })))
        return nullptr;
  return parked;
}

std::optional<WallTime> Line::returns_at(const Entry& parked, std::set<JobId> without) const {
  without.insert(parked.id);
  std::optional<WallTime> at = now_;
  for (const core::GrantedCard& card : parked.grant)
    for (const Loaded& on : cards_)
      if (at && on.card->card.uuid == card.uuid) {
        const std::optional<WallTime> here = fits_on(on, count(card.bytes), without, now_);
        at = here ? std::optional(std::max(*at, *here)) : std::nullopt;
      }
  return at;
}

std::int64_t Line::lacks(const Entry& parked, std::set<JobId> without) const {
  without.insert(parked.id);
  std::int64_t sum = 0;
  for (const core::GrantedCard& card : parked.grant)
    for (const Loaded& on : cards_) {
      if (on.card->card.uuid != card.uuid) continue;
      std::int64_t used = on.others;
      for (const Share& held : on.shares)
        if (!without.contains(held.job)) used += held.bytes;
      sum += std::max<std::int64_t>(0, used + count(card.bytes) - on.capacity);
    }
  return sum;
}

void Line::first_back_is_not_delayed(const Turn& turn, const Entry& parked) {
  judge_.saw("first to come back");
  const std::string name = "job " + to_string(parked.id);
  // In the queue since the job has started for which it made room: behind that one.
  const bool since_then = parked.for_job && fresh_.contains(*parked.for_job);
  const Entry* other = since_then ? books_.find(*parked.for_job) : nullptr;
  std::set<JobId> later;
  for (const JobId id : fresh_) {
    const Entry& entry = *books_.find(id);
    if (is_behind_parked(entry, parked) && (other == nullptr || is_behind(entry, *other)))
      later.insert(id);
  }
  // A job may have waited too long only since a moment ago.
  const bool since_long = !has_waited_too_long(parked);
  if (turn.all_were_asked && since_long && lacks(parked, later) == 0)
    judge_.fail(name + (later.empty()
                            ? " is parked, there is room for it to come back, and it does not"
                            : " is parked, and one who never ran was given its room"));
  const std::optional<WallTime> without = returns_at(parked, later);
  if (later.empty() || (without && !turn.returned.empty())) return;
  judge_.saw("overtaken while it is parked");
  const std::optional<WallTime> with = returns_at(parked, {});
  if (without ? !with || *with > *without : lacks(parked, {}) > lacks(parked, later))
    judge_.fail(name + " is parked, the first to come back, and was put further back");
}

}  // namespace mete::sim
