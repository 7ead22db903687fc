// SPDX-License-Identifier: Apache-2.0
// meted: the daemon.
#include "daemon/daemon.h"

int main(int argc, char** argv) { return mete::daemon::daemon_main(argc, argv); }
