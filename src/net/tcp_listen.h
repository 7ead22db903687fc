// SPDX-License-Identifier: Apache-2.0
// A listening TCP socket, for what anybody may read who can reach it.
#pragma once

#include "base/fd.h"
#include "base/host_port.h"
#include "base/result.h"

namespace mete::net {

// Non-blocking, close-on-exec. busy: somebody else listens there. denied: the port is not for this
// user. invalid: this machine has no such address.
Result<Fd> listen_tcp(const base::HostPort& address);

}  // namespace mete::net
