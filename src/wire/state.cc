// SPDX-License-Identifier: Apache-2.0
// See state.h, and docs/formats/store.md. The first line has everything but jobs and sweeps; then
// each spec, job and sweep is a line, so that writing and reading hold only one of them besides the
// text.
// Jobs of an array refer to one spec. Version 1 was a single line, with the jobs inside.
#include "wire/state.h"

#include <algorithm>
#include <map>
#include <set>

#include "wire/sweep_plan.h"
#include "wire/values.h"

namespace mete::wire {

using core::Job;
using core::JobId;
using core::JobSpec;
using core::JobState;
using core::State;

// ---- a job -------------------------------------------------------------------------------------

void fields_of(auto& list, Is<core::Attempt> auto& attempt) {
  list.must("number", attempt.number);
  list.opt("started_at", attempt.started);
  list.must("ended_at", attempt.ended);
  list.must("outcome", attempt.outcome);
  list.opt("exit", object("the end", attempt.exit));
}

void fields_of(auto& list, Is<core::PutOff> auto& put_off) {
  list.must("why", exact(put_off.why));
  list.must("times", put_off.times);
}

namespace {

using Specs = std::vector<core::SharedSpec>;

// A job refers to its spec by the number of its line among the specs. Version 1 has it inside.
void spec_field(Writer& list, const Job& /*job*/, std::size_t spec) { list.put("spec", spec); }
void spec_field(Reader& list, Job& job, const Specs& specs) {
  if (list.fields().child("spec").is_object())
    return list.must("spec", object("the job", job.spec));
  const auto at = list.fields().number<std::size_t>("spec");
  list.check("spec", at < specs.size(), "one that is there");
  if (at < specs.size()) job.spec = specs[at];
}

void parking_fields(auto& list, auto& job) {
  list.opt("park", object("the park", job.park));
  list.opt("parked_ms", job.parked_ms);
  list.opt("resumed_at", job.resumed);
  list.opt("stayed_bytes", job.stayed);
  list.opt("unparkable", object("the refusal", job.unparkable));
  list.opt("growth", job.growth);
  const bool away = job.state == JobState::kParking || job.state == JobState::kParked ||
                    job.state == JobState::kUnparking;
  if (away && !job.park)
    list.check("park", false, "there, since the job is " + std::string(to_string(job.state)));
}

// `spec` is where a Writer says the spec is, and where a Reader finds it.
void job_of_state(auto& list, auto& job, const auto& spec) {
  list.must("id", job.id);
  spec_field(list, job, spec);
  list.must("state", job.state);
  list.must("attempt", job.attempt);
  list.opt("priority", job.priority);
  list.opt("held", job.held);
  list.must("submitted_at", job.submitted);
  list.opt("started_at", job.started);
  list.opt("ended_at", job.ended);
  list.opt("not_before", job.not_before);
  list.opt("put_off", object("what put the job off", job.put_off));
  list.opt("failures", job.failures);
  list.opt("unmet", each("a job to come after", job.unmet));
  list.opt("outcome", job.outcome);
  const bool over = job.state == JobState::kStopping || job.state == JobState::kEnded;
  if (over && !job.outcome)
    list.check("outcome", false, "there, since the job is " + std::string(to_string(job.state)));
  list.opt("exit", object("the end", job.exit));
  gpu_field(list, "gpu", job.gpu);
  list.opt("grant", each("the grant", job.grant));
  list.opt("runner", object("the process", job.runner));
  list.opt("program", object("the process", job.program));
  list.opt("attempts", each("the attempt", job.attempts));
  list.opt("forecast", object("the forecast", job.forecast));
  list.opt("requeue", job.requeue);
  parking_fields(list, job);
  list.opt("escapes", each("the escape", job.escapes));
  list.opt("idle", object("the idle span", job.idle));
  list.opt("stopped", job.stopped);
}

Result<Job> job_from(const Json& json, const Specs& specs) {
  Fields fields(json, "the job");
  Reader list(fields, Owner::kSaid);
  Job job;
  job_of_state(list, job, specs);
  if (!fields.ok()) return fields.error();
  return job;
}

}  // namespace

// ---- the first line: all but the jobs ----------------------------------------------------------

void fields_of(auto& list, Is<State::Parts::ArrayPart> auto& array) {
  list.must("number", array.number);
  list.must("failed", array.failed);
}

void fields_of(auto& list, Is<core::FairShare::Entry> auto& entry) {
  list.must("user", exact(entry.user));
  list.must("mib_seconds", entry.mib_seconds);
  list.must("at", entry.at);
}

void fields_of(auto& list, Is<core::Estimates::Entry> auto& entry) {
  list.must("key", exact(entry.key));
  list.put("durations_s", entry.durations_s);
}

void fields_of(auto& list, Is<core::ForecastScore> auto& score) {
  list.must("given", score.given);
  list.must("held", score.held);
  list.must("factor_milli", score.factor_milli);
}

void fields_of(auto& list, Is<State::Parts> auto& parts) {
  list.put("last_reservation", parts.last_reservation);
  list.put("boot_id", parts.boot_id);
  list.put("lost", parts.lost);
  list.put("drained",
           entries("the drained card", parts.drained, [](auto& of_one, auto& card, auto& by) {
             of_one.must("card", card);
             of_one.must("by", by);
           }));
  list.put("quotas", entries("the quota", parts.quotas, [](auto& of_one, auto& user, auto& quota) {
             of_one.must("user", user);
             fields_of(of_one, quota);
           }));
  list.put("reservations", each("the reservation", parts.reservations));
  for (const core::Reservation& reservation : parts.reservations)
    list.check("last_reservation", reservation.id <= parts.last_reservation, "the last one's");
  list.put("arrays", each("the array", parts.arrays));
  list.put("usage", each("the usage", parts.usage));
  list.put("estimates", each("the estimate", parts.estimates));
  list.put("forecasts", object("the forecasts", parts.score));
}

namespace {

// ---- the lines ---------------------------------------------------------------------------------

class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  Result<Json> next() {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    Result<Json> line = parse_json(rest_.substr(0, end));
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return line;
  }

 private:
  std::string_view rest_;
};

// A job number that occurs twice, or that is not given out yet, makes the snapshot corrupt.
class Jobs {
 public:
  explicit Jobs(State::Parts& parts) : parts_(parts) {}
  Result<void> add(Result<Job> job) {
    if (!job) return std::move(job).error();
    if (job->id.number > parts_.last_job || !ids_.insert(job->id).second)
      return Error::corrupt("the snapshot: there cannot be a job " + to_string(job->id));
    parts_.jobs.push_back(*std::move(job));
    return {};
  }

 private:
  State::Parts& parts_;
  std::set<JobId> ids_;
};

// Written before snapshots had specs, states and numbers: {"jobs":[{"id":"1"}]}.
bool is_of_the_first_days(const Json& json) {
  return json.is_object() && !json.contains("schema") && !json.contains("last_seq") &&
         json.contains("jobs") && json["jobs"].is_array();
}

std::uint64_t last_of(Fields& fields) {
  std::uint64_t last = 0;
  for (const Json& element : fields.list("jobs")) {
    const Result<JobId> id = core::parse_job_id(Fields(element, "the job").text("id"));
    if (id) last = std::max(last, id->number);
  }
  return last;
}

// Only the number of such a job is known: its runner did not outlive its daemon. It has no user,
// and ends as lost.
Result<Job> job_of_the_first_days(const Json& json) {
  Fields fields(json, "the job");
  Job job;
  Reader(fields).must("id", job.id);
  JobSpec spec;
  spec.name = "unknown";
  spec.user = "nobody";
  spec.uid = UINT32_MAX;
  job.spec = std::move(spec);
  job.state = JobState::kStopping;
  job.outcome = core::Outcome::kLost;
  if (!fields.ok()) return fields.error();
  return job;
}

Result<void> read_lines(Lines& lines, std::size_t specs_left, std::size_t jobs_left,
                        State::Parts& parts) {
  Specs specs;
  Jobs jobs(parts);
  while (!lines.done()) {
    const Result<Json> json = lines.next();
    if (!json) return json.error();
    if (specs_left != 0) {
      --specs_left;
      Result<JobSpec> spec = from_json<JobSpec>(*json, "the job", Unknown::kIgnored, Owner::kSaid);
      if (!spec) return spec.error();
      specs.emplace_back(*std::move(spec));
    } else if (parts.jobs.size() == jobs_left) {
      Result<core::sweep::Sweep::Parts> sweep = decode_sweep_parts(*json);
      if (!sweep) return std::move(sweep).error();
      if (sweep->number > parts.last_sweep ||
          (!parts.sweeps.empty() && sweep->number <= parts.sweeps.back().number))
        return Error::corrupt("the snapshot: there cannot be a sweep " +
                              std::to_string(sweep->number));
      parts.sweeps.push_back(*std::move(sweep));
    } else if (Result<void> added = jobs.add(job_from(*json, specs)); !added) {
      return added;
    }
  }
  return {};
}

}  // namespace

std::string encode(const State::Parts& parts) {
  std::map<const JobSpec*, std::size_t> specs;
  std::vector<const JobSpec*> in_order;
  for (const Job& job : parts.jobs)
    if (specs.emplace(&*job.spec, specs.size()).second) in_order.push_back(&*job.spec);
  JsonText out(parts.jobs.size() * 128 + in_order.size() * 512);
  Writer list(out, Owner::kSaid);
  out.open();
  list.schema("mete.state/2");
  list.put("last_seq", parts.last_seq);
  list.put("last_job", parts.last_job);
  fields_of(list, parts);
  list.put("specs", in_order.size());
  list.put("jobs", parts.jobs.size());
  list.opt("last_sweep", parts.last_sweep);
  list.opt("sweeps", parts.sweeps.size());
  out.close();
  for (const JobSpec* spec : in_order) {
    out.line();
    list.write_object(*spec);
  }
  for (const Job& job : parts.jobs) {
    out.line();
    out.open();
    job_of_state(list, job, specs.at(&*job.spec));
    out.close();
  }
  for (const core::sweep::Sweep::Parts& sweep : parts.sweeps) {
    out.line();
    out.raw(encode(sweep));
  }
  return out.take();
}

Result<State::Parts> decode_parts(std::string_view text, std::uint64_t of_event) {
  Lines lines(text);
  const Result<Json> first = lines.next();
  if (!first) return first.error();
  Fields fields(*first, "the snapshot");
  Reader list(fields, Owner::kSaid);
  State::Parts parts;
  const bool first_days = is_of_the_first_days(*first);
  parts.last_seq = first_days ? of_event : fields.number("last_seq");
  parts.last_job = first_days ? last_of(fields) : fields.number("last_job");
  fields_of(list, parts);
  if (fields.child("jobs").is_array()) {  // version 1
    Jobs jobs(parts);
    for (const Json& element : fields.list("jobs"))
      if (Result<void> added =
              jobs.add(first_days ? job_of_the_first_days(element) : job_from(element, {}));
          !added)
        return std::move(added).error();
  } else {
    const auto count = fields.number<std::size_t>("jobs");
    parts.last_sweep = fields.number_if("last_sweep").value_or(0);
    const std::size_t sweeps = fields.number_if<std::size_t>("sweeps").value_or(0);
    Result<void> read = read_lines(lines, fields.number<std::size_t>("specs"), count, parts);
    if (!read) return std::move(read).error();
    if (parts.jobs.size() != count) fields.fail("jobs", "the number of lines that follow");
    if (parts.sweeps.size() != sweeps) fields.fail("sweeps", "the number of lines that follow");
  }
  if (!fields.ok()) return fields.error();
  return parts;
}

}  // namespace mete::wire
