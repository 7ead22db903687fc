// SPDX-License-Identifier: Apache-2.0
// The daemon's limit of descriptors: raised as far as it may be, divided between what needs them,
// and what jobs have instead (a program that uses select() breaks where descriptors are numerous).
#pragma once

#include <sys/resource.h>

#include <optional>

#include "base/descriptors.h"
#include "core/job/job.h"
#include "net/listen.h"

namespace mete::daemon {

struct Descriptors {
  base::DescriptorShares shares;
  std::optional<core::ResourceLimit> before;  // as we were started with
};

inline Descriptors raise_descriptors() {
  Descriptors descriptors;
  if (const Result<rlimit> before = net::raise_descriptor_limit())
    descriptors.before = core::ResourceLimit{RLIMIT_NOFILE, before->rlim_cur, before->rlim_max};
  rlimit now{};
  if (getrlimit(RLIMIT_NOFILE, &now) != 0) now.rlim_cur = 256;
  descriptors.shares = base::share_descriptors(now.rlim_cur);
  return descriptors;
}

}  // namespace mete::daemon
