// SPDX-License-Identifier: Apache-2.0
// `mete ps`: the jobs that the daemon knows. Does not start one: who asks what runs does not want
// something to run because of it.
#include <dirent.h>

#include <array>
#include <memory>

#include "base/file.h"
#include "base/time.h"
#include "cli/daemon_client.h"
#include "cli/ps_table.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "launch/state_dir.h"
#include "seam/clock.h"
#include "wire/job.h"

namespace mete::cli {

namespace {

constexpr std::array kOptions{
    OptionSpec{"--all", "", "also jobs that have ended", "-a"},
    kOutputOption,
};

// Jobs outlive their daemon, and then there is nobody to list them: their grant files tell.
std::size_t jobs_without_daemon() {
  const Result<std::string> state = launch::state_dir();
  if (!state) return 0;
  struct Close {
    void operator()(DIR* folder) const { (void)closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> folder(opendir(base::join_path(*state, "grants").c_str()));
  std::size_t count = 0;
  if (folder != nullptr) {
    while (const dirent* entry = readdir(folder.get()))
      if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') ++count;
  }
  return count;
}

int print(const std::vector<wire::JobView>& jobs, bool all, const Output& output) {
  if (jobs.empty())
    output.say(all ? "there are no jobs" : "no job waits or runs; -a shows those that have ended");
  else
    output.data(ps_table(jobs, seam::system_clock().wall(), stdout_width()));
  return kExitOk;
}

int without_daemon(bool all, const Output& output) {
  if (output.json()) output.data(wire::encode_ps({}, seam::system_clock().wall()));
  std::string text = "no daemon runs";
  if (const std::size_t left = jobs_without_daemon(); left != 0)
    text += "; " + std::to_string(left) + (left == 1 ? " job" : " jobs") +
            " may still run without it: mete cards starts it, then ask again";
  else if (all)
    text += "; mete cards starts it, and then -a shows the jobs that have ended";
  else
    text += ", so no job waits or runs";
  output.say(text);
  return kExitOk;
}

int run_ps(const Parsed& parsed, const Output& output) {
  const bool all = parsed.has("--all");
  Result<DaemonClient> client = DaemonClient::open(DaemonClient::Start::kNever);
  if (!client && nobody_listens(client.error())) return without_daemon(all, output);
  if (!client) return output.fail(client.error());
  const Result<std::string> document = client->call("GET", all ? "/v1/jobs?all=1" : "/v1/jobs");
  if (!document && nobody_listens(document.error())) return without_daemon(all, output);
  if (!document) return output.fail(document.error());
  // Decoded also for JSON: what we print is a document that we understand.
  const Result<std::vector<wire::JobView>> jobs = wire::decode_ps(*document);
  if (!jobs) return output.fail(jobs.error());
  if (!output.json()) return print(*jobs, all, output);
  output.data(*document);
  return kExitOk;
}

}  // namespace

const Verb kPsVerb{
    "ps",
    "list the jobs that wait and run",
    "mete ps [-a] [-o json]",
    "mete ps\n"
    "mete ps -a                  # also those that have ended\n"
    "mete ps -o json | jq -r '.jobs[] | select(.state == \"pending\") | .wait.for'",
    "Your own jobs; root sees everybody's. TIME is how long a job waits, runs or ran; a pending\n"
    "job's last column says what it waits for. Starts no daemon: without one the list is empty.",
    kOptions,
    Rest::kNothing,
    run_ps,
};

}  // namespace mete::cli
