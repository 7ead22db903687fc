// SPDX-License-Identifier: Apache-2.0
// `mete show ID...`: everything about a job: its request, what it holds and used, its log, how its
// attempts ended, and what to request next time.
#include "wire/show.h"

#include <array>

#include "cli/named_jobs.h"
#include "cli/show_text.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

constexpr std::array kShowOptions{kOutputOption};

int run_show(const Parsed& parsed, const Output& output) {
  Result<runner::DaemonClient> client = open_for_words("show", parsed.rest);
  if (!client) return output.fail(client.error());
  Failures failures(output);
  bool first = true;
  for (const core::JobId id : named_jobs(parsed.rest, client->http().path(), failures)) {
    const Result<std::string> body = client->call("GET", job_target(id, "/show"));
    const Result<wire::ShowDocument> document = body ? wire::decode_show(*body) : body.error();
    if (!document)
      failures.add(document.error());
    else if (output.json())
      output.data(*body);
    else
      output.data((first ? "" : "\n") + show_text(*document));
    first = false;
    if (client->silent()) break;  // each of the others would wait as long
  }
  return failures.exit_code();
}

}  // namespace

const Verb kShowVerb{
    "show",
    "show all details of a job",
    "mete show ID... [-o json]",
    "mete show 12\n"
    "mete show @ -o json | jq -r .job.log",
    "Shows the request, the cards and start time, the log, the attempts, the peak memory, and the "
    "share to ask for next time. For the environment it shows the names of the variables only. "
    "With -o json it prints one document on one line for each job. mete describe is an alias.",
    kShowOptions,
    Rest::kWords,
    run_show,
    {},
    {"describe"},
};

}  // namespace mete::cli
