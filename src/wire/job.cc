// SPDX-License-Identifier: Apache-2.0
// See job.h. JOB is in view.cc, the spec in spec.cc, the values of both in values.h. Here are the
// lists of the requests and reports of runners, and of the answers to them. An error travels as an
// object of its own; a code that only a newer daemon has is read as io.
#include "wire/job.h"

#include "wire/outline.h"
#include "wire/values.h"

namespace mete::wire {

// ---- requests of a run -------------------------------------------------------------------------

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

// ---- answers to a run --------------------------------------------------------------------------

void fields_of(auto& list, Is<RunReply> auto& reply) {
  list.must("job", object("the job", reply.view));
  list.must("tag", reply.tag);
  list.put("seq", reply.seq);
  list.put("cards", each("the card", reply.cards));
  list.put("driver", reply.driver);
  list.put("readings", reply.readings);
  list.put("simulated", reply.simulated);
  list.opt("park", object("the mover", reply.park));
  list.opt("note", reply.note);
}

std::string encode(const RunReply& reply) { return to_json(reply); }
Result<RunReply> decode_run_reply(std::string_view text) {
  return decode<RunReply>(text, "the answer");
}

// ---- reports of its runner ---------------------------------------------------------------------

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

// ---- errors ------------------------------------------------------------------------------------

namespace {

struct ErrorDocument {
  Error error;
  int exit = 0;
};

void code_field(Writer& list, ErrorCode code) { list.put("code", base::to_string(code)); }
void code_field(Reader& list, ErrorCode& code) {
  const std::string text = list.fields().text("code");
  code = ErrorCode::kIo;  // a code that only a newer daemon has
  for (const ErrorCode known : {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kDenied,
                                ErrorCode::kBusy, ErrorCode::kExhausted, ErrorCode::kInfeasible,
                                ErrorCode::kIo, ErrorCode::kCorrupt, ErrorCode::kUnsupported})
    if (base::to_string(known) == text) code = known;
}

}  // namespace

void fields_of(auto& list, Is<ErrorDocument> auto& document) {
  list.inside("error", "the error", [&document](auto& error) {
    code_field(error, document.error.code);
    error.must("message", document.error.message);
    error.opt("evidence", document.error.evidence);
    error.opt("hint", document.error.hint);
    error.tell("exit", document.exit);
  });
}

std::string encode_error(const Error& error, int exit_code) {
  return to_json(ErrorDocument{error, exit_code});
}

Error decode_error(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return Error::corrupt("the daemon's answer is not JSON");
  Result<ErrorDocument> document = from_json<ErrorDocument>(*json, "the answer");
  if (!document) return Error::corrupt("the daemon's answer is no error that we understand");
  return std::move(document->error);
}

void outline_job(Outlines& all) {
  outline<ErrorDocument>(all["error"]);
  outline<RunRequest>(all["JobRequest"]);
  outline<RunReply>(all["Run"]);
  outline<StartReport>(all["Start"]);
}

}  // namespace mete::wire
