// SPDX-License-Identifier: Apache-2.0
// One request in both notations: as users and the queue write it (core::Request, in bytes on the
// cards of a machine) and as clusters count it (cluster::Ask, in thousandths or MiB of cards of
// some node). What one notation cannot express is an error, never dropped.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/cluster/model.h"
#include "core/request/resolve.h"

namespace mete::simulate {

// unsupported: cards by name, `all`, several processes.
Result<core::cluster::Ask> ask_of(const core::Request& request);

// `types`: the types of the machine. unsupported: more than one of its types is allowed, but not
// all; the queue knows one type for a job.
Result<core::Request> request_of(const core::cluster::Ask& ask,
                                 const std::vector<std::string>& types);

// Stands for the ask in the queue, where requests of a cluster are compared and charged for, and
// never placed: different asks are different requests, and so are gangs of them.
core::Request line_request(const core::cluster::Ask& ask, std::uint32_t copies = 1);

// "--gpu 2x30G --gpu-type T4 --cpus 8 --ram 4G": the options that ask for it.
std::string words_of(const core::cluster::Ask& ask);
// words_of() with sizes as they were written.
std::string words_of(const core::cluster::Ask& ask, const core::Request& request);

}  // namespace mete::simulate
