// SPDX-License-Identifier: Apache-2.0
// `mete sweep ls`, `pause`, `resume`, `stop`, `rm` and `extend`: one request for each sweep. A
// sweep that cannot be changed does not keep the others from it.
#include <optional>

#include "base/text.h"
#include "cli/named_jobs.h"
#include "cli/subword.h"
#include "cli/sweep_client.h"
#include "cli/sweep_space.h"
#include "cli/sweep_text.h"
#include "cli/sweep_verbs.h"
#include "cli/table.h"
#include "net/http.h"
#include "seam/clock.h"

namespace mete::cli {

namespace {

Error which(std::string_view subverb) {
  return Error::invalid("which sweep is not said")
      .with_hint("mete sweep " + std::string(subverb) + " NAME; mete sweep ls lists them");
}

std::string list_target(const Parsed& words) {
  const std::string* user = words.find("--user");
  if (user != nullptr) return "/v1/sweeps?all=1&user=" + net::percent_encode(*user);
  return words.has("--all") ? "/v1/sweeps?all=1" : "/v1/sweeps";
}

// The daemon forgets the sweep; its files are the user's, and are removed here.
Result<void> remove_sweep(runner::DaemonClient& client, const SweepRef& ref, const Output& output) {
  const Result<wire::SweepDocument> document = document_in(client.call("GET", sweep_target(ref)));
  if (!document) return document.error();
  const Result<std::string> body = client.call("DELETE", sweep_target(ref));
  if (!body) return body.error();
  const Result<void> removed = remove_files(*document);
  if (!output.json()) output.say("sweep " + ref.name + " is removed");
  if (!removed) output.say("some of its files are left: " + removed.error().message);
  return {};
}

}  // namespace

int list_sweeps(const Parsed& words, const Output& output) {
  if (const Result<void> r = no_more_than(0, words.rest); !r) return output.fail(r.error());
  Result<runner::DaemonClient> client = open_for_sweeps("");
  wire::SweepsDocument document{seam::system_clock().wall(), {}};
  const bool no_daemon = !client && client.error().code == ErrorCode::kNotFound;
  if (!client && !no_daemon) return output.fail(client.error());
  if (client) {
    const Result<std::string> body = client->call("GET", list_target(words));
    Result<wire::SweepsDocument> answer = body ? wire::decode_sweeps(*body) : body.error();
    if (!answer) return output.fail(answer.error());
    document = *std::move(answer);
  }
  // The daemon lists the sweeps of one user or of all.
  const std::string* user = words.find("--user");
  if (user != nullptr)
    std::erase_if(document.sweeps, [&](const wire::SweepRow& row) { return row.user != *user; });
  if (output.json()) {
    output.data(wire::encode(document));
  } else if (words.has("--quiet")) {
    for (const wire::SweepRow& row : document.sweeps) output.data(base::printable(row.name));
  } else if (document.sweeps.empty()) {
    output.say("there is no sweep; mete sweep --help shows how to start one");
  } else {
    output.data(sweeps_table(document, words.has("--all") || user != nullptr, stdout_width()));
  }
  return kExitOk;
}

int change_sweeps(std::string_view subverb, const Parsed& words, const Output& output) {
  if (words.rest.empty()) return output.fail(which(subverb));
  const bool remove = subverb == "rm";
  Result<runner::DaemonClient> client = open_for_sweeps(words.rest.front());
  if (!client) return output.fail(client.error());
  Failures failures(output);
  wire::SweepsDocument all{seam::system_clock().wall(), {}};
  for (const std::string& name : words.rest) {
    const Result<SweepRef> ref = sweep_ref(words, name);
    if (!ref) {
      failures.add(ref.error());
      continue;
    }
    if (remove) {
      const Result<void> removed = remove_sweep(*client, *ref, output);
      if (!removed) failures.add(removed.error());
      if (!removed && client->silent()) break;  // the others would wait as long, each
      continue;
    }
    Result<wire::SweepRow> row =
        row_in(client->call("POST", sweep_target(*ref, "/" + std::string(subverb))));
    if (!row) {
      failures.add(row.error());
      if (client->silent()) break;
      continue;
    }
    if (!output.json()) output.say(row_text(*row));
    all.sweeps.push_back(*std::move(row));
  }
  if (output.json()) output.data(wire::encode(all));
  return failures.exit_code();
}

int extend_sweep(const Parsed& words, const Output& output) {
  if (words.rest.empty()) return output.fail(which("extend"));
  if (const Result<void> r = no_more_than(1, words.rest); !r) return output.fail(r.error());
  const Result<SweepRef> ref = sweep_ref(words, words.rest.front());
  if (!ref) return output.fail(ref.error());
  wire::ExtendRequest request;
  if (const std::string* text = words.find("--trials"); text != nullptr) {
    const Result<std::uint64_t> trials = base::parse_uint(*text);
    if (!trials || *trials == 0)
      return output.fail(
          Error::invalid("--trials " + base::quote(*text) + " is not a number from 1 on")
              .with_hint("write --trials 20 for 20 more trials"));
    request.trials = *trials;
  }
  if (words.has("--space") || words.has("--talos") || words.has("--grid")) {
    SpaceReader reader(words);
    Result<SpaceInput> input = reader.read();
    if (!input)
      return output.fail(input.error(),
                         reader.in_file() ? kExitBadFile : exit_code_of(input.error().code));
    request.space = std::move(input->space);
  } else if (words.has("--keep")) {
    return output.fail(Error::invalid("--keep is a part of a space")
                           .with_hint("give the whole space: --space FILE --keep EXPR"));
  }
  if (request.trials == 0 && !request.space)
    return output.fail(
        Error::invalid("what to extend the sweep by is not said")
            .with_hint("mete sweep extend " + ref->name + " --trials 20, or --space FILE"));
  Result<runner::DaemonClient> client = open_for_sweeps(ref->name);
  if (!client) return output.fail(client.error());
  const Result<std::string> body =
      client->call("POST", sweep_target(*ref, "/extend"), wire::encode(request));
  const Result<wire::SweepRow> row = row_in(body);
  if (!row) return output.fail(row.error());
  if (output.json())
    output.data(*body);
  else
    output.say(row_text(*row));
  return kExitOk;
}

}  // namespace mete::cli
