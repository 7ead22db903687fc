// SPDX-License-Identifier: Apache-2.0
// JOB, as `mete ps`, `show` and `wait` have it (values.h: put_job, job_from), and lists of them.
// Words of people that are no UTF-8 are shown with U+FFFD: this is for reading, not for running.
#include "core/request/gpu.h"
#include "wire/values.h"

namespace mete::wire {

namespace {

using core::Exit;
using core::Job;
using core::JobId;
using core::JobSpec;

void put_wait(JsonText& out, const core::Wait& wait) {
  out.key("wait").open();
  out.put("for", wait.text);
  out.key("holders").open_list();
  for (const JobId id : wait.holders) out.value(to_string(id));
  out.close_list();
  out.close();
}

void put_grant(JsonText& out, const JobView& view) {
  const Job& job = view.job;
  out.key("grant").open_list();
  for (std::size_t i = 0; i < job.grant.size(); ++i) {
    out.open();
    put_card(out, job.grant[i]);
    if (i < view.used.size()) out.put_if("used_bytes", view.used[i]);
    if (job.exit && i < job.exit->peaks.size()) out.put("peak_bytes", job.exit->peaks[i]);
    out.close();
  }
  out.close_list();
}

void put_end(JsonText& out, const Job& job) {
  if (!job.exit) return;
  out.put_if("exit_code", job.exit->code);
  out.put_if("signal", job.exit->signal);
}

// What is asked for in this attempt, without a copy of the whole request.
const std::optional<core::GpuRequest>& asked_by(const Job& job) {
  return job.gpu ? job.gpu : job.spec->request.gpu;
}

core::Wait wait_from(Fields& fields) {
  Fields of_wait(fields.child("wait"), "the wait");
  core::Wait wait;
  wait.reason = reason_of(fields.text_if("reason").value_or("")).value_or(wait.reason);
  wait.text = of_wait.text("for");
  for (const std::string& text : of_wait.texts("holders"))
    if (const Result<JobId> id = core::parse_job_id(text)) wait.holders.push_back(*id);
  if (!of_wait.ok()) fields.fail(of_wait.error());
  return wait;
}

void read_grant(Fields& fields, JobView& view) {
  view.job.grant = cards_from(fields, "grant");
  for (const Json& card : fields.list("grant")) {
    Fields of_card(card, "the grant");
    view.used.push_back(of_card.bytes_if("used_bytes"));
    const std::optional<Bytes> peak = of_card.bytes_if("peak_bytes");
    if (peak && view.job.exit) view.job.exit->peaks.push_back(*peak);
    if (!of_card.ok()) fields.fail(of_card.error());
  }
}

}  // namespace

bool is_listed_whole(const std::vector<std::string>& command) {
  std::size_t bytes = 0;
  for (const std::string& word : command)
    if ((bytes += word.size() + 1) > kListedCommand) return false;
  return true;
}

std::vector<std::string> listed_command(const std::vector<std::string>& command,
                                        std::size_t bytes) {
  if (is_listed_whole(command)) return command;
  std::vector<std::string> words;
  std::size_t left = bytes;
  for (const std::string& word : command) {
    if (word.size() + 1 > left) {
      // Not within a character of UTF-8, of which all bytes but the first are 10xxxxxx.
      while (left > 0 && (static_cast<unsigned char>(word[left]) & 0xc0) == 0x80) --left;
      words.push_back(word.substr(0, left) + "…");
      break;
    }
    words.push_back(word);
    left -= word.size() + 1;
  }
  return words;
}

void put_job(JsonText& out, const JobView& view, Words words) {
  const Job& job = view.job;
  const JobSpec& spec = *job.spec;
  put_id(out, "id", job.id);
  out.put("name", spec.name);
  out.put("user", spec.user);
  out.put("uid", spec.uid);
  out.put("state", to_string(job.state));
  if (job.outcome) out.put("outcome", to_string(*job.outcome));
  if (view.wait) out.put("reason", to_string(view.wait->reason));
  out.put("attempt", job.attempt);
  put_end(out, job);
  put_gpu_if(out, "request", asked_by(job));
  out.put("priority", job.priority);
  out.put("submitted_at", job.submitted);
  out.put_if("started_at", job.started);
  out.put_if("ended_at", job.ended);
  out.put_if("idle_since", view.idle_since);
  if (job.park) {
    out.key("park");
    put_park(out, *job.park);
  }
  if (job.unparkable) {
    out.key("unparkable");
    put_refusal(out, *job.unparkable);
  }
  if (job.growth != core::Growth::kFree) out.put("growth", to_string(job.growth));
  if (view.forecast) {
    out.key("start_forecast");
    put_forecast(out, *view.forecast, Owner::kUnsaid);
  }
  if (view.wait) put_wait(out, *view.wait);
  put_grant(out, view);
  static const std::vector<std::string> kNoWords;
  static const std::map<std::string, std::string> kNoLabels;
  if (words == Words::kSome && !is_listed_whole(spec.command))
    out.put("command", listed_command(spec.command));
  else
    out.put("command", words == Words::kNone ? kNoWords : spec.command);
  out.put("labels", words == Words::kNone ? kNoLabels : spec.labels);
  put_escapes(out, job);
  out.put_if("remark", std::string_view(view.remark));
  if (job.exit) out.put_if("note", std::string_view(job.exit->note));
}

JobView job_from(Fields& fields, JobSpec& spec) {
  JobView view;
  Job& job = view.job;
  job.id = id_from(fields, "id");
  spec.name = fields.text("name");
  spec.user = fields.text("user");
  spec.uid = fields.number<std::uint32_t>("uid");
  spec.command = fields.texts("command");
  spec.labels = fields.text_map("labels");
  job.state = state_from(fields, "state");
  if (const auto text = fields.text_if("outcome")) job.outcome = core::parse_outcome(*text);
  job.attempt = fields.number_if<std::uint32_t>("attempt").value_or(1);
  job.priority = fields.number_if<std::int32_t>("priority").value_or(0);
  job.submitted = fields.time("submitted_at");
  job.started = fields.time_if("started_at");
  job.ended = fields.time_if("ended_at");
  if (const auto text = fields.text_if("request")) {
    if (const Result<core::GpuRequest> gpu = core::parse_gpu(*text)) {
      spec.request.gpu = *gpu;
      read_written(fields, "request", *spec.request.gpu);
    }
  }
  Exit exit;
  exit.code = fields.number_if<int>("exit_code");
  exit.signal = fields.number_if<int>("signal");
  exit.note = fields.text_if("note").value_or("");
  if (exit != Exit{}) job.exit = std::move(exit);
  read_grant(fields, view);
  if (fields.has("park")) job.park = fields.take(park_from(fields.child("park")));
  if (fields.has("unparkable"))
    job.unparkable = fields.take(refusal_from(fields.child("unparkable")));
  if (const auto text = fields.text_if("growth"))
    job.growth = core::parse_growth(*text).value_or(core::Growth::kFree);
  view.idle_since = fields.time_if("idle_since");
  job.escapes = escapes_from(fields);
  view.remark = fields.text_if("remark").value_or("");
  if (fields.has("start_forecast"))
    view.forecast = forecast_from(fields, "start_forecast", Owner::kUnsaid);
  if (fields.has("wait")) view.wait = wait_from(fields);
  return view;
}

Result<JobView> view_from(const Json& json) {
  Fields fields(json, "the job");
  JobSpec spec;
  JobView view = job_from(fields, spec);
  if (!fields.ok()) return fields.error();
  view.job.spec = std::move(spec);
  return view;
}

std::string encode_ps(const std::vector<JobView>& jobs, WallTime at) {
  JsonText out(jobs.size() * 512);  // what is not needed of it is never touched
  out.open();
  out.put("schema", "mete.ps/1");
  out.put("at", at);
  put_jobs(out, jobs, Words::kSome);
  out.close();
  return out.take();
}

Result<std::vector<JobView>> decode_ps(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the list of jobs");
  return jobs_from(fields);
}

void put_jobs(JsonText& out, const std::vector<JobView>& jobs, Words words) {
  out.key("jobs").open_list();
  for (const JobView& view : jobs) {
    out.open();
    put_job(out, view, words);
    out.close();
  }
  out.close_list();
}

Result<std::vector<JobView>> jobs_from(Fields& fields) {
  std::vector<JobView> views;
  for (const Json& element : fields.list("jobs")) {
    Result<JobView> view = view_from(element);
    if (!view) return view.error();
    views.push_back(*std::move(view));
  }
  if (!fields.ok()) return fields.error();
  return views;
}

}  // namespace mete::wire
