// SPDX-License-Identifier: Apache-2.0
// The daemon's limit on descriptors: raised as far as allowed and divided between their uses. Jobs
// get the limit from before (a program that uses select() breaks with high descriptors).
#pragma once

#include <sys/resource.h>

#include <optional>
#include <string>

#include "base/descriptors.h"
#include "base/result.h"
#include "core/job/job.h"
#include "net/listen.h"

namespace mete::daemon {

struct Descriptors {
  base::DescriptorShares shares;
  std::optional<core::ResourceLimit> before;  // as at our start
};

// exhausted: the daemon could start, but serve no client.
inline Result<Descriptors> raise_descriptors() {
  Descriptors descriptors;
  if (const Result<rlimit> before = net::raise_descriptor_limit())
    descriptors.before = core::ResourceLimit{RLIMIT_NOFILE, before->rlim_cur, before->rlim_max};
  rlimit now{};
  if (getrlimit(RLIMIT_NOFILE, &now) != 0) now.rlim_cur = 256;
  if (now.rlim_cur < base::kLeastDescriptors)
    return Error::exhausted("the limit on open files is too low for the daemon")
        .with_evidence("ulimit -H -n: " + std::to_string(now.rlim_cur) + ", it needs " +
                       std::to_string(base::kLeastDescriptors))
        .with_hint("start the daemon from a shell without that limit: mete cards");
  descriptors.shares = base::share_descriptors(now.rlim_cur);
  return descriptors;
}

}  // namespace mete::daemon
