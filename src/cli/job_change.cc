// SPDX-License-Identifier: Apache-2.0
// See job_change.h.
#include "cli/job_change.h"

#include "cli/named_jobs.h"
#include "seam/clock.h"
#include "wire/queue.h"

namespace mete::cli {

namespace {

Result<wire::ChangedDocument> ask(runner::DaemonClient& client, const JobChange& change,
                                  core::JobId id) {
  const Result<std::string> body =
      client.call(change.method, job_target(id, change.path), change.body);
  if (!body) return body.error();
  return wire::decode_changed(*body);
}

}  // namespace

int change_jobs(const JobChange& change, const std::vector<std::string>& words,
                const Output& output) {
  Result<runner::DaemonClient> client = open_for_words(change.verb, words);
  if (!client) return output.fail(client.error());
  Failures failures(output);
  wire::ChangedDocument all{seam::system_clock().wall(), {}};
  for (const core::JobId id : named_jobs(words, client->http().path(), failures)) {
    const Result<wire::ChangedDocument> answer = ask(*client, change, id);
    if (!answer) {
      const std::string said = change.forgiven && answer.error().code == ErrorCode::kInvalid
                                   ? change.forgiven(*client, id)
                                   : "";
      if (said.empty())
        failures.add(answer.error());
      else
        output.say(said);
      if (client->silent()) break;  // the others would wait as long, each
      continue;
    }
    all.changed.insert(all.changed.end(), answer->changed.begin(), answer->changed.end());
    if (!output.json()) output.say(changed_text(id, answer->changed, change.done));
  }
  if (output.json()) output.data(wire::encode(all));
  return failures.exit_code();
}

std::string changed_text(core::JobId asked, const std::vector<core::JobId>& changed,
                         std::string_view done) {
  const std::string name = to_string(asked);
  if (changed.empty()) return "job " + name + ": nothing to change";
  if (changed.size() == 1 && changed.front() == asked)
    return "job " + name + " is " + std::string(done);
  return std::to_string(changed.size()) + (changed.size() == 1 ? " job of " : " jobs of ") + name +
         (changed.size() == 1 ? " is " : " are ") + std::string(done);
}

}  // namespace mete::cli
