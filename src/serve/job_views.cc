// SPDX-License-Identifier: Apache-2.0
#include "serve/job_views.h"

#include <utility>

#include "serve/reply.h"
#include "wire/queue.h"

namespace mete::serve {

namespace {

// The job has done nothing on its cards for so long that its runner is told.
bool is_warned_of(const core::Job& job) {
  return job.idle && job.idle->step != core::IdleStep::kSeen;
}

// What another user's job waits for, in words. One wait for each reason: thousands of rows share
// it.
const core::SharedWait& wait_for_others(core::Reason reason) {
  static const auto kWaits = [] {
    std::map<core::Reason, core::SharedWait> waits;
    const auto add = [&waits](core::Reason of, const char* words) {
      core::Wait wait;
      wait.reason = of;
      wait.words = words;
      waits[of] = std::move(wait);
    };
    add(core::Reason::kResources, "room on the cards");
    add(core::Reason::kPriority, "its turn");
    add(core::Reason::kQuota, "the quota of its user");
    add(core::Reason::kReservation, "the end of a reservation");
    add(core::Reason::kDependency, "another job of its user");
    add(core::Reason::kHeld, "its user to release it");
    add(core::Reason::kBegin, "its begin time");
    add(core::Reason::kDrained, "a card that is drained");
    add(core::Reason::kRetry, "its next attempt");
    return waits;
  }();
  return kWaits.at(reason);
}

}  // namespace

std::string JobViews::tag_of(const core::Job& job) {
  std::string tag = std::to_string(static_cast<int>(job.state)) + "-" + std::to_string(job.attempt);
  if (job.growth != core::Growth::kFree) tag += "-" + std::string(to_string(job.growth));
  if (job.park && job.park->wants_back) tag += "-back";
  if (!job.escapes.empty()) tag += "-escaped";
  if (is_warned_of(job)) tag += "-idle";
  const core::SharedWait wait = engine_.wait_of(job.id);
  return wait ? tag + "-" + std::to_string(marks_.mark_of(wait)) : tag;
}

wire::JobView JobViews::view_of(const core::Job& job, bool with_wait) {
  wire::JobView view;
  view.job = job;
  if (job.state == core::JobState::kPending && with_wait) {
    view.wait = engine_.wait_of(job.id);
    view.forecast = forecasts_.of(job.id);
  }
  if (with_wait)
    if (auto wait = engine_.state().wait_to_return(job, engine_.moment()))
      view.wait = *std::move(wait);
  add_readings(job, view);
  view.remark = core::remark_of(job, engine_.state().rules());
  return view;
}

wire::JobView JobViews::row_of(const core::Job& job) {
  wire::JobView view;
  view.job = core::row_of(job, identity_.others, last_row_);
  view.row = true;
  if (job.state == core::JobState::kPending) {
    if (const core::SharedWait wait = engine_.wait_of(job.id))
      view.wait = wait_for_others(wait->reason);
    view.forecast = forecasts_.of(job.id);
  }
  add_readings(job, view);
  return view;
}

void JobViews::add_readings(const core::Job& job, wire::JobView& view) const {
  const auto used = machine_.used.find(job.id);
  for (const core::GrantedCard& card : job.grant) {
    std::optional<Bytes> bytes;
    if (used != machine_.used.end() && job.state != core::JobState::kEnded)
      if (const auto found = used->second.find(card.uuid); found != used->second.end())
        bytes = found->second;
    view.used.push_back(bytes);
  }
  if (const auto idle = machine_.idle_since.find(job.id);
      idle != machine_.idle_since.end() && job.state == core::JobState::kRunning)
    view.idle_since = idle->second;
}

const JobViews::QueueSummary& JobViews::queue() {
  if (queue_.version == engine_.version() && queue_.version != 0) return queue_;
  queue_ = {engine_.version(), {}, {}, {}, {}};
  const core::State& state = engine_.state();
  std::uint64_t place = 0;
  for (const core::JobId id : core::in_order(engine_.sight().input)) {
    queue_.places.emplace(id, ++place);
    queue_.order.push_back({id, place});
  }
  for (const auto& [id, job] : state.jobs()) {
    if (job.state != core::JobState::kPending) continue;
    if (const core::SharedWait wait = engine_.wait_of(id))
      ++queue_.depth[std::string(to_string(wait->reason))];
    if (!queue_.oldest || job.submitted < *queue_.oldest) queue_.oldest = job.submitted;
    if (!queue_.places.contains(id)) queue_.order.push_back({id, std::nullopt});
  }
  return queue_;
}

std::optional<std::uint64_t> JobViews::place_of(core::JobId id) {
  const auto found = queue().places.find(id);
  return found == queue_.places.end() ? std::nullopt : std::optional(found->second);
}

wire::RunReply JobViews::reply_for(const core::Job& job) {
  wire::RunReply reply;
  reply.view = view_of(job);
  reply.view.used.clear();  // changes all the time, and a runner does not ask for it
  reply.view.idle_since.reset();
  if (is_warned_of(job)) reply.view.idle_since = job.idle->since;
  reply.cards = core::cards_of(job.grant, machine_.pool);
  reply.driver = machine_.driver;
  reply.readings = identity_.readings;
  reply.simulated = identity_.simulated;
  if (core::is_parkable(*job.spec) && !job.grant.empty() && identity_.park_door)
    reply.park = identity_.park_door(job);
  reply.tag = tag_of(job);
  reply.seq = engine_.state().last_seq();
  return reply;
}

net::Response JobViews::runner_reply(core::JobId id, int status, const std::string& note) {
  const core::Job* job = engine_.state().find(id);
  if (job == nullptr) return refuse(Error::not_found("there is no job " + to_string(id)));
  wire::RunReply reply = reply_for(*job);
  reply.note = note;
  return respond(status, wire::encode(reply));
}

net::Response JobViews::wait_reply(core::JobId id, bool any) {
  wire::WaitDocument document{clock_.wall(), {}};
  for (const core::Job* job : engine_.state().find_all(id))
    if (!any || job->state == core::JobState::kEnded) document.jobs.push_back(view_of(*job));
  if (document.jobs.empty()) return refuse(no_such_job(id));
  return respond(200, wire::encode(document));
}

}  // namespace mete::serve
