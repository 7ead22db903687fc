// SPDX-License-Identifier: Apache-2.0
// See explain_view.h.
#include "serve/explain_view.h"

#include <algorithm>

#include "wire/wait_text.h"

namespace mete::serve {

namespace {

using Document = wire::ExplainDocument;

std::string name_of(const core::Explanation::OnCard& on, const core::Pool& pool) {
  for (const core::PoolCard& known : pool.cards)
    if (known.card.uuid == on.uuid) return known.card.name;
  return on.type;
}

std::optional<WallTime> idle(const std::map<core::JobId, WallTime>& since, core::JobId id) {
  const auto found = since.find(id);
  return found == since.end() ? std::nullopt : std::optional(found->second);
}

Document::Card card_of(const core::Explanation::OnCard& on, std::string name,
                       const std::map<core::JobId, WallTime>& idle_since) {
  using State = core::Explanation::CardState;
  Document::Card card;
  card.index = on.index;
  card.uuid = on.uuid;
  card.name = std::move(name);
  card.state = on.state == State::kLost ? "lost" : on.state == State::kDrained ? "drained" : "ok";
  card.needs = on.needs;
  card.free = on.free;
  for (const core::Explanation::CardHolder& holder : on.holders)
    card.holders.push_back({holder.id, holder.user, holder.bytes, holder.ends,
                            !holder.ends      ? ""
                            : holder.by_limit ? "limit"
                                              : "estimate",
                            idle(idle_since, holder.id)});
  for (const core::Explanation::CardReserved& reserved : on.reserved)
    card.reserved.push_back({reserved.user, reserved.until, reserved.bytes});
  card.text = wire::card_text(on.wait);
  if (on.wait.why != core::InTheWay::kNothing) card.why = to_string(on.wait.why);
  for (const core::Outside& outside : on.outside)
    card.outside.push_back({outside.who, outside.bytes, outside.job});
  return card;
}

}  // namespace

Document view_of(const core::Explanation& why, WallTime now, const core::Pool& pool,
                 const std::map<core::JobId, WallTime>& idle_since, core::Remark remark) {
  Document document;
  document.at = now;
  document.id = why.id;
  document.state = why.state;
  document.waiting_s = why.waiting_s;
  document.started = why.started;
  document.ended = why.ended;
  document.outcome = why.outcome;
  document.lost = why.lost;
  document.wait = why.wait;
  if (why.wait && why.state == core::JobState::kPending) document.reason = why.wait->reason;
  document.place = why.place;
  document.in_line = why.in_line;
  document.forecast = why.forecast;
  for (const core::Explanation::OnCard& on : why.cards)
    document.cards.push_back(card_of(on, name_of(on, pool), idle_since));
  for (const core::Change& change : why.changes) {
    Document::Change& out = document.changes.emplace_back();
    out.kind = to_string(change.kind);
    out.text = change.text;
    out.argument = change.argument;
    if (!change.jobs.empty()) out.job = change.jobs.front();
  }
  document.remark = std::move(remark);
  document.text = wire::explained_text(document);
  return document;
}

Document view_of(const wire::JobView& row, WallTime now, std::uint64_t in_line) {
  const core::Job& job = row.job;
  Document document;
  document.at = now;
  document.id = job.id;
  document.state = job.state;
  document.user = job.spec->user;
  document.request = job.spec->request.gpu;
  document.grant = job.grant;
  document.started = job.started;
  document.ended = job.ended;
  if (job.state == core::JobState::kPending) {
    document.waiting_s =
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.ms - job.submitted.ms) / 1000);
    document.wait = row.wait;
    if (row.wait) document.reason = row.wait->reason;
    document.place = row.place;
    if (row.place) document.in_line = in_line;
    document.forecast = row.forecast;
  }
  document.text = wire::explained_text(document);
  return document;
}

}  // namespace mete::serve
