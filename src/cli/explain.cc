// SPDX-License-Identifier: Apache-2.0
// `mete explain ID...`: why a job waits, until when, and the smallest change that would start it
// now.
#include "wire/explain.h"

#include <array>

#include "cli/explain_text.h"
#include "cli/named_jobs.h"
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
      output.data(output.json() ? *body : explain_text(*document));
    if (client->silent()) break;  // the others would wait as long, each
  }
  return failures.exit_code();
}

}  // namespace

const Verb kExplainVerb{
    "explain",
    "say why a job waits, until when, and what would start it now",
    "mete explain ID... [-o json]",
    "mete explain 12\n"
    "mete explain @ -o json | jq -r '.changes[].argument'",
    "Its place in line, when it will start (and by when with a probability of 80 %), what is "
    "missing\n"
    "on each card and who holds it, and the smallest changes that would start it now: each was "
    "tried\n"
    "with the same rules that place jobs.",
    kExplainOptions,
    Rest::kWords,
    run_explain,
};

}  // namespace mete::cli
