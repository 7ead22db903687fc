// SPDX-License-Identifier: Apache-2.0
// JOB, as `mete ps`, `show` and `wait` have it, and lists of JOBs. A few fields depend on several
// members of the job, or on what an older daemon writes; these have a function each, for a Writer
// and a Reader. Words that are not UTF-8 are shown with U+FFFD: this is for reading, not for
// running.
#include "core/request/gpu.h"
#include "wire/outline.h"
#include "wire/values.h"
#include "wire/wait.h"

namespace mete::wire {

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
      // Not inside a UTF-8 character, in which all bytes but the first are 10xxxxxx.
      while (left > 0 && (static_cast<unsigned char>(word[left]) & 0xc0) == 0x80) --left;
      words.push_back(word.substr(0, left) + "…");
      break;
    }
    words.push_back(word);
    left -= word.size() + 1;
  }
  return words;
}

namespace {

using core::Exit;
using core::Job;
using core::JobId;
using core::JobSpec;

// ---- fields with a function each ---------------------------------------------------------------

void reason_field(Writer& list, const JobView& view) {
  if (view.wait) list.put("reason", view.wait->reason);
}
void reason_field(Reader& list, JobView& /*view*/) { list.fields().mention("reason"); }

// The end of the job as its user sees it. The note is at the end of JOB.
void exit_fields(Writer& list, const Job& job) {
  if (!job.exit) return;
  list.opt("exit_code", job.exit->code);
  list.opt("signal", job.exit->signal);
}
void exit_fields(Reader& list, Job& job) {
  Exit exit;
  list.opt("exit_code", exit.code);
  list.opt("signal", exit.signal);
  list.opt("note", exit.note);
  if (exit != Exit{}) job.exit = std::move(exit);
}
void note_field(Writer& list, const Job& job) {
  if (job.exit) list.opt("note", job.exit->note);
}
void note_field(Reader& /*list*/, Job& /*job*/) {}

// The request of this attempt, without copying all of it.
void asked_field(Writer& list, const Job& job, const JobSpec& spec) {
  gpu_field(list, "request", job.gpu ? job.gpu : spec.request.gpu);
}
void asked_field(Reader& list, Job& /*job*/, JobSpec& spec) {
  Fields& fields = list.fields();
  fields.mention("request_written");
  const std::optional<std::string> text = fields.text_if("request");
  if (!text) return;
  const Result<core::GpuRequest> gpu = core::parse_gpu(*text);
  if (!gpu) return;  // perhaps of a newer daemon
  spec.request.gpu = *gpu;
  read_written(fields, "request", *spec.request.gpu);
}

// A card of the grant, what the job uses of it now and the most that it used.
void held_card(auto& list, auto& card, auto& used, auto& peak) {
  fields_of(list, card);
  list.opt("used_bytes", used);
  list.opt("peak_bytes", peak);
}
void grant_field(Writer& list, const JobView& view) {
  const Job& job = view.job;
  JsonText& out = list.out();
  out.key("grant").open_list();
  for (std::size_t i = 0; i < job.grant.size(); ++i) {
    std::optional<Bytes> used, peak;
    if (i < view.used.size()) used = view.used[i];
    if (job.exit && i < job.exit->peaks.size()) peak = job.exit->peaks[i];
    out.open();
    held_card(list, job.grant[i], used, peak);
    out.close();
  }
  out.close_list();
}
void grant_field(Reader& list, JobView& view) {
  list.elements("grant", "the grant", [&view](Reader& of_card) {
    std::optional<Bytes> peak;
    held_card(of_card, view.job.grant.emplace_back(), view.used.emplace_back(), peak);
    if (peak && view.job.exit) view.job.exit->peaks.push_back(*peak);
  });
}

// Which of these a row has is the daemon's choice; what it has not is absent.
void name_field(Writer& list, const JobView& view, const std::string& name) {
  if (view.row)
    list.opt("name", name);
  else
    list.put("name", name);
}
void name_field(Reader& list, JobView& view, std::string& name) {
  view.row = !list.fields().has("labels") && !list.fields().outlines();
  list.opt("name", name);
  list.check("name", view.row || list.fields().has("name"), "text");
}

void attempt_field(Writer& list, const JobView& view) {
  if (!view.row) list.put("attempt", view.job.attempt);
}
void attempt_field(Reader& list, JobView& view) { list.put("attempt", view.job.attempt); }

void words_fields(Writer& list, const JobView& view, const JobSpec& spec, Words words) {
  if (view.row) {
    if (!spec.command.empty()) list.put("command", listed_command(spec.command));
    return;
  }
  static const std::vector<std::string> kNoWords;
  static const std::map<std::string, std::string> kNoLabels;
  if (words == Words::kSome && !is_listed_whole(spec.command))
    list.put("command", listed_command(spec.command));
  else
    list.put("command", words == Words::kNone ? kNoWords : spec.command);
  list.put("labels", words == Words::kNone ? kNoLabels : spec.labels);
}
void words_fields(Reader& list, JobView& /*view*/, JobSpec& spec, Words /*words*/) {
  list.put("command", spec.command);
  list.put("labels", spec.labels);
}

void all_fields(auto& list, auto& view, auto& spec, Words words) {
  auto& job = view.job;
  list.must("id", job.id);
  name_field(list, view, spec.name);
  list.must("user", spec.user);
  list.must("uid", spec.uid);
  list.must("state", job.state);
  list.opt("outcome", known(job.outcome));
  reason_field(list, view);
  attempt_field(list, view);
  exit_fields(list, job);
  asked_field(list, job, spec);
  list.put("priority", job.priority);
  list.must("submitted_at", job.submitted);
  list.opt("started_at", job.started);
  list.opt("ended_at", job.ended);
  list.opt("idle_since", view.idle_since);
  list.opt("park", object("the park", job.park));
  list.opt("unparkable", object("the refusal", job.unparkable));
  list.opt("growth", known(job.growth));
  list.opt("start_forecast", object("the forecast", view.forecast));
  wait_field(list, view.wait, view.place);
  grant_field(list, view);
  words_fields(list, view, spec, words);
  list.opt("escapes", each("the escape", job.escapes));
  remark_fields(list, view.remark);
  note_field(list, job);
}

}  // namespace

void job_fields(Writer& list, const JobView& view, Words words) {
  all_fields(list, view, *view.job.spec, words);
}

void job_fields(Reader& list, JobView& view, JobSpec& spec) {
  all_fields(list, view, spec, Words::kAll);
}

void fields_of(Writer& list, const JobView& view) { job_fields(list, view); }

void fields_of(Reader& list, JobView& view) {
  JobSpec spec;
  job_fields(list, view, spec);
  view.job.spec = std::move(spec);
}

void jobs_field(Writer& list, const std::vector<JobView>& jobs, Words words) {
  list.elements("jobs", jobs,
                [words](Writer& of_one, const JobView& view) { job_fields(of_one, view, words); });
}

void jobs_field(Reader& list, std::vector<JobView>& jobs, Words /*words*/) {
  list.put("jobs", each("the job", jobs));
}

namespace {

void ps_fields(auto& list, WallTime at, auto& jobs) {
  list.schema("mete.ps/1");
  list.tell("at", at);
  jobs_field(list, jobs, Words::kSome);
}

}  // namespace

std::string encode_ps(const std::vector<JobView>& jobs, WallTime at) {
  JsonText out(jobs.size() * 512);  // untouched pages cost nothing
  Writer list(out);
  out.open();
  ps_fields(list, at, jobs);
  out.close();
  return out.take();
}

Result<std::vector<JobView>> decode_ps(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the list of jobs");
  Reader list(fields);
  std::vector<JobView> jobs;
  ps_fields(list, {}, jobs);
  if (!fields.ok()) return fields.error();
  return jobs;
}

void outline_view(Outlines& all) {
  Fields fields(all["ps"], "");
  Reader list(fields);
  std::vector<JobView> jobs;
  ps_fields(list, {}, jobs);
}

}  // namespace mete::wire
