// SPDX-License-Identifier: Apache-2.0
// See service.h: requests about jobs.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "serve/advice.h"
#include "serve/explain_view.h"
#include "serve/reply.h"
#include "serve/service.h"
#include "serve/submitter.h"
#include "wire/ps_lines.h"

namespace mete::serve {

namespace {

using core::JobState;

// Whether somebody wants lines rather than a document.
bool wants_lines(const net::Request& request) {
  const std::string* accept = request.header("accept");
  return accept != nullptr && accept->find(wire::kPsLinesType) != std::string::npos;
}

// One that is on several cards is listed once, with all that it has, if that is known of each.
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

// It does nothing on its cards for so long that its runner is told.
bool is_warned_of(const core::Job& job) {
  return job.idle && job.idle->step != core::IdleStep::kSeen;
}

}  // namespace

// Changes with everything that a runner's answer says. A thousand runners wait while the queue
// moves: their answers are written only when this has changed.
std::string Service::tag_of(const core::Job& job) {
  std::string tag = std::to_string(static_cast<int>(job.state)) + "-" + std::to_string(job.attempt);
  if (job.growth != core::Growth::kFree) tag += "-" + std::string(to_string(job.growth));
  if (job.park && job.park->wants_back) tag += "-back";
  if (!job.escapes.empty()) tag += "-escaped";
  if (is_warned_of(job)) tag += "-idle";
  const core::Wait* wait = engine_.wait_of(job.id);
  if (wait == nullptr) return tag;
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : wait->text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return tag + "-" + std::to_string(hash);
}

void Service::route_jobs(const net::Request& request, const std::vector<std::string_view>& parts,
                         net::Responder responder) {
  const std::string& method = request.method;
  if (parts.size() == 3 && method == "POST") return post_job(request, std::move(responder));
  if (parts.size() == 3 && method == "GET") return list_jobs(request, std::move(responder));
  if (parts.size() != 4 && parts.size() != 5) return responder.reply(refuse(no_such_path(request)));
  const Result<core::JobId> id = core::parse_job_id(parts[3]);
  if (!id) return responder.reply(refuse(id.error()));
  const std::string_view what = parts.size() == 5 ? parts[4] : "";
  if (what.empty() && method == "GET") return get_job(*id, request, std::move(responder));
  if (what == "show" && method == "GET") return show_job(*id, request, std::move(responder));
  if (what == "explain" && method == "GET") return explain_job(*id, request, std::move(responder));
  if (what == "wait" && method == "GET") return wait_for_job(*id, request, std::move(responder));
  if ((what == "started" || what == "ended" || what == "parked" || what == "grow") &&
      method == "POST")
    return report_on_job(*id, what, request, std::move(responder));
  if (!change_job(*id, what, request, responder)) responder.reply(refuse(no_such_path(request)));
}

// ---- new jobs ----------------------------------------------------------------------------------

void Service::post_job(const net::Request& request, net::Responder responder) {
  Result<wire::JobRequest> wanted = wire::decode_job_request(request.body);
  if (!wanted) return responder.reply(refuse_words(wanted.error()));
  if (request.peer.pid <= 0)
    return responder.reply(refuse(Error::unsupported("the daemon cannot see the process that asks")
                                      .with_evidence("it is in another pid namespace: a container")
                                      .with_hint("use mete cap there, or a daemon inside of it")));
  if (auto* run = std::get_if<wire::RunRequest>(&*wanted))
    post_run(std::move(*run), request, std::move(responder));
  else
    post_submit(std::get<wire::SubmitRequest>(*std::move(wanted)), request, std::move(responder));
}

void Service::post_run(wire::RunRequest wanted, const net::Request& request,
                       net::Responder responder) {
  core::Submit submit = submit_of(std::move(wanted.spec), wanted.wait, request.peer);
  submit.runner = core::ProcessRef{request.peer.pid, wanted.runner_start_ticks};
  Contents contents = take_contents(submit.spec);
  ask(
      std::move(submit),
      [this, responder](engine::Answer done) {
        net::Responder answer = responder;
        if (!done.result)
          answer.reply(refuse(explained(done.result.error())));
        else
          reply_with_job(*done.result, 201, answer);
      },
      std::move(contents));
}

void Service::post_submit(wire::SubmitRequest wanted, const net::Request& request,
                          net::Responder responder) {
  core::Submit submit = submit_of(std::move(wanted.spec), wanted.wait, request.peer);
  if (Result<void> r = take_identity(request.peer, *submit.spec.detached); !r)
    return responder.reply(refuse(r.error()));
  Contents contents = take_contents(submit.spec, wanted.environment, std::move(wanted.script));
  ask(
      std::move(submit),
      [this, responder](engine::Answer done) {
        net::Responder answer = responder;
        if (!done.result) return answer.reply(refuse(explained(done.result.error())));
        // By the job: it may have been asked for before.
        const core::Job* job = engine_.state().first_of(*done.result);
        const std::size_t elements =
            job != nullptr && job->spec->array ? core::count_of(*job->spec->array) : 0;
        answer.reply(
            respond(201, wire::encode(wire::SubmitReply{*done.result, elements}, clock_.wall())));
      },
      std::move(contents));
}

// With who asks, and what the request leaves to the configuration.
core::Submit Service::submit_of(core::JobSpec spec, bool wait, const net::Peer& peer) const {
  core::Submit submit;
  spec.uid = peer.uid;
  spec.user = name_of_user(peer.uid);
  if (!spec.preemptible) spec.preemptible = identity_.preemptible;
  if (spec.notify.to.empty() && !spec.notify.none) spec.notify.to = identity_.notify.to;
  if (spec.notify.on.empty()) spec.notify.on = identity_.notify.on;
  submit.spec = std::move(spec);
  submit.wait = wait;
  submit.admin = is_admin(peer);
  return submit;
}

// What would become of such a job: nothing is recorded and nobody is told of it.
void Service::try_job(const net::Request& request, net::Responder responder) {
  Result<wire::JobRequest> wanted = wire::decode_job_request(request.body);
  if (!wanted) return responder.reply(refuse_words(wanted.error()));
  if (!engine_.settled()) return responder.reply(refuse(not_on_disk()));
  core::Submit submit = std::visit(
      [&](auto& of) { return submit_of(std::move(of.spec), of.wait, request.peer); }, *wanted);
  if (auto* of = std::get_if<wire::SubmitRequest>(&*wanted))
    (void)take_contents(submit.spec, of->environment, std::move(of->script));
  else
    (void)take_contents(submit.spec);
  const Result<core::Trial> trial = engine_.try_out(submit);
  if (!trial) return responder.reply(refuse(explained(trial.error())));
  wire::DryRunDocument document;
  document.at = clock_.wall();
  document.starts = trial->grant.has_value();
  document.grant = trial->grant.value_or(std::vector<core::GrantedCard>());
  document.parked = trial->parked;
  document.why = serve::view_of(trial->why, document.at, machine_.pool, machine_.idle_since);
  responder.reply(respond(200, wire::encode(document)));
}

// ---- a job and its runner ----------------------------------------------------------------------

void Service::reply_with_job(core::JobId id, int status, const net::Responder& responder) {
  net::Responder answer = responder;
  const core::Job* job = engine_.state().find(id);
  if (job == nullptr)
    answer.reply(refuse(Error::not_found("there is no job " + to_string(id))));
  else
    answer.reply(respond(status, wire::encode(reply_for(*job))));
}

void Service::get_job(core::JobId id, const net::Request& request, net::Responder responder) {
  const core::Job* job = engine_.state().find(id);
  const std::string* tag = request.parameter("tag");
  const std::string* since = request.parameter("since");  // of anybody who may see it
  // A runner asks for its own job only: one whose daemon has lost its state must not take another
  // run's job, which has the same number now, for its own.
  const bool not_its_own =
      tag != nullptr && job != nullptr && job->runner && job->runner->pid != request.peer.pid;
  if (job == nullptr || not_its_own || !may_see(*job, request.peer))
    return responder.reply(refuse(no_such_job(id)));
  if (tag == nullptr) tag = since;
  if (tag == nullptr && !engine_.settled()) return responder.reply(refuse(not_on_disk()));
  if (tag == nullptr || (engine_.settled() && *tag != tag_of(*job)))
    return reply_with_job(id, 200, responder);
  add_waiter(id, *tag, false, request.peer.uid, std::move(responder));
}

void Service::add_waiter(core::JobId id, std::optional<std::string> tag, bool any, uid_t uid,
                         net::Responder responder) {
  const std::uint64_t number = ++last_ticket_;
  responder.on_gone([this, number] {
    waiters_.remove_if([number](const Waiter& waiter) { return waiter.number == number; });
  });
  waiters_.push_back({number, id, std::move(tag), any, uid, std::move(responder)});
}

// A runner whose daemon did not answer in time says how it stands now on another connection: what
// it said before must not be done after that.
bool Service::is_overtaken(core::JobId id, const net::Request& request) {
  const std::string* text = request.parameter("order");
  if (text == nullptr) return false;
  const Result<std::uint64_t> order = base::parse_uint(*text);
  if (!order) return false;
  std::erase_if(last_said_, [this](const auto& said) {
    const core::Job* job = engine_.state().find(said.first);
    return job == nullptr || job->state == core::JobState::kEnded;
  });
  std::uint64_t& last = last_said_[id];
  if (*order < last) return true;
  last = *order;
  return false;
}

void Service::report_on_job(core::JobId id, std::string_view what, const net::Request& request,
                            net::Responder responder) {
  const auto answered = [this, responder](engine::Answer done) {
    net::Responder answer = responder;
    if (!done.result)
      answer.reply(refuse(done.result.error()));
    else
      reply_with_job(*done.result, 200, answer);
  };
  const std::uint32_t uid = request.peer.uid;
  // What anybody else says of a job would give away bytes that are in use.
  const core::Job* job = engine_.state().find(id);
  const bool seen = job != nullptr && may_see(*job, request.peer);
  const bool by_file = what == "started" || what == "ended";  // a keeper leaves these in its record
  if (seen &&
      ((job->spec->detached && by_file) || (job->runner && job->runner->pid != request.peer.pid)))
    return responder.reply(
        refuse(Error::denied("only its own parent reports on job " + to_string(id))
                   .with_evidence("process " + std::to_string(request.peer.pid) + " asks, not " +
                                  (job->runner ? "process " + std::to_string(job->runner->pid)
                                               : std::string("its keeper")))));
  if (seen && !by_file && is_overtaken(id, request))
    return engine_.settled() ? reply_with_job(id, 200, responder)
                             : responder.reply(refuse(not_on_disk()));
  if (what == "started") {
    const Result<wire::StartReport> start = wire::decode_start(request.body);
    if (!start) return responder.reply(refuse_words(start.error()));
    return ask(core::Started{id, uid, start->program, start->ago_ms}, answered);
  }
  if (what == "parked") {
    Result<wire::ParkReport> report = wire::decode_park_report(request.body);
    if (!report) return responder.reply(refuse_words(report.error()));
    // Others may have it with the next reading of the cards, which will show it.
    if (report->parked && job != nullptr) {
      doubted_[id] = report->held;
      engine_.see(believed());
    }
    return ask(
        core::ParkReport{id, uid, report->parked, std::move(report->held), report->moved,
                         std::move(report->why), report->standing, report->wakes, report->on_disk},
        answered);
  }
  if (what == "grow") {
    Result<std::vector<Bytes>> wanted = wire::decode_wanted(request.body);
    if (!wanted) return responder.reply(refuse_words(wanted.error()));
    return ask(core::Grow{id, uid, *std::move(wanted)}, answered);
  }
  const Result<wire::EndReport> end = wire::decode_end(request.body);
  if (!end) return responder.reply(refuse_words(end.error()));
  core::Ended ended{id, uid, end->exit};
  if (end->start) {
    ended.program = end->start->program;
    ended.ago_ms = end->start->ago_ms;
  }
  ask(std::move(ended), answered);
}

// ---- what people do with jobs ------------------------------------------------------------------

Service::Answered Service::changes_to(net::Responder responder) {
  return [this, responder](engine::Answer done) {
    net::Responder answer = responder;
    if (!done.result)
      answer.reply(refuse(done.result.error()));
    else
      answer.reply(respond(200, wire::encode(wire::ChangedDocument{clock_.wall(), done.changed})));
  };
}

bool Service::change_job(core::JobId id, std::string_view what, const net::Request& request,
                         net::Responder& responder) {
  const core::Caller by = caller(request.peer);
  if (what.empty() && request.method == "DELETE") {
    ask(core::Cancel{id, by}, changes_to(responder));
    return true;
  }
  if (request.method != "POST") return false;
  if (what == "hold") {
    ask(core::Hold{id, by}, changes_to(responder));
  } else if (what == "release") {
    ask(core::Release{id, by}, changes_to(responder));
  } else if (what == "park") {
    ask(core::ParkJob{id, by, request.parameter("deep") != nullptr}, changes_to(responder));
  } else if (what == "unpark") {
    ask(core::UnparkJob{id, by}, changes_to(responder));
  } else if (what == "requeue") {
    ask(core::Requeue{id, by}, changes_to(responder));
  } else if (what == "priority") {
    const Result<std::int32_t> priority = wire::decode_priority(request.body);
    if (!priority)
      responder.reply(refuse_words(priority.error()));
    else
      ask(core::SetPriority{id, by, *priority}, changes_to(responder));
  } else {
    return false;
  }
  return true;
}

void Service::list_jobs(const net::Request& request, net::Responder responder) {
  if (!engine_.settled()) return responder.reply(refuse(not_on_disk()));
  const bool all = request.parameter("all") != nullptr;
  const std::string* user = request.parameter("user");
  std::vector<wire::JobView> views;
  forecasts_.look();
  const auto add = [&](const core::Job& job) {
    if ((all || job.state != JobState::kEnded) && may_see(job, request.peer) &&
        (user == nullptr || job.spec->user == *user))
      views.push_back(view_of(job));
  };
  if (const std::string* id = request.parameter("id")) {
    const Result<core::JobId> number = core::parse_job_id(*id);
    if (!number) return responder.reply(refuse(number.error()));
    for (const core::Job* job : engine_.state().find_all(*number)) add(*job);
  } else {
    for (const auto& [number, job] : engine_.state().jobs()) add(job);
  }
  net::Response response;
  if (wants_lines(request)) {
    response.content_type = wire::kPsLinesType;
    response.body = wire::encode_ps_lines(views, clock_.wall());
  } else {
    response.body = wire::encode_ps(views, clock_.wall());
  }
  response.held = place_;
  responder.reply(response);
}

void Service::wait_for_job(core::JobId id, const net::Request& request, net::Responder responder) {
  const core::Job* job = engine_.state().first_of(id);
  if (job == nullptr || !may_see(*job, request.peer))
    return responder.reply(refuse(no_such_job(id)));
  const bool any = request.parameter("any") != nullptr;
  if (engine_.state().is_over(id, any) && engine_.settled())
    answer_waiter({0, id, std::nullopt, any, request.peer.uid, std::move(responder)});
  else
    add_waiter(id, std::nullopt, any, request.peer.uid, std::move(responder));
}

void Service::reply_with_ended(core::JobId id, bool any, const net::Responder& responder) {
  net::Responder answer = responder;
  wire::WaitDocument document{clock_.wall(), {}};
  for (const core::Job* job : engine_.state().find_all(id))
    if (!any || job->state == JobState::kEnded) document.jobs.push_back(view_of(*job));
  if (document.jobs.empty()) return answer.reply(refuse(no_such_job(id)));
  net::Response response = respond(200, wire::encode(document));
  response.held = place_;
  answer.reply(response);
}

void Service::show_job(core::JobId id, const net::Request& request, net::Responder responder) {
  const std::vector<const core::Job*> jobs = engine_.state().find_all(id);
  if (jobs.empty() || !may_see(*jobs.front(), request.peer))
    return responder.reply(refuse(no_such_job(id)));
  if (!engine_.settled()) return responder.reply(refuse(not_on_disk()));
  wire::ShowDocument document = show_of(*jobs.front());
  if (jobs.front()->id != id) {
    // An array: what its jobs have in common, and how they stand.
    document.view.job.id = id;
    for (const core::Job* job : jobs) ++document.elements[std::string(to_string(job->state))];
  }
  responder.reply(respond(200, wire::encode(document)));
}

void Service::explain_job(core::JobId id, const net::Request& request, net::Responder responder) {
  const std::vector<const core::Job*> jobs = engine_.state().find_all(id);
  if (jobs.empty() || !may_see(*jobs.front(), request.peer))
    return responder.reply(refuse(no_such_job(id)));
  if (!engine_.settled()) return responder.reply(refuse(not_on_disk()));
  // Of an array the first that waits.
  const auto waits = std::find_if(jobs.begin(), jobs.end(), [](const core::Job* job) {
    return job->state == JobState::kPending;
  });
  const core::Job& job = waits == jobs.end() ? *jobs.front() : **waits;
  core::Explanation why = engine_.explain(job);
  if (job.state == JobState::kPending && !why.forecast) {  // too far back to be done at once
    forecasts_.look();
    why.forecast = forecasts_.of(job.id);
  }
  if (why.forecast) why.forecast = not_past(*why.forecast, clock_.wall());
  if (why.forecast && !job.forecast) tell(core::Foretold{job.id, *why.forecast});
  wire::ExplainDocument document =
      serve::view_of(why, clock_.wall(), machine_.pool, machine_.idle_since);
  if (const std::string remark = core::remark_of(job, engine_.state().rules()); !remark.empty())
    document.text += (document.text.empty() ? "" : "; ") + remark;
  responder.reply(respond(200, wire::encode(document)));
}

// ---- views -------------------------------------------------------------------------------------

wire::JobView Service::view_of(const core::Job& job, bool with_wait) {
  wire::JobView view;
  view.job = job;
  if (job.state == JobState::kPending && with_wait) {
    if (const core::Wait* wait = engine_.wait_of(job.id); wait != nullptr) view.wait = *wait;
    view.forecast = forecasts_.of(job.id);
  }
  if (with_wait)
    if (auto wait = engine_.state().wait_to_return(job, engine_.moment())) view.wait = wait;
  const auto used = machine_.used.find(job.id);
  for (const core::GrantedCard& card : job.grant) {
    std::optional<Bytes> bytes;
    if (used != machine_.used.end() && job.state != JobState::kEnded)
      if (const auto found = used->second.find(card.uuid); found != used->second.end())
        bytes = found->second;
    view.used.push_back(bytes);
  }
  if (const auto idle = machine_.idle_since.find(job.id);
      idle != machine_.idle_since.end() && job.state == JobState::kRunning)
    view.idle_since = idle->second;
  view.remark = core::remark_of(job, engine_.state().rules());
  return view;
}

wire::RunReply Service::reply_for(const core::Job& job) {
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

wire::ShowDocument Service::show_of(const core::Job& job) {
  wire::ShowDocument document;
  document.at = clock_.wall();
  document.view = view_of(job);
  if (job.state == JobState::kPending) {
    if (const std::optional<core::Forecast> told = engine_.forecast(job.id))
      document.view.forecast = not_past(*told, document.at);
    if (document.view.forecast && !job.forecast)
      tell(core::Foretold{job.id, *document.view.forecast});
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
