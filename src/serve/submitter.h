// SPDX-License-Identifier: Apache-2.0
// The client of a request, as far as a job that outlives it needs: the name of its user, its
// groups, its limits. From the kernel, never from the request.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "net/http.h"

namespace mete::serve {

// "alice"; a number for a user without a name.
std::string name_of_user(uid_t uid);
// Whether a user has this name, in the form of name_of_user().
bool is_user(const std::string& name);

// Whether the client is a member of the group, by its credentials when it connected.
bool is_member(const net::Peer& peer, gid_t group);

// The contents of a job, by their hash.
using Contents = std::vector<std::pair<std::string, std::string>>;
// Moves the environment and script (of a detached job) and a long command out of the spec, which
// then names them by their hash.
Contents take_contents(core::JobSpec& spec, const std::vector<std::string>& environment = {},
                       std::string script = "");

// Puts gid, groups and limits of the peer into `detached`. busy: the peer is gone.
Result<void> take_identity(const net::Peer& peer, core::Detached& detached);

}  // namespace mete::serve
