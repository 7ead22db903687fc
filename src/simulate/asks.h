// SPDX-License-Identifier: Apache-2.0
// One request in the words of both: as people and the queue write it (core::Request, in bytes on
// the cards of a machine) and as clusters reckon (cluster::Ask, in thousandths or MiB of cards of
// some node). What one side cannot say is an error, never dropped.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/cluster/model.h"
#include "core/request/resolve.h"

namespace mete::simulate {

// unsupported: cards by name, `all`, several processes.
Result<core::cluster::Ask> ask_of(const core::Request& request);

// `types`: those of the machine. unsupported: some of its types are allowed and others are not, but
// more than one; the queue knows one type for a job.
Result<core::Request> request_of(const core::cluster::Ask& ask,
                                 const std::vector<std::string>& types);

// Stands for the ask in the queue's line, where requests of a cluster are compared and charged for,
// and never placed: different asks are different requests, and so are gangs of them.
core::Request line_request(const core::cluster::Ask& ask, std::uint32_t copies = 1);

// "--gpu 2x30G --gpu-type T4 --cpus 8 --ram 4G": the words that ask for it.
std::string words_of(const core::cluster::Ask& ask);
// The same with sizes as they were written.
std::string words_of(const core::cluster::Ask& ask, const core::Request& request);

}  // namespace mete::simulate
