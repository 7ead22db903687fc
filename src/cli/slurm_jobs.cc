// SPDX-License-Identifier: Apache-2.0
// See slurm_jobs.h.
#include "cli/slurm_jobs.h"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/job_ref.h"
#include "cli/named_jobs.h"
#include "cli/slurm_format.h"
#include "cli/slurm_words.h"
#include "core/request/gpu.h"

namespace mete::cli {

namespace {

bool is_in_list(const std::vector<std::string>& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

Result<SlurmWords> slurm_plain_words(const SlurmProgram& program, SlurmWords words,
                                     SlurmOptions& options) {
  SlurmWords plain;
  while (!words.empty()) {
    Result<SlurmWords> rest = options.take(program, words);
    if (!rest) return rest;
    words = *std::move(rest);
    if (words.empty()) break;
    plain.push_back(words.front());
    words.erase(words.begin());
  }
  for (const SlurmOption& option : program.options)
    if (const SlurmGiven* given = options.find(option.name);
        given != nullptr && option.here == SlurmOption::Here::kRefused)
      return slurm_refused(given->written(), option.instead);
  return plain;
}

std::vector<std::string> slurm_list(const SlurmOptions& options, std::string_view name) {
  std::vector<std::string> values;
  const std::string list = options.value_of(name);
  for (const std::string_view each : base::split(list, ','))
    if (!base::trim(each).empty()) values.emplace_back(base::trim(each));
  return values;
}

bool SlurmChosen::wants(const core::Job& job) const {
  const core::JobSpec& spec = *job.spec;
  if (!users.empty() && !is_in_list(users, spec.user) &&
      !is_in_list(users, std::to_string(spec.uid)))
    return false;
  if (!names.empty() && std::none_of(names.begin(), names.end(), [&](const std::string& name) {
        return fnmatch(name.c_str(), spec.name.c_str(), 0) == 0;
      }))
    return false;
  const SlurmState state = slurm_state(job);
  if (!states.empty() && !is_in_list(states, "ALL") && !is_in_list(states, state.shortly) &&
      !is_in_list(states, state.name))
    return false;
  return ids.empty() || std::any_of(ids.begin(), ids.end(), [&](core::JobId id) {
           return id.number == job.id.number && (!id.element || id.element == job.id.element);
         });
}

bool SlurmChosen::ended() const {
  return !ids.empty() || std::any_of(states.begin(), states.end(), [](const std::string& state) {
    constexpr std::array<std::string_view, 6> kUnfinished{"PD",      "PENDING", "R",
                                                          "RUNNING", "S",       "SUSPENDED"};
    return std::find(kUnfinished.begin(), kUnfinished.end(), state) == kUnfinished.end();
  });
}

std::string slurm_upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

Result<SlurmChosen> slurm_chosen(const SlurmOptions& options, const std::vector<std::string>& ids) {
  SlurmChosen chosen;
  chosen.users = slurm_list(options, "user");
  if (options.has("me")) chosen.users.push_back(std::to_string(getuid()));
  chosen.names = slurm_list(options, "name");
  for (const std::string& name : slurm_list(options, "jobname")) chosen.names.push_back(name);
  for (const char* option : {"states", "state"})
    for (const std::string& state : slurm_list(options, option))
      chosen.states.push_back(slurm_upper(state));
  for (const std::string& text : ids) {
    const Result<core::JobId> id = parse_slurm_id(text);
    if (!id) return id.error();
    chosen.ids.push_back(*id);
  }
  return chosen;
}

Result<wire::ShowDocument> slurm_show(runner::DaemonClient& client, core::JobId id) {
  const Result<std::string> body = client.call("GET", job_target(id, "/show"));
  if (!body) return body.error();
  return wire::decode_show(*body);
}

Result<SlurmJobs> slurm_jobs(const SlurmChosen& chosen, SlurmDetails details) {
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client && client.error().code == ErrorCode::kNotFound) return SlurmJobs();
  if (!client) return client.error();
  const Result<std::string> body =
      client->call("GET", std::string("/v1/jobs") + (chosen.ended() ? "?all=1" : ""));
  if (!body) return body.error();
  Result<SlurmJobs> jobs = wire::decode_ps(*body);
  if (!jobs) return jobs;
  std::erase_if(*jobs, [&](const wire::JobView& view) { return !chosen.wants(view.job); });
  for (wire::JobView& view : *jobs) {
    if (details == SlurmDetails::kListed) break;
    // Another user's job has no details, and one that is forgotten meanwhile has none any more.
    Result<wire::ShowDocument> shown = slurm_show(*client, view.job.id);
    if (shown) view = std::move(shown->view);
  }
  return jobs;
}

Result<std::vector<core::JobId>> slurm_ids(const SlurmWords& words) {
  std::vector<core::JobId> ids;
  for (const std::string& word : words) {
    if (word.find('[') != std::string::npos) {
      const Result<JobRef> ref = parse_job_ref(word);
      if (!ref) return ref.error();
      for (const std::uint32_t element : ref->elements) ids.push_back({ref->number, element});
      continue;
    }
    for (const std::string_view each : base::split(word, ',')) {
      const Result<core::JobId> id = parse_slurm_id(each);
      if (!id) return id.error();
      ids.push_back(*id);
    }
  }
  return ids;
}

std::int64_t slurm_seconds_used(const core::Job& job, WallTime now) {
  if (!job.started) return 0;
  return (job.ended.value_or(now).ms - job.started->ms) / 1000;
}

std::string slurm_gres(const core::Job& job) {
  const core::Request request = core::request_of(job);
  if (request.gpu == core::no_gpu()) return "N/A";
  return "gres/gpu:" + (request.gpu ? core::to_string(*request.gpu) : "all");
}

std::string slurm_dependency(const core::Job& job) {
  std::vector<std::string> all;
  for (const core::After& after : job.unmet)
    all.push_back(std::string(after.when == core::When::kOk    ? "afterok:"
                              : after.when == core::When::kAny ? "afterany:"
                                                               : "afternotok:") +
                  to_string(after.id));
  return all.empty() ? "(null)" : base::join(all, ",");
}

std::optional<WallTime> slurm_start(const wire::JobView& view) {
  if (view.job.started) return view.job.started;
  return view.forecast ? std::optional(view.forecast->at) : view.job.spec->begin;
}

std::optional<WallTime> slurm_end(const core::Job& job) {
  if (job.ended || !job.started || !job.spec->time_s) return job.ended;
  return WallTime{job.started->ms + static_cast<std::int64_t>(*job.spec->time_s) * 1000};
}

std::string slurm_reason_of(const wire::JobView& view) {
  if (view.job.state != core::JobState::kPending) return "None";
  return view.wait ? slurm_reason(view.wait->reason) : "None";
}

}  // namespace mete::cli
