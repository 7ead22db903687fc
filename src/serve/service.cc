// SPDX-License-Identifier: Apache-2.0
#include "serve/service.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/exit_code.h"
#include "base/text.h"

namespace mete::serve {

namespace {

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kDenied:
      return 403;
    case ErrorCode::kBusy:
      return 409;
    case ErrorCode::kExhausted:
      return 503;
    case ErrorCode::kInfeasible:
      return 422;
    case ErrorCode::kUnsupported:
      return 501;
    case ErrorCode::kIo:
    case ErrorCode::kCorrupt:
      return 500;
  }
  return 500;
}

net::Response respond(int status, std::string body) {
  net::Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

net::Response refuse(const Error& error) {
  return respond(status_of(error.code), wire::encode_error(error, base::exit_code_of(error.code)));
}

// Of what a client sent: not our data that is damaged, but its words.
net::Response refuse_words(Error error) {
  if (error.code == ErrorCode::kCorrupt) error.code = ErrorCode::kInvalid;
  return refuse(error);
}

std::string name_of_user(uid_t uid) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return entry.pw_name;
  return std::to_string(uid);
}

// Changes with everything that a runner's answer says. A thousand runners wait while the queue
// moves: their answers are written only when this has changed.
std::string tag_of(const core::Job& job, const core::Wait* wait) {
  std::string tag = std::to_string(static_cast<int>(job.state)) + "-" + std::to_string(job.attempt);
  if (wait == nullptr) return tag;
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : wait->text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return tag + "-" + std::to_string(hash);
}

// What the engine has decided since the disk is full may yet be undone: nobody is told of it.
Error not_on_disk() {
  return Error::exhausted("the disk with mete's state is full")
      .with_hint("make room there; running jobs go on");
}

Error no_such_path(const net::Request& request) {
  if (request.path.starts_with("/v") && !request.path.starts_with("/v1/"))
    return Error::unsupported("this daemon speaks version 1 of the interface")
        .with_evidence(request.method + " " + base::quote(request.path))
        .with_hint("mete daemon stop; the next command starts the daemon that belongs to it");
  return Error::not_found("there is no " + request.method + " " + base::quote(request.path));
}

}  // namespace

Service::Service(net::Loop& loop, seam::Clock& clock, engine::Engine& engine, Identity identity)
    : loop_(loop),
      clock_(clock),
      engine_(engine),
      identity_(std::move(identity)),
      started_(clock.monotonic()) {}

// ---- turns -------------------------------------------------------------------------------------

void Service::ask(core::Input input, Answered answered) {
  const std::uint64_t ticket = answered ? ++last_ticket_ : 0;
  if (answered) unanswered_.emplace(ticket, std::move(answered));
  asked_.push_back({ticket, std::move(input)});
  schedule_turn();
}

void Service::tell(core::Input input) { ask(std::move(input), nullptr); }

void Service::see(Machine machine) {
  machine_ = std::move(machine);
  engine_.see(machine_.pool);
  asked_.push_back({0, core::Look{}});
  schedule_turn();
  seen_ = true;
  for (auto& [request, responder] : std::exchange(early_, {}))
    if (!responder.gone()) route(request, std::move(responder));
}

void Service::schedule_turn() {
  if (std::exchange(turn_scheduled_, true)) return;
  loop_.post([this] { turn(); });
}

void Service::turn() {
  turn_scheduled_ = false;
  Result<std::vector<engine::Answer>> answers = engine_.turn(std::exchange(asked_, {}));
  if (!answers) {
    on_fatal(answers.error());
    return;
  }
  for (engine::Answer& answer : *answers) {
    const auto found = unanswered_.find(answer.ticket);
    if (found == unanswered_.end()) continue;
    const Answered answered = std::move(found->second);
    unanswered_.erase(found);
    answered(std::move(answer.result));
  }
  answer_waiters();
  bool busy = false;
  for (const auto& [id, job] : engine_.state().jobs())
    busy = busy || (job.state != core::JobState::kEnded && job.state != core::JobState::kPending);
  on_turn(busy);
}

void Service::answer_waiters() {
  if (answered_version_ == engine_.version() || !engine_.settled()) return;
  answered_version_ = engine_.version();
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    const core::Job* job = engine_.state().find(waiter->job);
    const bool changed = job == nullptr || tag_of(*job, engine_.wait_of(job->id)) != waiter->tag;
    if (!changed) {
      ++waiter;
      continue;
    }
    const Waiter done = std::move(*waiter);
    waiter = waiters_.erase(waiter);
    reply_with_job(done.job, 200, done.responder);
  }
}

bool Service::idle() const {
  if (!unanswered_.empty() || !asked_.empty() || !waiters_.empty() || !early_.empty()) return false;
  for (const auto& [id, job] : engine_.state().jobs())
    if (job.state != core::JobState::kEnded) return false;
  return true;
}

// ---- requests ----------------------------------------------------------------------------------

void Service::handle(net::Request request, net::Responder responder) {
  // A list of jobs and what a runner reports need no cards.
  const bool needs_cards = request.path == "/v1/cards" ||
                           (request.path == "/v1/jobs" && request.method == "POST") ||
                           (request.path.starts_with("/v1/jobs/") && request.method == "GET");
  if (!seen_ && needs_cards)
    early_.emplace_back(std::move(request), std::move(responder));
  else
    route(request, std::move(responder));
}

void Service::route(const net::Request& request, net::Responder responder) {
  const std::vector<std::string_view> parts = base::split(request.path, '/');  // "", "v1", ...
  const bool v1 = parts.size() >= 3 && parts[1] == "v1";
  const std::string_view first = v1 ? parts[2] : "";
  const std::string& method = request.method;
  if (first == "version" && parts.size() == 3 && method == "GET") {
    responder.reply(respond(200, "{\"api\":" + std::to_string(kApiVersion) + ",\"version\":\"" +
                                     identity_.version + "\",\"grant_abi\":\"" +
                                     identity_.grant_abi +
                                     "\",\"store\":" + std::to_string(identity_.store) + "}"));
  } else if (first == "jobs" && parts.size() == 3 && method == "POST") {
    post_job(request, std::move(responder));
  } else if (first == "jobs" && parts.size() == 3 && method == "GET") {
    list_jobs(request, std::move(responder));
  } else if (first == "jobs" && (parts.size() == 4 || parts.size() == 5)) {
    const Result<core::JobId> id = core::parse_job_id(parts[3]);
    if (!id)
      responder.reply(refuse(id.error()));
    else if (parts.size() == 4 && method == "GET")
      get_job(*id, request, std::move(responder));
    else
      post_about_job(*id, parts.size() == 5 ? parts[4] : "", request, std::move(responder));
  } else if (first == "cards" && parts.size() == 3 && method == "GET") {
    responder.reply(respond(200, wire::encode(cards())));
  } else if (first == "daemon" && parts.size() == 3 && method == "GET") {
    responder.reply(respond(200, wire::encode(daemon(), clock_.wall())));
  } else if (first == "daemon" && parts.size() == 4 && parts[3] == "stop" && method == "POST") {
    if (request.peer.uid != 0 && request.peer.uid != identity_.uid) {
      responder.reply(refuse(Error::denied("only root may stop the machine's daemon")));
      return;
    }
    responder.reply(respond(200, wire::encode(daemon(), clock_.wall())));
    on_stop();
  } else {
    responder.reply(refuse(no_such_path(request)));
  }
}

void Service::post_job(const net::Request& request, net::Responder responder) {
  Result<wire::RunRequest> wanted = wire::decode_run_request(request.body);
  if (!wanted) {
    responder.reply(refuse_words(wanted.error()));
    return;
  }
  if (request.peer.pid <= 0) {
    responder.reply(refuse(Error::unsupported("the daemon cannot see the process that asks")
                               .with_evidence("it is in another pid namespace: a container")
                               .with_hint("use mete cap there, or a daemon inside of it")));
    return;
  }
  core::Submit submit;
  submit.spec = std::move(wanted->spec);
  submit.spec.uid = request.peer.uid;
  submit.spec.user = name_of_user(request.peer.uid);
  submit.runner = core::ProcessRef{request.peer.pid, wanted->runner_start_ticks};
  submit.wait = wanted->wait;
  ask(std::move(submit), [this, responder](Result<core::JobId> id) {
    net::Responder answer = responder;
    if (!id)
      answer.reply(refuse(explained(id.error())));
    else
      reply_with_job(*id, 201, answer);
  });
}

// Where no card was ever read the reason is the driver's, not the request's.
Error Service::explained(Error error) const {
  if (error.code != ErrorCode::kInfeasible || !machine_.unread) return error;
  const Error& why = *machine_.unread;
  error.evidence = why.message + (why.evidence.empty() ? "" : ": " + why.evidence);
  if (!why.hint.empty()) error.hint = why.hint;
  if (why.code == ErrorCode::kBusy) {  // it may come back
    error.code = ErrorCode::kExhausted;
    error.message = "the cards cannot be read at the moment";
  }
  return error;
}

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
  // A runner asks for its own job only: one whose daemon has lost its state must not take another
  // run's job, which has the same number now, for its own.
  const bool not_its_own =
      tag != nullptr && job != nullptr && job->runner && job->runner->pid != request.peer.pid;
  if (job == nullptr || not_its_own || !may_see(*job, request.peer)) {
    responder.reply(refuse(
        Error::not_found("there is no job " + to_string(id)).with_hint("mete ps lists your jobs")));
    return;
  }
  if (tag == nullptr && !engine_.settled()) {
    responder.reply(refuse(not_on_disk()));
    return;
  }
  if (tag == nullptr || (engine_.settled() && *tag != tag_of(*job, engine_.wait_of(id)))) {
    reply_with_job(id, 200, responder);
    return;
  }
  const std::uint64_t number = ++last_ticket_;
  responder.on_gone([this, number] {
    waiters_.remove_if([number](const Waiter& waiter) { return waiter.number == number; });
  });
  waiters_.push_back({number, id, *tag, std::move(responder)});
}

void Service::post_about_job(core::JobId id, std::string_view what, const net::Request& request,
                             net::Responder responder) {
  const auto answered = [this, responder](Result<core::JobId> result) {
    net::Responder answer = responder;
    if (!result)
      answer.reply(refuse(result.error()));
    else
      reply_with_job(*result, 200, answer);
  };
  const std::uint32_t uid = request.peer.uid;
  // What anybody else says of a job would give away bytes that are in use.
  const core::Job* job = engine_.state().find(id);
  if (!what.empty() && job != nullptr && may_see(*job, request.peer) && job->runner &&
      job->runner->pid != request.peer.pid) {
    responder.reply(
        refuse(Error::denied("only its own mete run reports on job " + to_string(id))
                   .with_evidence("process " + std::to_string(request.peer.pid) +
                                  " asks, not process " + std::to_string(job->runner->pid))));
    return;
  }
  if (what.empty() && request.method == "DELETE") {
    ask(core::Cancel{id, uid}, answered);
  } else if (what == "started" && request.method == "POST") {
    const Result<wire::StartReport> start = wire::decode_start(request.body);
    if (!start)
      responder.reply(refuse_words(start.error()));
    else
      ask(core::Started{id, uid, start->program, start->ago_ms}, answered);
  } else if (what == "ended" && request.method == "POST") {
    const Result<wire::EndReport> end = wire::decode_end(request.body);
    if (!end) {
      responder.reply(refuse_words(end.error()));
      return;
    }
    core::Ended ended{id, uid, end->exit};
    if (end->start) {
      ended.program = end->start->program;
      ended.ago_ms = end->start->ago_ms;
    }
    ask(std::move(ended), answered);
  } else {
    responder.reply(refuse(no_such_path(request)));
  }
}

void Service::list_jobs(const net::Request& request, net::Responder responder) {
  if (!engine_.settled()) {
    responder.reply(refuse(not_on_disk()));
    return;
  }
  const bool all = request.parameter("all") != nullptr;
  std::vector<wire::JobView> views;
  for (const auto& [id, job] : engine_.state().jobs())
    if ((all || job.state != core::JobState::kEnded) && may_see(job, request.peer))
      views.push_back(view_of(job));
  responder.reply(respond(200, wire::encode_ps(views, clock_.wall())));
}

// ---- views -------------------------------------------------------------------------------------

bool Service::may_see(const core::Job& job, const net::Peer& peer) const {
  return peer.uid == 0 || peer.uid == job.spec.uid;
}

wire::JobView Service::view_of(const core::Job& job) const {
  wire::JobView view{job, {}, {}};
  if (const core::Wait* wait = engine_.wait_of(job.id);
      wait != nullptr && job.state == core::JobState::kPending)
    view.wait = *wait;
  const auto used = machine_.used.find(job.id);
  for (const core::GrantedCard& card : job.grant) {
    std::optional<Bytes> bytes;
    if (used != machine_.used.end() && job.state != core::JobState::kEnded)
      if (const auto found = used->second.find(card.uuid); found != used->second.end())
        bytes = found->second;
    view.used.push_back(bytes);
  }
  return view;
}

wire::RunReply Service::reply_for(const core::Job& job) const {
  wire::RunReply reply;
  reply.view = view_of(job);
  reply.view.used.clear();  // changes all the time, and a runner does not ask for it
  for (const core::GrantedCard& granted : job.grant)
    for (const wire::CardView& card : machine_.cards)
      if (card.uuid == granted.uuid)
        reply.cards.push_back(
            {card.name, card.type, card.total.value_or(Bytes()), card.capacity.value_or(Bytes())});
  reply.driver = machine_.driver;
  reply.readings = identity_.readings;
  reply.simulated = identity_.simulated;
  reply.tag = tag_of(job, engine_.wait_of(job.id));
  return reply;
}

wire::CardsDocument Service::cards() const {
  wire::CardsDocument document{clock_.wall(), machine_.trouble, machine_.cards};
  const core::Pool pool = engine_.pool();
  for (wire::CardView& card : document.cards) {
    if (machine_.read_at)
      card.reading_age_s =
          std::chrono::duration<double>(clock_.monotonic() - *machine_.read_at).count();
    for (const core::PoolCard& placed : pool.cards) {
      if (placed.card.uuid != card.uuid) continue;
      card.grantable = placed.grantable();
      for (const core::Holder& holder : placed.holders) {
        card.granted += holder.bytes;
        wire::CardView::JobShare share{
            to_string(holder.job), holder.user, holder.bytes, holder.whole, {}};
        if (const auto used = machine_.used.find(holder.job); used != machine_.used.end())
          if (const auto on_card = used->second.find(card.uuid); on_card != used->second.end())
            share.used = on_card->second;
        card.jobs.push_back(share);
      }
    }
  }
  return document;
}

wire::DaemonView Service::daemon() const {
  wire::DaemonView view;
  view.version = identity_.version;
  view.pid = getpid();
  view.mode = identity_.mode;
  view.socket = identity_.socket;
  view.state_dir = identity_.state_dir;
  view.uptime_s = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(clock_.monotonic() - started_).count());
  view.policy = std::string(to_string(engine_.policy()));
  view.trouble = machine_.trouble;
  view.disk_full = engine_.disk_full();
  view.idle_end_s = identity_.idle_end_s;
  for (const auto& [id, job] : engine_.state().jobs()) {
    if (job.state == core::JobState::kPending) ++view.pending;
    if (job.state != core::JobState::kPending && job.state != core::JobState::kEnded)
      ++view.running;
  }
  return view;
}

}  // namespace mete::serve
