// SPDX-License-Identifier: Apache-2.0
// The client of a request, as far as a job that runs without it needs it: the name of its user, its
// groups, its limits. From the kernel, never from the request.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "net/http.h"

namespace mete::serve {

// "alice"; a user without a name is a number.
std::string name_of_user(uid_t uid);
// A user can have this name, as name_of_user() gives it.
bool is_user(const std::string& name);

// Whether it is one of the group's: by what it had when it connected.
bool is_member(const net::Peer& peer, gid_t group);

// What a job has of contents, by their hash.
using Contents = std::vector<std::pair<std::string, std::string>>;
// Takes environment and script (of a detached job) and a long command out of the spec, which names
// them by their hash from then on.
Contents take_contents(core::JobSpec& spec, const std::vector<std::string>& environment = {},
                       std::string script = "");

// gid, groups and limits of the peer into `detached`. busy: it has gone, and cannot be asked.
Result<void> take_identity(const net::Peer& peer, core::Detached& detached);

}  // namespace mete::serve
