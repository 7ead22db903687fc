// SPDX-License-Identifier: Apache-2.0
// Any bytes as a job file, and as a service file: no crash, an error says what helps, and jobs that
// are accepted are printed as a file that means the same.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "cli/job_file.h"
#include "cli/service_file.h"
#include "cli/submit_print.h"

namespace {

using namespace mete;

const cli::Surroundings kAround{"/somewhere", {"A=1"}, 022, WallTime{1'763'208'000'000}};

// nullopt: it is refused, or reads a script from the disk.
std::optional<cli::SubmitPlan> plan_of(std::string_view text) {
  const Result<std::vector<cli::FileJob>> file = cli::parse_job_file(text, "f");
  if (!file) {
    METE_ASSERT(!file.error().hint.empty());
    return std::nullopt;
  }
  METE_ASSERT(!file->empty() && file->size() <= cli::kMaxFileJobs);
  std::vector<std::string> names;
  for (const cli::FileJob& job : *file)
    if (!job.name.empty()) names.push_back(job.name);
  cli::SubmitPlan plan;
  std::vector<std::vector<std::string>> after;
  for (const cli::FileJob& job : *file) {
    if (!job.program.script.empty()) return std::nullopt;
    cli::JobWords words{job.words, job.program.command, {}, job.program.shell, &names};
    if (!job.program.text.empty()) {
      words.script = cli::Script{"f", job.program.text};
      words.command = {"script"};
    }
    Result<cli::PlannedJob> made = cli::make_job(words, kAround);
    if (!made) {
      METE_ASSERT(!made.error().hint.empty());
      return std::nullopt;
    }
    after.emplace_back();
    for (const cli::AfterWord& word : made->after)
      if (!word.name.empty()) after.back().push_back(word.name);
    plan.jobs.push_back({*std::move(made), job.name, ""});
  }
  const Result<std::vector<std::size_t>> order = cli::order_of_jobs(*file, after);
  if (!order) return std::nullopt;
  METE_ASSERT(order->size() == plan.jobs.size());
  return plan;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const Result<cli::ServiceFile> services = cli::parse_service_file(text, "f"); services)
    METE_ASSERT(!services->services.empty());
  else
    METE_ASSERT(!services.error().hint.empty());
  const std::optional<cli::SubmitPlan> plan = plan_of(text);
  if (!plan) return 0;
  (void)cli::plan_as_json(*plan);
  // What is no UTF-8 is printed with a mark in its place: from then on it stays the same.
  const std::string once = cli::plan_as_yaml(*plan);
  const std::optional<cli::SubmitPlan> again = plan_of(once);
  METE_ASSERT(again && again->jobs.size() == plan->jobs.size());
  METE_ASSERT(cli::plan_as_yaml(*again) == once);
  return 0;
}
