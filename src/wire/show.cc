// SPDX-License-Identifier: Apache-2.0
// See show.h.
#include "wire/show.h"

#include <algorithm>

#include "wire/values.h"

namespace mete::wire {

namespace {

using core::Attempt;
using core::Job;
using core::JobSpec;

// ---- writing -----------------------------------------------------------------------------------

void put_asked(JsonText& out, const JobSpec& spec) {
  const core::Request& request = spec.request;
  if (!request.devices.empty()) out.put("devices", request.devices);
  out.put_if("gpu_type", request.gpu_type);
  if (request.where) out.put("where", request.where->text());
  if (request.procs != 1) out.put("procs", request.procs);
  out.flag_if("or_cpu", request.or_cpu);
  out.key("limits").open();
  out.put_if("time_s", spec.time_s);
  out.put_if("cpus", request.cpus);
  out.put_if("ram_bytes", request.ram);
  out.close();
  if (spec.retries != 0) out.put("retries", spec.retries);
  out.put_if("retry_gpu_pct", spec.retry_gpu_pct);
  out.flag_if("requeue", spec.requeue);
  out.put_if("begin", spec.begin);
  out.put_if("deadline", spec.deadline);
  out.flag_if("detached", spec.detached.has_value());
  out.flag_if("tty", spec.detached && spec.detached->tty);
}

void put_array(JsonText& out, const ShowDocument& document) {
  const Job& job = document.view.job;
  if (!job.spec->array) return;
  out.key("array").open();
  out.put("id", std::to_string(job.id.number));
  out.put("elements", to_string(*job.spec->array));
  out.put_if("element", job.id.element);
  if (!document.elements.empty()) out.put("states", document.elements);
  out.close();
}

void put_after_met(JsonText& out, const Job& job) {
  out.key("after").open_list();
  for (const core::After& one : job.spec->after) {
    out.open();
    put_id(out, "id", one.id);
    out.put("when", to_string(one.when));
    out.put("met", std::find(job.unmet.begin(), job.unmet.end(), one) == job.unmet.end());
    out.close();
  }
  out.close_list();
}

// The most on any of its cards: a share is asked for on each.
void put_ended(JsonText& out, const std::optional<core::Exit>& exit) {
  if (!exit) return;
  out.put_if("exit_code", exit->code);
  out.put_if("signal", exit->signal);
  if (!exit->peaks.empty())
    out.put("peak_bytes", *std::max_element(exit->peaks.begin(), exit->peaks.end()));
  if (exit->ran_ms) out.put("ran_s", *exit->ran_ms / 1000);
  out.put_if("note", std::string_view(exit->note));
}

void put_attempts(JsonText& out, const Job& job) {
  out.key("attempts").open_list();
  for (const Attempt& attempt : job.attempts) {
    out.open();
    out.put("n", attempt.number);
    out.put_if("started_at", attempt.started);
    out.put("ended_at", attempt.ended);
    out.put("outcome", to_string(attempt.outcome));
    put_ended(out, attempt.exit);
    out.close();
  }
  if (job.started || job.ended) {  // the one of now, which readers would look for here
    out.open();
    out.put("n", job.attempt);
    out.put_if("started_at", job.started);
    out.put_if("ended_at", job.ended);
    if (job.ended && job.outcome) out.put("outcome", to_string(*job.outcome));
    put_ended(out, job.exit);
    out.close();
  }
  out.close_list();
}

void put_seen(JsonText& out, const ShowDocument& document) {
  out.key("processes").open_list();
  for (const ShowDocument::Process& process : document.processes) {
    out.open();
    out.put("pid", process.pid);
    out.put_if("used_bytes", process.used);
    out.close();
  }
  out.close_list();
  if (document.advice) {
    out.key("advice").open();
    out.put("gpu", document.advice->gpu);
    out.put("why", document.advice->why);
    out.close();
  }
  if (!document.notify.empty()) out.put("notify", document.notify);
  out.put("notes", document.notes);
}

// ---- reading -----------------------------------------------------------------------------------

void read_asked(Fields& fields, JobSpec& spec) {
  spec.request.devices = fields.texts("devices");
  spec.request.gpu_type = fields.text_if("gpu_type");
  spec.request.where = where_if(fields, "where");
  spec.request.procs = fields.number_if<std::uint32_t>("procs").value_or(1);
  spec.request.or_cpu = fields.flag("or_cpu");
  Fields limits(fields.child("limits"), "the limits");
  spec.time_s = limits.number_if("time_s");
  spec.request.cpus = limits.number_if<unsigned>("cpus");
  spec.request.ram = limits.bytes_if("ram_bytes");
  if (!limits.ok()) fields.fail(limits.error());
  spec.retries = fields.number_if<std::uint32_t>("retries").value_or(0);
  spec.retry_gpu_pct = fields.number_if<std::uint32_t>("retry_gpu_pct");
  spec.requeue = fields.flag("requeue");
  spec.begin = fields.time_if("begin");
  spec.deadline = fields.time_if("deadline");
  if (fields.flag("detached")) spec.detached.emplace().tty = fields.flag("tty");
}

void read_array(Fields& fields, ShowDocument& document, JobSpec& spec) {
  if (!fields.has("array")) return;
  Fields array(fields.child("array"), "the array");
  spec.array = array.take(core::parse_array(array.text("elements")));
  document.elements = array.counts("states");
  if (!array.ok()) fields.fail(array.error());
}

void read_after(Fields& fields, Job& job, JobSpec& spec) {
  for (const Json& element : fields.list("after")) {
    spec.after.push_back(after_of(element, fields));
    if (!Fields(element, "a job to come after").flag("met")) job.unmet.push_back(spec.after.back());
  }
}

core::Exit ended_from(Fields& fields) {
  core::Exit exit;
  exit.code = fields.number_if<int>("exit_code");
  exit.signal = fields.number_if<int>("signal");
  if (const std::optional<Bytes> peak = fields.bytes_if("peak_bytes")) exit.peaks = {*peak};
  if (const auto ran_s = fields.number_if<std::uint32_t>("ran_s"))
    exit.ran_ms = std::uint64_t{*ran_s} * 1000;
  exit.note = fields.text_if("note").value_or("");
  return exit;
}

void read_attempts(Fields& fields, Job& job) {
  for (const Json& element : fields.list("attempts")) {
    Fields of_one(element, "the attempt");
    Attempt attempt;
    attempt.number = of_one.number<std::uint32_t>("n");
    core::Exit exit = ended_from(of_one);
    if (attempt.number == job.attempt) {  // of the one of now, what JOB does not have
      if (exit.ran_ms && job.exit) job.exit->ran_ms = exit.ran_ms;
      if (!of_one.ok()) fields.fail(of_one.error());
      continue;
    }
    attempt.started = of_one.time_if("started_at");
    attempt.ended = of_one.time("ended_at");
    attempt.outcome = outcome_from(of_one, "outcome");
    if (exit != core::Exit{}) attempt.exit = std::move(exit);
    if (!of_one.ok()) fields.fail(of_one.error());
    job.attempts.push_back(std::move(attempt));
  }
}

void read_seen(Fields& fields, ShowDocument& document) {
  for (const Json& element : fields.list("processes")) {
    Fields process(element, "the process");
    document.processes.push_back(
        {process.number<std::int32_t>("pid"), process.bytes_if("used_bytes")});
    if (!process.ok()) fields.fail(process.error());
  }
  if (fields.has("advice")) {
    Fields advice(fields.child("advice"), "the advice");
    document.advice = {advice.text("gpu"), advice.text("why")};
    if (!advice.ok()) fields.fail(advice.error());
  }
  document.notify = fields.texts("notify");
  document.notes = fields.texts("notes");
}

}  // namespace

std::string encode(const ShowDocument& document) {
  const Job& job = document.view.job;
  JsonText out;
  out.open();
  out.put("schema", "mete.show/1");
  out.put("at", document.at);
  out.key("job").open();
  put_job(out, document.view);
  out.put("cwd", job.spec->folder);
  out.put_if("log", std::string_view(document.log));
  out.put_if("err", std::string_view(document.err));
  put_array(out, document);
  put_after_met(out, job);
  put_asked(out, *job.spec);
  out.flag_if("held", job.held);
  out.put_if("not_before", job.not_before);
  out.put("environment", document.environment);
  put_attempts(out, job);
  put_seen(out, document);
  out.close();
  out.close();
  return out.take();
}

Result<ShowDocument> decode_show(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields outer(*json, "the answer");
  Fields fields(outer.child("job"), "the job");
  ShowDocument document;
  JobSpec spec;
  document.at = outer.time("at");
  document.view = job_from(fields, spec);
  Job& job = document.view.job;
  spec.folder = fields.text("cwd");
  document.log = fields.text_if("log").value_or("");
  document.err = fields.text_if("err").value_or("");
  read_array(fields, document, spec);
  read_after(fields, job, spec);
  read_asked(fields, spec);
  job.held = fields.flag("held");
  job.not_before = fields.time_if("not_before");
  document.environment = fields.texts("environment");
  read_attempts(fields, job);
  read_seen(fields, document);
  if (!outer.ok()) return outer.error();
  if (!fields.ok()) return fields.error();
  job.spec = std::move(spec);
  return document;
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

}  // namespace mete::wire
