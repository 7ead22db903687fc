// SPDX-License-Identifier: Apache-2.0
// A listening TCP socket, for data that every client may read.
#pragma once

#include "base/fd.h"
#include "base/host_port.h"
#include "base/result.h"

namespace mete::net {

// Non-blocking, close-on-exec. busy: another program listens there. denied: this user may not use
// the port. invalid: this machine has no such address.
Result<Fd> listen_tcp(const base::HostPort& address);

}  // namespace mete::net
