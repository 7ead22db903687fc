// SPDX-License-Identifier: Apache-2.0
// The cards, as the daemon sees them without ever waiting for the driver: a helper process opens
// NVML, reads, and sends its readings; a wedged driver wedges only the helper. Both ends are here:
// CardHelper in the daemon, which never blocks, and run_card_helper, which runs in the child.
//
// The helper dies with the daemon, has all signals blocked and no descriptor but its own. A helper
// that dies is started again with a growing pause; one that is silent for too long is killed first.
// Meanwhile the last snapshot stays and ages. docs/adr/0009-nvml-helper.md.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "node/card_snapshot.h"
#include "node/card_wire.h"
#include "seam/clock.h"
#include "seam/driver.h"
#include "seam/loop.h"

namespace mete::node {

using OpenDriver = std::function<Result<std::unique_ptr<seam::Driver>>()>;

struct CardHelperSettings {
  OpenDriver open;                       // called in the helper
  std::string readings;                  // path of the readings file; "": none
  seam::Milliseconds busy_period{250};   // while a job holds a grant
  seam::Milliseconds idle_period{1000};  // otherwise
  seam::Milliseconds silence{5000};      // then it is killed
  // Before its first snapshot: a driver that is being loaded takes seconds for each card.
  seam::Milliseconds first_silence{30000};
  seam::Milliseconds first_pause{100};  // before a restart; doubles
  seam::Milliseconds longest_pause{10000};
};

// OpenDriver for NVML by path or name.
OpenDriver open_nvml(std::string library);

class CardHelper {
 public:
  // `changed` is called from the loop after each new snapshot and each new error.
  CardHelper(CardHelperSettings settings, seam::Loop loop, seam::Clock& clock,
             std::function<void()> changed);
  ~CardHelper();  // kills the helper without waiting
  CardHelper(const CardHelper&) = delete;
  CardHelper& operator=(const CardHelper&) = delete;

  // Four times a second, or once.
  void set_busy(bool busy);

  // The last snapshot, whatever its age.
  const std::optional<CardSnapshot>& last() const { return last_; }
  // nullopt: there was none yet.
  std::optional<seam::Nanoseconds> age() const;
  // Why there is no newer snapshot: no driver, driver and library of different versions, no
  // permission, the helper died or hangs. Cleared by the next snapshot.
  const std::optional<Error>& trouble() const { return trouble_; }
  // -1 while none runs.
  pid_t pid() const { return pid_; }
  // How often it was restarted.
  std::uint64_t restarts() const { return restarts_; }

 private:
  static constexpr std::size_t kMaxUnreaped = 4;
  static constexpr seam::Milliseconds kLook{1000};

  void start();
  void on_readable();
  // False: the helper is gone or sent an invalid frame, and was ended.
  bool drain();
  void take(CardMessage message);
  void send_pace();
  // Kills the helper and starts a new one after a pause.
  void restart(Error why);
  void look();
  void reap();
  void later(seam::Milliseconds delay, void (CardHelper::*what)());
  void report(Error why);

  CardHelperSettings settings_;
  seam::Loop loop_;
  seam::Clock& clock_;
  std::function<void()> changed_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // timers outlive us

  pid_t pid_ = -1;
  Fd socket_;
  CardDecoder decoder_;
  seam::Nanoseconds heard_{};  // last bytes of this helper, or its start
  bool has_read_ = false;      // this helper has sent a snapshot or an error
  bool busy_ = false;
  std::optional<bool> told_busy_;
  seam::Milliseconds pause_;
  std::uint64_t restarts_ = 0;
  std::vector<pid_t> unreaped_;  // killed, and still in the driver
  std::optional<CardSnapshot> last_;
  std::optional<Error> trouble_;
};

// The child: reads the driver and answers on `socket` until that is closed.
void run_card_helper(const CardHelperSettings& settings, int socket, seam::Clock& clock);

}  // namespace mete::node
