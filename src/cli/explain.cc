// SPDX-License-Identifier: Apache-2.0
// `mete explain ID...`: why a job waits, until when, and the smallest change that would start it
// now.
#include "wire/explain.h"

#include <array>

#include "cli/explain_text.h"
#include "cli/named_jobs.h"
#include "cli/table.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

constexpr std::array kExplainOptions{kOutputOption};

int run_explain(const Parsed& parsed, const Output& output) {
  Result<runner::DaemonClient> client = open_for_words("explain", parsed.rest);
  if (!client) return output.fail(client.error());
  Failures failures(output);
  for (const core::JobId id : named_jobs(parsed.rest, client->http().path(), failures)) {
    const Result<std::string> body = client->call("GET", job_target(id, "/explain"));
    const Result<wire::ExplainDocument> document =
        body ? wire::decode_explain(*body) : body.error();
    if (!document)
      failures.add(document.error());
    else
      output.data(output.json() ? *body : wrapped(explain_text(*document), stdout_width()));
    if (client->silent()) break;  // the others would wait as long, each
  }
  return failures.exit_code();
}

}  // namespace

const Verb kExplainVerb{
    "explain",
    "explain why a job waits and what would start it now",
    "mete explain ID... [-o json]",
    "mete explain 12\n"
    "mete explain @ -o json | jq -r '.changes[].argument'",
    "Shows the job's position in the queue, a forecast of its start (with the time by which it "
    "starts with 80% probability), what is missing on each card and which jobs hold it, and the "
    "smallest changes to the request that would start the job now. mete has tested each change "
    "with the rules that place jobs.",
    kExplainOptions,
    Rest::kWords,
    run_explain,
};

}  // namespace mete::cli
