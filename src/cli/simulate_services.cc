// SPDX-License-Identifier: Apache-2.0
// See simulate_services.h. Both read a service file and a CSV file with times; neither needs a
// daemon. Options that mean nothing beside them are refused.
#include "cli/simulate_services.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "cli/json.h"
#include "cli/service_file.h"
#include "cli/simulate_input.h"
#include "cli/simulate_text.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "simulate/autoscale.h"
#include "simulate/residency.h"

namespace mete::cli {

namespace {

using core::service::Autoscaler;

constexpr Bytes kSwapRate = Bytes::from_gib(50);  // measured: 20 GiB in 0.39 s

// The shortest text that is read back as this number.
std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

// Only these options (and -o) are allowed.
Result<void> check_options(const Parsed& parsed, std::string_view first, std::string_view second) {
  if (!parsed.rest.empty())
    return Error::invalid("what is " + base::quote(parsed.rest.front()) + "?")
        .with_hint("mete simulate --help shows the options");
  for (const auto& [name, value] : parsed.options)
    if (name != first && name != second && name != kOutputOption.name)
      return Error::invalid(std::string(first) + " and " + std::string(name) +
                            " contradict each other")
          .with_hint(std::string(first) + " takes " + std::string(second) + " and -o alone");
  if (!parsed.has(second))
    return Error::invalid(std::string(first) + " needs " + std::string(second))
        .with_hint("mete simulate --help shows what is in the file");
  return {};
}

// The two files of a simulation.
struct Files {
  ServiceFile services;
  std::string trace;
};

Input<Files> read_files(const Parsed& parsed, std::string_view first, std::string_view second) {
  if (Result<void> r = check_options(parsed, first, second); !r) return bad_words(r.error());
  const Result<std::string> text = read_trace_file(*parsed.find(first));
  if (!text) return bad_file(text.error());
  if (text->size() > kMaxJobFile)
    return bad_file(Error::invalid(*parsed.find(first) + " has more than 1 MiB"));
  Files files;
  Result<ServiceFile> services = parse_service_file(*text, *parsed.find(first));
  if (!services) return bad_file(std::move(services).error());
  files.services = *std::move(services);
  Result<std::string> trace = read_trace_file(*parsed.find(second));
  if (!trace) return bad_file(std::move(trace).error());
  files.trace = *std::move(trace);
  return files;
}

std::string ticks_json(const std::vector<Autoscaler::Tick>& ticks) {
  std::vector<std::string> rows;
  rows.reserve(ticks.size());
  for (const Autoscaler::Tick& tick : ticks)
    rows.push_back(JsonObject()
                       .number("t_s", static_cast<std::uint64_t>(tick.t_s))
                       .raw("avg", number_text(tick.avg))
                       .raw("raw", number_text(tick.raw))
                       .number("recommended", tick.recommended)
                       .number("replicas", tick.replicas)
                       .str());
  return JsonObject()
      .text("schema", "mete.autoscale/1")
      .text("at", timestamp())
      .raw("ticks", json_array(rows))
      .str();
}

std::string ticks_text(const std::vector<Autoscaler::Tick>& ticks) {
  if (ticks.empty()) return "the load ends before the first tick, at 10 s";
  Table table({{"SECOND", Align::kRight},
               {"IN FLIGHT", Align::kRight},
               {"RAW", Align::kRight},
               {"RECOMMENDED", Align::kRight},
               {"REPLICAS", Align::kRight}});
  for (const Autoscaler::Tick& tick : ticks)
    table.add({std::to_string(tick.t_s), decimal(tick.avg, 2), decimal(tick.raw, 2),
               std::to_string(tick.recommended), std::to_string(tick.replicas)});
  return table.text(std::nullopt);
}

// The last of these words; nullptr: none.
const Word* word_of(const FileJob& job, std::string_view option) {
  const auto found = std::find_if(job.words.rbegin(), job.words.rend(),
                                  [&](const Word& word) { return word.option == option; });
  return found == job.words.rend() ? nullptr : &*found;
}

Result<simulate::SimulatedModel> model_of(const FileService& service) {
  simulate::SimulatedModel model;
  model.name = service.spec.name;
  model.aliases = service.spec.models;
  model.concurrency = service.spec.concurrency;
  model.always = service.spec.resident;
  model.max_wait_ms = service.spec.max_wait_s * 1000;
  const Word* gpu = word_of(service.job, "--gpu");
  const Result<Bytes> bytes =
      gpu == nullptr ? Result<Bytes>(Bytes()) : base::parse_bytes(gpu->value);
  if (!bytes || bytes->is_zero())
    return Error::invalid((gpu == nullptr ? service.job.where : gpu->where) + ": the service " +
                          service.spec.name + " has no size")
        .with_hint("--models needs how much each takes of the card, such as gpu: 20G");
  model.bytes = *bytes;
  if (const Word* priority = word_of(service.job, "--priority"); priority != nullptr) {
    const bool negative = priority->value.starts_with('-');
    const Result<std::uint64_t> number =
        base::parse_uint(std::string_view(priority->value).substr(negative ? 1 : 0));
    if (!number || *number > 1'000'000)
      return Error::invalid(priority->where + ": priority is " + base::quote(priority->value));
    model.priority = static_cast<std::int32_t>(*number) * (negative ? -1 : 1);
  }
  return model;
}

std::string figures_json(const simulate::ResidencyFigures& figures) {
  return JsonObject()
      .text("schema", "mete.residency/1")
      .text("at", timestamp())
      .number("requests", figures.requests)
      .number("swaps", figures.swaps)
      .raw("mean_wait_s", number_text(figures.mean_wait_s))
      .raw("p99_wait_s", number_text(figures.p99_wait_s))
      .raw("max_wait_s", number_text(figures.max_wait_s))
      .str();
}

std::string figures_text(const simulate::ResidencyFigures& figures, std::size_t models) {
  return std::to_string(figures.requests) + " requests for " + std::to_string(models) +
         (models == 1 ? " model" : " models") + ", " + std::to_string(figures.swaps) +
         (figures.swaps == 1 ? " swap" : " swaps") + "\n" +
         "waits: " + decimal(figures.mean_wait_s, 2) + " s on average, 99 % at most " +
         decimal(figures.p99_wait_s, 2) + " s, the longest " + decimal(figures.max_wait_s, 2) +
         " s";
}

}  // namespace

int simulate_service(const Parsed& parsed, const Output& output) {
  Input<Files> input = read_files(parsed, "--service", "--in-flight");
  if (const auto* failure = std::get_if<Failure>(&input))
    return output.fail(failure->error, failure->exit_code);
  const Files& files = std::get<Files>(input);
  if (files.services.services.size() != 1)
    return output.fail(Error::invalid(*parsed.find("--service") + " has " +
                                      std::to_string(files.services.services.size()) + " services")
                           .with_hint("--service simulates one: put it into a file of its own"),
                       kExitBadFile);
  const Result<std::vector<double>> load =
      simulate::parse_in_flight(files.trace, *parsed.find("--in-flight"));
  if (!load) return output.fail(load.error(), kExitBadFile);
  const std::vector<Autoscaler::Tick> ticks =
      simulate::simulate_autoscaling(files.services.services.front().spec.scaling, *load);
  output.data(output.json() ? ticks_json(ticks) : ticks_text(ticks));
  return kExitOk;
}

int simulate_models(const Parsed& parsed, const Output& output) {
  Input<Files> input = read_files(parsed, "--models", "--requests");
  if (const auto* failure = std::get_if<Failure>(&input))
    return output.fail(failure->error, failure->exit_code);
  const Files& files = std::get<Files>(input);
  const std::string& path = *parsed.find("--models");
  if (!files.services.room)
    return output.fail(Error::invalid(path + " does not say how much room there is")
                           .with_hint("write room: 60G above services:"),
                       kExitBadFile);
  std::vector<simulate::SimulatedModel> models;
  for (const FileService& service : files.services.services) {
    Result<simulate::SimulatedModel> model = model_of(service);
    if (!model) return output.fail(model.error(), kExitBadFile);
    models.push_back(*std::move(model));
  }
  const Result<std::vector<simulate::ModelRequest>> requests =
      simulate::parse_model_requests(files.trace, *parsed.find("--requests"), models);
  if (!requests) return output.fail(requests.error(), kExitBadFile);
  const Result<simulate::ResidencyFigures> figures = simulate::simulate_residency(
      models, *files.services.room, files.services.swap_rate.value_or(kSwapRate), *requests);
  if (!figures) {
    Error wrong = figures.error();
    return output.fail(std::move(wrong).within(path), kExitBadFile);
  }
  output.data(output.json() ? figures_json(*figures) : figures_text(*figures, models.size()));
  return kExitOk;
}

}  // namespace mete::cli
