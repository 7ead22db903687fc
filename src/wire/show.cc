// SPDX-License-Identifier: Apache-2.0
// See show.h. The document has the spec in several of its fields, which are read back into one
// spec. The present attempt, which the job has in other fields, is shown as the last of the
// attempts.
#include "wire/show.h"

#include <algorithm>

#include "wire/outline.h"
#include "wire/values.h"

namespace mete::wire {

namespace {

using core::Attempt;
using core::Exit;
using core::Job;
using core::JobSpec;

struct ShownAttempt {
  std::uint32_t number = 1;
  std::optional<WallTime> started;
  std::optional<WallTime> ended;
  std::optional<core::Outcome> outcome;
  std::optional<int> exit_code = {};
  std::optional<int> signal = {};
  std::optional<Bytes> peak = {};  // maximum over its cards, since a share is requested on each
  std::optional<std::uint64_t> ran_s = {};
  std::string note = {};
};

void take_exit(ShownAttempt& shown, const std::optional<Exit>& exit) {
  if (!exit) return;
  shown.exit_code = exit->code;
  shown.signal = exit->signal;
  if (!exit->peaks.empty()) shown.peak = *std::max_element(exit->peaks.begin(), exit->peaks.end());
  if (exit->ran_ms) shown.ran_s = *exit->ran_ms / 1000;
  shown.note = exit->note;
}

std::vector<ShownAttempt> attempts_of(const Job& job) {
  std::vector<ShownAttempt> all;
  for (const Attempt& attempt : job.attempts) {
    all.push_back({attempt.number, attempt.started, attempt.ended, attempt.outcome});
    take_exit(all.back(), attempt.exit);
  }
  if (job.started || job.ended) {  // the present attempt, which readers look for here
    all.push_back({job.attempt, job.started, job.ended, job.ended ? job.outcome : std::nullopt});
    take_exit(all.back(), job.exit);
  }
  return all;
}

Exit exit_of(const ShownAttempt& shown) {
  Exit exit;
  exit.code = shown.exit_code;
  exit.signal = shown.signal;
  if (shown.peak) exit.peaks = {*shown.peak};
  if (shown.ran_s) exit.ran_ms = *shown.ran_s * 1000;
  exit.note = shown.note;
  return exit;
}

}  // namespace

void fields_of(auto& list, Is<ShownAttempt> auto& attempt) {
  list.must("n", attempt.number);
  list.opt("started_at", attempt.started);
  list.opt("ended_at", attempt.ended);
  list.opt("outcome", known(attempt.outcome));
  list.opt("exit_code", attempt.exit_code);
  list.opt("signal", attempt.signal);
  list.opt("peak_bytes", attempt.peak);
  list.opt("ran_s", attempt.ran_s);
  list.check("ran_s", attempt.ran_s.value_or(0) <= UINT32_MAX,
             "a whole number of bearable size, not negative");
  list.opt("note", attempt.note);
}

void fields_of(auto& list, Is<ShowDocument::Process> auto& process) {
  list.must("pid", process.pid);
  list.opt("used_bytes", process.used);
}

void fields_of(auto& list, Is<ShowDocument::Advice> auto& advice) {
  list.must("gpu", advice.gpu);
  list.must("why", advice.why);
}

namespace {

void attempts_field(Writer& list, const Job& job) {
  const std::vector<ShownAttempt> attempts = attempts_of(job);
  list.put("attempts", each("the attempt", attempts));
}
void attempts_field(Reader& list, Job& job) {
  list.elements("attempts", "the attempt", [&job](Reader& of_one) {
    ShownAttempt shown;
    fields_of(of_one, shown);
    Exit exit = exit_of(shown);
    if (shown.number == job.attempt) {  // the present attempt: what JOB does not have
      if (exit.ran_ms && job.exit) job.exit->ran_ms = exit.ran_ms;
      return;
    }
    of_one.check("ended_at", shown.ended.has_value(), "a time");
    of_one.there("outcome", "text");
    of_one.check("outcome", shown.outcome.has_value(), "an outcome");
    job.attempts.push_back({shown.number,
                            shown.started,
                            shown.ended.value_or(WallTime{}),
                            shown.outcome.value_or(core::Outcome::kLost),
                            {}});
    if (exit != Exit{}) job.attempts.back().exit = std::move(exit);
  });
}

// Each with whether it is met.
void after_field(Writer& list, const Job& job, const JobSpec& spec) {
  list.elements("after", spec.after, [&job](Writer& of_one, const core::After& after) {
    fields_of(of_one, after);
    of_one.put("met", std::find(job.unmet.begin(), job.unmet.end(), after) == job.unmet.end());
  });
}
void after_field(Reader& list, Job& job, JobSpec& spec) {
  list.elements("after", "a job to come after", [&](Reader& of_one) {
    core::After after;
    fields_of(of_one, after);
    bool met = false;
    of_one.put("met", met);
    spec.after.push_back(after);
    if (!met) job.unmet.push_back(after);
  });
}

void detached_fields(Writer& list, const JobSpec& spec) {
  list.opt("detached", spec.detached.has_value());
  list.opt("tty", spec.detached && spec.detached->tty);
}
void detached_fields(Reader& list, JobSpec& spec) {
  bool detached = false, tty = false;
  list.opt("detached", detached);
  list.opt("tty", tty);
  if (detached) spec.detached.emplace().tty = tty;
}

void asked_fields(auto& list, auto& spec) {
  place_fields(list, spec.request);
  list.inside("limits", "the limits", [&spec](auto& limits) {
    limits.opt("time_s", spec.time_s);
    limits.opt("cpus", spec.request.cpus);
    limits.opt("ram_bytes", spec.request.ram);
  });
  list.opt("retries", spec.retries);
  list.opt("retry_gpu_pct", spec.retry_gpu_pct);
  list.opt("requeue", spec.requeue);
  list.opt("begin", spec.begin);
  list.opt("deadline", spec.deadline);
  detached_fields(list, spec);
}

void more_fields(auto& list, auto& document, auto& spec) {
  auto& job = document.view.job;
  list.must("cwd", spec.folder);
  list.opt("log", document.log);
  list.opt("err", document.err);
  list.inside_if(spec.array.has_value(), "array", "the array", [&](auto& array) {
    array.tell("id", std::to_string(job.id.number));
    array.must("elements", spec.array);
    array.tell("element", job.id.element);
    array.opt("states", document.elements);
  });
  after_field(list, job, spec);
  asked_fields(list, spec);
  list.opt("held", job.held);
  list.opt("not_before", job.not_before);
  list.put("environment", document.environment);
  attempts_field(list, job);
  list.put("processes", each("the process", document.processes));
  list.opt("advice", object("the advice", document.advice));
  list.opt("notify", document.notify);
  list.put("notes", document.notes);
}

}  // namespace

void fields_of(Writer& list, const ShowDocument& document) {
  list.schema("mete.show/1");
  list.put("at", document.at);
  list.inside("job", "the job", [&document](Writer& job) {
    job_fields(job, document.view);
    more_fields(job, document, *document.view.job.spec);
  });
}
void fields_of(Reader& list, ShowDocument& document) {
  list.schema("mete.show/1");
  list.must("at", document.at);
  list.inside("job", "the job", [&document](Reader& job) {
    JobSpec spec;
    job_fields(job, document.view, spec);
    more_fields(job, document, spec);
    document.view.job.spec = std::move(spec);
  });
}

std::string encode(const ShowDocument& document) { return to_json(document); }
Result<ShowDocument> decode_show(std::string_view text) {
  return decode<ShowDocument>(text, "the answer");
}

std::vector<std::string> environment_names(std::string_view blob) {
  std::vector<std::string> names;
  while (!blob.empty()) {
    const std::size_t end = std::min(blob.find('\0'), blob.size());
    const std::string_view entry = blob.substr(0, end);
    names.emplace_back(entry.substr(0, entry.find('=')));
    blob.remove_prefix(std::min(end + 1, blob.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void outline_show(Outlines& all) { outline<ShowDocument>(all["show"]); }

}  // namespace mete::wire
