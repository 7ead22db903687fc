// SPDX-License-Identifier: Apache-2.0
// See runners.h. Reports are inputs of the engine, from the job's own runner only: reports of other
// processes would give away bytes that are in use.
#include "serve/runners.h"

#include <utility>

#include "base/text.h"
#include "serve/reply.h"
#include "wire/sweep.h"

namespace mete::serve {

void Runners::get(Call& call) {
  const core::Job* job = engine_.state().find(call.job);
  const std::string* tag = call.request.parameter("tag");
  // A runner asks for its own job only: a runner whose daemon has lost its state must not take the
  // job of another run, which has the same number now, for its own.
  const bool not_its_own =
      tag != nullptr && job != nullptr && job->runner && job->runner->pid != call.peer().pid;
  if (job == nullptr || not_its_own) return call.reply(refuse(no_such_job(call.job)));
  if (tag == nullptr) tag = call.request.parameter("since");
  if (tag == nullptr && !engine_.settled()) return call.reply(refuse(not_on_disk()));
  if (tag == nullptr || (engine_.settled() && *tag != views_.tag_of(*job)))
    return call.reply(views_.runner_reply(call.job, 200));
  waiters_.wait_for_change(call.job, *tag, call.peer().uid, call.responder);
}

// A runner whose daemon did not answer in time reports its newer state on another connection: the
// earlier report must not take effect after that.
bool Runners::is_overtaken(core::JobId id, const net::Request& request) {
  const std::string* text = request.parameter("order");
  if (text == nullptr) return false;
  const Result<std::uint64_t> order = base::parse_uint(*text);
  if (!order) return false;
  std::erase_if(last_order_, [this](const auto& known) {
    const core::Job* job = engine_.state().find(known.first);
    return job == nullptr || job->state == core::JobState::kEnded;
  });
  std::uint64_t& last = last_order_[id];
  if (*order < last) return true;
  last = *order;
  return false;
}

bool Runners::may_report(Call& call, Report report) {
  const core::Job* job = engine_.state().find(call.job);
  if (job == nullptr) return true;  // an array: the engine refuses it
  // A keeper leaves the start and the end of its job in its record.
  const bool by_file = job->spec->detached && report == Report::kLife;
  if (by_file || (job->runner && job->runner->pid != call.peer().pid)) {
    call.reply(
        refuse(Error::denied("only its own parent reports on job " + to_string(call.job))
                   .with_evidence("process " + std::to_string(call.peer().pid) + " asks, not " +
                                  (job->runner ? "process " + std::to_string(job->runner->pid)
                                               : std::string("its keeper")))));
    return false;
  }
  if (report != Report::kMemory || !is_overtaken(call.job, call.request)) return true;
  call.reply(engine_.settled() ? views_.runner_reply(call.job, 200) : refuse(not_on_disk()));
  return false;
}

void Runners::ask(Call& call, core::Input input) {
  dispatcher_.ask(std::move(input),
                  [this, responder = call.responder](engine::Answer done) mutable {
                    responder.reply(done.result ? views_.runner_reply(*done.result, 200)
                                                : refuse(done.result.error()));
                  });
}

void Runners::started(Call& call) {
  if (!may_report(call, Report::kLife)) return;
  const Result<wire::StartReport> start = wire::decode_start(call.request.body);
  if (!start) return call.reply(refuse_words(start.error()));
  ask(call, core::Started{call.job, call.peer().uid, start->program, start->ago_ms});
}

void Runners::ended(Call& call) {
  if (!may_report(call, Report::kLife)) return;
  const Result<wire::EndReport> end = wire::decode_end(call.request.body);
  if (!end) return call.reply(refuse_words(end.error()));
  core::Ended ended{call.job, call.peer().uid, end->exit};
  if (end->start) {
    ended.program = end->start->program;
    ended.ago_ms = end->start->ago_ms;
  }
  ask(call, std::move(ended));
}

void Runners::parked(Call& call) {
  if (!may_report(call, Report::kMemory)) return;
  Result<wire::ParkReport> report = wire::decode_park_report(call.request.body);
  if (!report) return call.reply(refuse_words(report.error()));
  if (report->parked && engine_.state().find(call.job) != nullptr)
    cards_.doubt(call.job, report->held);
  ask(call, core::ParkReport{call.job, call.peer().uid, report->parked, std::move(report->held),
                             report->moved, std::move(report->why), report->standing, report->wakes,
                             report->on_disk});
}

void Runners::grow(Call& call) {
  if (!may_report(call, Report::kMemory)) return;
  Result<std::vector<Bytes>> wanted = wire::decode_wanted(call.request.body);
  if (!wanted) return call.reply(refuse_words(wanted.error()));
  ask(call, core::Grow{call.job, call.peer().uid, *std::move(wanted)});
}

// A report that arrives twice changes nothing: what was reached at a rung stays.
void Runners::metrics(Call& call) {
  if (!may_report(call, Report::kMetrics)) return;
  Result<wire::MetricsReport> report = wire::decode_metrics_report(call.request.body);
  if (!report) return call.reply(refuse_words(report.error()));
  ask(call, core::TrialReport{call.job, call.peer().uid, std::move(report->points)});
}

}  // namespace mete::serve
