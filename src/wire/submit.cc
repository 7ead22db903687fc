// SPDX-License-Identifier: Apache-2.0
// See submit.h.
#include "wire/submit.h"

#include <algorithm>

#include "wire/values.h"

namespace mete::wire {

namespace {

// Words that the kernel takes end at a NUL: one inside would run something else than was said.
bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

bool is_key(const std::string& key) {
  return key.size() <= 64 && std::all_of(key.begin(), key.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_';
         });
}

Result<void> check(const SubmitRequest& request) {
  const core::JobSpec& spec = request.spec;
  if (spec.command.empty()) return Error::invalid("the job has no command");
  const core::Detached& detached = *spec.detached;
  if (std::any_of(spec.command.begin(), spec.command.end(), has_nul) || has_nul(spec.folder) ||
      has_nul(detached.log) || has_nul(detached.err))
    return Error::invalid("the job: a NUL in a word or a path");
  if (!is_key(spec.key))
    return Error::invalid("the request: 'key' must be up to 64 letters, digits, '-' and '_'");
  for (const std::string& entry : request.environment) {
    const std::size_t equals = entry.find('=');
    if (has_nul(entry) || equals == std::string::npos || equals == 0)
      return Error::invalid("the environment: each entry must be NAME=VALUE");
  }
  return {};
}

Result<SubmitRequest> submit_from(const Json& json) {
  Fields fields(json, "the request", Unknown::kRefused);
  SubmitRequest request;
  Result<core::JobSpec> spec = spec_from(fields.child("job"), Owner::kUnsaid);
  if (!spec) return spec.error();
  request.spec = *std::move(spec);
  if (!request.spec.detached) return Error::invalid("the job: 'detached' is missing");
  request.environment = fields.exacts("environment");
  request.script = fields.exact_if("script").value_or("");
  request.wait = !fields.flag("no_wait");
  request.spec.key = fields.text_if("key").value_or("");
  fields.refuse_unknown();
  if (!fields.ok()) return fields.error();
  if (Result<void> fine = check(request); !fine) return std::move(fine).error();
  return request;
}

}  // namespace

std::string encode(const SubmitRequest& request) {
  JsonText out;
  out.open();
  out.key("job");
  put_spec(out, request.spec, Owner::kUnsaid);
  out.key("environment").open_list();
  for (const std::string& entry : request.environment) out.exact(entry);
  out.close_list();
  if (!request.script.empty()) out.key("script").exact(request.script);
  out.flag_if("no_wait", !request.wait);
  out.put_if("key", std::string_view(request.spec.key));
  out.close();
  return out.take();
}

Result<SubmitRequest> decode_submit_request(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return submit_from(*json);
}

Result<JobRequest> decode_job_request(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  const Fields outer(*json, "the request");
  if (Fields(outer.child("job"), "the job").has("detached")) {
    Result<SubmitRequest> request = submit_from(*json);
    if (!request) return request.error();
    return JobRequest(*std::move(request));
  }
  Result<RunRequest> request = run_request_from(*json);
  if (!request) return request.error();
  return JobRequest(*std::move(request));
}

bool knows_keys(std::string_view version) {
  const Result<Json> json = parse_json(version);
  if (!json) return false;
  Fields fields(*json, "the version");
  return fields.flag("keys") && fields.ok();
}

std::string blob_of(const std::vector<std::string>& words) {
  std::string blob;
  for (const std::string& word : words) blob.append(word).push_back('\0');
  return blob;
}

std::vector<std::string> words_in(std::string_view blob) {
  std::vector<std::string> words;
  while (!blob.empty()) {
    const std::size_t end = std::min(blob.find('\0'), blob.size());
    words.emplace_back(blob.substr(0, end));
    blob.remove_prefix(std::min(end + 1, blob.size()));
  }
  return words;
}

std::vector<std::string> beginning_of(const std::vector<std::string>& command) {
  // Short enough to be listed as it is, with the mark that there is more.
  return listed_command(command, kListedCommand - 8);
}

std::string encode(const SubmitReply& reply, WallTime at) {
  JsonText out;
  out.open();
  out.put("schema", "mete.submit/1");
  out.put("at", at);
  put_id(out, "id", reply.id);
  if (reply.elements != 0) out.put("elements", reply.elements);
  out.close();
  return out.take();
}

Result<SubmitReply> decode_submit_reply(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the answer");
  SubmitReply reply;
  reply.id = id_from(fields, "id");
  reply.elements = fields.number_if<std::size_t>("elements").value_or(0);
  if (!fields.ok()) return fields.error();
  return reply;
}

}  // namespace mete::wire
