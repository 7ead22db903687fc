// SPDX-License-Identifier: Apache-2.0
// See wait_text.h. A wait is either for room on cards (room_text, which lists the cards) or for one
// other thing, for which the data has exactly one field (other_text). Parts are joined by "; ".
// Times go through one function, which knows whether users or documents read them.
#include "wire/wait_text.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/moment.h"
#include "base/text.h"

namespace mete::wire {

namespace {

using core::CardWait;
using core::Holder;
using core::InTheWay;
using core::JobId;
using core::JobState;
using core::Outside;
using core::RoomWait;
using core::Wait;
using Now = std::optional<WallTime>;

constexpr std::size_t kNamedCards = 4;
constexpr std::size_t kNamedShares = 3;

// quote() without its quotes: one line, no control characters, of bounded length.
std::string plain(const std::string& text) {
  const std::string quoted = base::quote(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string when(WallTime time, Now now) { return now ? moment(time, *now) : to_string(time); }

// "job 3", "jobs 3, 4"
std::string jobs_text(const std::vector<JobId>& jobs) {
  std::vector<std::string> names;
  for (const JobId id : jobs) names.push_back(to_string(id));
  return (jobs.size() == 1 ? "job " : "jobs ") + base::join(names, ", ");
}

// ---- cards -------------------------------------------------------------------------------------

std::string name_of(const Holder& holder) {
  std::string name = plain(holder.user) + "'s job " + to_string(holder.job);
  if (!holder.name.empty()) name += " (" + plain(holder.name) + ")";
  return name;
}

std::string name_of(const Outside& outside, Now now) {
  if (!outside.reserved) return plain(outside.who);
  return plain(outside.user) + "'s reservation " + std::to_string(outside.reserved->id) +
         " until " + when(outside.reserved->until, now);
}

// "alice's job 12 (train) holds 55.9 GiB, process 412 of bob holds 3 GiB, and 2 others".
std::string who_is_on(const CardWait& card, Now now) {
  struct Share {
    Bytes bytes;
    std::string who;
    bool beyond_grant = false;
  };
  std::vector<Share> shares;
  for (const Holder& holder : card.holders)
    shares.push_back({holder.bytes, name_of(holder) + (holder.parked ? ", parked," : "")});
  for (const Outside& outside : card.outside)
    shares.push_back({outside.bytes, name_of(outside, now), outside.job.has_value()});
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return std::tie(b.bytes, a.who) < std::tie(a.bytes, b.who);
  });
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(shares.size(), kNamedShares); ++i)
    parts.push_back(shares[i].who + " holds " + to_string(shares[i].bytes) +
                    (shares[i].beyond_grant ? " beyond its grant" : ""));
  if (const std::size_t more = shares.size() + card.unlisted - parts.size(); more > 0)
    parts.push_back("and " + std::to_string(more) + (more == 1 ? " other" : " others"));
  if (!card.kept.is_zero())
    parts.push_back(to_string(card.kept) + " is kept for a job ahead in the queue");
  return base::join(parts, ", ");
}

// "8 GiB on one card", "40% of each of 2 cards, 1 has room now", "card 3 for itself".
std::string need_text(const core::CardNeed& need) {
  std::string cards = std::to_string(need.cards) + " cards";
  if (need.cards == 1) cards = need.card ? "card " + std::to_string(*need.card) : "one card";
  const std::string each = need.cards == 1 ? cards : "each of " + cards;
  const core::GpuRequest share = need.share.value_or(core::whole_cards(1));
  std::string text;
  if (const auto* size = std::get_if<core::Size>(&share.memory))
    text = to_string(size->bytes) + " on " + each;
  else if (std::holds_alternative<core::WholeCard>(share.memory))
    text = cards + " for itself";
  else
    text = to_string(share) + " of " + each;
  if (need.with_room > 0)
    text += ", " + std::to_string(need.with_room) + (need.with_room == 1 ? " has" : " have") +
            " room now";
  return text;
}

// "card 0: …", "card 1: …", "and 2 more"
void add_cards(const RoomWait& room, std::size_t most, Now now, std::vector<std::string>& parts) {
  std::size_t more = room.unlisted;
  std::size_t named = 0;
  for (const CardWait& card : room.cards) {
    if (!is_asked_for(card.why)) continue;
    if (named++ < most)
      parts.push_back("card " + std::to_string(card.index) + ": " + card_text(card, now));
    else
      ++more;
  }
  if (more > 0) parts.push_back("and " + std::to_string(more) + " more");
}

// `turn` is the text if the job needs no room.
std::string room_text(const RoomWait& room, const std::string& turn, Now now, Cards cards) {
  if (room.machine) return "this machine to be one of which --where is true";
  std::vector<std::string> parts;
  parts.push_back(room.needs ? need_text(*room.needs) : room.returns ? "room to come back" : turn);
  if (cards == Cards::kNamed)
    add_cards(room, room.needs ? kNamedCards : room.cards.size(), now, parts);
  return base::join(parts, "; ");
}

// ---- other things ------------------------------------------------------------------------------

std::string after_text(const Wait& wait) {
  const core::After& first = wait.after.front();
  std::string text = "job " + to_string(first.id) +
                     (first.when == core::When::kOk     ? " to end well"
                      : first.when == core::When::kFail ? " to fail"
                                                        : " to end");
  const std::size_t more = wait.after.size() - 1 + wait.more_after;
  return more == 0 ? text : text + ", and " + std::to_string(more) + " more";
}

std::string until_text(const Wait& wait, Now now) {
  const std::string time = when(*wait.until, now);
  if (wait.reason == core::Reason::kBegin) return "its time, " + time;
  if (wait.failure.empty()) return "its next attempt, at " + time;
  return "its next try, at " + time + ": it could not be started (" + wait.failure + ")";
}

// A wait that is not for room on cards; "": it is.
std::string other_text(const Wait& wait, Now now) {
  if (!wait.words.empty()) return wait.words;
  if (wait.release) return "somebody to release it: mete release " + to_string(*wait.release);
  if (!wait.after.empty()) return after_text(wait);
  if (wait.until) return until_text(wait, now);
  if (!wait.parking.empty())
    return "room that is being made: " + jobs_text(wait.parking) +
           (wait.parking.size() == 1 ? " is" : " are") + " being parked for it";
  if (wait.quota) return "the quota of " + wait.quota->user + ": " + to_string(wait.quota->over);
  if (wait.array)
    return std::to_string(wait.array->running) + " of array " + to_string(wait.array->id) +
           " run, and at most " + std::to_string(wait.array->most) + " may at a time";
  if (wait.cpus)
    return std::to_string(wait.cpus->needed) + " of the " + std::to_string(wait.cpus->all) +
           " CPUs for jobs";
  return "";
}

}  // namespace

std::string card_text(const CardWait& card, Now now) {
  const auto because = [&](const std::string& what) {
    const std::string who = who_is_on(card, now);
    return who.empty() ? what : what + ", " + who;
  };
  const std::string free = to_string(card.free.value_or(Bytes())) + " free";
  switch (card.why) {
    case InTheWay::kNothing:
      break;
    case InTheWay::kLost:
      return "lost";
    case InTheWay::kDrained:
      return "drained";
    case InTheWay::kStale:
      return "not read lately, so what others hold is not known";
    case InTheWay::kHeldWhole:
      for (const Holder& holder : card.holders)
        if (holder.whole) return "held whole by " + name_of(holder);
      return "held whole by another job";
    case InTheWay::kOneProcess:
      return because("one process at a time may use it");
    case InTheWay::kNotAlone:
    case InTheWay::kForeign:
      return because("not free");
    case InTheWay::kTooFull:
    case InTheWay::kHeldBack:
      return because(card.whole ? "not free"
                                : free + " of the " + to_string(card.needed.value_or(Bytes())) +
                                      " needed");
    case InTheWay::kWhere:
      return because("--where is not true of it now, with " + free);
    case InTheWay::kUnusable:
      return card.detail;
    case InTheWay::kExcluded:
      return "not one of those named by --devices";
    case InTheWay::kType:
      return "not of type " + base::quote(card.detail);
    case InTheWay::kNeverWhere:
      return "--where is never true of it";
    case InTheWay::kTooSmall:
      return "too small";
  }
  return "";
}

std::string wait_text(const Wait& wait, Now now, Cards cards) {
  std::string text = other_text(wait, now);
  if (!text.empty()) return text;
  constexpr const char* kNext = "its turn, which is next";
  if (wait.behind) {
    text = "its turn, behind job " + to_string(wait.behind->job) + " of " + wait.behind->user +
           ", which waits for " + room_text(wait.behind->room, kNext, now, cards);
  } else if (wait.room.returns && wait.room.cards.empty()) {
    text = "its turn to come back";
  } else {
    text = room_text(wait.room, wait.reason == core::Reason::kPriority ? "its turn" : kNext, now,
                     cards);
  }
  if (wait.room.returns && !wait.failure.empty()) text += "; the last time: " + wait.failure;
  if (wait.later)
    text += "; " + jobs_text(wait.later->jobs) + " may be parked for it at " +
            when(wait.later->from, now);
  return text;
}

namespace {

std::string state_of(const ExplainDocument& document, Now now, Cards cards) {
  const std::string wait = document.wait ? wait_text(*document.wait, now, cards) : "";
  switch (document.state) {
    case JobState::kPending:
      return wait.empty() ? "" : "waits for " + wait;
    case JobState::kEnded:
      if (!document.ended || !document.outcome) return "";
      return "it has ended at " + when(*document.ended, now) + ": " +
             std::string(to_string(*document.outcome));
    case JobState::kStarting:
      return "it has its grant and is being started";
    case JobState::kStopping:
      return "it is being ended";
    case JobState::kParked:
      if (!wait.empty()) return "it is parked, and waits for " + wait;
      return document.lost ? "it is parked, and cannot come back: " + *document.lost
                           : "it is parked until somebody asks for it back";
    default:
      return document.started ? "it has started at " + when(*document.started, now) : "";
  }
}

}  // namespace

std::string remark_text(const core::Remark& remark, Now now) {
  if (!remark.idle) return remark.said;
  std::string text = "idle since " + when(remark.idle->since, now);
  if (remark.idle->until)
    text += (remark.idle->parks ? ", is parked at " : ", is ended at ") +
            when(*remark.idle->until, now);
  return remark.said.empty() ? text : remark.said + "; " + text;
}

std::string explained_text(const ExplainDocument& document, Now now, Cards cards) {
  const std::string state = state_of(document, now, cards);
  if (document.remark.empty()) return state;
  const std::string remark = remark_text(document.remark, now);
  return state.empty() ? remark : state + "; " + remark;
}

}  // namespace mete::wire
