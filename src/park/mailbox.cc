// SPDX-License-Identifier: Apache-2.0
// See mailbox.h.
#include "park/mailbox.h"

#include <sys/eventfd.h>

namespace mete::park {

// Full means that it has rung many times and nobody has come yet.
void Bell::ring() const { (void)eventfd_write(eventfd_, 1); }

}  // namespace mete::park
