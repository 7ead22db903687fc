// SPDX-License-Identifier: Apache-2.0
// scancel: which jobs are cancelled. See slurm.h.
#include <unistd.h>

#include <array>

#include "base/text.h"
#include "cli/named_jobs.h"
#include "cli/slurm.h"
#include "cli/slurm_jobs.h"
#include "cli/slurm_options.h"
#include "cli/slurm_words.h"

namespace mete::cli {

namespace {

constexpr std::array kScancelOptions{
    SlurmOption{"user", 'u', SlurmOption::Takes::kValue, SlurmOption::Here::kMeant},
    SlurmOption{"me", 0, SlurmOption::Takes::kNothing, SlurmOption::Here::kMeant},
    SlurmOption{"name", 'n', SlurmOption::Takes::kValue, SlurmOption::Here::kMeant},
    SlurmOption{"jobname", 0, SlurmOption::Takes::kValue, SlurmOption::Here::kMeant},
    SlurmOption{"state", 't', SlurmOption::Takes::kValue, SlurmOption::Here::kMeant},
    SlurmOption{"signal", 's', SlurmOption::Takes::kValue, SlurmOption::Here::kMeant},
    SlurmOption{"interactive", 'i', SlurmOption::Takes::kNothing, SlurmOption::Here::kRefused,
                "name the jobs"},
    SlurmOption{"batch", 'b', SlurmOption::Takes::kNothing},
    SlurmOption{"full", 'f', SlurmOption::Takes::kNothing},
    SlurmOption{"hurry", 'H', SlurmOption::Takes::kNothing},
    SlurmOption{"quiet", 'Q', SlurmOption::Takes::kNothing},
    SlurmOption{"verbose", 'v', SlurmOption::Takes::kNothing},
    SlurmOption{"partition", 'p', SlurmOption::Takes::kValue},
    SlurmOption{"account", 'A', SlurmOption::Takes::kValue},
    SlurmOption{"qos", 'q', SlurmOption::Takes::kValue},
};
const SlurmProgram kScancel{"scancel", kScancelOptions};

Result<void> check_signal(const SlurmOptions& options) {
  const SlurmGiven* given = options.find("signal");
  if (given == nullptr) return {};
  std::string name = slurm_upper(given->value);
  if (name.starts_with("SIG")) name.erase(0, 3);
  if (name == "TERM" || name == "KILL" || name == "15" || name == "9") return {};
  return slurm_refused(given->written() + " " + base::quote(given->value),
                       "send it by kill to a process that mete show lists");
}

}  // namespace

int run_scancel(const SlurmWords& words, const Output& output) {
  SlurmOptions options;
  Result<SlurmWords> plain = slurm_plain_words(kScancel, words, options);
  if (!plain) return output.fail(plain.error());
  if (Result<void> r = check_signal(options); !r) return output.fail(r.error());
  const Result<std::vector<core::JobId>> named = slurm_ids(*plain);
  if (!named) return output.fail(named.error());
  std::vector<core::JobId> ids = *named;
  const bool filters = options.has("user") || options.has("me") || options.has("name") ||
                       options.has("jobname") || options.has("state");
  if (ids.empty() && !filters)
    return output.fail(Error::invalid("scancel names no job")
                           .with_hint("scancel 12, scancel --me or scancel --name=train"));
  if (filters) {
    Result<SlurmChosen> chosen = slurm_chosen(options, {});
    if (!chosen) return output.fail(chosen.error());
    // A name alone is a name of one's own jobs, as in Slurm.
    if (chosen->users.empty()) chosen->users.push_back(std::to_string(getuid()));
    chosen->ids = ids;
    const Result<SlurmJobs> jobs = slurm_jobs(*chosen);
    if (!jobs) return output.fail(jobs.error());
    ids.clear();
    for (const wire::JobView& view : *jobs)
      if (view.job.state != core::JobState::kEnded) ids.push_back(view.job.id);
    if (ids.empty()) return kExitOk;
  }
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client) return output.fail(client.error());
  Failures failures(output);
  for (const core::JobId id : ids) {
    const Result<std::string> reply = client->call("DELETE", job_target(id));
    // It has ended: that is what was wanted.
    if (!reply && reply.error().code != ErrorCode::kInvalid) failures.add(reply.error());
  }
  return failures.exit_code();
}

}  // namespace mete::cli
