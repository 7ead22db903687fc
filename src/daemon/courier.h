// SPDX-License-Identifier: Apache-2.0
// Delivers notifications, each by its own mete-notify process, which does what may take long or
// hang, with the rights of the job's user. The result is reported from the loop.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/notifier.h"
#include "seam/loop.h"

namespace mete::daemon {

class Courier {
 public:
  // `program` is mete-notify; "": there is none, and every delivery fails.
  Courier(std::string program, std::string sendmail, seam::Loop loop);
  ~Courier();
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  // For deliveries from now on.
  void set_sendmail(std::string program) { sendmail_ = std::move(program); }
  void deliver(const engine::Delivery& delivery, engine::Notifier::Done done);

 private:
  std::string program_;
  std::string sendmail_;
  seam::Loop loop_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mete::daemon
