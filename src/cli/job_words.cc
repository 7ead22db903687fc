// SPDX-License-Identifier: Apache-2.0
#include "cli/job_words.h"

#include "base/text.h"
#include "core/request/gpu.h"
#include "launch/environment.h"

namespace mete::cli {

namespace {

Result<bool> parse_visible(const Parsed& parsed) {
  const std::string* kind = parsed.find("--visible");
  if (kind == nullptr || *kind == "uuid") return false;
  if (*kind == "index") return true;
  return Error::invalid("--visible " + base::quote(*kind) + ": there is no such kind")
      .with_hint("write --visible uuid or --visible index");
}

}  // namespace

Result<core::Request> parse_request(const Parsed& parsed) {
  core::Request request;
  if (const std::string* gpu = parsed.find("--gpu"); gpu != nullptr) {
    Result<core::GpuRequest> parsed_gpu = core::parse_gpu(*gpu);
    if (!parsed_gpu) return std::move(parsed_gpu).error();
    request.gpu = *parsed_gpu;
  }
  if (parsed.has("--cpu-only")) {
    if (request.gpu && *request.gpu != core::no_gpu()) {
      return Error::invalid("--cpu-only and --gpu contradict each other")
          .with_hint("leave one of the two out");
    }
    request.gpu = core::no_gpu();
  }
  if (const std::string* devices = parsed.find("--devices"); devices != nullptr)
    for (const std::string_view part : base::split(*devices, ','))
      request.devices.emplace_back(base::trim(part));
  if (const std::string* type = parsed.find("--gpu-type"); type != nullptr)
    request.gpu_type = *type;
  if (request.gpu && std::holds_alternative<core::Growing>(request.gpu->memory)) {
    return Error::unsupported("--gpu " + to_string(*request.gpu) +
                              ": growing shares are not built yet")
        .with_evidence("they come with parking")
        .with_hint("give the upper size");
  }
  return request;
}

Result<void> parse_program(const Parsed& parsed, std::string_view verb, JobPlan& plan) {
  plan.command = parsed.rest;
  const Result<bool> by_index = parse_visible(parsed);
  if (!by_index) return by_index.error();
  plan.visible_by_index = *by_index;
  for (const std::string& text : parsed.all("--env")) {
    Result<std::pair<std::string, std::string>> pair = launch::parse_env(text);
    if (!pair) return std::move(pair).error();
    plan.extra_environment.push_back(*std::move(pair));
  }
  if (const std::string* folder = parsed.find("--chdir"); folder != nullptr) plan.folder = *folder;
  const std::string example = "mete " + std::string(verb) + " --gpu 8G -- python train.py";
  if (plan.command.empty() && !parsed.has("--dry-run"))
    return Error::invalid("there is no program to run").with_hint(example);
  if (!plan.command.empty() && plan.command.front().empty())
    return Error::invalid("the name of the program is empty").with_hint(example);
  return {};
}

}  // namespace mete::cli
