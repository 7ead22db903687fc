// SPDX-License-Identifier: Apache-2.0
// See cap_plan.h. Words are checked before the machine is looked at, so that a typing mistake is
// one everywhere.
#include "cli/cap_plan.h"

#include <unistd.h>

#include <cstdlib>

#include "base/text.h"
#include "cli/job_words.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "core/request/gpu.h"
#include "core/request/visible.h"

namespace mete::cli {

namespace {

constexpr std::string_view kDaemon = "mete cap neither reserves nor waits; mete run does";

constexpr OptionSpec elsewhere(std::string_view name, std::string_view value) {
  return {.name = name, .value = value, .not_built = kDaemon};
}

constexpr std::array kCapPlanOptions{
    kGpuOption,
    kDevicesOption,
    kGpuTypeOption,
    kCpuOnlyOption,
    kVisibleOption,
    kEnvOption,
    kChdirOption,
    OptionSpec{"--dry-run", "",
               "print the cards and bytes that the program would get, and run nothing"},
    kQuietOption,
    kOutputOption,
    elsewhere("--procs", "N"),
    elsewhere("--where", "EXPR"),
    elsewhere("--compute", "SHARE"),
    elsewhere("--cpus", "N"),
    elsewhere("--ram", "SIZE"),
    elsewhere("--time", "TIME"),
    elsewhere("--priority", "N"),
    elsewhere("--after", "ID"),
    elsewhere("--array", "RANGE"),
    elsewhere("--retries", "N"),
    elsewhere("--retry-gpu", "SHARE"),
    elsewhere("--requeue", ""),
    elsewhere("--begin", "TIME"),
    elsewhere("--deadline", "TIME"),
    elsewhere("--notify", "WHERE"),
    elsewhere("--notify-on", "LIST"),
    elsewhere("--preemptible", ""),
    elsewhere("--not-preemptible", ""),
    elsewhere("--no-preempt", ""),
    elsewhere("--shed", ""),
    elsewhere("--or-cpu", ""),
    elsewhere("--tty", ""),
    elsewhere("--log", "FILE"),
    elsewhere("--err", "FILE"),
    elsewhere("--name", "NAME"),
    elsewhere("--no-wait", ""),
    elsewhere("--exec", ""),
    elsewhere("--pool", "NAME"),
};

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Result<void> resolve_shares(runner::JobPlan& plan) {
  const Result<CardsRead> read =
      read_cards(runner::driver_library(plan.parts, plan.simulated, "libnvidia-ml.so.1"));
  if (!read) return read.error();
  const std::optional<std::string> visible = variable("CUDA_VISIBLE_DEVICES");
  Result<std::vector<core::Card>> mine = core::visible_cards(read->cards, visible);
  if (!mine) return std::move(mine).error();
  Result<std::vector<core::CardShare>> shares = core::resolve(plan.spec.request, *mine);
  if (!shares) {
    Error error = std::move(shares).error();
    const auto add = [&error](const std::string& text) {
      error.evidence += (error.evidence.empty() ? "" : "; ") + text;
    };
    if (error.code == ErrorCode::kInfeasible && mine->size() < read->cards.size())
      add("CUDA_VISIBLE_DEVICES=" + base::quote(*visible) + " hides cards");
    if (error.code == ErrorCode::kInfeasible && !read->left_out.empty()) add(read->left_out);
    return error;
  }
  plan.driver = read->driver;
  plan.cards = *std::move(shares);
  return {};
}

}  // namespace

std::span<const OptionSpec> cap_options() { return kCapPlanOptions; }

Result<runner::JobPlan> make_cap_plan(const Parsed& parsed) {
  runner::JobPlan plan;
  Result<core::Request> request = parse_request(parsed);
  if (!request) return std::move(request).error();
  plan.spec.request = *std::move(request);
  if (plan.spec.request.gpu && std::holds_alternative<core::Growing>(plan.spec.request.gpu->memory))
    return Error::invalid("--gpu " + as_written(*plan.spec.request.gpu) +
                          ": a cap alone cannot grow, since nobody counts the room")
        .with_hint("mete run --gpu " + as_written(*plan.spec.request.gpu) +
                   " -- command grows; or give one size");
  if (Result<void> r = parse_program(parsed, "cap", plan); !r) return std::move(r).error();
  // The words alone may already be wrong, or need no card.
  if (plan.spec.request.gpu == core::no_gpu() ||
      (!plan.spec.request.gpu && plan.spec.request.devices.empty())) {
    Result<std::vector<core::CardShare>> none = core::resolve(plan.spec.request, {});
    if (!none) return std::move(none).error();
    return plan;
  }
  if (Result<void> r = runner::check_not_nested(); !r) return std::move(r).error();
  Result<launch::Parts> parts = launch::find_parts();
  if (!parts) return std::move(parts).error();
  plan.parts = *std::move(parts);
  const Result<bool> simulated = runner::is_simulated(plan.parts);
  if (!simulated) return simulated.error();
  plan.simulated = *simulated;
  if (Result<void> r = resolve_shares(plan); !r) return std::move(r).error();
  return plan;
}

std::string to_json(const runner::JobPlan& plan) {
  std::vector<std::string> cards;
  for (const auto& [card, from, limit] : plan.cards) {
    cards.push_back(JsonObject()
                        .number("index", card.index)
                        .text("uuid", card.uuid)
                        .text("name", card.name)
                        .text("type", card.type)
                        .number("bytes", limit.count())
                        .number("capacity_bytes", card.capacity.count())
                        .number("total_bytes", card.total.count())
                        .str());
  }
  std::vector<std::string> command;
  for (const std::string& word : plan.spec.command) command.push_back(json_string(word));
  JsonObject document;
  document.text("schema", "mete.cap/1").text("at", timestamp());
  if (plan.spec.request.gpu) document.text("request", to_string(*plan.spec.request.gpu));
  return document.raw("cards", json_array(cards)).raw("command", json_array(command)).str();
}

}  // namespace mete::cli
