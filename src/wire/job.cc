// SPDX-License-Identifier: Apache-2.0
// See job.h. JOB itself is in view.cc, the spec in spec.cc, the values of both in values.cc.
#include "wire/job.h"

#include "wire/values.h"

namespace mete::wire {

namespace {

void put_start(JsonText& out, const StartReport& report) {
  out.open();
  put_process(out, report.program);
  out.put("ago_ms", report.ago_ms);
  out.close();
}

Result<StartReport> start_from(const Json& json) {
  const Result<core::ProcessRef> program = process_from(json);
  if (!program) return program.error();
  Fields fields(json, "the start");
  const std::uint64_t ago_ms = ago_from(fields);
  if (!fields.ok()) return fields.error();
  return StartReport{*program, ago_ms};
}

}  // namespace

std::string encode(const RunRequest& request) {
  JsonText out;
  out.open();
  out.key("job");
  put_spec(out, request.spec, Owner::kUnsaid);
  out.put("runner_start_ticks", request.runner_start_ticks);
  out.flag_if("no_wait", !request.wait);
  out.close();
  return out.take();
}

Result<RunRequest> run_request_from(const Json& json) {
  Fields fields(json, "the request", Unknown::kRefused);
  RunRequest request;
  Result<core::JobSpec> spec = spec_from(fields.child("job"), Owner::kUnsaid);
  if (!spec) return spec.error();
  request.spec = *std::move(spec);
  if (request.spec.command.empty()) return Error::invalid("the job has no command");
  if (request.spec.detached) return Error::invalid("a run is not detached");
  request.runner_start_ticks = fields.number("runner_start_ticks");
  request.wait = !fields.flag("no_wait");
  fields.refuse_unknown();
  if (!fields.ok()) return fields.error();
  return request;
}

Result<RunRequest> decode_run_request(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return run_request_from(*json);
}

std::string encode(const RunReply& reply) {
  JsonText out;
  out.open();
  out.key("job").open();
  put_job(out, reply.view);
  out.close();
  out.put("tag", reply.tag);
  out.put("seq", reply.seq);
  out.key("cards").open_list();
  for (const core::Card& card : reply.cards) {
    out.open();
    out.put("name", card.name);
    out.put("type", card.type);
    out.put("total_bytes", card.total);
    out.put("capacity_bytes", card.capacity);
    out.close();
  }
  out.close_list();
  out.put("driver", reply.driver);
  out.put("readings", reply.readings);
  out.put("simulated", reply.simulated);
  if (reply.park) put_door(out, *reply.park);
  out.close();
  return out.take();
}

Result<RunReply> decode_run_reply(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the answer");
  RunReply reply;
  Result<JobView> view = view_from(fields.child("job"));
  if (!view) return view.error();
  reply.view = *std::move(view);
  reply.tag = fields.text("tag");
  reply.seq = fields.number_if<std::uint64_t>("seq").value_or(0);
  reply.driver = fields.text_if("driver").value_or("");
  reply.readings = fields.text_if("readings").value_or("");
  reply.simulated = fields.text_if("simulated").value_or("");
  reply.park = door_if(fields);
  for (const Json& element : fields.list("cards")) {
    Fields card(element, "the card");
    core::Card& one = reply.cards.emplace_back();
    one.name = card.text("name");
    one.type = card.text("type");
    one.total = card.bytes("total_bytes");
    one.capacity = card.bytes("capacity_bytes");
    if (!card.ok()) return card.error();
  }
  if (!fields.ok()) return fields.error();
  return reply;
}

void put_door(JsonText& out, const ParkDoor& door) {
  out.key("park").open();
  out.key("movers").exact(door.movers);
  out.put("token", door.token);
  out.put("arena_bytes", door.arena);
  out.close();
}

std::optional<ParkDoor> door_if(Fields& fields) {
  if (!fields.has("park")) return std::nullopt;
  Fields of_door(fields.child("park"), "the mover");
  ParkDoor door{of_door.exact("movers"), of_door.text("token"),
                of_door.bytes_if("arena_bytes").value_or(Bytes())};
  if (!of_door.ok()) fields.fail(of_door.error());
  return door;
}

std::string encode(const ParkReport& report) {
  JsonText out;
  out.open();
  out.put("parked", report.parked);
  if (report.parked) {
    put_bytes_list(out, "held_bytes", report.held);
    out.put("moved_bytes", report.moved);
    if (!report.on_disk.is_zero()) out.put("disk_bytes", report.on_disk);
  }
  out.put_if("why", std::string_view(report.why));
  out.flag_if("standing", report.standing);
  out.flag_if("wakes", report.wakes);
  out.close();
  return out.take();
}

Result<ParkReport> decode_park_report(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the report");
  ParkReport report;
  if (!fields.has("parked")) fields.fail("parked", "true or false");
  report.parked = fields.flag("parked");
  report.held = bytes_list_from(fields, "held_bytes");
  report.moved = fields.bytes_if("moved_bytes").value_or(Bytes());
  report.on_disk = fields.bytes_if("disk_bytes").value_or(Bytes());
  report.why = fields.text_if("why").value_or("");
  report.standing = fields.flag("standing");
  report.wakes = fields.flag("wakes");
  if (!fields.ok()) return fields.error();
  return report;
}

std::string encode_wanted(const std::vector<Bytes>& wanted) {
  JsonText out;
  out.open();
  put_bytes_list(out, "bytes", wanted);
  out.close();
  return out.take();
}

Result<std::vector<Bytes>> decode_wanted(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the wish");
  std::vector<Bytes> wanted = bytes_list_from(fields, "bytes");
  if (!fields.ok()) return fields.error();
  return wanted;
}

std::string encode(const StartReport& report) {
  JsonText out;
  put_start(out, report);
  return out.take();
}

Result<StartReport> decode_start(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return start_from(*json);
}

std::string encode(const EndReport& report) {
  JsonText out;
  out.open();
  put_exit(out, report.exit);
  if (report.start) {
    out.key("started");
    put_start(out, *report.start);
  }
  out.close();
  return out.take();
}

Result<EndReport> decode_end(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Result<core::Exit> exit = exit_from(*json);
  if (!exit) return std::move(exit).error();
  EndReport report{*std::move(exit), {}};
  Fields fields(*json, "the end");
  if (fields.has("started")) {
    const Result<StartReport> start = start_from(fields.child("started"));
    if (!start) return start.error();
    report.start = *start;
  }
  return report;
}

std::string encode(const core::JobSpec& spec) {
  JsonText out;
  put_spec(out, spec, Owner::kSaid);
  return out.take();
}

Result<core::JobSpec> decode_spec(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return spec_from(*json, Owner::kSaid);
}

std::string encode(const core::Exit& exit) { return encode(EndReport{exit, {}}); }

Result<core::Exit> decode_exit(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return exit_from(*json);
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

}  // namespace mete::wire
