// SPDX-License-Identifier: Apache-2.0
// `mete stats [eta]`: how many jobs there are and were, how long they waited, who used how much,
// and whether the daemon's forecasts held. Starts no daemon.
#include <array>

#include "cli/daemon_client.h"
#include "cli/stats_text.h"
#include "cli/subword.h"
#include "cli/verbs.h"
#include "wire/queue.h"

namespace mete::cli {

namespace {

constexpr std::array kOptions{kOutputOption};

int run_stats(const Parsed& parsed, const Output& output) {
  const bool eta = !parsed.rest.empty();
  if (eta)
    if (const Result<std::string> word = sub_word("stats", parsed.rest, {"eta"}); !word)
      return output.fail(word.error());
  if (const Result<void> r = no_more_than(1, parsed.rest); !r) return output.fail(r.error());
  Result<DaemonClient> client = DaemonClient::open_for_jobs();
  if (!client) return output.fail(client.error());
  const Result<std::string> body = client->call("GET", eta ? "/v1/stats?what=eta" : "/v1/stats");
  const Result<wire::StatsDocument> document = body ? wire::decode_stats(*body) : body.error();
  if (!document) return output.fail(document.error());
  if (output.json())
    output.data(*body);
  else
    output.data(eta ? eta_text(document->forecasts) : stats_text(*document));
  return kExitOk;
}

}  // namespace

const Verb kStatsVerb{
    "stats",
    "show figures of the queue: jobs, waits, users, forecasts",
    "mete stats [eta] [-o json]",
    "mete stats\n"
    "mete stats eta              # do jobs start when mete explain says?",
    "Of the jobs that the daemon still knows. GIB-HOURS is what each user had of GPU memory, old "
    "use\n"
    "counting less: who has the least goes first. eta: of the jobs that were told when they would\n"
    "start with a probability of 80 %, how many did.",
    kOptions,
    Rest::kWords,
    run_stats,
    {"eta"},
};

}  // namespace mete::cli
