// SPDX-License-Identifier: Apache-2.0
// See cap_plan.h. Words are checked before the machine is looked at, so that a typing mistake is
// one everywhere.
#include "cli/cap_plan.h"

#include <unistd.h>

#include <cstdlib>

#include "base/text.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "core/request/gpu.h"
#include "core/request/visible.h"
#include "launch/environment.h"

namespace mete::cli {

namespace {

constexpr std::string_view kDaemon = "it needs the daemon and comes with mete run";

constexpr OptionSpec later(std::string_view name, std::string_view value) {
  return {.name = name, .value = value, .not_built = kDaemon};
}

constexpr std::array kOptions{
    OptionSpec{"--gpu", "SHARE",
               "memory on a card: 0.4 or 40% of it, 8G or 8GB; on several: 2x8G, 4x40%,\n"
               "allx40%; whole cards: 1, 2, all; no GPU: 0. G is 2^30 bytes, GB is 10^9"},
    OptionSpec{"--devices", "LIST",
               "these cards, in this order: numbers or UUIDs, as in 3,2. Alone: whole cards;\n"
               "with a share: that share on each"},
    OptionSpec{"--gpu-type", "TYPE", "only cards of this type, as in H200"},
    OptionSpec{"--cpu-only", "", "the same as --gpu 0"},
    OptionSpec{"--visible", "KIND",
               "write CUDA_VISIBLE_DEVICES as uuid (default) or as index, for programs that\n"
               "parse numbers"},
    OptionSpec{"--env", "NAME=VALUE", "set a variable for the program; may be given more than once",
               "", true},
    OptionSpec{"--chdir", "FOLDER", "start the program in this folder"},
    OptionSpec{"--dry-run", "", "print what would be given, and run nothing"},
    OptionSpec{"--quiet", "", "do not print the resolved bytes", "-q"},
    kOutputOption,
    later("--procs", "N"),
    later("--where", "EXPR"),
    later("--compute", "SHARE"),
    later("--cpus", "N"),
    later("--ram", "SIZE"),
    later("--time", "TIME"),
    later("--priority", "N"),
    later("--after", "ID"),
    later("--array", "RANGE"),
    later("--retries", "N"),
    later("--retry-gpu", "SHARE"),
    later("--requeue", ""),
    later("--begin", "TIME"),
    later("--deadline", "TIME"),
    later("--notify", "WHERE"),
    later("--preemptible", ""),
    later("--shed", ""),
    later("--or-cpu", ""),
    later("--tty", ""),
    later("--log", "FILE"),
    later("--err", "FILE"),
    later("--name", "NAME"),
    later("--no-wait", ""),
    later("--exec", ""),
    later("--pool", "NAME"),
};

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

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
        .with_evidence("a cap has no reservation that could grow; they come with mete run")
        .with_hint("give the upper size: a cap alone reserves nothing");
  }
  return request;
}

Result<bool> parse_visible(const Parsed& parsed) {
  const std::string* kind = parsed.find("--visible");
  if (kind == nullptr || *kind == "uuid") return false;
  if (*kind == "index") return true;
  return Error::invalid("--visible " + base::quote(*kind) + ": there is no such kind")
      .with_hint("write --visible uuid or --visible index");
}

Result<void> resolve_shares(CapPlan& plan) {
  Result<Machine> machine =
      read_machine(driver_library(plan.job.parts, plan.job.simulated, "libnvidia-ml.so.1"));
  if (!machine) return std::move(machine).error();
  std::vector<core::Card> cards;
  for (const MachineCard& card : machine->cards) cards.push_back(card.card);
  const std::optional<std::string> visible = variable("CUDA_VISIBLE_DEVICES");
  Result<std::vector<core::Card>> mine = core::visible_cards(cards, visible);
  if (!mine) return std::move(mine).error();
  Result<std::vector<core::CardShare>> shares = core::resolve(plan.request, *mine);
  if (!shares) {
    Error error = std::move(shares).error();
    const auto add = [&error](const std::string& text) {
      error.evidence += (error.evidence.empty() ? "" : "; ") + text;
    };
    if (error.code == ErrorCode::kInfeasible && mine->size() < cards.size())
      add("CUDA_VISIBLE_DEVICES=" + base::quote(*visible) + " hides cards");
    if (error.code == ErrorCode::kInfeasible && !machine->left_out.empty()) add(machine->left_out);
    return error;
  }
  plan.job.driver = machine->driver;
  for (const core::CardShare& share : *shares)
    for (const MachineCard& card : machine->cards)
      if (card.card == share.card) plan.job.cards.push_back({card, share.from, share.limit});
  return {};
}

}  // namespace

std::span<const OptionSpec> cap_options() { return kOptions; }

Result<CapPlan> make_cap_plan(const Parsed& parsed) {
  CapPlan plan;
  plan.job.command = parsed.rest;
  Result<core::Request> request = parse_request(parsed);
  if (!request) return std::move(request).error();
  plan.request = *std::move(request);
  const Result<bool> by_index = parse_visible(parsed);
  if (!by_index) return by_index.error();
  plan.job.visible_by_index = *by_index;
  for (const std::string& text : parsed.all("--env")) {
    Result<std::pair<std::string, std::string>> pair = launch::parse_env(text);
    if (!pair) return std::move(pair).error();
    plan.job.extra_environment.push_back(*std::move(pair));
  }
  if (const std::string* folder = parsed.find("--chdir"); folder != nullptr)
    plan.job.folder = *folder;
  if (plan.job.command.empty() && !parsed.has("--dry-run")) {
    return Error::invalid("there is no program to run")
        .with_hint("mete cap --gpu 8G -- python train.py");
  }
  if (!plan.job.command.empty() && plan.job.command.front().empty())
    return Error::invalid("the name of the program is empty")
        .with_hint("mete cap --gpu 8G -- python train.py");
  // The words alone may already be wrong, or need no card.
  if (plan.request.gpu == core::no_gpu() || (!plan.request.gpu && plan.request.devices.empty())) {
    Result<std::vector<core::CardShare>> none = core::resolve(plan.request, {});
    if (!none) return std::move(none).error();
    return plan;
  }
  if (Result<void> r = check_not_nested(); !r) return std::move(r).error();
  Result<launch::Parts> parts = launch::find_parts();
  if (!parts) return std::move(parts).error();
  plan.job.parts = *std::move(parts);
  const Result<bool> simulated = is_simulated(plan.job.parts);
  if (!simulated) return simulated.error();
  plan.job.simulated = *simulated;
  if (Result<void> r = resolve_shares(plan); !r) return std::move(r).error();
  return plan;
}

std::string to_json(const CapPlan& plan) {
  std::vector<std::string> cards;
  for (const auto& [card, guarantee, limit] : plan.job.cards) {
    cards.push_back(JsonObject()
                        .number("index", card.card.index)
                        .text("uuid", card.card.uuid)
                        .text("name", card.name)
                        .text("type", card.card.type)
                        .number("bytes", limit.count())
                        .number("capacity_bytes", card.card.capacity.count())
                        .number("total_bytes", card.total.count())
                        .str());
  }
  std::vector<std::string> command;
  for (const std::string& word : plan.job.command) command.push_back(json_string(word));
  JsonObject document;
  document.text("schema", "mete.cap/1").text("at", timestamp());
  if (plan.request.gpu) document.text("request", to_string(*plan.request.gpu));
  return document.raw("cards", json_array(cards)).raw("command", json_array(command)).str();
}

}  // namespace mete::cli
