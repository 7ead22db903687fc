// SPDX-License-Identifier: Apache-2.0
// See job.h. JOB itself is in view.cc, the spec in spec.cc, the values of both in values.h.
#include "wire/job.h"

#include "wire/outline.h"
#include "wire/values.h"

namespace mete::wire {

// ---- what a run asks for -----------------------------------------------------------------------

void fields_of(auto& list, Is<RunRequest> auto& request) {
  list.must("job", object("the job", request.spec));
  list.must("runner_start_ticks", request.runner_start_ticks);
  no_wait_field(list, request.wait);
}

std::string encode(const RunRequest& request) { return to_json(request); }

Result<RunRequest> run_request_from(const Json& json) {
  Result<RunRequest> request = from_json<RunRequest>(json, "the request", Unknown::kRefused);
  if (!request) return request;
  if (request->spec.command.empty()) return Error::invalid("the job has no command");
  if (request->spec.detached) return Error::invalid("a run is not detached");
  return request;
}

Result<RunRequest> decode_run_request(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return run_request_from(*json);
}

// ---- what it is answered -----------------------------------------------------------------------

void fields_of(auto& list, Is<RunReply> auto& reply) {
  list.must("job", object("the job", reply.view));
  list.must("tag", reply.tag);
  list.put("seq", reply.seq);
  list.put("cards", each("the card", reply.cards));
  list.put("driver", reply.driver);
  list.put("readings", reply.readings);
  list.put("simulated", reply.simulated);
  list.opt("park", object("the mover", reply.park));
}

std::string encode(const RunReply& reply) { return to_json(reply); }
Result<RunReply> decode_run_reply(std::string_view text) {
  return decode<RunReply>(text, "the answer");
}

// ---- what its runner reports -------------------------------------------------------------------

void fields_of(auto& list, Is<ParkReport> auto& report) {
  list.must("parked", report.parked);
  if (list.says(report.parked)) kept_fields(list, report);
  list.opt("why", report.why);
  list.opt("standing", report.standing);
  list.opt("wakes", report.wakes);
}

std::string encode(const ParkReport& report) { return to_json(report); }
Result<ParkReport> decode_park_report(std::string_view text) {
  return decode<ParkReport>(text, "the report");
}

namespace {

struct Wish {
  std::vector<Bytes> bytes;
};

}  // namespace

void fields_of(auto& list, Is<Wish> auto& wish) { list.put("bytes", wish.bytes); }

std::string encode_wanted(const std::vector<Bytes>& wanted) { return to_json(Wish{wanted}); }
Result<std::vector<Bytes>> decode_wanted(std::string_view text) {
  Result<Wish> wish = decode<Wish>(text, "the wish");
  if (!wish) return wish.error();
  return std::move(wish->bytes);
}

void fields_of(auto& list, Is<StartReport> auto& report) {
  fields_of(list, report.program);
  list.put("ago_ms", report.ago_ms);
  check_ago(list, report.ago_ms);
}

std::string encode(const StartReport& report) { return to_json(report); }
Result<StartReport> decode_start(std::string_view text) {
  return decode<StartReport>(text, "the process");
}

void fields_of(auto& list, Is<EndReport> auto& report) {
  fields_of(list, report.exit);
  list.opt("started", object("the process", report.start));
}

std::string encode(const EndReport& report) { return to_json(report); }
Result<EndReport> decode_end(std::string_view text) { return decode<EndReport>(text, "the end"); }

// ---- parts -------------------------------------------------------------------------------------

std::string encode(const core::JobSpec& spec) { return to_json(spec, Owner::kSaid); }
Result<core::JobSpec> decode_spec(std::string_view text) {
  return decode<core::JobSpec>(text, "the job", Unknown::kIgnored, Owner::kSaid);
}

std::string encode(const core::Exit& exit) { return to_json(exit); }
Result<core::Exit> decode_exit(std::string_view text) {
  return decode<core::Exit>(text, "the end");
}

std::string encode_error(const Error& error, int exit_code) {
  JsonText out;
  out.open();
  out.key("error").open();
  out.put("code", to_string(error.code));
  out.put("message", error.message);
  out.put_if("evidence", std::string_view(error.evidence));
  out.put_if("hint", std::string_view(error.hint));
  out.put("exit", exit_code);
  out.close();
  out.close();
  return out.take();
}

Error decode_error(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return Error::corrupt("the daemon's answer is not JSON");
  Fields outer(*json, "the answer");
  Fields fields(outer.child("error"), "the error");
  Error error{ErrorCode::kIo, fields.text("message"), fields.text_if("evidence").value_or(""),
              fields.text_if("hint").value_or("")};
  const std::string code = fields.text("code");
  if (!fields.ok()) return Error::corrupt("the daemon's answer is no error that we understand");
  for (const ErrorCode known : {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kDenied,
                                ErrorCode::kBusy, ErrorCode::kExhausted, ErrorCode::kInfeasible,
                                ErrorCode::kIo, ErrorCode::kCorrupt, ErrorCode::kUnsupported})
    if (base::to_string(known) == code) error.code = known;
  return error;
}

void outline_job(Outlines& all) {
  outline<RunRequest>(all["JobRequest"]);
  outline<RunReply>(all["Run"]);
  outline<StartReport>(all["Start"]);
}

}  // namespace mete::wire
