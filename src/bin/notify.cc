// SPDX-License-Identifier: Apache-2.0
// mete-notify: delivers one notification with the rights of its user.
#include "daemon/notify.h"

int main() { return mete::daemon::notify_main(); }
