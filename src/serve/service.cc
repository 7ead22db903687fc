// SPDX-License-Identifier: Apache-2.0
#include "serve/service.h"

#include <utility>

#include "serve/parts.h"
#include "serve/reply.h"
#include "serve/routes.h"
#include "serve/submitter.h"

namespace mete::serve {

Service::Service(net::Loop& loop, seam::Clock& clock, engine::Engine& engine, Identity identity)
    : engine_(engine),
      identity_(std::move(identity)),
      parts_(new Parts{{loop, clock, engine, identity_}}) {
  parts_->status.on_stop = [this] { on_stop(); };
  parts_->status.on_reload = [this] { return on_reload(); };
  parts_->status.on_backup = [this](const std::string& path, auto done) {
    on_backup(path, std::move(done));
  };
  parts_->dispatcher.on_fatal = [this](const Error& error) { on_fatal(error); };
  parts_->dispatcher.after_turn = [this] {
    parts_->waiters.answer_due();
    parts_->events.feed_all();
    on_turn(!engine_.state().active().empty());
  };
}

Service::~Service() = default;

void Service::tell(core::Input input) { parts_->dispatcher.tell(std::move(input)); }

const MachineReading& Service::machine() const { return parts_->cards.machine(); }

void Service::see(MachineReading reading) {
  parts_->cards.see(std::move(reading));
  parts_->sight.see();
  tell(core::Look{});
  seen_ = true;
  for (auto& [request, responder] : std::exchange(early_, {}))
    handle(std::move(request), std::move(responder));
}

bool Service::idle() const {
  // A sweep that runs goes on by itself: its next trial may wait for room in a quota.
  for (const auto& [number, sweep] : engine_.state().sweeps().all())
    if (sweep.state() == core::sweep::SweepState::kRunning) return false;
  return parts_->dispatcher.idle() && parts_->waiters.empty() && parts_->events.empty() &&
         early_.empty() && engine_.state().unfinished() == 0 &&
         engine_.state().reservations().empty();
}

// ---- requests ----------------------------------------------------------------------------------

void Service::handle(net::Request request, net::Responder responder) {
  const Route* route = find_route(request.method, request.path);
  if (!seen_ && route != nullptr && route->needs == Needs::kCards)
    early_.emplace_back(std::move(request), std::move(responder));
  else
    serve(route, std::move(request), std::move(responder));
}

void Service::serve(const Route* route, net::Request request, net::Responder responder) {
  const uid_t uid = request.peer.uid;
  parts_->dispatcher.add(
      uid, route == nullptr ? AnswerSize::kSmall : route->answer,
      [this, route, request = std::move(request), responder = std::move(responder)] {
        if (!responder.gone()) answer(route, request, responder);
      });
}

void Service::answer(const Route* route, const net::Request& request, net::Responder responder) {
  if (route == nullptr) return responder.reply(refuse(no_such_path(request)));
  Call call{request, std::move(responder), name_in(*route, request.path)};
  if (names_a_job(*route)) {
    const Result<core::JobId> id = core::parse_job_id(call.name);
    if (!id) return call.reply(refuse(id.error()));
    call.job = *id;
    if (const std::optional<Error> no = refusal(*route, call)) return call.reply(refuse(*no));
  }
  route->handle(*parts_, call);
}

// Only users who may see a job reach the handlers of kOwner and kRunner.
std::optional<Error> Service::refusal(const Route& route, const Call& call) const {
  const core::Job* job = engine_.state().first_of(call.job);
  if (job == nullptr) return no_such_job(call.job);
  if (may_see(identity_, *job, call.peer())) return std::nullopt;
  // A runner asks for its own job. If its daemon has lost its state, the number may be that of
  // another user's job by now, and the runner is to learn that its own is gone.
  const bool runner = route.who == Who::kRunner || call.request.parameter("tag") != nullptr;
  if (runner || !may_see_row(identity_, *job, call.peer())) return no_such_job(call.job);
  if (route.who == Who::kSight) return std::nullopt;
  return not_yours(*job, call.job, name_of_user(call.peer().uid));
}

void Service::handle_metrics(const net::Request& request, net::Responder responder) {
  if (request.path != "/metrics" || request.method != "GET")
    return responder.reply(refuse(no_such_path(request)));
  Call call{request, std::move(responder)};
  parts_->sight.get_metrics(call);
}

}  // namespace mete::serve
