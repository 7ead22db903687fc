// SPDX-License-Identifier: Apache-2.0
// The daemon's side of sweeps, for the verbs: where a sweep is found, and its documents.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/options.h"
#include "launch/identity.h"
#include "runner/daemon_client.h"
#include "wire/sweep.h"

namespace mete::cli {

struct SweepRef {
  std::string name;
  std::string user = {};  // "": the caller's
};

// A name that no sweep can have is not found.
Result<SweepRef> sweep_ref(const Parsed& parsed, const std::string& name);
// "/v1/sweeps/lr-scan/stop?user=bob"; `query`: "brief=1".
std::string sweep_target(const SweepRef& ref, std::string_view rest = {},
                         std::string_view query = {});
// "lr-scan", or "lr-scan -u bob" for hints.
std::string words_of(const SweepRef& ref);

// The daemon that knows sweeps; not_found: there is none, and so no sweep.
Result<runner::DaemonClient> open_for_sweeps(const std::string& name);

// The one row of an answer.
Result<wire::SweepRow> row_in(const Result<std::string>& body);
// The document of an answer, with what is added to it here (sweep_document.h).
Result<wire::SweepDocument> document_in(const Result<std::string>& body);

// With whose rights the files of a sweep are touched: root acts as the sweep's user, and never with
// its own rights for a user that it does not know.
Result<launch::Identity> sweeps_owner(const wire::SweepDocument& document);
// Removes the files of a sweep that the daemon has forgotten: `document` is from before. First they
// get another name, so that a new sweep of this name can begin at once.
Result<void> remove_files(const wire::SweepDocument& document);

}  // namespace mete::cli
