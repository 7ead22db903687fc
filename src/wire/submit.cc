// SPDX-License-Identifier: Apache-2.0
// See submit.h.
#include "wire/submit.h"

#include <algorithm>

#include "wire/outline.h"
#include "wire/values.h"

namespace mete::wire {

namespace {

// A word ends at a NUL for the kernel: a NUL inside would run something else.
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

struct SubmitDocument {
  WallTime at;
  SubmitReply reply;
};

}  // namespace

void fields_of(auto& list, Is<SubmitRequest> auto& request) {
  list.must("job", object("the job", request.spec));
  list.put("environment", exact(request.environment));
  list.opt("script", exact(request.script));
  no_wait_field(list, request.wait);
  list.opt("key", request.spec.key);
}

void fields_of(auto& list, Is<SubmitDocument> auto& document) {
  list.schema("mete.submit/1");
  list.tell("at", document.at);
  list.must("id", document.reply.id);
  list.opt("elements", document.reply.elements);
  list.opt("note", document.reply.note);
}

std::string encode(const SubmitRequest& request) { return to_json(request); }

Result<SubmitRequest> submit_request_from(const Json& json) {
  Result<SubmitRequest> request = from_json<SubmitRequest>(json, "the request", Unknown::kRefused);
  if (!request) return request;
  if (!request->spec.detached) return Error::invalid("the job: 'detached' is missing");
  if (Result<void> fine = check(*request); !fine) return std::move(fine).error();
  return request;
}

Result<SubmitRequest> decode_submit_request(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return submit_request_from(*json);
}

Result<JobRequest> decode_job_request(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  const Fields outer(*json, "the request");
  if (Fields(outer.child("job"), "the job").has("detached")) {
    Result<SubmitRequest> request = submit_request_from(*json);
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
  // Short enough for a list, with the mark that there is more.
  return listed_command(command, kListedCommand - 8);
}

std::string encode(const SubmitReply& reply, WallTime at) {
  return to_json(SubmitDocument{at, reply});
}

Result<SubmitReply> decode_submit_reply(std::string_view text) {
  const Result<SubmitDocument> document = decode<SubmitDocument>(text, "the answer");
  if (!document) return document.error();
  return document->reply;
}

void outline_submit(Outlines& all) {
  outline<SubmitRequest>(all["JobRequest"]);
  outline<SubmitDocument>(all["submit"]);
}

}  // namespace mete::wire
