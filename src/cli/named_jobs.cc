// SPDX-License-Identifier: Apache-2.0
// See named_jobs.h.
#include "cli/named_jobs.h"

#include <set>

#include "cli/job_ref.h"

namespace mete::cli {

std::vector<core::JobId> named_jobs(const std::vector<std::string>& words,
                                    const std::string& socket, Failures& failures) {
  std::vector<core::JobId> all;
  std::set<core::JobId> seen;
  for (const std::string& word : words) {
    const Result<std::vector<core::JobId>> ids = resolve_jobs({word}, socket);
    if (!ids) {
      failures.add(ids.error());
      continue;
    }
    for (const core::JobId& id : *ids)
      if (seen.insert(id).second) all.push_back(id);
  }
  return all;
}

Result<runner::DaemonClient> open_for_words(std::string_view verb,
                                            const std::vector<std::string>& words) {
  if (words.empty())
    return Error::invalid("which job is not said")
        .with_hint("mete " + std::string(verb) + " 12, or @ for your last; mete ps lists the jobs");
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (client || client.error().code != ErrorCode::kNotFound) return client;
  Error error = std::move(client).error();
  const Result<JobRef> first = parse_job_ref(words.front());
  if (!first) return first.error();
  if (words.size() == 1) error.message = "no daemon runs, so there is no job " + to_string(*first);
  return error;
}

std::string job_target(core::JobId id, std::string_view rest) {
  return "/v1/jobs/" + to_string(id) + std::string(rest);
}

}  // namespace mete::cli
