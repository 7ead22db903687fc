// SPDX-License-Identifier: Apache-2.0
// See mailbox.h.
#include "park/mailbox.h"

#include <sys/eventfd.h>

namespace mete::park {

// A full counter means that it has rung many times without the loop reading it.
void Bell::ring() const { (void)eventfd_write(eventfd_, 1); }

}  // namespace mete::park
