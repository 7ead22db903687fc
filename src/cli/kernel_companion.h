// SPDX-License-Identifier: Apache-2.0
// What a notebook hears of its kernel's job. While the job waits for a card, a stand-in process
// answers on the kernel's ports and shows in the notebook what the job waits for; it ends before
// the kernel starts. A job that cannot run says why in the same way, until the client shuts the
// kernel down. While the kernel runs it hears of a parked job that waits for room to come back.
// The stand-in and the kernel are data/jupyter/mete_kernel.py, whose first lines are the protocol.
//
// A kernel ends with the Jupyter server that started it (JPY_PARENT_PID is set then): ipykernel
// itself looks at its parent only, and that is this process.
//
// The stand-in is a process group of its own, so that an interrupt of the client's reaches it only
// through takes(); it ends when our end of its input closes, however this process ends.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "cli/run.h"

namespace mete::cli {

class KernelCompanion : public Companion {
 public:
  struct Place {
    std::string python;
    std::string script;           // mete_kernel.py
    std::string connection_file;  // of the kernel
  };
  KernelCompanion(Place place, const Output& output);
  ~KernelCompanion() override;

  // The descriptor from which the kernel reads; it is inherited by every program that we start.
  int kernel_end() const { return kernel_end_.get(); }

  void begin(int signals) override;
  int descriptor() const override { return events_.get(); }
  void waits(const std::string& what) override;
  bool takes(int number) override;
  bool is_over() override;
  void granted() override;
  void failed(const Error& error) override;
  void hears(const wire::JobView& view) override;

 private:
  Result<void> start();
  void tell(char kind, const std::string& text);
  // Waits until the stand-in has ended, at most this long; then it is killed.
  void end_within(int milliseconds);
  void reaped(int status);

  Place place_;
  const Output& output_;
  Fd parent_;   // the Jupyter server, as a descriptor
  Fd events_;   // signals, and the ends of the stand-in and of the server
  Fd signals_;  // a copy
  Fd input_;    // of the stand-in
  Fd process_;  // the stand-in, as a descriptor
  pid_t pid_ = -1;
  bool cannot_start_ = false;
  bool over_ = false;  // the client has shut the kernel down
  Fd kernel_;          // to the kernel
  Fd kernel_end_;      // its end of it
  bool told_parked_ = false;
};

}  // namespace mete::cli
