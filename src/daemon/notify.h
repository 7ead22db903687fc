// SPDX-License-Identifier: Apache-2.0
// mete-notify: started by meted (courier.h) with a plan in descriptor 3, takes on the rights of the
// user of the job and runs the user's command or sendmail.
#pragma once

namespace mete::daemon {

int notify_main();

}  // namespace mete::daemon
