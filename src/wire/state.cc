// SPDX-License-Identifier: Apache-2.0
// See state.h, and docs/formats/store.md. A line for each spec and each job after the first, so
// that neither writing nor reading ever holds more than one of them besides the text itself; jobs
// of an array name one spec. The first version was one line, with its jobs inside.
#include "wire/state.h"

#include <algorithm>
#include <map>
#include <set>

#include "wire/values.h"

namespace mete::wire {

namespace {

using core::Attempt;
using core::Job;
using core::JobId;
using core::JobSpec;
using core::JobState;
using core::State;

// ---- a job -------------------------------------------------------------------------------------

void put_attempts(JsonText& out, const std::vector<Attempt>& attempts) {
  out.key("attempts").open_list();
  for (const Attempt& attempt : attempts) {
    out.open();
    out.put("number", attempt.number);
    out.put_if("started_at", attempt.started);
    out.put("ended_at", attempt.ended);
    out.put("outcome", to_string(attempt.outcome));
    put_exit_if(out, "exit", attempt.exit);
    out.close();
  }
  out.close_list();
}

void put_parking(JsonText& out, const Job& job) {
  if (job.park) {
    out.key("park");
    put_park(out, *job.park);
  }
  if (job.parked_ms != 0) out.put("parked_ms", job.parked_ms);
  out.put_if("resumed_at", job.resumed);
  if (!job.stayed.empty()) put_bytes_list(out, "stayed_bytes", job.stayed);
  if (job.unparkable) {
    out.key("unparkable");
    put_refusal(out, *job.unparkable);
  }
  if (job.growth != core::Growth::kFree) out.put("growth", to_string(job.growth));
}

void put_seen(JsonText& out, const Job& job) {
  put_escapes(out, job);
  if (job.idle) {
    out.key("idle").open();
    put_idle(out, *job.idle);
    out.close();
  }
  out.put_if("stopped", std::string_view(job.stopped));
}

void read_seen(Fields& fields, Job& job) {
  job.escapes = escapes_from(fields);
  if (fields.has("idle")) {
    Fields of_idle(fields.child("idle"), "the idle span");
    job.idle = idle_of(of_idle);
    if (!of_idle.ok()) fields.fail(of_idle.error());
  }
  job.stopped = fields.text_if("stopped").value_or("");
}

void read_parking(Fields& fields, Job& job) {
  if (fields.has("park")) job.park = fields.take(park_from(fields.child("park")));
  job.parked_ms = fields.number_if("parked_ms").value_or(0);
  job.resumed = fields.time_if("resumed_at");
  job.stayed = bytes_list_from(fields, "stayed_bytes");
  if (fields.has("unparkable"))
    job.unparkable = fields.take(refusal_from(fields.child("unparkable")));
  if (const auto text = fields.text_if("growth")) {
    const std::optional<core::Growth> growth = core::parse_growth(*text);
    if (!growth) fields.fail("growth", "free, asked or tight");
    job.growth = growth.value_or(core::Growth::kFree);
  }
  const bool away = job.state == JobState::kParking || job.state == JobState::kParked ||
                    job.state == JobState::kUnparking;
  if (away && !job.park)
    fields.fail("park", "there, since the job is " + std::string(to_string(job.state)));
}

void put_whole_job(JsonText& out, const Job& job, std::size_t spec) {
  out.open();
  put_id(out, "id", job.id);
  out.put("spec", spec);
  out.put("state", to_string(job.state));
  out.put("attempt", job.attempt);
  if (job.priority != 0) out.put("priority", job.priority);
  out.flag_if("held", job.held);
  out.put("submitted_at", job.submitted);
  out.put_if("started_at", job.started);
  out.put_if("ended_at", job.ended);
  out.put_if("not_before", job.not_before);
  if (job.put_off) {
    out.key("put_off").open();
    out.key("why").exact(job.put_off->why);
    out.put("times", job.put_off->times);
    out.close();
  }
  if (job.failures != 0) out.put("failures", job.failures);
  if (!job.unmet.empty()) put_after(out, "unmet", job.unmet);
  if (job.outcome) out.put("outcome", to_string(*job.outcome));
  put_exit_if(out, "exit", job.exit);
  put_gpu_if(out, "gpu", job.gpu);
  if (!job.grant.empty()) put_cards(out, "grant", job.grant);
  put_process_if(out, "runner", job.runner);
  put_process_if(out, "program", job.program);
  if (!job.attempts.empty()) put_attempts(out, job.attempts);
  if (job.forecast) {
    out.key("forecast");
    put_forecast(out, *job.forecast, Owner::kSaid);
  }
  out.flag_if("requeue", job.requeue);
  put_parking(out, job);
  put_seen(out, job);
  out.close();
}

std::vector<Attempt> attempts_from(Fields& fields) {
  std::vector<Attempt> attempts;
  for (const Json& element : fields.list("attempts")) {
    Fields of_one(element, "the attempt");
    Attempt attempt;
    attempt.number = of_one.number<std::uint32_t>("number");
    attempt.started = of_one.time_if("started_at");
    attempt.ended = of_one.time("ended_at");
    attempt.outcome = outcome_from(of_one, "outcome");
    attempt.exit = exit_if(of_one, "exit");
    if (!of_one.ok()) fields.fail(of_one.error());
    attempts.push_back(std::move(attempt));
  }
  return attempts;
}

// What the first version has inside the job, later ones have before it.
core::SharedSpec shared_spec(Fields& fields, const std::vector<core::SharedSpec>& specs) {
  if (fields.child("spec").is_object())
    return fields.take(spec_from(fields.child("spec"), Owner::kSaid));
  const auto at = fields.number<std::size_t>("spec");
  if (at < specs.size()) return specs[at];
  fields.fail("spec", "one that is there");
  return {};
}

Result<Job> whole_job_from(const Json& json, const std::vector<core::SharedSpec>& specs) {
  Fields fields(json, "the job");
  Job job;
  job.id = id_from(fields, "id");
  job.spec = shared_spec(fields, specs);
  job.state = state_from(fields, "state");
  job.attempt = fields.number<std::uint32_t>("attempt");
  job.priority = fields.number_if<std::int32_t>("priority").value_or(0);
  job.held = fields.flag("held");
  job.submitted = fields.time("submitted_at");
  job.started = fields.time_if("started_at");
  job.ended = fields.time_if("ended_at");
  job.not_before = fields.time_if("not_before");
  if (fields.has("put_off")) {
    Fields put_off(fields.child("put_off"), "what put the job off");
    job.put_off = core::PutOff{put_off.exact("why"), put_off.number<std::uint32_t>("times")};
    if (!put_off.ok()) fields.fail(put_off.error());
  }
  job.failures = fields.number_if<std::uint32_t>("failures").value_or(0);
  job.unmet = after_from(fields, "unmet");
  if (fields.has("outcome")) job.outcome = outcome_from(fields, "outcome");
  if (!job.outcome && (job.state == JobState::kStopping || job.state == JobState::kEnded))
    fields.fail("outcome", "there, since the job is " + std::string(to_string(job.state)));
  job.exit = exit_if(fields, "exit");
  job.gpu = gpu_if(fields, "gpu");
  job.grant = cards_from(fields, "grant");
  job.runner = process_if(fields, "runner");
  job.program = process_if(fields, "program");
  job.attempts = attempts_from(fields);
  if (fields.has("forecast")) job.forecast = forecast_from(fields, "forecast", Owner::kSaid);
  job.requeue = fields.flag("requeue");
  read_parking(fields, job);
  read_seen(fields, job);
  if (!fields.ok()) return fields.error();
  return job;
}

// ---- all the rest: the first line --------------------------------------------------------------

void put_rules(JsonText& out, const State::Parts& parts) {
  out.put("lost", parts.lost);
  out.key("drained").open_list();
  for (const auto& [card, by] : parts.drained) {
    out.open();
    out.put("card", card);
    out.put("by", by);
    out.close();
  }
  out.close_list();
  out.key("quotas").open_list();
  for (const auto& [user, quota] : parts.quotas) {
    out.open();
    out.put("user", user);
    put_quota(out, quota);
    out.close();
  }
  out.close_list();
  out.key("reservations").open_list();
  for (const core::Reservation& reservation : parts.reservations) {
    out.open();
    put_reservation(out, reservation);
    out.close();
  }
  out.close_list();
}

void put_learned(JsonText& out, const State::Parts& parts) {
  out.key("arrays").open_list();
  for (const State::Parts::ArrayPart& array : parts.arrays) {
    out.open();
    out.put("number", array.number);
    out.put("failed", array.failed);
    out.close();
  }
  out.close_list();
  out.key("usage").open_list();
  for (const core::FairShare::Entry& entry : parts.usage) {
    out.open();
    out.key("user").exact(entry.user);
    out.put("mib_seconds", entry.mib_seconds);
    out.put("at", entry.at);
    out.close();
  }
  out.close_list();
  out.key("estimates").open_list();
  for (const core::Estimates::Entry& entry : parts.estimates) {
    out.open();
    out.key("key").exact(entry.key);
    out.key("durations_s").open_list();
    for (const std::uint32_t seconds : entry.durations_s) out.value(seconds);
    out.close_list();
    out.close();
  }
  out.close_list();
  out.key("forecasts").open();
  out.put("given", parts.score.given);
  out.put("held", parts.score.held);
  out.put("factor_milli", parts.score.factor_milli);
  out.close();
}

void read_rules(Fields& fields, State::Parts& parts) {
  parts.lost = fields.texts("lost");
  for (const Json& element : fields.list("drained")) {
    Fields of_one(element, "the drained card");
    parts.drained[of_one.text("card")] = of_one.text("by");
    if (!of_one.ok()) fields.fail(of_one.error());
  }
  for (const Json& element : fields.list("quotas")) {
    Fields of_one(element, "the quota");
    parts.quotas[of_one.text("user")] = quota_from(of_one);
    if (!of_one.ok()) fields.fail(of_one.error());
  }
  for (const Json& element : fields.list("reservations")) {
    parts.reservations.push_back(fields.take(reservation_from(element)));
    if (parts.reservations.back().id > parts.last_reservation)
      fields.fail("last_reservation", "the last one's");
  }
}

void read_learned(Fields& fields, State::Parts& parts) {
  for (const Json& element : fields.list("arrays")) {
    Fields of_one(element, "the array");
    parts.arrays.push_back({of_one.number("number"), of_one.number("failed")});
    if (!of_one.ok()) fields.fail(of_one.error());
  }
  for (const Json& element : fields.list("usage")) {
    Fields of_one(element, "the usage");
    parts.usage.push_back({of_one.exact("user"), of_one.number("mib_seconds"), of_one.time("at")});
    if (!of_one.ok()) fields.fail(of_one.error());
  }
  for (const Json& element : fields.list("estimates")) {
    Fields of_one(element, "the estimate");
    core::Estimates::Entry entry{of_one.exact("key"), {}};
    for (const Json& seconds : of_one.list("durations_s")) {
      const bool fits = seconds.is_number_unsigned() && seconds.get<std::uint64_t>() <= UINT32_MAX;
      if (fits) entry.durations_s.push_back(seconds.get<std::uint32_t>());
      if (!fits) of_one.fail("durations_s", "a list of numbers");
    }
    if (!of_one.ok()) fields.fail(of_one.error());
    parts.estimates.push_back(std::move(entry));
  }
  if (!fields.has("forecasts")) return;
  Fields score(fields.child("forecasts"), "the forecasts");
  parts.score = {score.number("given"), score.number("held"),
                 score.number<std::uint32_t>("factor_milli")};
  if (!score.ok()) fields.fail(score.error());
}

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

// One that two of them claim to be, or that is not given out yet, cannot be taken up.
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

// Written before there were specs, states and numbers in a snapshot: {"jobs":[{"id":"1"}]}.
bool is_of_the_first_days(const Json& json) {
  return json.is_object() && !json.contains("schema") && !json.contains("last_seq") &&
         json.contains("jobs") && json["jobs"].is_array();
}

std::uint64_t last_of(Fields& fields) {
  std::uint64_t last = 0;
  for (const Json& element : fields.list("jobs")) {
    Fields of_one(element, "the job");
    last = std::max(last, id_from(of_one, "id").number);
  }
  return last;
}

// All that is known of such a job is its number: its runner did not outlive its daemon. It is
// nobody's, and ends as lost.
Result<Job> job_of_the_first_days(const Json& json) {
  Fields fields(json, "the job");
  Job job;
  job.id = id_from(fields, "id");
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

Result<void> read_lines(Lines& lines, std::size_t specs_left, State::Parts& parts) {
  std::vector<core::SharedSpec> specs;
  Jobs jobs(parts);
  while (!lines.done()) {
    const Result<Json> json = lines.next();
    if (!json) return json.error();
    if (specs_left != 0) {
      --specs_left;
      Result<JobSpec> spec = spec_from(*json, Owner::kSaid);
      if (!spec) return spec.error();
      specs.emplace_back(*std::move(spec));
    } else if (Result<void> added = jobs.add(whole_job_from(*json, specs)); !added) {
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
  out.open();
  out.put("schema", "mete.state/2");
  out.put("last_seq", parts.last_seq);
  out.put("last_job", parts.last_job);
  out.put("last_reservation", parts.last_reservation);
  out.put("boot_id", parts.boot_id);
  put_rules(out, parts);
  put_learned(out, parts);
  out.put("specs", in_order.size());
  out.put("jobs", parts.jobs.size());
  out.close();
  for (const JobSpec* spec : in_order) {
    out.line();
    put_spec(out, *spec, Owner::kSaid);
  }
  for (const Job& job : parts.jobs) {
    out.line();
    put_whole_job(out, job, specs.at(&*job.spec));
  }
  return out.take();
}

Result<State::Parts> decode_parts(std::string_view text, std::uint64_t of_event) {
  Lines lines(text);
  const Result<Json> first = lines.next();
  if (!first) return first.error();
  Fields fields(*first, "the snapshot");
  State::Parts parts;
  const bool first_days = is_of_the_first_days(*first);
  parts.last_seq = first_days ? of_event : fields.number("last_seq");
  parts.last_job = first_days ? last_of(fields) : fields.number("last_job");
  parts.last_reservation = fields.number_if("last_reservation").value_or(0);
  parts.boot_id = fields.text_if("boot_id").value_or("");
  read_rules(fields, parts);
  read_learned(fields, parts);
  if (fields.child("jobs").is_array()) {  // version 1
    Jobs jobs(parts);
    for (const Json& element : fields.list("jobs"))
      if (Result<void> added =
              jobs.add(first_days ? job_of_the_first_days(element) : whole_job_from(element, {}));
          !added)
        return std::move(added).error();
  } else {
    const auto count = fields.number<std::size_t>("jobs");
    Result<void> read = read_lines(lines, fields.number<std::size_t>("specs"), parts);
    if (!read) return std::move(read).error();
    if (parts.jobs.size() != count) fields.fail("jobs", "the number of those that follow");
  }
  if (!fields.ok()) return fields.error();
  return parts;
}

}  // namespace mete::wire
