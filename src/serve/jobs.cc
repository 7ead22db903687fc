// SPDX-License-Identifier: Apache-2.0
// See jobs.h. A change is an input of the engine, and is answered after the turn that records it.
// Questions are answered from the engine's state at once, unless the disk is full and that state
// may yet be undone.
#include "serve/jobs.h"

#include <algorithm>
#include <utility>

#include "serve/advice.h"
#include "serve/explain_view.h"
#include "serve/reply.h"
#include "serve/submitter.h"
#include "wire/ps_lines.h"

namespace mete::serve {

namespace {

using core::JobState;

// A process that is on several cards is listed once, with the memory that it has on all of them, if
// that is known of each.
std::vector<wire::ShowDocument::Process> once_each(const std::vector<JobProcess>& processes) {
  std::vector<wire::ShowDocument::Process> list;
  for (const JobProcess& process : processes) {
    if (list.empty() || list.back().pid != process.pid)
      list.push_back({process.pid, process.used});
    else if (list.back().used && process.used)
      *list.back().used += *process.used;
    else
      list.back().used.reset();
  }
  return list;
}

}  // namespace

// ---- new jobs ----------------------------------------------------------------------------------

void Jobs::post(Call& call) {
  Result<wire::JobRequest> wanted = wire::decode_job_request(call.request.body);
  if (!wanted) return call.reply(refuse_words(wanted.error()));
  if (call.peer().pid <= 0)
    return call.reply(refuse(Error::unsupported("the daemon cannot see the process that asks")
                                 .with_evidence("it is in another pid namespace: a container")
                                 .with_hint("use mete cap there, or a daemon inside of it")));
  if (const std::optional<Error> no =
          std::visit([&](const auto& of) { return refusal(of.spec.after, call.peer()); }, *wanted))
    return call.reply(refuse(*no));
  if (auto* run = std::get_if<wire::RunRequest>(&*wanted))
    post_run(std::move(*run), call);
  else
    post_submit(std::get<wire::SubmitRequest>(*std::move(wanted)), call);
}

// The engine refuses the jobs of other users as if they were not there.
std::optional<Error> Jobs::refusal(const std::vector<core::After>& after,
                                   const net::Peer& peer) const {
  for (const core::After& each : after) {
    const core::Job* job = engine_.state().first_of(each.id);
    if (job == nullptr || may_see(identity_, *job, peer) || !may_see_row(identity_, *job, peer))
      continue;
    Error error = not_yours(*job, each.id, name_of_user(peer.uid));
    error.message = "--after " + to_string(each.id) + ": " + error.message;
    error.hint = "a job can wait for jobs of its own user only; mete ps --mine lists your jobs";
    return error;
  }
  return std::nullopt;
}

void Jobs::post_run(wire::RunRequest wanted, Call& call) {
  std::string note = park_note_of(wanted.spec);
  core::Submit submit = submit_of(std::move(wanted.spec), wanted.wait, call.peer());
  submit.runner = core::ProcessRef{call.peer().pid, wanted.runner_start_ticks};
  Contents contents = take_contents(submit.spec);
  dispatcher_.ask(
      std::move(submit),
      [this, responder = call.responder, note = std::move(note)](engine::Answer done) mutable {
        responder.reply(done.result ? views_.runner_reply(*done.result, 201, note)
                                    : refuse(explained(done.result.error(), machine_)));
      },
      std::move(contents));
}

void Jobs::post_submit(wire::SubmitRequest wanted, Call& call) {
  std::string note = park_note_of(wanted.spec);
  core::Submit submit = submit_of(std::move(wanted.spec), wanted.wait, call.peer());
  if (Result<void> r = take_identity(call.peer(), *submit.spec.detached); !r)
    return call.reply(refuse(r.error()));
  Contents contents = take_contents(submit.spec, wanted.environment, std::move(wanted.script));
  dispatcher_.ask(
      std::move(submit),
      [this, responder = call.responder, note = std::move(note)](engine::Answer done) mutable {
        if (!done.result) return responder.reply(refuse(explained(done.result.error(), machine_)));
        // By the job: it may have been asked for before.
        const core::Job* job = engine_.state().first_of(*done.result);
        const std::size_t elements =
            job != nullptr && job->spec->array ? core::count_of(*job->spec->array) : 0;
        responder.reply(respond(
            201, wire::encode(wire::SubmitReply{*done.result, elements, note}, clock_.wall())));
      },
      std::move(contents));
}

std::string Jobs::park_note_of(const core::JobSpec& spec) const {
  if (!spec.preemptible.value_or(false) || !identity_.park_room) return "";
  return park_note(spec.request, machine_.pool, identity_.park_room());
}

// Adds the user that asks, and what the request leaves to the configuration.
core::Submit Jobs::submit_of(core::JobSpec spec, bool wait, const net::Peer& peer) const {
  core::Submit submit;
  spec.uid = peer.uid;
  spec.user = name_of_user(peer.uid);
  if (!spec.preemptible) spec.preemptible = identity_.preemptible;
  if (spec.notify.to.empty() && !spec.notify.none) spec.notify.to = identity_.notify.to;
  if (spec.notify.on.empty()) spec.notify.on = identity_.notify.on;
  submit.spec = std::move(spec);
  submit.wait = wait;
  submit.admin = is_admin(identity_, peer);
  return submit;
}

void Jobs::try_out(Call& call) {
  Result<wire::JobRequest> wanted = wire::decode_job_request(call.request.body);
  if (!wanted) return call.reply(refuse_words(wanted.error()));
  if (!engine_.settled()) return call.reply(refuse(not_on_disk()));
  if (const std::optional<Error> no =
          std::visit([&](const auto& of) { return refusal(of.spec.after, call.peer()); }, *wanted))
    return call.reply(refuse(*no));
  core::Submit submit = std::visit(
      [&](auto& of) { return submit_of(std::move(of.spec), of.wait, call.peer()); }, *wanted);
  if (auto* of = std::get_if<wire::SubmitRequest>(&*wanted))
    (void)take_contents(submit.spec, of->environment, std::move(of->script));
  else
    (void)take_contents(submit.spec);
  const Result<core::Trial> trial = engine_.try_out(submit);
  if (!trial) return call.reply(refuse(explained(trial.error(), machine_)));
  wire::DryRunDocument document;
  document.at = clock_.wall();
  document.starts = trial->grant.has_value();
  document.grant = trial->grant.value_or(std::vector<core::GrantedCard>());
  document.parked = trial->parked;
  document.why = serve::view_of(trial->why, document.at, machine_.pool, machine_.idle_since);
  call.reply(respond(200, wire::encode(document)));
}

// ---- changes -----------------------------------------------------------------------------------

void Jobs::ask_to_change(Call& call, core::Input input) {
  dispatcher_.ask(std::move(input), [this,
                                     responder = call.responder](engine::Answer done) mutable {
    responder.reply(
        done.result ? respond(200, wire::encode(wire::ChangedDocument{clock_.wall(), done.changed}))
                    : refuse(done.result.error()));
  });
}

void Jobs::park(Call& call) {
  const bool deep = call.request.parameter("deep") != nullptr;
  ask_to_change(call, core::ParkJob{call.job, caller_of(identity_, call.peer()), deep});
}

void Jobs::set_priority(Call& call) {
  const Result<std::int32_t> priority = wire::decode_priority(call.request.body);
  if (!priority) return call.reply(refuse_words(priority.error()));
  ask_to_change(call, core::SetPriority{call.job, caller_of(identity_, call.peer()), *priority});
}

// ---- questions ---------------------------------------------------------------------------------

void Jobs::list(Call& call) {
  if (!engine_.settled()) return call.reply(refuse(not_on_disk()));
  const bool all = call.request.parameter("all") != nullptr;
  const bool mine = call.request.parameter("mine") != nullptr;
  const bool others = call.request.parameter("others") != nullptr && !mine;
  const std::string* user = call.request.parameter("user");
  const std::string* id = call.request.parameter("id");
  std::vector<wire::JobView> views;
  forecasts_.look();
  const auto add = [&](const core::Job& job) {
    const bool ended = job.state == JobState::kEnded;
    if ((ended && !all) || (user != nullptr && job.spec->user != *user) ||
        (mine && job.spec->uid != call.peer().uid))
      return;
    if (may_see(identity_, job, call.peer())) views.push_back(views_.view_of(job));
    // Other users' ended jobs are many, and no longer on a card: only those that are named.
    else if (others && (!ended || id != nullptr) && may_see_row(identity_, job, call.peer()))
      views.push_back(views_.row_of(job));
  };
  if (id != nullptr) {
    const Result<core::JobId> number = core::parse_job_id(*id);
    if (!number) return call.reply(refuse(number.error()));
    for (const core::Job* job : engine_.state().find_all(*number)) add(*job);
  } else {
    for (const auto& [number, job] : engine_.state().jobs()) add(job);
  }
  for (wire::JobView& view : views)
    if (view.wait) view.place = views_.place_of(view.job.id);
  net::Response response;
  if (call.accepts(wire::kPsLinesType)) {
    response.content_type = wire::kPsLinesType;
    response.body = wire::encode_ps_lines(views, clock_.wall());
  } else {
    response.body = wire::encode_ps(views, clock_.wall());
  }
  response.held = dispatcher_.place();
  call.reply(response);
}

void Jobs::wait(Call& call) {
  waiters_.wait_for_end(call.job, call.request.parameter("any") != nullptr, call.peer().uid,
                        call.responder);
}

void Jobs::show(Call& call) {
  if (!engine_.settled()) return call.reply(refuse(not_on_disk()));
  const std::vector<const core::Job*> jobs = engine_.state().find_all(call.job);
  wire::ShowDocument document = show_of(*jobs.front());
  if (jobs.front()->id != call.job) {
    // An array: what its jobs have in common, and how many are in each state.
    document.view.job.id = call.job;
    for (const core::Job* job : jobs) ++document.elements[std::string(to_string(job->state))];
  }
  call.reply(respond(200, wire::encode(document)));
}

void Jobs::explain(Call& call) {
  if (!engine_.settled()) return call.reply(refuse(not_on_disk()));
  const std::vector<const core::Job*> jobs = engine_.state().find_all(call.job);
  // Of an array the first job that waits.
  const auto waits = std::find_if(jobs.begin(), jobs.end(), [](const core::Job* job) {
    return job->state == JobState::kPending;
  });
  const core::Job& job = waits == jobs.end() ? *jobs.front() : **waits;
  if (!may_see(identity_, job, call.peer()))
    return call.reply(respond(200, wire::encode(explain_row(job))));
  core::Explanation why = engine_.explain(job);
  if (job.state == JobState::kPending && !why.forecast) {  // too far back to be done at once
    forecasts_.look();
    why.forecast = forecasts_.of(job.id);
  }
  if (why.forecast) why.forecast = not_past(*why.forecast, clock_.wall());
  if (why.forecast && !job.forecast) dispatcher_.tell(core::Foretold{job.id, *why.forecast});
  call.reply(respond(
      200, wire::encode(serve::view_of(why, clock_.wall(), machine_.pool, machine_.idle_since,
                                       core::remark_of(job, engine_.state().rules())))));
}

wire::ExplainDocument Jobs::explain_row(const core::Job& job) {
  forecasts_.look();
  wire::JobView row = views_.row_of(job);
  if (job.state == JobState::kPending) row.place = views_.place_of(job.id);
  return serve::view_of(row, clock_.wall(), views_.queue().places.size());
}

wire::ShowDocument Jobs::show_of(const core::Job& job) {
  wire::ShowDocument document;
  document.at = clock_.wall();
  document.view = views_.view_of(job);
  if (job.state == JobState::kPending) {
    document.view.place = views_.place_of(job.id);
    if (const std::optional<core::Forecast> told = engine_.forecast(job.id))
      document.view.forecast = not_past(*told, document.at);
    if (document.view.forecast && !job.forecast)
      dispatcher_.tell(core::Foretold{job.id, *document.view.forecast});
  }
  if (job.spec->detached) {
    if (identity_.logs_of) std::tie(document.log, document.err) = identity_.logs_of(job);
    if (const Result<std::string> blob = engine_.blob(job.spec->detached->environment))
      document.environment = wire::environment_names(*blob);
  }
  if (!job.spec->command_content.empty()) {
    if (const Result<std::string> command = engine_.blob(job.spec->command_content)) {
      core::JobSpec whole = *job.spec;
      whole.command = wire::words_in(*command);
      document.view.job.spec = std::move(whole);
    } else {
      document.notes.push_back("all of its command cannot be read: " + command.error().message);
    }
  }
  if (const auto found = machine_.processes.find(job.id);
      found != machine_.processes.end() && job.state != JobState::kEnded)
    document.processes = once_each(found->second);
  document.advice = advice_for(job, machine_.pool);
  if (job.exit && !job.exit->note.empty()) document.notes.push_back(job.exit->note);
  if (const std::optional<std::string> note = oom_note(job)) document.notes.push_back(*note);
  for (const core::NotifyTarget& target : job.spec->notify.to)
    document.notify.push_back(core::redacted(target));
  return document;
}

}  // namespace mete::serve
