// SPDX-License-Identifier: Apache-2.0
// Who holds memory of a job's cards that no grant covers: jobs beyond their grants, and processes
// outside mete. Asked of the daemon when the driver had no memory left for a job whose cap had
// room: the culprit is another one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runner/daemon_client.h"
#include "runner/job_plan.h"
#include "wire/cards.h"

namespace mete::runner {

// "job 12 of alice holds 48.5 GiB beyond its grant on card 0, process 412 of bob holds 3 GiB there"
// of the cards with these UUIDs, the largest first; "": nothing is held there that no grant covers.
// `own` is the job that asks.
std::string ungranted_on(const wire::CardsDocument& document, std::span<const std::string> uuids,
                         const std::string& own);

// The cards of a job.
std::vector<std::string> uuids_of(const JobPlan& plan);

// The same of this daemon, by a reading that is newer than this call; after 2 s, or without a
// daemon, "".
std::string who_holds_ungranted(const DaemonAt& where, std::span<const std::string> uuids,
                                const std::string& own);

}  // namespace mete::runner
