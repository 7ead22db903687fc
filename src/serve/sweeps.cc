// SPDX-License-Identifier: Apache-2.0
// See sweeps.h.
#include "serve/sweeps.h"

#include <memory>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "serve/reply.h"
#include "serve/submitter.h"

namespace mete::serve {

namespace {

// `user`: whose, if the request names one.
Error no_such_sweep(std::string_view name, const std::string& user = {}) {
  if (!user.empty())
    return Error::not_found("user " + base::quote(user) + " has no sweep " + base::quote(name))
        .with_hint("mete sweep ls --all lists the sweeps of all users");
  return Error::not_found("there is no sweep " + base::quote(name))
      .with_hint("mete sweep ls lists your sweeps");
}

}  // namespace

wire::SweepRow Sweeps::row_of(const core::sweep::Sweep& sweep, WallTime at) const {
  wire::SweepRow row = wire::row_of(sweep, at);
  if (row.why.empty()) row.why = engine_.state().why_blocked(sweep, engine_.moment());
  return row;
}

std::string Sweeps::rows(const core::sweep::Sweep* sweep) const {
  wire::SweepsDocument document;
  document.at = clock_.wall();
  if (sweep != nullptr) document.sweeps.push_back(row_of(*sweep, document.at));
  return wire::encode(document);
}

Result<const core::sweep::Sweep*> Sweeps::named(const Call& call) const {
  const std::uint32_t uid = call.peer().uid;
  const std::string name(call.name);
  const std::string* user = call.request.parameter("user");
  if (user != nullptr && *user != name_of_user(uid)) {
    if (!is_admin(identity_, call.peer()))
      return Error::denied("only administrators may name the sweeps of other users")
          .with_evidence("sweep " + name + " of " + *user);
    for (const auto& [number, sweep] : engine_.state().sweeps().all())
      if (sweep.plan().job.user == *user && sweep.plan().name == name) return &sweep;
    return no_such_sweep(name, *user);
  }
  const core::sweep::Sweep* sweep = engine_.state().sweeps().find(uid, name);
  if (sweep == nullptr) return no_such_sweep(name);
  return sweep;
}

void Sweeps::list(Call& call) {
  if (!engine_.settled()) return call.reply(refuse(not_on_disk()));
  const bool all = call.request.parameter("all") != nullptr && is_admin(identity_, call.peer());
  wire::SweepsDocument document;
  document.at = clock_.wall();
  for (const auto& [number, sweep] : engine_.state().sweeps().all())
    if (all || sweep.plan().job.uid == call.peer().uid)
      document.sweeps.push_back(row_of(sweep, document.at));
  net::Response response = respond(200, wire::encode(document));
  response.held = dispatcher_.place();
  call.reply(response);
}

void Sweeps::get(Call& call) {
  if (!engine_.settled()) return call.reply(refuse(not_on_disk()));
  const Result<const core::sweep::Sweep*> sweep = named(call);
  if (!sweep) return call.reply(refuse(sweep.error()));
  if (call.request.parameter("brief") != nullptr) return call.reply(respond(200, rows(*sweep)));
  wire::SweepDocument document = wire::document_of(**sweep, clock_.wall());
  if (document.why.empty()) document.why = engine_.state().why_blocked(**sweep, engine_.moment());
  if (identity_.folder_of) {
    const std::string folder =
        base::join_path(identity_.folder_of((*sweep)->plan().job.uid), "sweeps/" + document.name);
    document.results = base::join_path(folder, "results.csv");
    document.curves = base::join_path(folder, "curves");
  }
  net::Response response = respond(200, wire::encode(document));
  response.held = dispatcher_.place();
  call.reply(response);
}

void Sweeps::post(Call& call) {
  Result<wire::SweepRequest> wanted = wire::decode_sweep_request(call.request.body);
  if (!wanted) return call.reply(refuse_words(wanted.error()));
  core::JobSpec& spec = wanted->submit.spec;
  if (!spec.after.empty() || spec.array || spec.deadline || spec.begin || spec.held)
    return call.reply(refuse(
        Error::invalid("a trial has no array, dependency, begin, deadline or hold of its own")));
  spec.uid = call.peer().uid;
  spec.user = name_of_user(spec.uid);
  if (!spec.preemptible) spec.preemptible = identity_.preemptible;
  if (spec.notify.on.empty()) spec.notify.on = identity_.notify.on;
  if (Result<void> r = take_identity(call.peer(), *spec.detached); !r)
    return call.reply(refuse(r.error()));
  wanted->plan.job = std::move(spec);
  // A trial's command is made from the words: they cannot be a content.
  static_assert(core::sweep::kMaxCommand <= wire::kLongCommand);
  Result<core::sweep::Plan> plan = core::sweep::checked(std::move(wanted->plan));
  if (!plan) return call.reply(refuse(plan.error()));
  Contents contents =
      take_contents(plan->job, wanted->submit.environment, std::move(wanted->submit.script));
  const std::string name = plan->name;
  core::StartSweep start{std::make_shared<const core::sweep::Plan>(*std::move(plan)),
                         is_admin(identity_, call.peer())};
  dispatcher_.ask(
      std::move(start),
      [this, responder = call.responder, uid = call.peer().uid, name](engine::Answer done) mutable {
        if (!done.result) return responder.reply(refuse(explained(done.result.error(), machine_)));
        responder.reply(respond(201, rows(engine_.state().sweeps().find(uid, name))));
      },
      std::move(contents));
}

void Sweeps::extend(Call& call) {
  Result<wire::ExtendRequest> wanted = wire::decode_extend_request(call.request.body);
  if (!wanted) return call.reply(refuse_words(wanted.error()));
  if (wanted->trials == 0 && !wanted->space)
    return call.reply(refuse(
        Error::invalid("nothing to extend the sweep by").with_hint("--trials N or --space FILE")));
  core::ChangeSweep change;
  change.kind = core::ChangeSweep::Kind::kExtend;
  change.trials = wanted->trials;
  change.space = std::move(wanted->space);
  ask_to_change(call, std::move(change));
}

void Sweeps::ask_to_change(Call& call, core::ChangeSweep change) {
  const Result<const core::sweep::Sweep*> sweep = named(call);
  if (!sweep) return call.reply(refuse(sweep.error()));
  change.sweep = (*sweep)->number();
  change.by = caller_of(identity_, call.peer());
  const std::uint64_t number = change.sweep;
  dispatcher_.ask(
      std::move(change), [this, responder = call.responder, number](engine::Answer done) mutable {
        responder.reply(done.result ? respond(200, rows(engine_.state().sweeps().find(number)))
                                    : refuse(done.result.error()));
      });
}

}  // namespace mete::serve
