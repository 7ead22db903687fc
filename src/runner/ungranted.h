// SPDX-License-Identifier: Apache-2.0
// Which jobs and processes hold memory on a job's cards without a grant: jobs beyond their grants,
// and processes outside mete. The daemon is asked when the driver had no memory for a job whose cap
// had room: another program is the cause.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runner/daemon_client.h"
#include "runner/job_plan.h"
#include "wire/cards.h"

namespace mete::runner {

// "job 12 of alice holds 48.5 GiB beyond its grant on card 0, process 412 of bob holds 3 GiB there"
// for the cards with these UUIDs, the largest first; "": everything there has a grant. `own` is the
// asking job, left out.
std::string ungranted_on(const wire::CardsDocument& document, std::span<const std::string> uuids,
                         const std::string& own);

std::vector<std::string> uuids_of(const JobPlan& plan);

// ungranted_on() with this daemon's cards, by a reading that is newer than the call; "" after 2 s,
// or without a daemon.
std::string who_holds_ungranted(const DaemonAt& where, std::span<const std::string> uuids,
                                const std::string& own);

}  // namespace mete::runner
