// SPDX-License-Identifier: Apache-2.0
// See notifier.h. pump() reads the log from its last position, makes deliveries of the events that
// matter, starts as many as the bounds allow, saves the position below which everything is done,
// and sets a timer for the next retry. over() takes the result of a delivery: sent, retried after a
// pause, or given up.
#include "engine/notifier.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "wire/event.h"

namespace mete::engine {

namespace {

constexpr std::size_t kBatch = 256;
constexpr std::uint64_t kSaveEvery = 1000;  // events

// Most events concern no notification, and are not decoded.
bool may_matter(const std::string& type) {
  constexpr std::array<std::string_view, 5> kTypes = {"job.started", "job.ended", "job.requeued",
                                                      "job.parked", "job.idle"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

}  // namespace

Notifier::Notifier(Hooks hooks, seam::Loop loop, seam::Clock& clock, std::string host)
    : hooks_(std::move(hooks)), loop_(std::move(loop)), clock_(clock), host_(std::move(host)) {}

Notifier::~Notifier() { *alive_ = false; }

void Notifier::begin(std::uint64_t position) {
  read_ = saved_ = position;
  begun_ = true;
  hooks_.save(position);
  pump();
}

Notifier::Counts Notifier::counts() const {
  Counts counts = counts_;
  counts.waiting = waiting_.size();
  return counts;
}

void Notifier::pump() {
  if (!begun_) return;
  read_log();
  start_some();
  keep_position();
  wake_later();
}

// Reads everything: an excess of notifications is dropped and counted, not delayed, since old
// events of the log are deleted.
void Notifier::read_log() {
  for (;;) {
    const Result<std::vector<seam::StoredEvent>> events = hooks_.events(read_, kBatch);
    if (!events) {
      hooks_.log("notifications: " + events.error().message);
      return;
    }
    for (const seam::StoredEvent& stored : *events) {
      read_ = stored.seq;
      if (may_matter(stored.type)) take(stored);
    }
    if (events->size() < kBatch) return;
  }
}

void Notifier::take(const seam::StoredEvent& stored) {
  const Result<core::JobId> id = core::parse_job_id(stored.job);
  const core::Job* job = id ? hooks_.find(*id) : nullptr;
  if (job == nullptr || job->spec->notify.to.empty()) return;
  const core::NotifySpec& spec = job->spec->notify;
  Result<core::Happened> what = wire::decode_event(stored.type, stored.data);
  if (!what) return;
  const core::Event event{stored.seq, {stored.at_ms}, *std::move(what)};
  std::optional<wire::Notification> told = wire::notification_of(event, *job);
  if (!told || !wire::is_wanted(*told, event.what, spec)) return;
  told->host = host_;
  for (std::size_t i = 0; i < spec.to.size(); ++i) {
    told->id = std::to_string(stored.seq) + "-" + std::to_string(i);
    add(stored.seq, {spec.to[i], job->spec->uid, *told});
  }
}

void Notifier::add(std::uint64_t seq, Delivery delivery) {
  if (waiting_.size() >= kMaxWaiting || of_user(delivery.uid, false) >= kMaxWaitingOfUser) {
    if (counts_.dropped++ == 0)
      hooks_.log("too many notifications: some are dropped (see mete daemon status)");
    return;
  }
  waiting_.emplace(++last_number_, Waiting{seq, std::move(delivery), 0, false, clock_.monotonic()});
}

std::size_t Notifier::of_user(std::uint32_t uid, bool under_way) const {
  return static_cast<std::size_t>(std::count_if(waiting_.begin(), waiting_.end(), [&](auto& each) {
    return each.second.delivery.uid == uid && (each.second.under_way || !under_way);
  }));
}

bool Notifier::follows_another(std::uint64_t number) const {
  const Delivery& delivery = waiting_.at(number).delivery;
  for (const auto& [earlier, waiting] : waiting_) {
    if (earlier >= number) break;
    if (waiting.under_way && waiting.delivery.what.job == delivery.what.job &&
        waiting.delivery.target == delivery.target)
      return true;
  }
  return false;
}

void Notifier::start_some() {
  const seam::Nanoseconds now = clock_.monotonic();
  auto under_way = static_cast<std::size_t>(std::count_if(
      waiting_.begin(), waiting_.end(), [](auto& each) { return each.second.under_way; }));
  for (auto& [number, waiting] : waiting_) {
    if (under_way >= kMaxAtOnce) return;
    if (waiting.under_way || waiting.not_before > now || follows_another(number) ||
        of_user(waiting.delivery.uid, true) >= kMaxAtOnceOfUser)
      continue;
    waiting.under_way = true;
    ++under_way;
    hooks_.deliver(waiting.delivery, [this, alive = alive_, which = number](Result<void> result) {
      if (*alive) over(which, result);
    });
  }
}

void Notifier::over(std::uint64_t number, const Result<void>& result) {
  const auto found = waiting_.find(number);
  if (found == waiting_.end()) return;
  Waiting& waiting = found->second;
  waiting.under_way = false;
  changed_ = true;
  if (result) {
    ++counts_.sent;
    waiting_.erase(found);
  } else if (waiting.tries >= std::size(kPauses)) {
    ++counts_.failed;
    hooks_.log("notification " + waiting.delivery.what.id + " of job " + waiting.delivery.what.job +
               " to " + core::redacted(waiting.delivery.target) +
               " is given up: " + result.error().message);
    waiting_.erase(found);
  } else {
    waiting.not_before = clock_.monotonic() + kPauses[waiting.tries++];
  }
  pump();
}

void Notifier::wake_later() {
  std::optional<seam::Nanoseconds> next;
  for (const auto& [number, waiting] : waiting_)
    if (!waiting.under_way && (!next || waiting.not_before < *next)) next = waiting.not_before;
  if (!next || *next <= clock_.monotonic()) return;  // the end of another delivery comes first
  if (wakes_ && *wakes_ <= *next) return;
  wakes_ = next;
  const auto delay = std::chrono::ceil<seam::Milliseconds>(*next - clock_.monotonic());
  loop_.after(delay, [this, alive = alive_, at = *next] {
    if (!*alive) return;
    if (wakes_ == at) wakes_.reset();
    pump();
  });
}

void Notifier::keep_position() {
  std::uint64_t position = read_;
  for (const auto& [number, waiting] : waiting_) position = std::min(position, waiting.seq - 1);
  // Saving costs a sync: only if a notification would otherwise be sent twice, or to spare the next
  // daemon the reading.
  if (position == saved_ || (!changed_ && position < saved_ + kSaveEvery)) return;
  changed_ = false;
  saved_ = position;
  hooks_.save(position);
}

}  // namespace mete::engine
