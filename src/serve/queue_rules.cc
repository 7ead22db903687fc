// SPDX-License-Identifier: Apache-2.0
// See queue_rules.h. The engine decides on permissions; documents are made from its state.
#include "serve/queue_rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "serve/reply.h"
#include "serve/submitter.h"

namespace mete::serve {

namespace {

using core::JobState;

// A rule for a name that no user has would have no effect, and a typing error no message.
Error no_such_user(const std::string& name) {
  return Error::not_found("there is no user " + base::quote(name) + " on this machine");
}

}  // namespace

// ---- requests ----------------------------------------------------------------------------------

void QueueRules::get_quotas(Call& call) {
  call.reply(respond(200, wire::encode(quotas(call.peer()))));
}

void QueueRules::get_reservations(Call& call) {
  call.reply(respond(200, wire::encode(reservations())));
}

void QueueRules::get_stats(Call& call) { call.reply(respond(200, wire::encode(stats()))); }

void QueueRules::set_quota(Call& call) {
  const Result<wire::QuotaRequest> wanted = wire::decode_quota_request(call.request.body);
  if (!wanted) return call.reply(refuse_words(wanted.error()));
  // The quota of a user who no longer exists can be removed.
  if (is_admin(identity_, call.peer()) && !wanted->user.empty() && wanted->quota != core::Quota{} &&
      !is_user(wanted->user))
    return call.reply(refuse(no_such_user(wanted->user)));
  dispatcher_.ask(
      core::SetQuota{wanted->user, wanted->quota, caller_of(identity_, call.peer())},
      [this, responder = call.responder, peer = call.peer()](engine::Answer done) mutable {
        responder.reply(done.result ? respond(200, wire::encode(quotas(peer)))
                                    : refuse(done.result.error()));
      });
}

void QueueRules::reserve(Call& call) {
  Result<wire::ReserveRequest> wanted = wire::decode_reserve_request(call.request.body);
  if (!wanted) return call.reply(refuse_words(wanted.error()));
  if (is_admin(identity_, call.peer()) && !wanted->user.empty() && !is_user(wanted->user))
    return call.reply(refuse(no_such_user(wanted->user)));
  dispatcher_.ask(core::Reserve{wanted->user, std::move(wanted->request), wanted->from,
                                wanted->until, caller_of(identity_, call.peer())},
                  [this, responder = call.responder](engine::Answer done) mutable {
                    responder.reply(done.result ? respond(201, wire::encode(reservations()))
                                                : refuse(explained(done.result.error(), machine_)));
                  });
}

void QueueRules::unreserve(Call& call) {
  const Result<std::uint64_t> id = base::parse_uint(call.name);
  if (!id) return call.reply(refuse(Error::invalid(base::quote(call.name) + " is no reservation")));
  dispatcher_.ask(core::Unreserve{*id, caller_of(identity_, call.peer())},
                  [this, responder = call.responder](engine::Answer done) mutable {
                    responder.reply(done.result ? respond(200, wire::encode(reservations()))
                                                : refuse(done.result.error()));
                  });
}

// ---- documents ---------------------------------------------------------------------------------

wire::QuotaDocument QueueRules::quotas(const net::Peer& peer) const {
  const core::State& state = engine_.state();
  wire::QuotaDocument document;
  document.at = clock_.wall();
  std::set<std::string> users{name_of_user(peer.uid)};
  if (const auto everybody = state.quotas().find(""); everybody != state.quotas().end())
    document.everybody = everybody->second;
  if (is_admin(identity_, peer)) {
    for (const auto& [user, quota] : state.quotas())
      if (!user.empty()) users.insert(user);
    for (const auto& [id, job] : state.jobs())
      if (job.state != JobState::kEnded) users.insert(job.spec->user);
  }
  for (const std::string& user : users) {
    const auto own = state.quotas().find(user);
    const core::Quota quota = own == state.quotas().end() ? core::Quota{} : own->second;
    document.users.push_back(
        {user, quota, core::with_defaults(quota, document.everybody), state.held_by(user),
         static_cast<std::uint32_t>(state.unfinished_of(user)), state.disk_of(user)});
  }
  return document;
}

wire::ReservationsDocument QueueRules::reservations() const {
  return {clock_.wall(), engine_.state().reservations()};
}

wire::StatsDocument QueueRules::stats() const {
  const core::State& state = engine_.state();
  wire::StatsDocument document;
  document.at = clock_.wall();
  std::map<std::string, wire::StatsDocument::User> users;
  std::vector<std::uint64_t> waits;
  for (const auto& [id, job] : state.jobs()) {
    ++document.states[std::string(to_string(job.state))];
    if (job.outcome && job.state == JobState::kEnded)
      ++document.outcomes[std::string(to_string(*job.outcome))];
    wire::StatsDocument::User& user = users[job.spec->user];
    ++(job.state == JobState::kEnded     ? user.ended
       : job.state == JobState::kPending ? user.pending
                                         : user.running);
    if (job.started && job.attempt == 1)
      waits.push_back(static_cast<std::uint64_t>(
          std::max<std::int64_t>(0, job.started->ms - job.submitted.ms) / 1000));
  }
  for (auto& [name, user] : users) {
    user.user = name;
    user.mib_seconds = state.fair_share().usage(name, document.at);
    document.users.push_back(user);
  }
  std::sort(waits.begin(), waits.end());
  document.waits.count = waits.size();
  if (!waits.empty()) {
    document.waits.median_s = waits[(waits.size() - 1) / 2];
    document.waits.p90_s = waits[(waits.size() - 1) * 9 / 10];
    document.waits.longest_s = waits.back();
  }
  const core::ForecastScore& score = state.score();
  document.forecasts = {score.given, score.held, score.factor_milli};
  return document;
}

}  // namespace mete::serve
